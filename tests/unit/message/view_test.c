/* One view for every protocol: what the pointer tables fill, and how lines are recognised. */
#include <stdlib.h>

#include <amp/protocol/protocol.h>

#include "../tap.h"

static struct amp_reader *reader;
static char codes[256]; /* of the last line's findings */

static void note(void *ctx, const struct amp_finding *f)
{
    size_t n = strlen(codes);
    snprintf(codes + n, sizeof codes - n, "%s%s", n ? " " : "", f->code);
}

static int look(const char *line, struct amp_view *v)
{
    struct amp_error err;
    codes[0] = '\0';
    int got = amp_reader_line(reader, amp_span_str(line), NULL, v, note, NULL, &err);
    if (got < 0)
        printf("# %s: %s\n", err.code, err.what);
    return got;
}

#define HEAD(type, from, to)                                                                       \
    "{\"msg_id\":\"" type "-T-2026-044-17\",\"protocol_version\":\"AMP/1.0\",\"type\":\"" type     \
    "\",\"from\":\"" from "\",\"to\":\"" to "\",\"task_id\":\"T-2026-044\","                       \
    "\"timestamp\":\"2026-02-26T14:32:07.5+01:00\",\"requires_ack\":true,"

static void dispatch(void)
{
    struct amp_view v;
    const char *line =
        HEAD("task_dispatch", "coordinator",
             "executor") "\"context_ref\":[\"a\",\"b\"],\"payload\":{\"description\":\"d\","
                         "\"repo\":\"/r\","
                         "\"branch\":\"f\\u0065ature\\/"
                         "x\",\"subtasks\":[{\"subtask_id\":\"S1\",\"description\":"
                         "\"one\",\"estimated_lines\":6e1},{\"subtask_id\":\"S\\u0032\","
                         "\"description\":\"two\","
                         "\"estimated_lines\":0}],\"acceptance_criteria\":[\"c1\",\"c\\n2\"],"
                         "\"risk_level\":\"high\","
                         "\"forbidden_actions\":[\"x\"],\"tech_constraints\":{\"a\":[1, 2]}}}";
    TAP_INT(look(line, &v), 1, "a dispatch is valid");
    TAP_INT(v.protocol, AMP_PROTO_AMP, "its protocol");
    TAP_INT(v.kind, AMP_KIND_DISPATCH, "its kind");
    TAP_SPAN(v.id, "task_dispatch-T-2026-044-17", "its id");
    TAP_SPAN(v.from, "coordinator", "its sender");
    TAP_INT(v.n_to, 1, "one recipient");
    TAP_SPAN(v.to[0], "executor", "its recipient");
    TAP_SPAN(v.task, "T-2026-044", "its task");
    TAP_INT(v.created_ms, INT64_C(1772112727500), "its time, with fraction and offset");
    TAP_INT(v.needs_ack, 1, "it needs an ack");
    TAP_INT(v.has_ack_timeout, 0, "it names no timeout");
    TAP_INT(v.ack_timeout_ms, 300000, "the type's default stands in");
    TAP_INT(v.context.n, 2, "context_ref");
    TAP_SPAN(v.body.dispatch.branch, "feature/x", "escapes are decoded");
    TAP_INT(v.body.dispatch.risk, AMP_RISK_HIGH, "risk");
    TAP_INT(v.body.dispatch.n_subtasks, 2, "subtasks");
    TAP_INT(v.body.dispatch.subtasks[0].estimated_lines, 60, "6e1 is 60");
    TAP_SPAN(v.body.dispatch.subtasks[1].id, "S2", "a decoded id in a list");
    TAP_INT(v.body.dispatch.criteria.n, 2, "criteria");
    TAP_SPAN(v.body.dispatch.criteria.v[1], "c\n2", "a decoded criterion");
    TAP_SPAN(v.body.dispatch.constraints, "{\"a\":[1, 2]}", "constraints as they stand");
    TAP_OK(v.line.p == line && v.text.p == line, "line and text are the caller's bytes");
}

