/*
 * The files of tasks that ended: once a day the directories STATE/run/<task> are removed in which
 * nothing was changed for as long as tasks are kept (store.keep.tasks), unless the task is open or
 * an attempt at it is unfinished; and STATE/tasks/<task>.json, if the task's record is gone.
 */
#ifndef AMP_WORK_LOOP_TIDY_H
#define AMP_WORK_LOOP_TIDY_H

#include "message/delivery/deadline.h"

/* A row of the deadlines. *done: the number of directories that were removed. */
int amp_tidy_due(struct amp_store *s, const struct amp_deadline_ctx *c, int64_t *ms,
                 struct amp_error *err);
int amp_tidy_run(struct amp_store *s, int64_t now_ms, const char *actor, uint32_t *done,
                 struct amp_error *err);

#endif
