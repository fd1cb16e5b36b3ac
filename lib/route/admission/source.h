/* What the streams and the log need to take messages out of the store. */
#ifndef AMP_ROUTE_SOURCE_H
#define AMP_ROUTE_SOURCE_H

#include "message/cursor/cursor.h"
#include "route/keeper/keeper.h"

struct amp_source_env {
    struct amp_route_run *run;
    struct amp_jobs *jobs;
    struct amp_keeper *keeper;
    /* Looks at a message that has its line only. */
    int (*look)(void *ctx, struct job *j, struct amp_error *err);
    void *look_ctx;
    /* Messages that are committed, a chain by `next`: they go on to their ports. */
    void (*pass)(void *ctx, struct job *first);
    void *pass_ctx;
    const char *consumer; /* whose numbered streams are followed; NULL: none are */
    enum amp_on_gap on_gap;
    int64_t gap_ms, lease_ms, waiting;
    const char *from; /* where in the log to begin; NULL: it is not read */
};

#endif
