/* AOP: fallbacks by their triggers, events that are valid themselves, a RESPONSE against its TASK.
 */
#include <math.h>
#include <stdlib.h>

#include <amp/json/writer.h>

#include "message/protocol/aop/against.h"
#include "message/protocol/aop/event.h"
#include "message/protocol/aop/fallback.h"
#include "message/protocol/compose/json.h"

#include "../tap.h"

static struct amp_reader *reader, *second;

/* ---- amounts ---- */

static void amounts(void)
{
    TAP_INT(amp_usage_amount(0.29, 1e6), 290000, "an amount without an exact double");
    TAP_INT(amp_usage_amount(0.5000001, 1e6), 500001, "a part of a millionth counts as one");
    TAP_INT(amp_usage_amount(3e9, 1), 3000000000, "many tokens");
    TAP_INT(amp_usage_amount(1e300, 1e6), AMP_USAGE_MOST, "more than counts");
    TAP_INT(amp_usage_amount(-1, 1e6), 0, "less than nothing");
}

/* ---- fallback ---- */

static int next_of(const char *triggers, uint32_t tried, const char *code, bool critical,
                   bool first)
{
    struct amp_error err;
    json_auto_t *list = amp_json_load(amp_span_str(triggers), &err);
    const struct amp_aop_run_error e = {code, critical, first};
    return amp_aop_fallback_next(list, tried, &e);
}

#define ALT(trigger) "{\"provider\":\"LOCAL\",\"model\":\"m\",\"fallback_trigger\":\"" trigger "\"}"
#define EACH                                                                                       \
    "[" ALT("TIMEOUT") "," ALT("COST_LIMIT_EXCEEDED") "," ALT("CRITICAL_ERROR") "," ALT(           \
        "FIRST_ERROR") "," ALT("ALL_ERRORS") "]"

