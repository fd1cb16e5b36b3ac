/*
 * The Reviewer (AMP/1.0): takes review_request messages, gives the agent the commit in a detached
 * worktree, the diff, the criteria and the result, and makes a review_verdict from its answer. The
 * reviewer's own fixes are measured with git.
 */
#ifndef AMP_WORK_LOOP_REVIEW_REVIEW_H
#define AMP_WORK_LOOP_REVIEW_REVIEW_H

#include "work/attempt/worker.h"

struct amp_review_options {
    struct amp_worker_options worker;
    bool verdict_by_exit; /* without an answer the exit status decides: 0 approves, 1 rejects */
};
int amp_review_loop(struct amp_store *s, const struct amp_review_options *opt,
                    enum amp_status *status, struct amp_error *err);

/* For a pool: the context of a worker with this role is its struct amp_review_options. */
extern const struct amp_worker_role amp_review_role;

#endif
