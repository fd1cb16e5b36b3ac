/*
 * Who may tell the end of a piece of work: who took it up; where nobody said so, its recipient; of
 * AOP the agent that the TASK names, of AOF the one that the work was handed to. A name that is a
 * role is that of every agent which is registered with it.
 */
#ifndef AMP_MESSAGE_LEDGER_HOLDER_H
#define AMP_MESSAGE_LEDGER_HOLDER_H

#include <amp/protocol/protocol.h>

#include "message/record/record.h"

struct amp_holder_claim {
    enum amp_ack_stage stage;
    const char *by, *role; /* role: of who says it; may be empty */
    bool takes_up;         /* a word that only the agent which has the work may say */
};

/* NO, with the protocol's own code: permission_denied, E_PERMISSION_DENIED, unauthorized_agent,
 * not_assignee or not_claimant. What it says names the message. */
int amp_holder_check(const struct amp_message_rec *r, struct amp_span id,
                     const struct amp_holder_claim *c, struct amp_error *err);
/* Whether an error is one of these. */
bool amp_holder_denied(const struct amp_error *e);
/* Whether he is the one who is awaited, as far as that is known. */
bool amp_holder_is(const struct amp_message_rec *r, const struct amp_holder_claim *c);
/* Whether the message itself names who is to do the work, so that nobody takes it up by a word. */
bool amp_holder_named(const struct amp_message_rec *r);

/* The role of an agent in the directory; empty where it has none. */
int amp_holder_role(struct amp_store *s, const char *agent, char role[128], struct amp_error *err);

#endif