static void result_and_verdict(void)
{
    struct amp_view v;
    TAP_INT(look(HEAD("task_result", "executor",
                      "coordinator") "\"ack_timeout_sec\":60,\"payload\":{\"subtask_id\":\"S1\","
                                     "\"completion_status\":"
                                     "\"partial\",\"diff_summary\":{\"files_changed\":[\"a.c\"],"
                                     "\"lines_added\":6,"
                                     "\"lines_removed\":2},\"self_assessment\":{\"criteria_met\":["
                                     "true,null,false],"
                                     "\"notes\":[]},\"work_log\":[],\"blockers\":[\"no key\"]}}",
                 &v),
            1, "a result is valid");
    TAP_INT(v.ack_timeout_ms, 60000, "its own timeout wins");
    TAP_INT(v.body.result.completion, AMP_COMPLETION_PARTIAL, "completion");
    TAP_INT(v.body.result.n_criteria_met, 3, "criteria met");
    TAP_INT(v.body.result.criteria_met[1], AMP_TRI_NULL, "null is kept");
    TAP_INT(v.body.result.criteria_met[2], AMP_TRI_FALSE, "false is not null");
    TAP_INT(v.body.result.lines_added, 6, "lines added");
    TAP_INT(v.body.result.commit.n, 0, "no commit");
    TAP_INT(look(HEAD("review_verdict", "reviewer",
                      "coordinator") "\"payload\":{\"decision\":\"approved_with_fix\",\"criteria_"
                                     "results\":[{"
                                     "\"criterion\":\"c\",\"passed\":null,\"evidence\":\"e\"}],"
                                     "\"issues\":[{\"severity\":"
                                     "\"minor\",\"file\":\"a\",\"line\":3,\"description\":\"d\","
                                     "\"suggested_fix\":\"\"}],"
                                     "\"direct_fixes\":[{\"file\":\"a\",\"change_type\":\"import\","
                                     "\"diff_lines\":4}],"
                                     "\"confidence\":0.75}}",
                 &v),
            1, "a verdict is valid");
    TAP_INT(v.body.verdict.decision, AMP_VERDICT_APPROVED_WITH_FIX, "decision");
    TAP_INT(v.body.verdict.n_issues, 1, "issues");
    TAP_INT(v.body.verdict.n_blocking, 0, "a minor issue does not block");
    TAP_SPAN(v.body.verdict.fixes[0].change_type, "import_order", "import is import_order");
    TAP_OK(v.body.verdict.confidence > 0.74 && v.body.verdict.confidence < 0.76, "confidence");
}

#define RECORD(type)                                                                               \
    "{\"protocol_version\":\"AMP/1.0\",\"type\":\"" type "\",\"task_id\":\"T-2026-044\","          \
    "\"timestamp\":\"2026-02-26T14:32:07Z\","

static void records(void)
{
    struct amp_view v;
    TAP_INT(look(RECORD("nack") "\"ref_msg_id\":\"m\",\"from\":\"executor\",\"failed_stage\":"
                                "\"TIMED_OUT\",\"code\":\"c\",\"message\":\"x\",\"rule\":\"r\","
                                "\"retryable\":true}",
                 &v),
            1, "a nack is valid");
    TAP_INT(v.kind, AMP_KIND_NACK, "its kind");
    TAP_INT(v.id.n, 0, "it has no id");
    TAP_SPAN(v.correlation, "m", "it correlates by what it refers to");
    TAP_INT(v.body.ack.stage, AMP_STAGE_TIMED_OUT, "its stage");
    TAP_INT(v.body.ack.retryable, 1, "retryable");
    TAP_INT(v.needs_ack, 0, "it needs no ack");
    TAP_INT(look(RECORD("decision") "\"ref_msg_id\":\"e\",\"decision\":\"rollback\",\"commit\":"
                                    "\"abcd\",\"operator\":\"ann\"}",
                 &v),
            1, "a decision is valid");
    TAP_INT(v.body.decision.word, AMP_DO_ROLLBACK, "its word");
    TAP_SPAN(v.from, "admin", "it is the admin's");
    TAP_SPAN(v.to[0], "coordinator", "for the coordinator");
    TAP_INT(look(RECORD("ci_status") "\"branch\":\"b\",\"commit\":\"abcd\",\"checks\":{\"x\":"
                                     "\"passed\",\"y\":\"failed\",\"z\":\"running\"}}",
                 &v),
            1, "a CI record is valid");
    TAP_INT(v.body.ci.failed, 1, "red");
    TAP_INT(v.body.ci.pending, 1, "and not done");
    TAP_SPAN(v.body.ci.first_failed, "y", "the check that failed");
}

