/*
 * The command that judges two jobs (--conflict-exec): one JSON object in
 * (schemas/queue/conflict_request.json), one out (conflict_answer.json). It is started without a
 * shell, with the person's environment but for GIT_* and AMP_*; with its end, or its time limit,
 * its process tree ends. For the files of work/item/judge/.
 */
#ifndef AMP_WORK_ITEM_JUDGE_EXEC_COMMAND_H
#define AMP_WORK_ITEM_JUDGE_EXEC_COMMAND_H

#include <amp/base/id.h>

#include "base/process/runner.h"

struct amp_judge_run {
    struct amp_runner runner;
    int fd; /* from its standard output, -1: none */
    struct amp_buf answer;
    bool flooded;
    char mark[AMP_UUID_MAX]; /* in the environment of its processes */
};
/* Starts it. UNAVAILABLE command_not_found, not_executable, and others of amp_runner_start. */
int amp_judge_run_start(struct amp_judge_run *r, char *const *argv, struct amp_span request,
                        int64_t limit_ms, struct amp_error *err);
/* Reads what is there; 1: it has ended, and its processes with it. */
int amp_judge_run_look(struct amp_judge_run *r, struct amp_child_end *end, struct amp_error *err);
/* Ends it, and waits for that. */
void amp_judge_run_stop(struct amp_judge_run *r);
/* The answer after its end: 0, with the confidence in millionths, and the reason in the answer's
 * buffer. -1: there is none: command_failed, command_timeout, bad_answer, version_incompatible. */
int amp_judge_run_answer(const struct amp_judge_run *r, const struct amp_child_end *end,
                         int64_t *confidence, struct amp_buf *reason, struct amp_error *why);

#endif
