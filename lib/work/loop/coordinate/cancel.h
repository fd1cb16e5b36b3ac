/*
 * A person cancels a task: the same step as the decision `terminate`, which needs no open question.
 * The commit has the decision, and the nack for the receiver of the open dispatch or review request
 * is in the coordinator's outbox: a running coordinator sends it, else the next one.
 */
#ifndef AMP_WORK_LOOP_COORDINATE_CANCEL_H
#define AMP_WORK_LOOP_COORDINATE_CANCEL_H

#include "work/task/task.h"

struct amp_cancel {
    struct amp_span task;
    struct amp_span line; /* a decision `terminate` of the task, perhaps signed, without LF */
    const char *consumer; /* the coordinator's */
    int64_t now_ms;
};
/* Ends the task, settles its open message, lifts the suspensions of its agents by escalations,
 * syncs, and writes the task file. NO unknown_task; ended (the task has ended; err says how). A
 * task that was cancelled before is not changed, and what a crash left is completed. */
int amp_task_cancel(struct amp_store *s, const struct amp_cancel *c, bool *changed,
                    struct amp_error *err);

/* The consumer of a coordinator without --as. */
#define AMP_COORDINATE_CONSUMER "task-dispatch.coordinate"
/* The beginning of the ids of such nacks in the outbox. */
#define AMP_CANCEL_NACK "cancel-"

#endif
