/*
 * The policy of the QA loop (docs/qa-loop.md): its defaults, and how amp.json changes them
 * (schemas/config/amp.json). Messages never change the policy.
 */
#ifndef AMP_WORK_TASK_POLICY_H
#define AMP_WORK_TASK_POLICY_H

#include <jansson.h>

#include <amp/protocol/body.h>

enum amp_result_action { AMP_RESULT_REDISPATCH, AMP_RESULT_ESCALATE, AMP_RESULT_FAIL };

/* One row of the results policy; the first matching row is used. */
struct amp_result_rule {
    enum amp_completion completion; /* partial or failed */
    char blocker[128];              /* glob over each blocker's text; "" matches any result */
    int64_t attempts_below;         /* matches while there were fewer attempts; 0: always */
    enum amp_result_action action;
    char type[32]; /* of the escalation */
};
#define AMP_RESULT_RULES_MAX 32
#define AMP_CI_CHECKS_MAX    64

struct amp_risk_path {
    bool admin;       /* the admin approves before the task is done */
    bool full_review; /* every review gets the complete diff, not only the new part */
};

struct amp_task_policy {
    int64_t lock_after;    /* rejections in a row that lock the task */
    double min_confidence; /* verdicts below it are escalated to the admin */
    bool minor_approves;   /* a rejection without a blocking issue counts as approval */
    int64_t ci_after;      /* CI failures in a row that escalate */
    char ci_checks[AMP_CI_CHECKS_MAX][64]; /* the required checks */
    unsigned n_ci_checks;                  /* 0: all checks are required */
    struct amp_risk_path risk[AMP_RISK_HIGH + 1];
    struct amp_result_rule results[AMP_RESULT_RULES_MAX];
    unsigned n_results;
};

void amp_task_policy_default(struct amp_task_policy *p);
/* Sets what amp.json has; config may be NULL. CONFIG "bad_value" names the key; p is unchanged. */
int amp_task_policy_load(struct amp_task_policy *p, const json_t *config, struct amp_error *err);

/* The row for a partial or failed result after `attempts` attempts; without a match a row that
 * escalates, never NULL. */
const struct amp_result_rule *amp_task_policy_result(const struct amp_task_policy *p,
                                                     enum amp_completion completion,
                                                     const struct amp_spans *blockers,
                                                     int64_t attempts);
/* Whether a failure of this check counts as a CI failure. */
bool amp_task_policy_counts(const struct amp_task_policy *p, const char *check);

#endif
