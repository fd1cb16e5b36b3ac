/* The parts of a review: what is judged, and the verdict made of the answer. Private to review. */
#ifndef AMP_FLOW_WORK_REVIEW_VERDICT_H
#define AMP_FLOW_WORK_REVIEW_VERDICT_H

#include <limits.h>

#include "flow/work/review.h"

struct amp_judged {
    const struct amp_view *v; /* the review_request */
    char task[256], subtask[256], repo[PATH_MAX], branch[256], base[AMP_OID_MAX * 4];
    char commit[AMP_OID_MAX];
    char worktree[PATH_MAX];
    char dispatch_ref[256], result_ref[256];
    json_t *dispatch, *result; /* the messages that it refers to */
    json_t *criteria;          /* those without a judgement first */
    int64_t attempt, wall_ms;
    struct amp_contract contract;
    struct amp_attempt files;
    struct amp_buf criteria_text, context_text;
    struct amp_git_refs refs;
    char fixed[AMP_OID_MAX]; /* the commit with the reviewer's own fixes, or "" */
    json_t *fixes;           /* direct_fixes with measured lines */
};

/* Turns the answer (or the exit status, where that is allowed) into a review_verdict line.
 * Codes of status NO when it gives none, for `why`: no_verdict, bad_answer, fix_out_of_range. */
struct amp_judgement {
    enum amp_attempt_end end;
    const char *how; /* how the command ended, as a sentence */
    bool by_exit;
};
int amp_judged_verdict(struct amp_worker *w, struct amp_judged *k, const struct amp_judgement *j,
                       struct amp_buf *line, bool *approved, struct amp_error *err);

/* Measures what the reviewer changed against its direct_fixes; in range: commits that under its
 * name and moves the task's branch on to it. NO fix_out_of_range. */
int amp_judged_fixes(struct amp_worker *w, struct amp_judged *k, const json_t *claimed,
                     struct amp_error *err);

#endif