#define AOF                                                                                        \
    "{\\\"protocol\\\":\\\"aof\\\",\\\"version\\\":1,\\\"type\\\":\\\"completion.report\\\","      \
    "\\\"taskId\\\":\\\"TASK-2026-02-09-057\\\",\\\"fromAgent\\\":\\\"swe\\\",\\\"toAgent\\\":"    \
    "\\\"aof\\\",\\\"sentAt\\\":\\\"2026-02-09T21:00:00.000Z\\\",\\\"payload\\\":{"                \
    "\\\"outcome\\\":"                                                                             \
    "\\\"blocked\\\",\\\"summaryRef\\\":\\\"s.md\\\",\\\"tests\\\":{\\\"total\\\":0,"              \
    "\\\"passed\\\":0,"                                                                            \
    "\\\"failed\\\":0},\\\"notes\\\":\\\"n\\\",\\\"blockers\\\":[\\\"no key\\\"]}}"

static void aof(void)
{
    static const char *const lines[] = {
        "\"" AOF "\"",
        "\"AOF/1 " AOF "\"",
        "{\"message\":\"  AOF/1 " AOF "\"}",
        "{\"content\":\"" AOF "\"}",
    };
    struct amp_view v;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        TAP_INT(look(lines[i], &v), 1, "an AOF envelope in a string is valid");
        TAP_INT(v.protocol, AMP_PROTO_AOF, "its protocol");
        TAP_INT(v.kind, AMP_KIND_RESULT, "a completion report is a result");
        TAP_SPAN(v.task, "TASK-2026-02-09-057", "its task");
        TAP_SPAN(v.to[0], "aof", "its recipient");
        TAP_INT(v.body.result.completion, AMP_COMPLETION_FAILED, "blocked");
        TAP_SPAN(v.body.result.blockers.v[0], "no key", "its blocker");
        TAP_OK(v.text.p != lines[i] && v.text.p[0] == '{', "the text is the inner document");
        TAP_OK(v.line.p == lines[i], "the line is the outer one");
    }
    TAP_INT(look("AOF/1 {\"protocol\":\"aof\"}", &v), 0, "an AOF line that is no JSON");
    TAP_INT(v.protocol, AMP_PROTO_AOF, "is AOF all the same");
    TAP_INT(look("AOF/1 {nonsense", &v), 0, "bad JSON after the prefix");
    TAP_STR(codes, "invalid_json", "says so");
    TAP_INT(v.protocol, AMP_PROTO_AOF, "as AOF");
    TAP_INT(look("{\"message\":\"AOF/2 {}\"}", &v), 0, "another prefix");
    TAP_STR(codes, "unknown_protocol", "is no AOF");
}

#define SW4RM                                                                                      \
    "{\"message_id\":\"5a1d9c8e-6b3f-4a87-8f5e-91a2c0ab1234\",\"producer_id\":\"p\","              \
    "\"correlation_id\":\"7f3f41a2-2017-4b8f-9b8b-2ad3caaee001\",\"sequence_number\":7,"           \
    "\"retry_count\":2,\"message_type\":\"ACKNOWLEDGEMENT\",\"content_type\":\"application/"       \
    "json\","                                                                                      \
    "\"content_length\":76,\"idempotency_token\":\"a:b:c\",\"timestamp\":\"1970-01-01T00:00:"      \
    "01Z\","                                                                                       \
    "\"ttl_ms\":500,\"payload\":{\"ack_for_message_id\":\"m\",\"ack_stage\":\"REJECTED\","         \
    "\"error_code\":\"BUFFER_FULL\"}}"

