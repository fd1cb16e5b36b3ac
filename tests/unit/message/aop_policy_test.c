/* What counts in an AOP TASK: precedence, access, budgets; and a RESPONSE, or silence, against it.
 */
#include <stdlib.h>

#include <amp/protocol/aop_policy.h>

#include "../tap.h"

static struct amp_reader *reader;
static struct amp_view v;

static int look(const char *line)
{
    struct amp_error err;
    return amp_reader_line(reader, amp_span_str(line), NULL, &v, NULL, NULL, &err);
}

#define HEAD(type)                                                                                 \
    "{\"aop_version\":\"2.0.2-C\",\"schema_version\":\"2.0.2\",\"protocol_family\":\"AOP\","       \
    "\"message_type\":\"" type "\","
#define TASK(target, task, top)                                                                    \
    HEAD("TASK")                                                                                   \
    "\"session\":{\"session_id\":\"s\",\"created_at\":\"2026-02-26T14:00:00Z\","                   \
    "\"orchestrator\":\"o\",\"origin\":\"CLI\"},\"target\":{\"agent_name\":\"a\","                 \
    "\"role\":\"EXECUTOR\",\"provider\":\"LOCAL\",\"model\":\"m\"" target "},"                     \
    "\"task\":{\"task_id\":\"t\",\"objective\":\"o\",\"category\":\"OTHER\","                      \
    "\"complexity\":\"LOW\",\"environment\":{\"workspace_root\":\"C:/w\"}" task "}" top "}"

static struct amp_aop_policy policy(const char *line)
{
    struct amp_aop_policy p;
    TAP_INT(look(line), 1, "the task is valid");
    amp_aop_policy(&v, &p);
    return p;
}

static void defaults(void)
{
    struct amp_aop_policy p = policy(TASK("", "", ""));
    TAP_INT(p.timeout_seconds.value, 1800, "the executor's timeout");
    TAP_INT(p.timeout_seconds.source, AMP_AOP_FROM_DEFAULT, "is nobody's");
    TAP_INT(p.max_retries.value, 0, "no retries");
    TAP_OK(p.backoff == AMP_TOK_NONE, "no waits of its own");
    TAP_OK(p.auto_terminate_on_timeout.value && !p.abort_on_first_critical_error.value, "flags");
    TAP_OK(p.final_signal.value && p.minimal_report.value, "guard rails");
    TAP_OK(!p.read.limited && !p.write.limited, "files are not limited");
    TAP_STR(amp_aop_network_name((enum amp_aop_network)p.network.value), "RESTRICTED", "network");
    TAP_OK(!p.cost_usd.limited && !p.tokens.limited && !p.delegation.value, "no budget");
    TAP_OK(amp_aop_within(&p.cost_usd, 1e9), "everything is within no budget");
    TAP_STR(amp_aop_on_failure_name((enum amp_aop_on_failure)p.on_failure.value),
            "REPORT_AND_CONTINUE", "REPORT_AND_CONTINUE");
    TAP_OK(!p.heartbeat.value && p.heartbeat_seconds == 120 && p.heartbeat_missed_most.value == 3 &&
               p.on_heartbeat_failure.value == AMP_AOP_SILENCE_ABORT,
           "no heartbeat, and its numbers");
}

static void precedence(void)
{
    struct amp_aop_policy p =
        policy(TASK("", "", ",\"execution_policy\":{\"timeout_seconds\":900,\"max_retries\":2}"));
    TAP_INT(p.timeout_seconds.value, 900, "execution_policy's timeout");
    TAP_INT(p.timeout_seconds.source, AMP_AOP_FROM_EXECUTION, "is its own");
    TAP_INT(p.max_retries.value, 2, "its retries");
    p = policy(TASK("", "",
                    ",\"execution_policy\":{\"timeout_seconds\":900,"
                    "\"abort_on_first_critical_error\":false},"
                    "\"guard_rails\":{\"timeout_seconds\":1200,"
                    "\"abort_on_first_critical_error\":true,\"require_final_signal\":false}"));
    TAP_INT(p.timeout_seconds.value, 1200, "guard_rails override it, also with more");
    TAP_STR(amp_aop_source_name(p.timeout_seconds.source), "guard_rails", "and say so");
    TAP_OK(p.abort_on_first_critical_error.value && !p.final_signal.value, "flags too");
}

