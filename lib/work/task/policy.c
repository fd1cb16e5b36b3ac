/* The defaults of the QA loop's policy, and the values that amp.json sets. */
#include "work/task/policy.h"

#include <stdio.h>
#include <string.h>

#include "base/codes.h"

static const struct amp_result_rule default_results[] = {
    {AMP_COMPLETION_PARTIAL, "*permission*", 0, AMP_RESULT_ESCALATE, "permission_denied"},
    {AMP_COMPLETION_FAILED, "*permission*", 0, AMP_RESULT_ESCALATE, "permission_denied"},
    {AMP_COMPLETION_PARTIAL, "", 3, AMP_RESULT_REDISPATCH, ""},
    {AMP_COMPLETION_PARTIAL, "", 0, AMP_RESULT_ESCALATE, "unknown"},
    {AMP_COMPLETION_FAILED, "", 2, AMP_RESULT_REDISPATCH, ""},
    {AMP_COMPLETION_FAILED, "", 0, AMP_RESULT_ESCALATE, "unknown"},
};
static const struct amp_result_rule escalate_default = {AMP_COMPLETION_FAILED, "", 0,
                                                        AMP_RESULT_ESCALATE, "unknown"};

static const char *const action_words[] = {
    [AMP_RESULT_REDISPATCH] = "redispatch",
    [AMP_RESULT_ESCALATE] = "escalate",
    [AMP_RESULT_FAIL] = "fail",
};

void amp_task_policy_default(struct amp_task_policy *p)
{
    memset(p, 0, sizeof *p);
    p->lock_after = 3;
    p->min_confidence = 0.8;
    p->minor_approves = true;
    p->ci_after = 2;
    p->risk[AMP_RISK_HIGH] = (struct amp_risk_path){.admin = true, .full_review = true};
    memcpy(p->results, default_results, sizeof default_results);
    p->n_results = sizeof default_results / sizeof default_results[0];
}

static int value_refuse(struct amp_error *err, const char *key, const char *expected)
{
    return amp_fail(err, AMP_CONFIG, bad_value, "%s in the configuration: expected %s", key,
                    expected);
}

/* If the member is absent, *out is unchanged. */
static int get_int(const json_t *o, const char *key, const char *name, int64_t min, int64_t max,
                   int64_t *out, struct amp_error *err)
{
    const json_t *v = json_object_get(o, key);
    if (!v)
        return 0;
    if (!json_is_integer(v) || json_integer_value(v) < min || json_integer_value(v) > max)
        return amp_fail(err, AMP_CONFIG, bad_value,
                        "%s in the configuration: expected an integer from %lld to %lld", name,
                        (long long)min, (long long)max);
    *out = json_integer_value(v);
    return 0;
}

static int get_text(const json_t *o, const char *key, const char *name, char *out, size_t size,
                    struct amp_error *err)
{
    const json_t *v = json_object_get(o, key);
    if (!v)
        return 0;
    if (!json_is_string(v) || json_string_length(v) >= size)
        return value_refuse(err, name, "a short text");
    memcpy(out, json_string_value(v), json_string_length(v) + 1);
    return 0;
}

/* Sets *out to the member's index in words, of which some may be NULL. */
static int get_word(const json_t *o, const char *key, const char *const *words, int n, int *out)
{
    const json_t *v = json_object_get(o, key);
    if (!v)
        return 0;
    for (int i = 0; i < n; i++)
        if (words[i] && json_is_string(v) && strcmp(json_string_value(v), words[i]) == 0) {
            *out = i;
            return 0;
        }
    return -1;
}

static int load_qa(struct amp_task_policy *p, const json_t *qa, struct amp_error *err)
{
    static const char *const minor[] = {"reject", "approve"};
    if (get_int(qa, "lock_after", "qa.lock_after", 1, 1000, &p->lock_after, err) < 0)
        return -1;
    const json_t *v = json_object_get(qa, "min_confidence");
    if (v) {
        if (!json_is_number(v) || json_number_value(v) < 0 || json_number_value(v) > 1)
            return value_refuse(err, "qa.min_confidence", "a number from 0 to 1");
        p->min_confidence = json_number_value(v);
    }
    int approves = p->minor_approves;
    if (get_word(qa, "minor_rejection", minor, 2, &approves) < 0)
        return value_refuse(err, "qa.minor_rejection", "\"approve\" or \"reject\"");
    p->minor_approves = approves;
    return 0;
}

static int load_ci(struct amp_task_policy *p, const json_t *ci, struct amp_error *err)
{
    if (get_int(ci, "escalate_after", "ci.escalate_after", 1, 1000, &p->ci_after, err) < 0)
        return -1;
    const json_t *checks = json_object_get(ci, "checks");
    if (!checks)
        return 0;
    if (!json_is_array(checks) || json_array_size(checks) > AMP_CI_CHECKS_MAX)
        return value_refuse(err, "ci.checks", "a list of at most 64 names");
    p->n_ci_checks = 0;
    for (size_t i = 0; i < json_array_size(checks); i++) {
        const json_t *name = json_array_get(checks, i);
        if (!json_is_string(name) || json_string_length(name) >= sizeof p->ci_checks[0])
            return value_refuse(err, "ci.checks", "names shorter than 64 bytes");
        memcpy(p->ci_checks[p->n_ci_checks++], json_string_value(name),
               json_string_length(name) + 1);
    }
    return 0;
}