static void fallback(void)
{
    static const struct {
        const char *what;
        uint32_t tried;
        const char *code;
        bool critical, first;
        int want;
    } cases[] = {
        {"fallback: TIMEOUT", 0, "E_TIMEOUT", false, true, 0},
        {"fallback: COST_LIMIT_EXCEEDED", 0, "E_COST_LIMIT_EXCEEDED", false, true, 1},
        {"fallback: CRITICAL_ERROR", 0, "E_PROCESS_CRASH", false, true, 2},
        {"an error that its agent calls critical", 0, "E_UNKNOWN", true, true, 2},
        {"fallback: FIRST_ERROR", 0, "E_UNKNOWN", false, true, 3},
        {"fallback: ALL_ERRORS", 0, "E_UNKNOWN", false, false, 4},
        {"the first error, after a time-out", 1, "E_TIMEOUT", false, true, 3},
        {"a later time-out", 1, "E_TIMEOUT", false, false, 4},
        {"a time-out of the last alternative", 16, "E_TIMEOUT", false, false, 0},
        {"an error that is no alternative's", 16, "E_UNKNOWN", false, false, -1},
        {"all tried", 31, "E_PROCESS_CRASH", true, true, -1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        TAP_INT(next_of(EACH, cases[i].tried, cases[i].code, cases[i].critical, cases[i].first),
                cases[i].want, cases[i].what);
    TAP_INT(next_of("[{\"provider\":\"LOCAL\",\"model\":\"m\"}]", 0, "E_UNKNOWN", false, false), 0,
            "no trigger: all errors");
    const struct amp_aop_run_error e = {"E_TIMEOUT", false, true};
    TAP_INT(amp_aop_fallback_next(NULL, 0, &e), -1, "no alternatives");
    json_auto_t *one = json_pack("[{}]");
    TAP_STR(amp_aop_exhausted(NULL, "E_TIMEOUT"), "E_TIMEOUT", "a TASK without alternatives");
    TAP_STR(amp_aop_exhausted(one, "E_TIMEOUT"), "E_ALL_MODELS_EXHAUSTED", "and one with them");
}

static void many_models(void)
{
    const struct amp_aop_run_error e = {"E_UNKNOWN", false, false};
    json_auto_t *list = json_array();
    for (unsigned i = 0; i < 40; i++)
        json_array_append_new(list, json_object());
    TAP_INT(amp_aop_fallback_next(list, UINT32_MAX >> 1, &e), 31, "the last bit");
    TAP_INT(amp_aop_fallback_next(list, UINT32_MAX, &e), -1, "no more than the bits");
}

static void critical(void)
{
    static const char *const yes[] = {"E_PROCESS_CRASH",     "E_MODEL_UNAVAILABLE",
                                      "E_HEARTBEAT_FAILURE", "E_PERMISSION_DENIED",
                                      "E_ROLLBACK_FAILED",   "E_COST_LIMIT_EXCEEDED"};
    static const char *const no[] = {"E_TIMEOUT", "E_UNKNOWN", "E_MALFORMED_RESPONSE", "", NULL};
    for (size_t i = 0; i < sizeof yes / sizeof *yes; i++)
        TAP_OK(amp_aop_is_critical(yes[i]), "%s is critical", yes[i]);
    for (size_t i = 0; i < sizeof no / sizeof *no; i++)
        TAP_OK(!amp_aop_is_critical(no[i]), "%s is not", no[i] ? no[i] : "NULL");
}

/* ---- events ---- */

static struct amp_view event;

static struct amp_span at(const char *pointer)
{
    uint32_t tok = amp_tape_pointer(event.tape, 0, amp_span_str(pointer));
    return tok == AMP_TOK_NONE ? AMP_SPAN("(none)") : amp_tok_source(event.tape, tok);
}

static unsigned warnings;
static void note(void *ctx, const struct amp_finding *f)
{
    (void)ctx;
    printf("# %s %s %s\n", f->code, f->field, f->message);
    warnings++;
}

/* Whether the buffer is one line that is valid without a warning, of this kind. */
static bool is_event(const struct amp_buf *b, const char *name)
{
    struct amp_error err;
    warnings = 0;
    return b->len > 1 && b->data[b->len - 1] == '\n' &&
           amp_reader_line(reader, (struct amp_span){b->data, b->len - 1}, NULL, &event, note, NULL,
                           &err) == 1 &&
           warnings == 0 &&
           amp_tok_is(event.tape, amp_tape_pointer(event.tape, 0, AMP_SPAN("/event")),
                      amp_span_str(name));
}

static const struct amp_aop_about about = {{"S-1", 3}, {"T \"1\"", 5}, 1772116327000};

static void heartbeats(void)
{
    struct amp_error err;
    AMP_BUF struct amp_buf b = {0};
    amp_buf_init(&b, 65536);
    struct amp_aop_progress p = {.agent = AMP_SPAN("Emma"),
                                 .percentage = 45,
                                 .phase = AMP_SPAN("P"),
                                 .checkpoint = AMP_SPAN("C"),
                                 .message = AMP_SPAN("3 of 5"),
                                 .eta_seconds = 420};
    TAP_OK(amp_aop_heartbeat(&about, &p, &b, &err) == 0 && is_event(&b, "HEARTBEAT"), "heartbeat");
    TAP_SPAN(at("/task_id"), "\"T \\\"1\\\"\"", "its task");
    TAP_SPAN(at("/progress_percentage"), "45", "its percentage");
    TAP_SPAN(at("/current_checkpoint"), "\"C\"", "its checkpoint");
    TAP_SPAN(at("/timestamp"), "\"2026-02-26T14:32:07.000Z\"", "its time");
    TAP_SPAN(at("/message"), "(none)", "no message");
    amp_buf_reset(&b);
    TAP_OK(amp_aop_progress_update(&about, &p, &b, &err) == 0 && is_event(&b, "PROGRESS_UPDATE"),
           "progress");
    TAP_SPAN(at("/progress/estimated_time_remaining_seconds"), "420", "its remaining time");
    TAP_SPAN(at("/progress/message"), "\"3 of 5\"", "its message");
    static const struct {
        double given;
        const char *want;
    } shares[] = {{0, "0"},          {100, "100"},    {0.5, "0.5"},
                  {33.333, "33.33"}, {99.999, "100"}, {7.05, "7.05"}};
    p = (struct amp_aop_progress){.agent = AMP_SPAN("Emma"), .eta_seconds = -1};
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
        amp_buf_reset(&b);
        p.percentage = shares[i].given;
        TAP_OK(amp_aop_progress_update(&about, &p, &b, &err) == 0 &&
                   is_event(&b, "PROGRESS_UPDATE"),
               "progress without a place");
        TAP_SPAN(at("/progress/percentage"), shares[i].want, "a percentage");
    }
    TAP_SPAN(at("/progress/current_phase"), "(none)", "no phase");
    TAP_SPAN(at("/progress/estimated_time_remaining_seconds"), "(none)", "no remaining time");
    const double bad[] = {-0.1, 100.1, NAN, INFINITY};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        p.percentage = bad[i];
        amp_buf_reset(&b);
        TAP_OK(amp_aop_heartbeat(&about, &p, &b, &err) < 0 && err.status == AMP_NO &&
                   strcmp(err.code, "bad_value") == 0 && b.len == 0,
               "%g per cent", bad[i]);
    }
    p = (struct amp_aop_progress){.agent = AMP_SPAN("Emma"), .eta_seconds = -2};
    TAP_OK(amp_aop_progress_update(&about, &p, &b, &err) < 0 && b.len == 0, "a negative time");
}