static void network(void)
{
    static const struct {
        const char *line, *want;
        enum amp_aop_source source;
    } cases[] = {
        {TASK(",\"capabilities\":{\"network_access\":\"NONE\"}",
              ",\"access\":{\"network\":\"FULL\"}", ""),
         "NONE", AMP_AOP_FROM_CAPABILITIES},
        {TASK(",\"capabilities\":{\"network_access\":\"FULL\"}",
              ",\"access\":{\"network\":\"NONE\"}", ""),
         "NONE", AMP_AOP_FROM_ACCESS},
        {TASK(",\"capabilities\":{\"network_access\":\"FULL\"}",
              ",\"access\":{\"network\":\"FULL\"}", ""),
         "FULL", AMP_AOP_FROM_CAPABILITIES},
        {TASK("", ",\"access\":{\"network\":\"FULL\"}", ""), "RESTRICTED", AMP_AOP_FROM_DEFAULT},
        {TASK(",\"capabilities\":{\"network_access\":\"FULL\"}",
              ",\"constraints\":{\"network_access\":\"RESTRICTED\"}", ""),
         "RESTRICTED", AMP_AOP_FROM_CONSTRAINTS},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct amp_aop_policy p = policy(cases[i].line);
        TAP_STR(amp_aop_network_name((enum amp_aop_network)p.network.value), cases[i].want,
                "the most restrictive network");
        TAP_INT(p.network.source, cases[i].source, "and where it comes from");
    }
}

#define FILES(read, write)                                                                         \
    ",\"access\":{\"filesystem\":{\"read_paths\":" read ",\"write_paths\":" write "}}"

static bool may(const struct amp_aop_paths *to, const char *path)
{
    return !amp_aop_denies(&v, to, AMP_SPAN("C:/w"), amp_span_str(path));
}

static void files(void)
{
    struct amp_aop_policy p = policy(TASK("", FILES("[\"C:/w\",\"/srv/a\"]", "[\"src\"]"), ""));
    TAP_OK(may(&p.read, "C:/w/x") && may(&p.read, "/srv/a") && may(&p.read, "x"), "may be read");
    TAP_OK(!may(&p.read, "C:/w2/x") && !may(&p.read, "/srv/ab") && !may(&p.read, "../x"),
           "may not");
    TAP_OK(may(&p.write, "src/a") && may(&p.write, "C:\\w\\src\\a") && !may(&p.write, "a"),
           "may be written");
    p = policy(TASK(",\"capabilities\":{\"file_system_access\":false}",
                    FILES("[\"C:/w\"]", "[\"C:/w\"]"), ""));
    TAP_OK(p.read.limited && p.read.list == AMP_TOK_NONE && !may(&p.read, "C:/w/x"),
           "an agent without files reads none");
    TAP_INT(p.write.source, AMP_AOP_FROM_CAPABILITIES, "for want of the capability");
    p = policy(TASK(
        "", FILES("[\"C:/w\"]", "[\"C:/w\"]") ",\"constraints\":{\"read_only_mode\":true}", ""));
    TAP_OK(may(&p.read, "C:/w/x") && !may(&p.write, "C:/w/x"), "a read-only task writes none");
    p = policy(TASK("", "", ""));
    TAP_OK(may(&p.read, "/x") && !may(&p.read, "/../x"), "unlimited, but not out of the world");
    p = policy(TASK("", FILES("[\".\",\"C:/\"]", "[]"), ""));
    TAP_OK(!amp_aop_denies(&v, &p.read, AMP_SPAN("w"), AMP_SPAN("./a")), "from a place unknown");
    TAP_OK(amp_aop_denies(&v, &p.read, AMP_SPAN("w"), AMP_SPAN("../a")) &&
               amp_aop_denies(&v, &p.read, AMP_SPAN("w"), AMP_SPAN("../../a")) &&
               amp_aop_denies(&v, &p.read, AMP_SPAN("w"), AMP_SPAN("..\\a")) &&
               amp_aop_denies(&v, &p.read, AMP_SPAN(""), AMP_SPAN("a/../C:/x")) &&
               amp_aop_denies(&v, &p.read, AMP_SPAN("w"), AMP_SPAN("/a")),
           "but not out of it");
    TAP_OK(amp_aop_denies(&v, &p.read, AMP_SPAN("/../w"), AMP_SPAN("a")) &&
               !amp_aop_denies(&v, &p.read, AMP_SPAN("/../w"), AMP_SPAN("C:/a/../b")) &&
               !amp_aop_denies(&v, &p.read, AMP_SPAN("/../w"), AMP_SPAN("C:/a/./b")),
           "a workspace that lies nowhere has no files of its own");
}

