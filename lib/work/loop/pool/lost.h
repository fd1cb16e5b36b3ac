/*
 * Pools and agents whose process was killed: nothing that they hold has a time limit of its own. A
 * process has the lock of its name until it ends.
 */
#ifndef AMP_WORK_LOOP_POOL_LOST_H
#define AMP_WORK_LOOP_POOL_LOST_H

#include "message/delivery/deadline.h"

/* Calls fn for each of them; fn returns 0, 1 (stop) or -1. */
struct amp_lost {
    const char *what; /* "pool", or "agent" */
    struct amp_span name, task;
    int64_t seen_ms; /* the last sign of life */
};
typedef int (*amp_lost_fn)(void *ctx, const struct amp_lost *l, struct amp_error *err);
int amp_lost_each(struct amp_store *s, amp_lost_fn fn, void *ctx, struct amp_error *err);

/* The row "lost" of the deadlines, which looks every 10 s while agents are at work: the jobs of
 * these pools are queued again, and their records are removed; these agents fail, with a
 * NOTIFICATION to the admin. */
int amp_lost_due(struct amp_store *s, const struct amp_deadline_ctx *c, int64_t *ms,
                 struct amp_error *err);
int amp_lost_run(struct amp_store *s, int64_t now_ms, const struct amp_deadline_ctx *c,
                 uint32_t *done, struct amp_error *err);

#endif
