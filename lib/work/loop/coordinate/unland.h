/*
 * Approved work that does not land goes back: to the executor as rework, with the reasons as
 * blockers, or to a person as a question. The dispatch or the question is in the outbox of
 * AMP_CREATE_CONSUMER, from which a running coordinator, or the next one, sends it.
 */
#ifndef AMP_WORK_LOOP_COORDINATE_UNLAND_H
#define AMP_WORK_LOOP_COORDINATE_UNLAND_H

#include <jansson.h>

#include "work/task/policy.h"
#include "work/task/record.h"

struct amp_unland {
    struct amp_span task;
    const char *verdict;                  /* of the approval; another one is not sent back */
    const json_t *why;                    /* list of sentences */
    bool ask;                             /* ask a person whether it may be merged */
    const struct amp_task_policy *policy; /* lock_after is also the limit of landings in a row */
    int64_t now_ms;
};
/* Sends the work of a task that is done back, syncs, and writes the task file. After too many times
 * in a row a person is asked what to do. *state: the task's new state. NO unknown_task; not_done:
 * the task is not done with this verdict any more. */
int amp_task_unland(struct amp_store *s, const struct amp_unland *u, uint8_t *state,
                    struct amp_error *err);

#endif