static void resolving(void)
{
    static const struct {
        const char *path, *want; /* NULL: nowhere */
    } cases[] = {
        {"a/./b//c", "C:/w/a/b/c"},
        {"..", "C:/"},
        {"../..", NULL},
        {"/x/../y/", "/y"},
        {"d:\\a\\..\\b", "D:/b"},
        {"\\a", "C:/a"},
        {"C:a", NULL},
        {"\\\\h\\s", NULL},
        {"C:/a/b.", NULL},
        {"C:/a:b", NULL},
        {"/a:b", "/a:b"},
        {"/", "/"},
        {"/..", NULL},
        {"/a/../..", NULL},
        {"C:/con ", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct amp_error err;
        AMP_BUF struct amp_buf out = {0};
        amp_buf_init(&out, 4096);
        int got = amp_aop_resolve(AMP_SPAN("C:/w"), amp_span_str(cases[i].path), &out, &err);
        if (cases[i].want)
            TAP_SPAN(amp_buf_span(&out), cases[i].want, cases[i].path);
        else
            TAP_OK(got < 0 && strcmp(err.code, "E_PERMISSION_DENIED") == 0, "%s lies nowhere",
                   cases[i].path);
    }
}

#define RESPONSE(cost)                                                                             \
    HEAD("RESPONSE")                                                                               \
    "\"session_id\":\"s\",\"task_id\":\"t\",\"agent\":{\"name\":\"a\",\"provider\":\"LOCAL\","     \
    "\"model\":\"m\"},\"task_status\":{\"state\":\"COMPLETED\",\"final_signal\":\"SUCCESS\","      \
    "\"message\":\"\"},\"execution_summary\":{\"summary\":\"s\",\"actions\":[\"a\"]},"             \
    "\"timing\":{\"started_at\":\"2026-02-26T12:35:01Z\",\"completed_at\":"                        \
    "\"2026-02-26T12:40:32Z\",\"duration_seconds\":331},\"cost_tracking\":{" cost "}}"

static void budgets(void)
{
    static const struct {
        const char *cost;
        bool within;
    } cases[] = {
        {RESPONSE("\"actual_cost_usd\":0.5"), true},
        {RESPONSE("\"actual_cost_usd\":0.51"), false},
        {RESPONSE("\"estimated_cost_usd\":9,\"actual_cost_usd\":0.1"), true},
        {RESPONSE("\"estimated_cost_usd\":9"), false},
        {RESPONSE("\"tokens_input\":60,\"tokens_output\":40"), true},
        {RESPONSE("\"tokens_input\":60,\"tokens_output\":41"), false},
        {RESPONSE(""), true},
    };
    struct amp_aop_policy p =
        policy(TASK("",
                    ",\"constraints\":{\"max_cost_usd\":0.5,\"max_tokens\":200},"
                    "\"budgets\":{\"max_cost_usd\":0.75,\"max_tokens\":100}",
                    ""));
    TAP_OK(p.cost_usd.value == 0.5 && p.cost_usd.source == AMP_AOP_FROM_CONSTRAINTS, "the lower");
    TAP_OK(p.tokens.value == 100 && p.tokens.source == AMP_AOP_FROM_BUDGETS, "from either");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        TAP_INT(look(cases[i].cost), 1, "the response is valid");
        const char *fault = amp_aop_response_fault(&p, &v);
        TAP_STR(fault ? fault : "", cases[i].within ? "" : "E_COST_LIMIT_EXCEEDED", "its cost");
    }
    p = policy(TASK("", ",\"budgets\":{\"max_cost_usd\":0}", ""));
    TAP_OK(amp_aop_within(&p.cost_usd, 0) && !amp_aop_within(&p.cost_usd, 0.01),
           "a budget of 0 is one");
}

