/* The policy tables: defaults, amp.json over them, its published schema, and the task's record. */
#include <string.h>

#include <amp/schema/schema.h>

#include "work/task/policy.h"
#include "work/task/record.h"

#include "../tap.h"

static json_t *parse(const char *text)
{
    return json_loads(text, 0, NULL);
}

static int load(struct amp_task_policy *p, const char *text, struct amp_error *err)
{
    json_t *j = parse(text);
    int rc = amp_task_policy_load(p, j, err);
    json_decref(j);
    return rc;
}

static void defaults(void)
{
    struct amp_task_policy p;
    amp_task_policy_default(&p);
    TAP_INT(p.lock_after, 3, "the third rejection locks");
    TAP_OK(p.min_confidence == 0.8, "confidence below 0.8 is low");
    TAP_INT(p.ci_after, 2, "the second red escalates");
    TAP_OK(!p.risk[AMP_RISK_LOW].admin && !p.risk[AMP_RISK_MEDIUM].admin &&
               p.risk[AMP_RISK_HIGH].admin,
           "high risk alone wants the admin");
    TAP_OK(amp_task_policy_counts(&p, "any"), "every check counts");
    TAP_OK(!amp_task_policy_counts(&p, "last_updated"), "the time of looking is no check");
}

static void results(void)
{
    static const struct {
        enum amp_completion c;
        const char *blocker;
        int64_t attempts;
        enum amp_result_action want;
    } rows[] = {
        {AMP_COMPLETION_PARTIAL, "no key", 1, AMP_RESULT_REDISPATCH},
        {AMP_COMPLETION_PARTIAL, "no key", 2, AMP_RESULT_REDISPATCH},
        {AMP_COMPLETION_PARTIAL, "no key", 3, AMP_RESULT_ESCALATE},
        {AMP_COMPLETION_FAILED, "no key", 1, AMP_RESULT_REDISPATCH},
        {AMP_COMPLETION_FAILED, "no key", 2, AMP_RESULT_ESCALATE},
        {AMP_COMPLETION_FAILED, "no permission to push", 1, AMP_RESULT_ESCALATE},
    };
    struct amp_task_policy p;
    amp_task_policy_default(&p);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct amp_span b = amp_span_str(rows[i].blocker);
        struct amp_spans blockers = {&b, 1};
        TAP_INT(amp_task_policy_result(&p, rows[i].c, &blockers, rows[i].attempts)->action,
                rows[i].want, rows[i].blocker);
    }
    struct amp_spans none = {NULL, 0};
    TAP_OK(load(&p, "{\"results\": []}", NULL) == 0, "an empty table");
    TAP_INT(amp_task_policy_result(&p, AMP_COMPLETION_FAILED, &none, 1)->action,
            AMP_RESULT_ESCALATE, "where no row fits the admin is asked");
}

static const char *const good[] = {
    "{}",
    "{\"qa\": {\"lock_after\": 5, \"min_confidence\": 1, \"minor_rejection\": \"reject\"}}",
    "{\"ci\": {\"checks\": [\"build\", \"test\"], \"escalate_after\": 1}}",
    "{\"risk\": {\"low\": {\"approval\": \"admin\"}, \"high\": {\"review\": \"incremental\"}}}",
    ("{\"results\": [{\"status\": \"failed\", \"blocker\": \"*quota*\", \"attempts_below\": 4,"
     " \"action\": \"redispatch\"}, {\"status\": \"failed\", \"action\": \"fail\"}]}"),
};
static const char *const wrong[] = {
    "{\"qa\": {\"lock_after\": 0}}",
    "{\"qa\": {\"lock_after\": \"3\"}}",
    "{\"qa\": {\"min_confidence\": 1.5}}",
    "{\"qa\": {\"minor_rejection\": \"ignore\"}}",
    "{\"qa\": 3}",
    "{\"ci\": {\"checks\": \"build\"}}",
    "{\"ci\": {\"escalate_after\": -1}}",
    "{\"risk\": {\"low\": {\"approval\": \"nobody\"}}}",
    "{\"results\": [{\"status\": \"complete\", \"action\": \"fail\"}]}",
    "{\"results\": [{\"status\": \"failed\", \"action\": \"retry\"}]}",
    "{\"results\": [{\"status\": \"failed\", \"action\": \"escalate\", \"type\": \"lol\"}]}",
};

/* What the loader takes the published schema takes, and the other way round. */
static int by_schema(struct amp_schema *s, struct amp_schema_run *run, const char *text)
{
    struct amp_tape tape;
    amp_tape_init(&tape, NULL);
    int rc = -1;
    if (amp_tape_scan(&tape, text, strlen(text), &(struct amp_json_fault){0}) == 0)
        rc = amp_schema_check(s, run, &tape, 0, NULL);
    amp_tape_release(&tape);
    return rc;
}