static void escalation(void)
{
    struct amp_error err;
    AMP_BUF struct amp_buf b = {0};
    amp_buf_init(&b, 65536);
    struct amp_aop_escalation e = {AMP_SPAN("NORMAL"), AMP_SPAN("CRITICAL"), AMP_SPAN("because"),
                                   AMP_SPAN("user@domain.com")};
    TAP_OK(amp_aop_priority_escalation(&about, &e, &b, &err) == 0 &&
               is_event(&b, "PRIORITY_ESCALATION"),
           "an escalation");
    TAP_SPAN(at("/new_priority"), "\"CRITICAL\"", "its new priority");
    TAP_SPAN(at("/escalated_by"), "\"user@domain.com\"", "its person");
    amp_buf_reset(&b);
    e.new_priority = AMP_SPAN("URGENT");
    TAP_OK(amp_aop_priority_escalation(&about, &e, &b, &err) < 0 &&
               strcmp(err.code, "bad_value") == 0 && b.len == 0,
           "not a priority");
}

static void rollback(void)
{
    struct amp_error err;
    AMP_BUF struct amp_buf b = {0};
    amp_buf_init(&b, 65536);
    const struct amp_aop_rolled_back files[] = {
        {AMP_SPAN("C:/w/a"), AMP_SPAN("C:/w/.s/a"), AMP_SPAN("SUCCESS"), {"", 0}},
        {AMP_SPAN("C:/w/b"), AMP_SPAN("C:/w/.s/b"), AMP_SPAN("FAILED"),
         AMP_SPAN("E_ROLLBACK_FAILED")},
    };
    TAP_OK(amp_aop_rollback_initiated(&about, AMP_SPAN("TASK_ABORTED"), files, 2, &b, &err) == 0 &&
               is_event(&b, "ROLLBACK_INITIATED"),
           "a rollback");
    TAP_SPAN(at("/artifacts_rolled_back/0/restored_from"), "\"C:/w/.s/a\"", "its source");
    TAP_SPAN(at("/artifacts_rolled_back/0/extensions"), "(none)", "no error");
    TAP_SPAN(at("/artifacts_rolled_back/1/extensions/x_error_code"), "\"E_ROLLBACK_FAILED\"",
             "its error");
    amp_buf_reset(&b);
    TAP_OK(amp_aop_rollback_initiated(&about, AMP_SPAN("x"), NULL, 0, &b, &err) == 0 &&
               is_event(&b, "ROLLBACK_INITIATED"),
           "a rollback of nothing");
}

