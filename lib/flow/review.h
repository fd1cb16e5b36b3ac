/*
 * The Reviewer (AMP/1.0): takes review_request messages, gives the agent the commit in a detached
 * worktree of its own, the diff, the criteria (those that the executor could not judge first) and
 * the result, and turns its answer into a review_verdict. What the reviewer changed itself is
 * measured, not believed.
 */
#ifndef AMP_FLOW_REVIEW_H
#define AMP_FLOW_REVIEW_H

#include "flow/worker.h"

struct amp_review_options {
    struct amp_worker_options worker;
    bool verdict_by_exit; /* a command that writes no answer: 0 approves, 1 rejects */
};
int amp_flow_review(struct amp_store *s, const struct amp_review_options *opt,
                    enum amp_status *status, struct amp_error *err);

/* "file://REPO#BASE...COMMIT" into its parts; false for anything else. */
bool amp_diff_url_parse(struct amp_span url, char *base, size_t base_size, char *commit,
                        size_t commit_size);

/* Added and removed lines a file of a unified diff. */
struct amp_patch_file {
    char *path;
    int64_t lines; /* added and removed */
    bool created;
    bool binary;
};
struct amp_patch {
    struct amp_patch_file *v;
    uint32_t n;
};
int amp_patch_read(const char *path, struct amp_patch *out, struct amp_error *err);
void amp_patch_release(struct amp_patch *p);

#endif
