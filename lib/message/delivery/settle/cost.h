/*
 * The cost of the work on a message (struct amp_usage). Only outcomes that are not messages of the
 * ledger, or that do not give the cost, have such a record. There is one for each message, with the
 * message's id, and the last outcome counts; or one for each attempt, with an id of its own.
 */
#ifndef AMP_MESSAGE_DELIVERY_SETTLE_COST_H
#define AMP_MESSAGE_DELIVERY_SETTLE_COST_H

#include "message/protocol/work.h"
#include "message/store/store.h"

#define AMP_COST_KIND "spent" /* of the records in the store */

/* The spans of a record that was read point into the caller's mem. */
struct amp_cost {
    struct amp_span task, correlation, agent;
    int64_t tokens_in, tokens_out, micros, at_ms;
};
/* Records the usage in an outcome of the message, unless it is recorded already. */
int amp_cost_record(struct amp_store *s, struct amp_span id, const struct amp_view *outcome,
                    const struct amp_usage *usage, int64_t now_ms, struct amp_error *err);
/* Reads a row of this kind from amp_store_each. */
int amp_cost_parse(const struct amp_store_rec *row, struct amp_buf *mem, struct amp_cost *out,
                   struct amp_error *err);

#endif