static void report(void)
{
    struct amp_error err;
    AMP_BUF struct amp_buf b = {0};
    amp_buf_init(&b, 65536);
    const struct amp_aop_about session = {{"S-1", 3}, {"", 0}, 1772116327000};
    const struct amp_aop_final_report r = {.cost_summary = AMP_SPAN("{\"tokens_input\":1}"),
                                           .tasks = AMP_SPAN("[]"),
                                           .storage_path = AMP_SPAN("a/b/"),
                                           .extensions = AMP_SPAN("{\"x_a\":1}")};
    TAP_OK(amp_aop_session_final_report(&session, &r, &b, &err) == 0 &&
               is_event(&b, "SESSION_FINAL_REPORT"),
           "a final report");
    TAP_SPAN(at("/audit_trail/storage_path"), "\"a/b/\"", "its trail");
    TAP_SPAN(at("/delegation_graph"), "(none)", "no graph");
    TAP_SPAN(at("/task_id"), "(none)", "no task");
    AMP_BUF struct amp_buf tight = {0};
    amp_buf_init(&tight, 40);
    TAP_OK(amp_aop_session_final_report(&session, &r, &tight, &err) < 0 && tight.len == 0,
           "no part of an event");
}

/* ---- against ---- */

#define HEAD(type)                                                                                 \
    "{\"aop_version\":\"2.0.2-C\",\"schema_version\":\"2.0.2\",\"protocol_family\":\"AOP\","       \
    "\"message_type\":\"" type "\","
#define TASK(task, top)                                                                            \
    HEAD("TASK")                                                                                   \
    "\"session\":{\"session_id\":\"s\",\"created_at\":\"2026-02-26T14:00:00Z\","                   \
    "\"orchestrator\":\"o\",\"origin\":\"CLI\"},\"target\":{\"agent_name\":\"a\","                 \
    "\"role\":\"EXECUTOR\",\"provider\":\"LOCAL\",\"model\":\"m\"},"                               \
    "\"task\":{\"task_id\":\"t\",\"objective\":\"o\",\"category\":\"OTHER\","                      \
    "\"complexity\":\"LOW\",\"environment\":{\"workspace_root\":\"C:/w\"}" task "}" top "}"
#define ANSWER(ids, agent, state, signal, summary, seconds, top)                                   \
    HEAD("RESPONSE")                                                                               \
    ids ",\"agent\":" agent ",\"task_status\":{\"state\":\"" state "\",\"final_signal\":\"" signal \
        "\",\"message\":\"\"},\"execution_summary\":{" summary "},"                                \
        "\"timing\":{\"started_at\":\"2026-02-26T12:35:01Z\",\"completed_at\":"                    \
        "\"2026-02-26T12:40:32Z\",\"duration_seconds\":" seconds "}" top "}"
#define IDS        "\"session_id\":\"s\",\"task_id\":\"t\""
#define AGENT      "{\"name\":\"a\",\"provider\":\"LOCAL\",\"model\":\"m\"}"
#define SAYS       "\"summary\":\"s\",\"actions\":[\"a\"]"
#define DONE(top)  ANSWER(IDS, AGENT, "COMPLETED", "SUCCESS", SAYS, "1", top)
#define FAILS(top) ANSWER(IDS, AGENT, "FAILED", "FAILURE", SAYS, "1", top)
#define MADE(state, signal, path, status, top)                                                     \
    ANSWER(IDS, AGENT, state, signal,                                                              \
           SAYS ",\"output_artifacts\":[{\"type\":\"FILE\",\"path\":\"" path                       \
                "\",\"status\":\"" status "\"}]",                                                  \
           "1", top)

