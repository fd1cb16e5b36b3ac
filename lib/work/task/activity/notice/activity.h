/*
 * The activity buffer in the work of the tools (lib/work/task/activity has the entries). Publishing
 * never prevents an execution: an entry that is refused is reported and recorded in the error log.
 *
 *   amp_notice_begin(s, &publisher, &entry, err);   // before the execution; then sync
 *   …
 *   amp_notice_end(s, &publisher, &entry, AMP_ACTIVITY_COMPLETED, err);
 */
#ifndef AMP_WORK_TASK_ACTIVITY_NOTICE_ACTIVITY_H
#define AMP_WORK_TASK_ACTIVITY_NOTICE_ACTIVITY_H

#include <jansson.h>

#include "message/metrics/metrics.h"
#include "work/task/activity/activity.h"

struct amp_activity_publisher {
    const char *tool;                  /* for the error log */
    struct amp_activity_limits limits; /* zeros: the defaults */
    void (*note)(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
};

/* The section activity of amp.json, which the schema has checked; NULL: the defaults. */
void amp_notice_limits(const json_t *config, struct amp_activity_limits *out);

/* Ends the agent's entries that killed processes left, then makes this one. 0 also if the entry is
 * refused (activity_buffer_full, recorded and noted) and when the buffer becomes nearly full
 * (activity_buffer_high, the same as a warning). -1: the store failed. */
int amp_notice_begin(struct amp_store *s, const struct amp_activity_publisher *p,
                     const struct amp_activity *a, struct amp_error *err);
int amp_notice_end(struct amp_store *s, const struct amp_activity_publisher *p,
                   const struct amp_activity *a, enum amp_activity_end how, struct amp_error *err);

/* For an agent that is about to begin: what others do in the repository, or on the task if none is
 * given. Appends {"entries":[…],"more":N} with at most AMP_ACTIVITY_SCOPE_MAX entries and
 * AMP_ACTIVITY_SCOPE_BYTES bytes; more is the number of those left out. */
enum { AMP_ACTIVITY_SCOPE_MAX = 50, AMP_ACTIVITY_SCOPE_BYTES = 65536 };
int amp_notice_scope(struct amp_store *s, struct amp_span agent, struct amp_span repo,
                     struct amp_span task, struct amp_buf *out, struct amp_error *err);

/* Ends the active entries without a process, or whose task has ended (SW4RM §10). */
int amp_notice_reconcile(struct amp_store *s, const char *agent /* NULL: all */,
                         const struct amp_activity_limits *limits, int64_t now_ms, uint32_t *n,
                         struct amp_error *err);

/* Sets the metrics of the buffer. max: activity.max, 0: the default. metrics may be NULL. */
int amp_notice_measure(struct amp_store *s, int64_t max, struct amp_metrics *metrics,
                       struct amp_error *err);

/* The deadline row ends the entries that are due, and the history after its time. */
int amp_notice_sweep(struct amp_store *s, int64_t now_ms, const char *actor, uint32_t *done,
                     struct amp_error *err);

#endif
