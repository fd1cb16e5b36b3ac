/*
 * The Executor (AMP/1.0): takes task_dispatch messages, has the agent work in a worktree on the
 * task's branch, and answers with one task_result a subtask. What it reports about the change is
 * measured from git; what the agent says about itself is carried as such.
 */
#ifndef AMP_FLOW_RUN_RUN_H
#define AMP_FLOW_RUN_RUN_H

#include "flow/work/worker.h"

struct amp_run_options {
    struct amp_worker_options worker;
    const char *base; /* where a branch begins that does not exist and whose task names none */
    /* Path patterns that work of a risk level may not touch; NULL-terminated or NULL. */
    const char *const *forbid[AMP_RISK_HIGH + 1];
};
int amp_flow_run(struct amp_store *s, const struct amp_run_options *opt, enum amp_status *status,
                 struct amp_error *err);

#endif
