/*
 * The Executor (AMP/1.0): takes task_dispatch messages, runs the agent in a worktree on the task's
 * branch, and answers with one task_result per subtask. The change is measured with git; the
 * agent's own assessment is passed on unverified.
 */
#ifndef AMP_FLOW_RUN_RUN_H
#define AMP_FLOW_RUN_RUN_H

#include "flow/work/worker.h"

struct amp_run_options {
    struct amp_worker_options worker;
    const char *base; /* start of a new branch if the task has no base, or NULL */
    /* Path patterns that work of a risk level must not change; NULL-terminated or NULL. */
    const char *const *forbid[AMP_RISK_HIGH + 1];
};
int amp_flow_run(struct amp_store *s, const struct amp_run_options *opt, enum amp_status *status,
                 struct amp_error *err);

/* The commit at which the work on a branch began, if no coordinator recorded a base. 1: it is
 * known; 0: it is not. */
int amp_run_base(struct amp_store *s, struct amp_span task, struct amp_span branch,
                 char base[AMP_OID_MAX], struct amp_error *err);

#endif
