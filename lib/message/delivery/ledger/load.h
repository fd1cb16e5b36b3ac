/*
 * The number of works that an agent has accepted and not ended, where the protocol limits it
 * (amp_work_terms.claims_most). Key "work_claim.<agent>.<message>"; a record whose work has ended
 * does not count, and is removed with the agent's next claim.
 */
#ifndef AMP_MESSAGE_DELIVERY_LEDGER_LOAD_H
#define AMP_MESSAGE_DELIVERY_LEDGER_LOAD_H

#include <amp/protocol/protocol.h>

#include "message/store/store.h"

#define AMP_LOAD_MOST 200 /* the highest limit */

/* The limit of this protocol, 0: none. */
int64_t amp_load_most(enum amp_protocol p);
/* Sets the limit of this process, for the protocols that have one; call it before the first
 * message. arg is ignored. USAGE, a code of amp_num_parse. */
int amp_load_set(void *arg, const char *text, struct amp_error *err);
#define AMP_LOAD_SETTINGS                                                                          \
    {                                                                                              \
        "runtime.max_claims", amp_load_set                                                         \
    }

/* Whether the agent may accept the work of a message. NO, the code of AMP_WORK_UNAPPROVED: a person
 * must approve it first; the code of AMP_WORK_FULL: it has as many as it may. A message that it has
 * accepted, and another attempt at the same task, are no further work. */
int amp_load_check(struct amp_store *s, const char *agent, struct amp_span id,
                   struct amp_error *err);
/* Records that the agent accepted it. */
int amp_load_note(struct amp_store *s, const char *agent, struct amp_span id,
                  struct amp_error *err);

#endif
