/* How an agent gets the messages of its inbox. */
#ifndef AMP_ROUTE_INBOX_LOOP_H
#define AMP_ROUTE_INBOX_LOOP_H

#include "message/inbox/lane.h"
#include "metrics/metrics.h"
#include "route/run.h"

struct amp_inbox_loop_options {
    const struct amp_route_voice *voice;
    volatile const int *stop; /* a signal came */
    /* As in struct amp_handover. */
    int (*safe)(struct amp_span text, int width, struct amp_buf *out, struct amp_error *err);
    const char *format;
    const char *const *argv;
    int64_t attempt_timeout_ms;
    const char *out_path;
    int64_t open_timeout_ms; /* how long a FIFO's reader is waited for */

    struct amp_span agent;
    const char *name; /* the agent's */
    const struct amp_lane_rules *lanes;
    bool follow;           /* waits for more; a signal ends it */
    bool between;          /* nothing while the agent is busy; what it gets makes it busy, */
    int64_t lease_ms;      /* at most this long */
    int64_t max_messages;  /* 0: any number */
    int64_t attempts;      /* of a message that its command fails at for a while */
    bool fulfill;          /* the command's success is FULFILLED */
    const char *acks_port; /* where acknowledgements go; NULL: none are made */
    struct amp_metrics_options metrics;
};

struct amp_inbox_end {
    uint64_t handed, refused;
};
/* The caller holds the agent's lock (amp_inbox_lock). Returns when nothing waits (or with `follow`
 * never), after max_messages, or with a failure; INTERRUPTED: a signal came. */
int amp_inbox_loop(struct amp_store *store, const struct amp_inbox_loop_options *o,
                   struct amp_inbox_end *end, struct amp_error *err);

#endif
