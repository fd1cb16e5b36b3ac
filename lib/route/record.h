/* The record that a router keeps of itself: how many batches it committed, and what it redelivered
 * with the last one. */
#ifndef AMP_ROUTE_RECORD_H
#define AMP_ROUTE_RECORD_H

#include "route/run.h"

/* One commit of a router: its event, the outbox entries, and what goes into its record. */
struct amp_route_commit {
    const char *event, *actor; /* actor NULL: the store's */
    const struct amp_store_input *in;
    const struct amp_store_emit *emits;
    uint32_t n_emits;
    struct amp_span port;         /* of a redelivery; empty: it is none */
    struct amp_span *redelivered; /* ids */
    uint32_t n_redelivered;
};
int amp_route_record(const struct amp_route_run *run, const struct amp_route_commit *c,
                     enum amp_store_outcome *how, struct amp_error *err);

#endif