static void silence(void)
{
    struct amp_aop_policy p = policy(TASK("", "", ""));
    TAP_OK(!amp_aop_lost(&p, 0, 1000000000), "nobody promised a sign of life");
    p = policy(TASK("", "",
                    ",\"execution_policy\":{\"heartbeat\":{\"enabled\":true,"
                    "\"interval_seconds\":10,\"max_missed_beats\":2}}"));
    TAP_OK(!amp_aop_lost(&p, 1000, 20999), "two beats are not missed yet");
    TAP_OK(amp_aop_lost(&p, 1000, 21000), "now they are");
}

static void view(void)
{
    TAP_INT(look(TASK("",
                      ",\"attempt\":3,\"priority\":\"HIGH\",\"expected_outputs\":["
                      "{\"type\":\"FILE\",\"description\":\"d1\"},"
                      "{\"type\":\"FILE\",\"description\":\"d\\u0032\"}]",
                      ",\"phases\":[{\"phase_id\":\"P\",\"phase_order\":1,\"label\":\"l\","
                      "\"objective\":\"po\"}]")),
            1, "a task");
    TAP_INT(v.kind, AMP_KIND_DISPATCH, "is a dispatch");
    TAP_SPAN(v.from, "o", "its orchestrator");
    TAP_SPAN(v.to[0], "a", "its agent");
    TAP_SPAN(v.task, "t", "its task");
    TAP_SPAN(v.correlation, "s", "its session");
    TAP_INT(v.attempt, 3, "its attempt");
    TAP_SPAN(v.body.dispatch.description, "o", "its objective");
    TAP_SPAN(v.body.dispatch.repo, "C:/w", "its workspace");
    TAP_INT(v.body.dispatch.risk, AMP_RISK_LOW, "its complexity");
    TAP_INT(v.body.dispatch.criteria.n, 2, "its outputs");
    TAP_SPAN(v.body.dispatch.criteria.v[1], "d2", "by their descriptions");
    TAP_SPAN(v.body.dispatch.subtasks[0].description, "po", "its phases");
    TAP_INT(look(RESPONSE("")), 1, "a response");
    TAP_INT(v.kind, AMP_KIND_RESULT, "is a result");
    TAP_SPAN(v.from, "a", "of its agent");
    TAP_INT(v.body.result.completion, AMP_COMPLETION_COMPLETE, "and complete");
    TAP_SPAN(v.body.result.notes.v[0], "a", "with its actions");
    TAP_INT(look("{\"aop_version\":\"2.0\",\"message_type\":\"EVENT\",\"event\":"
                 "\"PRIORITY_ESCALATION\",\"session_id\":\"s\",\"task_id\":\"t\",\"timestamp\":"
                 "\"2026-02-26T12:40:00Z\",\"old_priority\":\"LOW\",\"new_priority\":\"CRITICAL\","
                 "\"reason\":\"r\",\"escalated_by\":\"u\"}"),
            1, "an escalation");
    TAP_INT(v.kind, AMP_KIND_ESCALATION, "is one");
    TAP_INT(v.body.escalation.severity, AMP_LEVEL_CRITICAL, "critical");
    TAP_SPAN(v.body.escalation.description, "r", "with its reason");
    TAP_SPAN(v.from, "u", "and who did it");
    TAP_INT(look("{\"aop_version\":\"2.0\",\"message_type\":\"EVENT\",\"event\":"
                 "\"PROGRESS_UPDATE\",\"session_id\":\"s\",\"task_id\":\"t\",\"timestamp\":"
                 "\"1970-01-01T00:00:01Z\",\"agent\":\"a\",\"progress\":{\"percentage\":60,"
                 "\"current_phase\":\"P\",\"message\":\"m\","
                 "\"estimated_time_remaining_seconds\":420}}"),
            1, "progress");
    TAP_OK(v.body.progress.has_percent && v.body.progress.percent == 60, "in per cent");
    TAP_INT(v.body.progress.eta_ms, 421000, "until when");
    TAP_SPAN(v.body.progress.phase, "P", "in which phase");
    TAP_SPAN(v.body.progress.note, "m", "in words");
    TAP_SPAN(v.body.progress.agent, "a", "whose");
}

int main(void)
{
    struct amp_error err;
    reader = amp_reader_new(NULL, &err);
    if (!reader)
        return 1;
    defaults();
    precedence();
    network();
    files();
    resolving();
    budgets();
    silence();
    view();
    amp_reader_free(reader);
    return tap_done();
}
