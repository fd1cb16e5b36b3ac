/* A router's record in the store: how many batches it committed, and the messages that the last one
 * redelivered. */
#ifndef AMP_MESSAGE_ROUTE_RECORD_H
#define AMP_MESSAGE_ROUTE_RECORD_H

#include "message/route/run.h"

/* One commit: its event, its outbox entries and the router's new record. */
struct amp_route_commit {
    const char *event, *actor; /* actor NULL: the store's */
    const struct amp_store_input *in;
    const struct amp_store_emit *emits;
    uint32_t n_emits;
    struct amp_span port;         /* of a redelivery; else empty */
    struct amp_span *redelivered; /* ids */
    uint32_t n_redelivered;
};
int amp_route_record(const struct amp_route_run *run, const struct amp_route_commit *c,
                     enum amp_store_outcome *how, struct amp_error *err);

#endif
