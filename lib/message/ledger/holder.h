/*
 * Who may report the end of a piece of work: the agent that took it up; while there is none, a
 * recipient, unless such work has to be accepted first. In some protocols it is always the agent
 * that the message names. A name that is a role is that of every agent which is registered with it.
 */
#ifndef AMP_MESSAGE_LEDGER_HOLDER_H
#define AMP_MESSAGE_LEDGER_HOLDER_H

#include <amp/protocol/protocol.h>

#include "message/record/record.h"

struct amp_holder_claim {
    enum amp_ack_stage stage;
    const char *by, *role; /* role: of who says it; may be empty */
    bool worded;           /* by a message, not by who handed the work over */
    bool takes_up;         /* a word that only the agent which has the work may say */
};

/* NO, with the protocol's own code (amp_terms.denied). The message of the error names the id. */
int amp_holder_check(const struct amp_message_rec *r, struct amp_span id,
                     const struct amp_holder_claim *c, struct amp_error *err);
/* Whether an error is one of these. */
bool amp_holder_denied(const struct amp_error *e);
/* Whether he is the one who is awaited, as far as that is known. */
bool amp_holder_is(const struct amp_message_rec *r, const struct amp_holder_claim *c);
/* Whether the message itself names who is to do the work, so that nobody takes it up by a word. */
bool amp_holder_named(const struct amp_message_rec *r);

/* Whether an agent holds the work only after it has accepted it by a message. */
bool amp_holder_accepts(const struct amp_message_rec *r);

/* The role that an agent is registered with; empty: none. */
int amp_holder_role(struct amp_store *s, const char *agent, char role[128], struct amp_error *err);

#endif
