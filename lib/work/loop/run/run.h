/*
 * The Executor (AMP/1.0): takes task_dispatch messages, runs the agent in a worktree on the task's
 * branch, and answers with one task_result per subtask. The change is measured with git; the
 * agent's own assessment is passed on unverified.
 */
#ifndef AMP_WORK_LOOP_RUN_RUN_H
#define AMP_WORK_LOOP_RUN_RUN_H

#include "work/attempt/worker.h"
#include "work/rtp/runtime.h"

struct amp_run_options {
    struct amp_worker_options worker;
    struct amp_runtime_options runtime; /* of tasks of the Runtime Protocol */
    const char *base;                   /* start of a new branch if the task has no base, or NULL */
    /* Path patterns that work of a risk level must not change; NULL-terminated or NULL. */
    const char *const *forbid[AMP_RISK_HIGH + 1];
};
int amp_run_loop(struct amp_store *s, const struct amp_run_options *opt, enum amp_status *status,
                 struct amp_error *err);

/* For a pool: the context of a worker with this role is its struct amp_run_options. */
extern const struct amp_worker_role amp_run_role;

/* The change on the branch of a dispatch since its recorded base. The caller releases out. NO
 * missing_field: no base is recorded; or an error of git. */
int amp_run_measure(struct amp_store *s, struct amp_git *git, const struct amp_view *dispatch,
                    char commit[AMP_OID_MAX], struct amp_git_diff *out, struct amp_error *err);

#endif
