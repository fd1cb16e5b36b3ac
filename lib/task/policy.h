/*
 * What a team may decide otherwise about the QA loop: the tables of docs/qa-loop.md, with their
 * defaults, read from amp.json (schemas/config/amp.json). Never from a message.
 */
#ifndef AMP_TASK_POLICY_H
#define AMP_TASK_POLICY_H

#include <jansson.h>

#include <amp/protocol/body.h>

enum amp_result_action { AMP_RESULT_REDISPATCH, AMP_RESULT_ESCALATE, AMP_RESULT_FAIL };

/* One row of the table of results; the first that fits counts. */
struct amp_result_rule {
    enum amp_completion completion; /* partial or failed */
    char blocker[128];              /* glob over each blocker's text, "" fits any result */
    int64_t attempts_below;         /* fits while fewer attempts were made; 0: always */
    enum amp_result_action action;
    char type[32]; /* of the escalation */
};
#define AMP_RESULT_RULES_MAX 32
#define AMP_CI_CHECKS_MAX    64

struct amp_risk_path {
    bool admin;       /* the admin approves before the task is done */
    bool full_review; /* every review sees the whole diff, not only what is new */
};

struct amp_task_policy {
    int64_t lock_after;    /* rejections in a row */
    double min_confidence; /* below it a verdict is the admin's business first */
    bool minor_approves;   /* a rejection that names nothing blocking counts as approval */
    int64_t ci_after;      /* reds in a row that escalate */
    char ci_checks[AMP_CI_CHECKS_MAX][64]; /* the checks that count */
    unsigned n_ci_checks;                  /* 0: all of them */
    struct amp_risk_path risk[AMP_RISK_HIGH + 1];
    struct amp_result_rule results[AMP_RESULT_RULES_MAX];
    unsigned n_results;
};

void amp_task_policy_default(struct amp_task_policy *p);
/* Lays what amp.json says over the defaults; config may be NULL. CONFIG "bad_value" names the key;
 * p is untouched then. */
int amp_task_policy_load(struct amp_task_policy *p, const json_t *config, struct amp_error *err);

/* The row for a partial or failed result after `attempts` attempts; never NULL (escalate). */
const struct amp_result_rule *amp_task_policy_result(const struct amp_task_policy *p,
                                                     enum amp_completion completion,
                                                     const struct amp_spans *blockers,
                                                     int64_t attempts);
/* Whether a check of this name closes the review gate when it fails. */
bool amp_task_policy_counts(const struct amp_task_policy *p, const char *check);

#endif
