/*
 * The Executor (AMP/1.0): takes task_dispatch messages, has the agent work in a worktree on the
 * task's branch, and answers with one task_result a subtask. What it reports about the change is
 * measured from git; what the agent says about itself is carried as such.
 */
#ifndef AMP_FLOW_RUN_H
#define AMP_FLOW_RUN_H

#include "flow/worker.h"

struct amp_run_options {
    struct amp_worker_options worker;
    const char *base; /* where a branch begins that does not exist and whose task names none */
    /* Path patterns that work of a risk level may not touch; NULL-terminated or NULL. */
    const char *const *forbid[AMP_RISK_HIGH + 1];
};
int amp_flow_run(struct amp_store *s, const struct amp_run_options *opt, enum amp_status *status,
                 struct amp_error *err);

/* The written table of scope: whether a changed path is forbidden, by the patterns of the risk
 * level or by a dispatch's forbidden_actions. A word of an action counts as a path pattern when it
 * has a slash, a star, or the form name.suffix; without a slash it is matched against the last
 * component, with one at the end against everything below. The pattern is copied to by. */
bool amp_scope_forbids(struct amp_span path, const char *const *patterns,
                       const struct amp_spans *actions, char *by, size_t size);

#endif