static int load_risk(struct amp_task_policy *p, const json_t *risk, struct amp_error *err)
{
    static const char *const approval[] = {"reviewer", "admin"};
    static const char *const review[] = {"incremental", "full"};
    for (int level = AMP_RISK_LOW; level <= AMP_RISK_HIGH; level++) {
        const json_t *o = json_object_get(risk, amp_risk_name((enum amp_risk)level));
        if (!o)
            continue;
        int admin = p->risk[level].admin, full = p->risk[level].full_review;
        if (!json_is_object(o) || get_word(o, "approval", approval, 2, &admin) < 0 ||
            get_word(o, "review", review, 2, &full) < 0)
            return value_refuse(
                err, "risk",
                "{\"approval\": \"reviewer\" or \"admin\", \"review\": \"incremental\" or "
                "\"full\"} for each level");
        p->risk[level] = (struct amp_risk_path){.admin = admin, .full_review = full};
    }
    return 0;
}

static int load_result(struct amp_result_rule *rule, const json_t *o, struct amp_error *err)
{
    static const char *const status[] = {
        [AMP_COMPLETION_PARTIAL] = "partial", [AMP_COMPLETION_FAILED] = "failed"};
    static const char *const types[] = {"hallucination_lock", "ack_timeout", "branch_violation",
                                        "ci_failure",         "conflict",    "heartbeat_timeout",
                                        "permission_denied",  "unknown"};
    *rule = (struct amp_result_rule){.type = "unknown"};
    int completion = -1, action = -1, type;
    if (get_word(o, "status", status, AMP_COMPLETION_FAILED + 1, &completion) < 0 || completion < 0)
        return value_refuse(err, "results[].status", "\"partial\" or \"failed\"");
    if (get_word(o, "action", action_words, 3, &action) < 0 || action < 0)
        return value_refuse(err, "results[].action", "\"redispatch\", \"escalate\" or \"fail\"");
    if (get_word(o, "type", types, 8, &type) < 0)
        return value_refuse(err, "results[].type", "an escalation type");
    rule->completion = (enum amp_completion)completion;
    rule->action = (enum amp_result_action)action;
    if (get_text(o, "blocker", "results[].blocker", rule->blocker, sizeof rule->blocker, err) < 0 ||
        get_text(o, "type", "results[].type", rule->type, sizeof rule->type, err) < 0)
        return -1;
    return get_int(o, "attempts_below", "results[].attempts_below", 0, 1000, &rule->attempts_below,
                   err);
}

static int load_results(struct amp_task_policy *p, const json_t *rows, struct amp_error *err)
{
    if (!json_is_array(rows) || json_array_size(rows) > AMP_RESULT_RULES_MAX)
        return value_refuse(err, "results", "a list of at most 32 rows");
    p->n_results = 0;
    for (size_t i = 0; i < json_array_size(rows); i++)
        if (load_result(&p->results[p->n_results++], json_array_get(rows, i), err) < 0)
            return -1;
    return 0;
}

int amp_task_policy_load(struct amp_task_policy *p, const json_t *config, struct amp_error *err)
{
    static const struct {
        const char *key;
        int (*load)(struct amp_task_policy *p, const json_t *o, struct amp_error *err);
    } parts[] = {{"qa", load_qa}, {"ci", load_ci}, {"risk", load_risk}, {"results", load_results}};
    struct amp_task_policy n = *p;
    for (size_t i = 0; config && i < sizeof parts / sizeof parts[0]; i++) {
        const json_t *o = json_object_get(config, parts[i].key);
        if (!o)
            continue;
        if (!json_is_object(o) && !json_is_array(o))
            return value_refuse(err, parts[i].key, "an object or a list");
        if (parts[i].load(&n, o, err) < 0)
            return -1;
    }
    *p = n;
    return 0;
}

static bool blocked_by(const struct amp_result_rule *r, const struct amp_spans *blockers)
{
    if (!*r->blocker)
        return true;
    for (uint32_t i = 0; i < blockers->n; i++)
        if (amp_span_glob(blockers->v[i], amp_span_str(r->blocker)))
            return true;
    return false;
}

const struct amp_result_rule *amp_task_policy_result(const struct amp_task_policy *p,
                                                     enum amp_completion completion,
                                                     const struct amp_spans *blockers,
                                                     int64_t attempts)
{
    for (unsigned i = 0; i < p->n_results; i++) {
        const struct amp_result_rule *r = &p->results[i];
        if (r->completion == completion && blocked_by(r, blockers) &&
            (r->attempts_below == 0 || attempts < r->attempts_below))
            return r;
    }
    return &escalate_default;
}

bool amp_task_policy_counts(const struct amp_task_policy *p, const char *check)
{
    if (strcmp(check, "last_updated") == 0)
        return false;
    for (unsigned i = 0; i < p->n_ci_checks; i++)
        if (strcmp(p->ci_checks[i], check) == 0)
            return true;
    return p->n_ci_checks == 0;
}
