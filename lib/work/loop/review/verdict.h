/* A review and the verdict that is made from the reviewer's answer. */
#ifndef AMP_WORK_LOOP_REVIEW_VERDICT_H
#define AMP_WORK_LOOP_REVIEW_VERDICT_H

#include "work/attempt/assignment.h"

struct amp_judged {
    struct amp_assignment of;
    char dispatch_ref[256], result_ref[256];
    char about[300];           /* for the activity buffer */
    json_t *dispatch, *result; /* the messages that the request refers to */
    struct amp_buf context;
    char fixed[AMP_OID_MAX]; /* the commit with the reviewer's own fixes, or "" */
    json_t *fixes;           /* direct_fixes with measured lines */
    json_t *checked; /* the criteria that are commands: [{"criterion","passed","evidence"}…] */
    bool failed;     /* one of them failed */
};

/* Whether a criterion of the dispatch looks like a command. */
bool amp_judged_has_commands(const struct amp_judged *k);
/* Runs the criteria that are commands, in the worktree; k->checked has their results. 0; 1: the
 * work is being stopped; -1: failure, NO no_verdict if a command could not be started. */
int amp_judged_check(struct amp_worker *w, struct amp_judged *k, struct amp_error *err);

/* Appends a review_verdict made from the answer, or with by_exit from the exit status if there is
 * no answer. If a command among the criteria failed, it is a rejection, and there is no answer. The
 * reviewer's fixes are measured against its direct_fixes, committed under its name, and the task's
 * branch moves to that commit. NO without a verdict: no_verdict, bad_answer, fix_out_of_range,
 * branch_moved. */
int amp_judged_verdict(struct amp_worker *w, struct amp_judged *k, bool by_exit,
                       struct amp_buf *line, bool *approved, struct amp_error *err);

#endif