#define MODELS                                                                                     \
    ",\"execution_policy\":{\"timeout_seconds\":10,\"alternative_models\":["                       \
    "{\"provider\":\"CODEX\",\"model\":\"n\"},{\"provider\":\"LOCAL\",\"model\":\"o\"}]}"
#define PHASES                                                                                     \
    ",\"phases\":[{\"phase_id\":\"P\",\"phase_order\":1,\"label\":\"l\",\"objective\":\"o\","      \
    "\"checkpoints\":[{\"checkpoint_id\":\"C1\",\"description\":\"d\",\"recovery_strategy\":"      \
    "\"ABORT\"}]},{\"phase_id\":\"Q\",\"phase_order\":2,\"label\":\"l\",\"objective\":\"o\","      \
    "\"checkpoints\":[{\"checkpoint_id\":\"C2\",\"description\":\"d\"}]}]"
#define RESULT(id, status) "{\"checkpoint_id\":\"" id "\",\"status\":\"" status "\"}"
#define ACCESS                                                                                     \
    ",\"inputs\":[{\"type\":\"FILE\",\"path\":\"C:/w/src/in.c\"},"                                 \
    "{\"type\":\"FILE\",\"path\":\"C:/w/src/lib\",\"read_only\":true},"                            \
    "{\"type\":\"FILE\",\"path\":\"C:/w/src/rw.c\",\"read_only\":false}],"                         \
    "\"expected_outputs\":[{\"type\":\"FILE\",\"description\":\"d\",\"path\":\"C:/w/src/lib/"      \
    "o.c\"}],"                                                                                     \
    "\"access\":{\"filesystem\":{\"read_paths\":[\"C:/w\"],\"write_paths\":[\"C:/w/src\"]}}"