static void sw4rm(void)
{
    static const char outer[] = "{\"to\":\"x\",\"msg\":" SW4RM "}";
    struct amp_view v;
    TAP_INT(look(SW4RM, &v), 1, "a SW4RM envelope is valid");
    TAP_INT(v.protocol, AMP_PROTO_SW4RM, "its protocol");
    TAP_INT(v.kind, AMP_KIND_NACK, "an acknowledgement of a refusal is a nack");
    TAP_SPAN(v.token, "a:b:c", "its token");
    TAP_INT(v.sequence, 7, "its sequence");
    TAP_INT(v.attempt, 2, "its attempt");
    TAP_INT(v.size, 76, "its size");
    TAP_INT(v.expires_ms, 1500, "its end");
    TAP_INT(v.n_to, 0, "it names no recipient");
    TAP_SPAN(v.body.ack.ref, "m", "what it acknowledges");
    TAP_INT(v.body.ack.stage, AMP_STAGE_REJECTED, "its stage");
    TAP_SPAN(v.body.ack.code, "BUFFER_FULL", "its code");
    TAP_INT(look(outer, &v), 1, "an outer recipient");
    TAP_INT(v.n_to, 1, "is the recipient");
    TAP_SPAN(v.to[0], "x", "by name");
    TAP_OK(v.text.p > outer && v.text.n == sizeof SW4RM - 1, "the text is the inner message");
    TAP_INT(look("{\"to\":[\"x\",\"y\"],\"msg\":" SW4RM "}", &v), 0, "two recipients");
    TAP_STR(codes, "validation_error", "are one too many");
    TAP_INT(look("{\"to\":\"all\",\"msg\":" SW4RM "}", &v), 0, "nor is there a broadcast");
}

static void others(void)
{
    struct amp_view v;
    TAP_INT(look("{\"eventId\":\"e\",\"seq\":1,\"kind\":\"ack\",\"sourceNodeId\":\"n\","
                 "\"sourceAgentId\":\"a\",\"corrId\":\"c\",\"createdAt\":\"2026-02-25T16:22:10Z\","
                 "\"payload\":{\"refEventId\":\"r\",\"ackType\":\"processed\",\"ackedByAgentId\":"
                 "\"a\",\"ackedAt\":\"2026-02-25T16:22:10Z\"},\"trace\":{\"attempt\":1}}",
                 &v),
            1, "a runtime event is valid");
    TAP_INT(v.protocol, AMP_PROTO_RTP, "its protocol");
    TAP_INT(v.body.ack.stage, AMP_STAGE_FULFILLED, "processed is fulfilled");
    TAP_INT(look("{\"aop_version\":\"2.0.2-C\",\"message_type\":\"EVENT\",\"event\":\"HEARTBEAT\","
                 "\"session_id\":\"s\",\"task_id\":\"t\",\"timestamp\":\"2026-02-25T16:22:10Z\","
                 "\"agent\":\"a\","
                 "\"progress_percentage\":45}",
                 &v),
            1, "an AOP event is valid");
    TAP_INT(v.protocol, AMP_PROTO_AOP, "its protocol");
    TAP_INT(v.kind, AMP_KIND_HEARTBEAT, "a heartbeat");
    TAP_SPAN(v.from, "a", "its agent");
    TAP_OK(v.body.progress.has_percent && v.body.progress.percent == 45, "its progress");
}

static void refused(void)
{
    struct amp_view v;
    TAP_INT(look(HEAD("task_dispatch", "coordinator",
                      "executor") "\"payload\":{\"description\":\"d\",\"repo\":\"/"
                                  "r\",\"branch\":\"main\"}}",
                 &v),
            0, "a bad dispatch");
    TAP_SPAN(v.id, "task_dispatch-T-2026-044-17", "the view is filled as far as the line allows");
    TAP_SPAN(v.body.dispatch.branch, "main", "the body too");
    struct amp_error err;
    struct amp_check_options only = {.only = AMP_PROTO_RTP};
    codes[0] = '\0';
    TAP_INT(amp_reader_line(reader, AMP_SPAN("{}"), &only, &v, note, NULL, &err), 0,
            "a pinned protocol");
    TAP_INT(v.protocol, AMP_PROTO_RTP, "is not detected");
    TAP_OK(amp_branch_is_protected(AMP_SPAN("refs/heads/main"), NULL), "main by its full name");
    TAP_OK(!amp_branch_is_protected(AMP_SPAN("mainline"), NULL), "mainline is free");
}

int main(void)
{
    struct amp_error err;
    reader = amp_reader_new(NULL, &err);
    if (!reader)
        return 1;
    dispatch();
    result_and_verdict();
    records();
    aof();
    sw4rm();
    others();
    refused();
    amp_reader_free(reader);
    return tap_done();
}
