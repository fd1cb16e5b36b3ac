/* The options and parts that admission, the streams and the reading of the log use. */
#ifndef AMP_MESSAGE_ROUTE_ADMISSION_SOURCE_H
#define AMP_MESSAGE_ROUTE_ADMISSION_SOURCE_H

#include "message/delivery/cursor/cursor.h"
#include "message/route/address/addressing.h"
#include "message/route/keeper/keeper.h"

struct amp_source_env {
    struct amp_route_run *run;
    struct amp_parcels *parcels;
    struct amp_keeper *keeper;
    struct amp_outlets *outlets;
    const struct amp_rules *rules;
    struct amp_addressing *addressing;
    const struct amp_lane_rules *lanes;
    /* Checks a message that has only its line; set by admission. */
    int (*look)(void *ctx, struct parcel *j, struct amp_error *err);
    void *look_ctx;
    /* Routes committed messages, a chain by `next`. */
    void (*pass)(void *ctx, struct parcel *first);
    void *pass_ctx;

    const char *consumer; /* follows numbered streams; NULL: no streams are followed */
    enum amp_on_gap on_gap;
    int64_t gap_ms, lease_ms, waiting;
    const char *from;  /* position in the log to begin at; NULL: the log is not read */
    int64_t window_ms; /* how long an outcome is reported to a repeated operation */
};

#endif
