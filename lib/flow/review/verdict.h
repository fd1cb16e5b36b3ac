/* A review and the verdict that is made from the reviewer's answer. */
#ifndef AMP_FLOW_REVIEW_VERDICT_H
#define AMP_FLOW_REVIEW_VERDICT_H

#include "flow/work/assignment.h"

struct amp_judged {
    struct amp_assignment of;
    char dispatch_ref[256], result_ref[256];
    char about[300];           /* for the activity buffer */
    json_t *dispatch, *result; /* the messages that the request refers to */
    struct amp_buf context;
    char fixed[AMP_OID_MAX]; /* the commit with the reviewer's own fixes, or "" */
    json_t *fixes;           /* direct_fixes with measured lines */
};

/* Appends a review_verdict made from the answer, or with by_exit from the exit status if there is
 * no answer. The reviewer's fixes are measured against its direct_fixes, committed under its name,
 * and the task's branch moves to that commit. NO without a verdict: no_verdict, bad_answer,
 * fix_out_of_range, branch_moved. */
int amp_judged_verdict(struct amp_worker *w, struct amp_judged *k, bool by_exit,
                       struct amp_buf *line, bool *approved, struct amp_error *err);

#endif