static void against(void)
{
    static const struct {
        const char *what, *task, *answer, *code, *pointer;
    } cases[] = {
        {"a plain answer", TASK("", ""), DONE(""), NULL, NULL},
        {"another session", TASK("", ""),
         ANSWER("\"session_id\":\"S\",\"task_id\":\"t\"", AGENT, "COMPLETED", "SUCCESS", SAYS, "1",
                ""),
         "E_MALFORMED_RESPONSE", "/session_id"},
        {"another task", TASK("", ""),
         ANSWER("\"session_id\":\"s\",\"task_id\":\"T\"", AGENT, "COMPLETED", "SUCCESS", SAYS, "1",
                ""),
         "E_MALFORMED_RESPONSE", "/task_id"},
        {"another agent", TASK("", ""),
         ANSWER(IDS, "{\"name\":\"b\",\"provider\":\"LOCAL\",\"model\":\"m\"}", "COMPLETED",
                "SUCCESS", SAYS, "1", ""),
         "E_MALFORMED_RESPONSE", "/agent/name"},
        {"another model", TASK("", MODELS),
         ANSWER(IDS, "{\"name\":\"a\",\"provider\":\"LOCAL\",\"model\":\"n\"}", "COMPLETED",
                "SUCCESS", SAYS, "1", ""),
         "E_MALFORMED_RESPONSE", "/agent/model"},
        {"an alternative", TASK("", MODELS),
         ANSWER(IDS, "{\"name\":\"a\",\"provider\":\"LOCAL\",\"model\":\"\\u006f\"}", "COMPLETED",
                "SUCCESS", SAYS, "30", ""),
         NULL, NULL},
        {"more than the time of all models", TASK("", MODELS),
         ANSWER(IDS, "{\"name\":\"a\",\"provider\":\"LOCAL\",\"model\":\"o\"}", "COMPLETED",
                "SUCCESS", SAYS, "30.1", ""),
         "E_TIMEOUT", "/timing/duration_seconds"},
        {"more than the default time", TASK("", ""),
         ANSWER(IDS, AGENT, "COMPLETED", "SUCCESS", SAYS, "1801", ""), "E_TIMEOUT",
         "/timing/duration_seconds"},
        {"a failure after the time", TASK("", MODELS),
         ANSWER(IDS, AGENT, "FAILED", "FAILURE", SAYS, "99", ""), NULL, NULL},
        {"a time limit that ends nothing",
         TASK("", ",\"guard_rails\":{\"timeout_seconds\":5,\"auto_terminate_on_timeout\":false}"),
         ANSWER(IDS, AGENT, "COMPLETED", "SUCCESS", SAYS, "6", ""), NULL, NULL},
        {"the guard rails' limit before the policy's",
         TASK("", ",\"execution_policy\":{\"timeout_seconds\":900},\"guard_rails\":"
                  "{\"timeout_seconds\":5}"),
         ANSWER(IDS, AGENT, "COMPLETED", "SUCCESS", SAYS, "6", ""), "E_TIMEOUT",
         "/timing/duration_seconds"},
        {"a checkpoint of the executor's own", TASK("", ""),
         DONE(",\"checkpoint_results\":[" RESULT("C1", "PASS") "]"), NULL, NULL},
        {"a checkpoint of a TASK that has none",
         TASK("", ",\"phases\":[{\"phase_id\":\"P\",\"phase_order\":1,\"label\":\"l\","
                  "\"objective\":\"o\"}]"),
         DONE(",\"checkpoint_results\":[" RESULT("C1", "PASS") "]"), "E_MALFORMED_RESPONSE",
         "/checkpoint_results"},
        {"its checkpoints", TASK("", PHASES),
         DONE(",\"checkpoint_results\":[" RESULT("C2", "PASS") "," RESULT("C1", "SKIP") "]"), NULL,
         NULL},
        {"an unknown checkpoint", TASK("", PHASES),
         DONE(",\"checkpoint_results\":[" RESULT("C3", "PASS") "]"), "E_MALFORMED_RESPONSE",
         "/checkpoint_results"},
        {"a checkpoint twice", TASK("", PHASES),
         DONE(",\"checkpoint_results\":[" RESULT("C2", "PASS") "," RESULT("C2", "FAIL") "]"),
         "E_MALFORMED_RESPONSE", "/checkpoint_results"},
        {"a pending checkpoint", TASK("", PHASES),
         DONE(",\"checkpoint_results\":[" RESULT("C2", "PENDING") "]"), "E_MALFORMED_RESPONSE",
         "/checkpoint_results"},
        {"a pending checkpoint of a failure", TASK("", PHASES),
         FAILS(",\"checkpoint_results\":[" RESULT("C2", "PENDING") "]"), NULL, NULL},
        {"success with a checkpoint that must pass", TASK("", PHASES),
         DONE(",\"checkpoint_results\":[" RESULT("C1", "FAIL") "]"), "E_MALFORMED_RESPONSE",
         "/checkpoint_results"},
        {"success with one that may fail", TASK("", PHASES),
         DONE(",\"checkpoint_results\":[" RESULT("C2", "FAIL") "]"), NULL, NULL},
        {"partial success with one that must pass", TASK("", PHASES),
         ANSWER(IDS, AGENT, "COMPLETED", "PARTIAL_SUCCESS", SAYS, "1",
                ",\"checkpoint_results\":[" RESULT("C1", "FAIL") "]"),
         NULL, NULL},
        {"an artifact", TASK(ACCESS, ""),
         MADE("COMPLETED", "SUCCESS", "C:/w/src/a.c", "CREATED", ""), NULL, NULL},
        {"an artifact outside", TASK(ACCESS, ""),
         MADE("COMPLETED", "SUCCESS", "C:/w/README", "CREATED", ""), "E_PERMISSION_DENIED",
         "/execution_summary/output_artifacts"},
        {"one beside a directory with a longer name", TASK(ACCESS, ""),
         MADE("COMPLETED", "SUCCESS", "C:/w/srcs/a.c", "DELETED", ""), "E_PERMISSION_DENIED",
         "/execution_summary/output_artifacts"},
        {"one that climbs out", TASK(ACCESS, ""),
         MADE("COMPLETED", "SUCCESS", "src\\\\..\\\\..\\\\x", "UPDATED", ""), "E_PERMISSION_DENIED",
         "/execution_summary/output_artifacts"},
        {"a relative one", TASK(ACCESS, ""), MADE("COMPLETED", "SUCCESS", "src/a.c", "UPDATED", ""),
         NULL, NULL},
        {"one outside that is as it was", TASK(ACCESS, ""),
         MADE("COMPLETED", "SUCCESS", "C:/w/README", "UNCHANGED", ""), NULL, NULL},
        {"a read-only input", TASK(ACCESS, ""),
         MADE("COMPLETED", "SUCCESS", "c:\\\\w\\\\src\\\\.\\\\in.c", "UPDATED", ""),
         "E_PERMISSION_DENIED", "/execution_summary/output_artifacts"},
        {"a file in a read-only directory", TASK(ACCESS, ""),
         MADE("COMPLETED", "SUCCESS", "C:/w/src/lib/x.c", "CREATED", ""), "E_PERMISSION_DENIED",
         "/execution_summary/output_artifacts"},
        {"an expected output there", TASK(ACCESS, ""),
         MADE("COMPLETED", "SUCCESS", "C:/w/src/lib/o.c", "CREATED", ""), NULL, NULL},
        {"an input that may be written", TASK(ACCESS, ""),
         MADE("COMPLETED", "SUCCESS", "C:/w/src/rw.c", "UPDATED", ""), NULL, NULL},
        {"a failure that reports the denied access", TASK(ACCESS, ""),
         MADE("FAILED", "FAILURE", "C:/w/README", "CREATED",
              ",\"error_details\":{\"error_code\":\"E_PERMISSION_DENIED\",\"message\":\"m\"}"),
         NULL, NULL},
        {"a success that reports it", TASK(ACCESS, ""),
         MADE("COMPLETED", "SUCCESS", "C:/w/README", "CREATED",
              ",\"error_details\":{\"error_code\":\"E_PERMISSION_DENIED\",\"message\":\"m\"}"),
         "E_PERMISSION_DENIED", "/execution_summary/output_artifacts"},
        {"read-only mode", TASK(",\"constraints\":{\"read_only_mode\":true}", ""),
         MADE("COMPLETED", "SUCCESS", "C:/w/a", "CREATED", ""), "E_PERMISSION_DENIED",
         "/execution_summary/output_artifacts"},
        {"the budget", TASK(",\"budgets\":{\"max_tokens\":10}", ""),
         DONE(",\"cost_tracking\":{\"tokens_input\":4,\"tokens_output\":6}"), NULL, NULL},
        {"above the budget", TASK(",\"budgets\":{\"max_tokens\":10}", ""),
         DONE(",\"cost_tracking\":{\"tokens_input\":5,\"tokens_output\":6}"),
         "E_COST_LIMIT_EXCEEDED", "/cost_tracking"},
        {"a failure that reports it", TASK(",\"budgets\":{\"max_tokens\":10}", ""),
         FAILS(",\"cost_tracking\":{\"tokens_input\":11},\"error_details\":{\"error_code\":"
               "\"E_ALL_MODELS_EXHAUSTED\",\"message\":\"m\"}"),
         NULL, NULL},
        {"a failure with another code", TASK(",\"budgets\":{\"max_tokens\":10}", ""),
         FAILS(",\"cost_tracking\":{\"tokens_input\":11},\"error_details\":{\"error_code\":"
               "\"E_UNKNOWN\",\"message\":\"m\"}"),
         "E_COST_LIMIT_EXCEEDED", "/cost_tracking"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct amp_error err;
        struct amp_view task, answer;
        struct amp_result_fault f = {.code = "", .pointer = ""};
        bool read = amp_reader_line(reader, amp_span_str(cases[i].task), NULL, &task, note, NULL,
                                    &err) == 1 &&
                    amp_reader_line(second, amp_span_str(cases[i].answer), NULL, &answer, note,
                                    NULL, &err) == 1;
        TAP_OK(read, "%s: two messages", cases[i].what);
        int want = cases[i].code != NULL;
        if (!read || !TAP_INT(amp_aop_against(&task, &answer, true, &f, &err), want, cases[i].what))
            continue;
        TAP_STR(f.code, want ? cases[i].code : "", cases[i].what);
        TAP_STR(f.pointer, want ? cases[i].pointer : "", cases[i].what);
        TAP_INT(f.ends, want && strcmp(cases[i].code, "E_MALFORMED_RESPONSE") != 0,
                "only other codes end the work");
    }
}

/* The requirements that the caller waived when it read the RESPONSE. */
static unsigned waive_all(void *ctx, const struct amp_view *v)
{
    (void)ctx;
    (void)v;
    return AMP_WAIVES_REPORT | AMP_WAIVES_SIGNAL;
}

static void rails(void)
{
    static const struct {
        const char *guard, *status, *summary;
        bool fault;
    } cases[] = {
        {"", "\"state\":\"COMPLETED\",", SAYS, true},
        {"\"require_final_signal\":false", "\"state\":\"COMPLETED\",", SAYS, false},
        {"", "\"state\":\"COMPLETED\",\"final_signal\":\"SUCCESS\",", "\"summary\":\"s\"", true},
        {"", "\"state\":\"COMPLETED\",\"final_signal\":\"SUCCESS\",",
         "\"summary\":\" \\u00a0\",\"actions\":[\"a\"]", true},
        {"", "\"state\":\"COMPLETED\",\"final_signal\":\"SUCCESS\",",
         "\"summary\":\"s\",\"actions\":[\"\",\" \"]", true},
        {"\"require_minimal_report\":false",
         "\"state\":\"COMPLETED\",\"final_signal\":\"SUCCESS\",", "\"summary\":\"\"", false},
    };
    const struct amp_check_options opt = {.waives = waive_all};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct amp_error err;
        struct amp_view task, answer;
        struct amp_result_fault f = {.code = ""};
        AMP_BUF struct amp_buf t = {0}, a = {0};
        amp_buf_init(&t, 65536);
        amp_buf_init(&a, 65536);
        amp_buf_fmt(&t, &err, TASK("%s", ",\"guard_rails\":{%s}"), "", cases[i].guard);
        amp_buf_fmt(&a, &err,
                    HEAD("RESPONSE") IDS
                    ",\"agent\":" AGENT ",\"task_status\":{%s\"message\":\"\"},"
                    "\"execution_summary\":{%s},\"timing\":{\"started_at\":"
                    "\"2026-02-26T12:35:01Z\",\"completed_at\":\"2026-02-26T12:40:32Z\","
                    "\"duration_seconds\":1}}",
                    cases[i].status, cases[i].summary);
        TAP_OK(amp_reader_line(reader, amp_buf_span(&t), NULL, &task, note, NULL, &err) == 1 &&
                   amp_reader_line(second, amp_buf_span(&a), &opt, &answer, NULL, NULL, &err) == 1,
               "two messages");
        TAP_INT(amp_aop_against(&task, &answer, true, &f, &err), cases[i].fault, "a guard rail");
        TAP_STR(f.code, cases[i].fault ? "E_MALFORMED_RESPONSE" : "", "its code");
    }
}

int main(void)
{
    struct amp_error err;
    reader = amp_reader_new(NULL, &err);
    second = amp_reader_new(NULL, &err);
    amounts();
    fallback();
    many_models();
    critical();
    heartbeats();
    escalation();
    rollback();
    report();
    against();
    rails();
    amp_reader_free(reader);
    amp_reader_free(second);
    return tap_done();
}
