/*
 * The demands of a request on its result: required members, and a check of one with the other (a
 * TASK of AOP and its RESPONSE: AOP §4, §5, §11).
 */
#ifndef AMP_MESSAGE_DELIVERY_SETTLE_RAILS_H
#define AMP_MESSAGE_DELIVERY_SETTLE_RAILS_H

#include <amp/protocol/protocol.h>

#include "message/protocol/work.h"
#include "message/store/store.h"

/* The demands of the newest request of the result; requests to the responding agent have priority.
 * Empty if the ledger has none. */
struct amp_rails_found {
    struct amp_result_fault fault; /* of the result; code NULL: none */
    unsigned waives;               /* AMP_WAIVES_ */
};
int amp_rails_find(struct amp_store *s, const struct amp_view *result, struct amp_rails_found *out,
                   struct amp_error *err);

/* amp_outcome_apply, but a result with a fault is refused: NO with the code of the fault. A fault
 * that ends the work sets its request to FAILED. */
int amp_rails_apply(struct amp_store *s, const struct amp_view *v, int64_t now_ms,
                    struct amp_error *err);
/* Whether an error of amp_rails_apply refuses the message. */
bool amp_rails_refused(const struct amp_error *e);
/* Appends the answer to a message that such an error refuses, one line with LF, numbered in the
 * outbox of `by`: of AMP_OUTCOME_UNCONFIRMED, whose sender may repair it; nothing for others. */
int amp_rails_answer(struct amp_store *s, const struct amp_view *v, const struct amp_error *why,
                     const char *by, int64_t now_ms, struct amp_buf *out, struct amp_error *err);

/* Finds the members that the request does not require, for amp_check_options.waives. */
struct amp_rails {
    struct amp_store *store;
    struct amp_error err;
    bool failed; /* the state could not be read; err has the reason */
};
unsigned amp_rails_waives(void *ctx, const struct amp_view *result);

#endif
