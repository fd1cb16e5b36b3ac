/*
 * The guard rails that a request sets for its result: what the result must have, and what the work
 * may cost (a TASK of AOP and its RESPONSE: AOP §5, §9).
 */
#ifndef AMP_MESSAGE_SETTLE_RAILS_H
#define AMP_MESSAGE_SETTLE_RAILS_H

#include <amp/protocol/protocol.h>

#include "store/store.h"

/* By the request of the result: of several attempts the newest, and first of those for the agent
 * that responds. Empty where the ledger knows no such request. */
struct amp_rails_found {
    const char *fault; /* the code of what the result breaks; NULL: nothing */
    unsigned waives;   /* AMP_WAIVES_ */
};
int amp_rails_find(struct amp_store *s, const struct amp_view *result, struct amp_rails_found *out,
                   struct amp_error *err);

/* amp_outcome_apply, but a result with a fault ends its request as FAILED, and is refused itself:
 * NO with the code of the fault. */
int amp_rails_apply(struct amp_store *s, const struct amp_view *v, int64_t now_ms,
                    struct amp_error *err);
/* Whether an error of amp_rails_apply refuses the message. */
bool amp_rails_refused(const struct amp_error *e);

/* For amp_check_options.waives: what the request does not require. */
struct amp_rails {
    struct amp_store *store;
    struct amp_error err;
    bool failed; /* the state could not be asked; err says why */
};
unsigned amp_rails_waives(void *ctx, const struct amp_view *result);

#endif
