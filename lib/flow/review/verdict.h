/* What is judged, and the verdict made of the reviewer's answer. */
#ifndef AMP_FLOW_REVIEW_VERDICT_H
#define AMP_FLOW_REVIEW_VERDICT_H

#include "flow/work/assignment.h"

struct amp_judged {
    struct amp_assignment of;
    char dispatch_ref[256], result_ref[256];
    json_t *dispatch, *result; /* the messages that the request refers to */
    struct amp_buf context;
    char fixed[AMP_OID_MAX]; /* the commit with the reviewer's own fixes, or "" */
    json_t *fixes;           /* direct_fixes with measured lines */
};

/* Turns the answer (or the exit status, where by_exit allows that) into a review_verdict line. What
 * the reviewer fixed itself is measured against its direct_fixes; in range, it is committed under
 * its name and the task's branch moves on to it. Codes of status NO when it gives no verdict, for
 * `why`: no_verdict, bad_answer, fix_out_of_range. */
int amp_judged_verdict(struct amp_worker *w, struct amp_judged *k, bool by_exit,
                       struct amp_buf *line, bool *approved, struct amp_error *err);

#endif
