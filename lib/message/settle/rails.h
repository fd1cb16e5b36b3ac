/*
 * The limits that a request sets for its result: required members, and the cost of the work (a TASK
 * of AOP and its RESPONSE: AOP §5, §9).
 */
#ifndef AMP_MESSAGE_SETTLE_RAILS_H
#define AMP_MESSAGE_SETTLE_RAILS_H

#include <amp/protocol/protocol.h>

#include "store/store.h"

/* The limits of the newest request of the result; requests to the responding agent have priority.
 * Empty if the ledger has none. */
struct amp_rails_found {
    const char *fault; /* the code of the limit that the result exceeds; NULL: none */
    unsigned waives;   /* AMP_WAIVES_ */
};
int amp_rails_find(struct amp_store *s, const struct amp_view *result, struct amp_rails_found *out,
                   struct amp_error *err);

/* amp_outcome_apply, but a result with a fault sets its request to FAILED and is refused: NO with
 * the code of the fault. */
int amp_rails_apply(struct amp_store *s, const struct amp_view *v, int64_t now_ms,
                    struct amp_error *err);
/* Whether an error of amp_rails_apply refuses the message. */
bool amp_rails_refused(const struct amp_error *e);

/* For amp_check_options.waives: the members that the request does not require. */
struct amp_rails {
    struct amp_store *store;
    struct amp_error err;
    bool failed; /* the state could not be read; err has the reason */
};
unsigned amp_rails_waives(void *ctx, const struct amp_view *result);

#endif
