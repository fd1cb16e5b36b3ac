/*
 * The agent that may report the end of work: its holder; without a holder any recipient, unless the
 * protocol requires that the work is accepted first. In some protocols the agent that the message
 * names is always the holder. A role stands for every agent that is registered with it.
 */
#ifndef AMP_MESSAGE_DELIVERY_LEDGER_HOLDER_H
#define AMP_MESSAGE_DELIVERY_LEDGER_HOLDER_H

#include <amp/protocol/protocol.h>

#include "message/delivery/record/record.h"

struct amp_holder_claim {
    enum amp_ack_stage stage;
    const char *by, *role; /* the reporting agent and its role, which may be NULL or empty */
    bool worded;           /* reported by a message, not by the program that handed it over */
    bool takes_up;         /* only the agent that has the work may report it */
};

/* NO with the protocol's own code (amp_work_terms.denied): the agent may not report this stage. The
 * text of the error names the message's id. */
int amp_holder_check(const struct amp_message_rec *r, struct amp_span id,
                     const struct amp_holder_claim *c, struct amp_error *err);
/* Whether an error is one of these. */
bool amp_holder_denied(const struct amp_error *e);
/* Whether the agent is the holder or, without one, a recipient. */
bool amp_holder_is(const struct amp_message_rec *r, const struct amp_holder_claim *c);
/* Whether the message names the holder, so that no agent becomes the holder by a message. */
bool amp_holder_named(const struct amp_message_rec *r);

/* AMP's work is a task_dispatch or review_request. From READ to the outcome its holder must give
 * signs of life (AMP/1.0: 30 min without one is a heartbeat_timeout). Messages to the coordinator
 * are not watched, because it passes the work on. */
bool amp_work_is(const struct amp_message_rec *r);
/* Whether `by` (an agent or its role) holds AMP's work, as far as this is known. */
bool amp_work_holds(const struct amp_message_rec *r, const char *by);

/* Whether an agent holds the work only after it has accepted it by a message. */
bool amp_holder_accepts(const struct amp_message_rec *r);

/* The role that an agent is registered with; "": none. */
int amp_holder_role(struct amp_store *s, const char *agent, char role[128], struct amp_error *err);

#endif
