/*
 * The Reviewer (AMP/1.0): takes review_request messages, gives the agent the commit in a detached
 * worktree of its own, the diff, the criteria (those that the executor could not judge first) and
 * the result, and turns its answer into a review_verdict. What the reviewer changed itself is
 * measured, not believed.
 */
#ifndef AMP_FLOW_REVIEW_REVIEW_H
#define AMP_FLOW_REVIEW_REVIEW_H

#include "flow/work/worker.h"

struct amp_review_options {
    struct amp_worker_options worker;
    bool verdict_by_exit; /* a command that writes no answer: 0 approves, 1 rejects */
};
int amp_flow_review(struct amp_store *s, const struct amp_review_options *opt,
                    enum amp_status *status, struct amp_error *err);

#endif
