/*
 * The guard rails of an AOP TASK, for the RESPONSE that answers it (AOP §5, §9): what its report
 * must have, and what the work may cost.
 */
#ifndef AMP_MESSAGE_SETTLE_RAILS_H
#define AMP_MESSAGE_SETTLE_RAILS_H

#include <amp/protocol/aop_policy.h>

#include "store/store.h"

/* The policy of the TASK that the RESPONSE answers; of several attempts that of the newest, and
 * first of those for the agent that responds. Its tokens are of no use: the TASK's view is gone.
 * 1; 0: the ledger knows no such TASK; -1. */
int amp_rails_policy(struct amp_store *s, const struct amp_view *response,
                     struct amp_aop_policy *out, struct amp_error *err);

/* amp_outcome_apply, held against the budgets of the TASK: a RESPONSE that cost more ends the TASK
 * as FAILED, and is refused itself: NO E_COST_LIMIT_EXCEEDED. */
int amp_rails_apply(struct amp_store *s, const struct amp_view *v, int64_t now_ms,
                    struct amp_error *err);
/* Whether an error of amp_rails_apply refuses the message. */
bool amp_rails_refused(const struct amp_error *e);

/* For amp_check_options.waives: what the TASK does not require. */
struct amp_rails {
    struct amp_store *store;
    struct amp_error err;
    bool failed; /* the state could not be asked; err says why */
};
unsigned amp_rails_waives(void *ctx, const struct amp_view *response);

#endif