static void configuration(void)
{
    const struct amp_schema_file *f = amp_schema_file_find(AMP_SPAN("config/amp.json"));
    struct amp_schema *s =
        amp_schema_compile(f ? f->text : AMP_SPAN(""), &(struct amp_schema_options){0}, NULL);
    struct amp_schema_run *run = amp_schema_run_new(NULL);
    TAP_OK(s && run, "the schema of amp.json compiles");
    for (size_t i = 0; s && i < sizeof good / sizeof good[0]; i++) {
        struct amp_task_policy p;
        amp_task_policy_default(&p);
        TAP_OK(load(&p, good[i], NULL) == 0, "taken: %s", good[i]);
        TAP_INT(by_schema(s, run, good[i]), 1, "and valid by the schema");
    }
    for (size_t i = 0; s && i < sizeof wrong / sizeof wrong[0]; i++) {
        struct amp_task_policy p, before;
        struct amp_error err = {0};
        amp_task_policy_default(&p);
        before = p;
        TAP_OK(load(&p, wrong[i], &err) < 0 && err.status == AMP_CONFIG, "refused: %s", wrong[i]);
        TAP_OK(memcmp(&p, &before, sizeof p) == 0, "and nothing changed");
        TAP_INT(by_schema(s, run, wrong[i]), 0, "and invalid by the schema");
    }
    amp_schema_run_free(run);
    amp_schema_free(s);
}

static void record(void)
{
    struct amp_task t, back;
    struct amp_buf one, two;
    amp_buf_init(&one, 1 << 20);
    amp_buf_init(&two, 1 << 20);
    int rc = amp_task_init(&t, AMP_SPAN("T-2026-001"), NULL);
    rc |= amp_task_add_part(&t, AMP_SPAN("T-2026-001-S1"), AMP_SPAN("a \"b\" \xc3\xa4"), 40, NULL);
    t.state = AMP_TASK_IN_REVIEW;
    t.risk = AMP_RISK_HIGH;
    t.reject_count = 2;
    t.created_ms = t.updated_ms = 1772116327001;
    t.parts[0].state = AMP_QA_IN_REVIEW;
    rc |= amp_task_set(&t.parts[0].commit, AMP_SPAN("a3f8d21"), NULL);
    rc |= amp_task_open_escalation(
        &t,
        &(struct amp_task_asked){.ref = "escalation-1", .type = "conflict", .severity = "warning"},
        1, NULL);
    TAP_OK(!amp_task_is_suspended(&t), "a warning suspends no task");
    rc |= amp_task_open_escalation(&t,
                                   &(struct amp_task_asked){.ref = "escalation-2",
                                                            .type = "hallucination_lock",
                                                            .severity = "critical"},
                                   2, NULL);
    rc |= amp_task_open_escalation(&t,
                                   &(struct amp_task_asked){.ref = "escalation-3",
                                                            .type = "branch_violation",
                                                            .severity = "critical"},
                                   3, NULL);
    TAP_STR(t.suspended.ref, "escalation-2", "the first critical one suspends");
    rc |= amp_task_write(&t, &one, NULL);
    struct amp_store_rec rec = {
        .found = true, .state = AMP_SPAN("in_review"), .json = amp_buf_span(&one)};
    rc |= amp_task_read(&back, &rec, AMP_SPAN("T-2026-001"), NULL);
    rc |= amp_task_write(&back, &two, NULL);
    TAP_OK(rc == 0 && amp_span_eq(amp_buf_span(&one), amp_buf_span(&two)),
           "a record reads back as it was written");
    TAP_OK(amp_task_close_escalation(&back, "escalation-2"), "a known escalation is closed");
    TAP_STR(back.suspended.ref, "escalation-3", "another critical one still suspends");
    TAP_OK(!amp_task_close_escalation(&back, "escalation-2"), "once");
    amp_task_close_escalation(&back, "escalation-3");
    TAP_OK(!amp_task_is_suspended(&back), "after the last critical one it is lifted");
    rec.json = AMP_SPAN("{\"subtasks\": [{\"state\": \"asleep\"}]}");
    struct amp_error err = {0};
    TAP_OK(amp_task_read(&(struct amp_task){0}, &rec, AMP_SPAN("x"), &err) < 0 &&
               strcmp(err.code, "bad_record") == 0,
           "an unusable record is said to be one");
    amp_task_release(&t);
    amp_task_release(&back);
    amp_buf_release(&one);
    amp_buf_release(&two);
}

int main(void)
{
    defaults();
    results();
    configuration();
    record();
    return tap_done();
}
