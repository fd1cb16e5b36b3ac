/* SW4RM: what a view tells of each shape, and the refusal that answers a line. */
#include <stdlib.h>

#include <amp/protocol/protocol.h>

#include <string.h>

#include "../tap.h"
#include "message/protocol/aop/aop.h"
#include "message/protocol/codes/classes.c"
#include "message/protocol/codes/meanings.h"
#include "message/protocol/rtp/rtp.h"
#include "message/protocol/spec.h"
#include "message/protocol/sw4rm/sw4rm.h"

static struct amp_reader *reader;
static struct amp_finding first;
static char code[64], field[128], message[256], found[128], expected[256], rule[64];

static const char *keep(char *to, size_t size, const char *text)
{
    snprintf(to, size, "%s", text);
    return to;
}

/* Findings live until the next line: the first is kept. */
static void note(void *ctx, const struct amp_finding *f)
{
    (void)ctx;
    if (first.code)
        return;
    first = *f;
    first.code = keep(code, sizeof code, f->code);
    first.field = keep(field, sizeof field, f->field);
    first.message = keep(message, sizeof message, f->message);
    first.found = keep(found, sizeof found, f->found);
    first.expected = keep(expected, sizeof expected, f->expected);
    first.rule = keep(rule, sizeof rule, f->rule);
}

static int look(const char *line, bool strict, struct amp_view *v)
{
    struct amp_error err;
    struct amp_check_options opt = {.strict = strict};
    first = (struct amp_finding){.code = NULL};
    int got = amp_reader_line(reader, amp_span_str(line), &opt, v, note, NULL, &err);
    if (got == 0 && first.code)
        printf("# %s: %s %s\n", first.field, first.code, first.message);
    return got;
}

/* The envelope around a payload of n bytes. */
static const char *envelope(const char *type, const char *payload)
{
    static char line[8192];
    snprintf(line, sizeof line,
             "{\"message_id\":\"5a1d9c8e-6b3f-4a87-8f5e-91a2c0ab1234\",\"producer_id\":\"p\","
             "\"correlation_id\":\"7f3f41a2-2017-4b8f-9b8b-2ad3caaee001\",\"sequence_number\":7,"
             "\"retry_count\":0,\"message_type\":\"%s\",\"content_type\":\"application/json\","
             "\"content_length\":%zu,\"payload\":%s}",
             type, strlen(payload), payload);
    return line;
}

static void questions(void)
{
    struct amp_view v;
    TAP_INT(look(envelope("HITL_INVOCATION",
                          "{\"invocation_id\":\"h1\",\"reason_type\":\"NEGOTIATION_CONFLICT\","
                          "\"subject\":{\"task_id\":\"t9\"},\"suggested_action\":\"approve\","
                          "\"proposed_actions\":[\"a\",\"b\"],"
                          "\"deadline_ts\":\"1970-01-01T00:00:02Z\"}"),
                 true, &v),
            1, "a question");
    TAP_INT(v.kind, AMP_KIND_ESCALATION, "is an escalation");
    TAP_SPAN(v.body.escalation.ref, "h1", "its id");
    TAP_SPAN(v.body.escalation.type, "CONFLICT", "NEGOTIATION_CONFLICT is read as CONFLICT");
    TAP_SPAN(v.body.escalation.action, "approve", "what is suggested");
    TAP_INT(v.body.escalation.suggested.n, 2, "what may be answered");
    TAP_INT(v.body.escalation.deadline_ms, 2000, "its deadline");
    TAP_SPAN(v.task, "t9", "its task");
    TAP_INT(look(envelope("HITL_DECISION",
                          "{\"invocation_id\":\"h1\",\"decision\":\"QUEUE_TASKS\",\"rationale\":"
                          "\"later\",\"operator\":\"ann\",\"decided_at\":"
                          "\"1970-01-01T00:00:03Z\"}"),
                 true, &v),
            1, "an answer");
    TAP_INT(v.kind, AMP_KIND_DECISION, "is a decision");
    TAP_SPAN(v.body.decision.ref, "h1", "of that question");
    TAP_SPAN(v.body.decision.action, "QUEUE_TASKS", "its action");
    TAP_SPAN(v.body.decision.op, "ann", "who decided");
    TAP_INT(v.body.decision.decided_ms, 3000, "when");
    TAP_INT(look(envelope("HITL_DECISION", "{\"action\":\"deny\",\"rationale\":\"no\"}"), true, &v),
            1, "an answer in the other shape");
    TAP_SPAN(v.body.decision.action, "deny", "its action");
    TAP_SPAN(v.body.decision.note, "no", "why");
}

static void work(void)
{
    struct amp_view v;
    TAP_INT(look(envelope("CONTROL", "{\"request_id\":\"r1\",\"from_agent\":\"a\",\"to_agent\":"
                                     "\"b\",\"reason\":\"GPU\",\"context_snapshot\":{},"
                                     "\"capabilities_required\":[\"gpu\"],\"timeout_ms\":500}"),
                 true, &v),
            1, "a handoff");
    TAP_INT(v.kind, AMP_KIND_HANDOFF, "its kind");
    TAP_SPAN(v.body.handoff.ref, "r1", "its id");
    TAP_INT(v.body.handoff.wanted.n, 1, "what is wanted");
    TAP_INT(v.body.handoff.answered, 0, "it is a question");
    TAP_INT(v.n_to, 1, "it names its recipient");
    TAP_SPAN(v.to[0], "b", "by name");
    TAP_INT(look(envelope("NOTIFICATION", "{\"request_id\":\"r1\",\"accepted\":false,"
                                          "\"rejection_reason\":\"busy\"}"),
                 true, &v),
            1, "its answer");
    TAP_INT(v.body.handoff.answered && !v.body.handoff.accepted, 1, "is a no");
    TAP_SPAN(v.body.handoff.note, "busy", "with a reason");
    TAP_INT(look(envelope("TOOL_CALL", "{\"call_id\":\"c\",\"tool_name\":\"t\",\"provider_id\":"
                                       "\"p\",\"args\":{},\"content_type\":\"application/json\","
                                       "\"execution_policy\":{\"timeout_ms\":5000,\"retries\":1,"
                                       "\"isolation\":\"worktree\",\"budget_cpu_ms\":7,"
                                       "\"network_policy\":\"DENY_ALL\"},\"stream\":true}"),
                 true, &v),
            1, "a call");
    TAP_SPAN(v.body.tool_call.tool, "t", "its tool");
    TAP_INT(v.body.tool_call.timeout_ms, 5000, "its timeout");
    TAP_INT(v.body.tool_call.cpu_ms, 7, "its budget");
    TAP_SPAN(v.body.tool_call.network, "DENY_ALL", "its network");
    TAP_INT(v.body.tool_call.stream, 1, "it streams");
    TAP_INT(look(envelope("TOOL_ERROR", "{\"call_id\":\"c\",\"error_code\":\"TOOL_TIMEOUT\"}"),
                 true, &v),
            1, "a failure");
    TAP_INT(v.kind, AMP_KIND_TOOL_RESULT, "is a result");
    TAP_SPAN(v.body.tool_result.code, "TOOL_TIMEOUT", "with a code");
    TAP_INT(look(envelope("TOOL_RESULT", "{\"call_id\":\"c\",\"frame_no\":2,\"final\":true}"), true,
                 &v),
            1, "a frame");
    TAP_INT(v.body.tool_result.frame, 2, "its number");
    TAP_INT(v.body.tool_result.final, 1, "the last");
    TAP_INT(look(envelope("NEGOTIATION", "{\"score\":8.5,\"confidence\":0.5,\"passed\":true,"
                                         "\"artifact_id\":\"x\"}"),
                 true, &v),
            1, "a vote");
    TAP_INT(v.kind, AMP_KIND_VOTE, "its kind");
    TAP_OK(v.body.vote.score > 8.4 && v.body.vote.confidence < 0.6 && v.body.vote.passed,
           "what it says");
    TAP_INT(
        look(envelope("WORKTREE_CONTROL", "{\"operation\":\"SWITCH_APPROVE\",\"agent_id\":\"bob\","
                                          "\"target_worktree_id\":\"w\",\"ttl_ms\":900000}"),
             true, &v),
        1, "a worktree's control");
    TAP_SPAN(v.body.worktree.operation, "SWITCH_APPROVE", "its operation");
    TAP_INT(v.body.worktree.ttl_ms, 900000, "for how long");
    TAP_SPAN(v.to[0], "bob", "for whom");
}

static void commands(void)
{
    struct amp_view v;
    TAP_INT(look(envelope("CONTROL", "{\"command\":\"RUN\",\"task_id\":\"t1\",\"agent_id\":"
                                     "\"a\\u0031\",\"priority\":-19}"),
                 true, &v),
            1, "a command");
    TAP_INT(v.priority, -19, "its priority");
    TAP_SPAN(v.task, "t1", "its task");
    TAP_INT(v.n_to, 1, "one agent");
    TAP_SPAN(v.to[0], "a1", "is meant");
    TAP_INT(
        look(envelope("CONTROL", "{\"command\":\"RUN\",\"agent_id\":7,\"priority\":21}"), true, &v),
        0, "a bad one");
    TAP_INT(v.n_to, 0, "means nobody");
}

/* The NACK for the last line that was looked at. */
static const char *refuse(const struct amp_view *v, struct amp_buf *out)
{
    struct amp_error err;
    amp_buf_reset(out);
    if (amp_spec_sw4rm.refuse(v, &first, INT64_C(1763712000123), out, &err) != 0)
        return NULL;
    out->data[--out->len] = '\0';
    return out->data;
}

static void refusals(void)
{
    static const char *const bad[] = {
        "{\"message_id\":\"m\",\"message_type\":\"DATA\"}",
        "{\"message_type\":\"SHOUT\",\"producer_id\":\"\\u001b[31m\",\"correlation_id\":7}",
        "{\"message_id\":\"" /* a long id and a long fault */
        "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\","
        "\"hlc_timestamp\":\"1.2.n\",\"producer_id\":[[[[\"\\\"\\\\\"]]]]}",
    };
    struct amp_view v, answer;
    AMP_BUF struct amp_buf out = {0};
    amp_buf_init(&out, 64 * 1024);
    TAP_INT(look(envelope("TOOL_CALL", "{\"tool_name\":\"t\"}"), false, &v), 0, "a bad call");
    const char *nack = refuse(&v, &out);
    TAP_OK(nack != NULL, "is answered");
    TAP_INT(nack ? look(nack, true, &answer) : 0, 1, "by a message that is valid strictly");
    TAP_INT(answer.kind, AMP_KIND_NACK, "a negative acknowledgement");
    TAP_SPAN(answer.correlation, "7f3f41a2-2017-4b8f-9b8b-2ad3caaee001", "of the same flow");
    TAP_SPAN(answer.body.ack.ref, "5a1d9c8e-6b3f-4a87-8f5e-91a2c0ab1234", "for that message");
    TAP_INT(answer.body.ack.stage, AMP_STAGE_REJECTED, "rejected");
    TAP_SPAN(answer.body.ack.code, "VALIDATION_ERROR", "with a code in capitals");
    TAP_OK(answer.body.ack.note.n > 10, "and words");
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        TAP_INT(look(bad[i], false, &v), 0, "another bad line");
        nack = refuse(&v, &out);
        TAP_INT(nack ? look(nack, true, &answer) : 0, 1, "is answered as strictly");
    }
    TAP_OK(strstr(out.data, "\"hlc_timestamp\":") != NULL, "with a clock");
    look(envelope("SHOUT", "{}"), false, &v);
    nack = refuse(&v, &out);
    TAP_OK(nack && strstr(nack, "\"UNSUPPORTED_MESSAGE_TYPE\""), "the code is the finding's");
    char once[4096];
    snprintf(once, sizeof once, "%s", nack ? strstr(nack, "\"idempotency_token\":") : "");
    nack = refuse(&v, &out);
    TAP_OK(nack && strncmp(once, strstr(nack, "\"idempotency_token\":"), 60) == 0,
           "refused again, the token is the same");
    TAP_INT(look(envelope("ACKNOWLEDGEMENT", "{\"ack_stage\":\"FAILED\"}"), false, &v), 0,
            "a bad acknowledgement");
    TAP_OK(refuse(&v, &out) == NULL, "is not answered: that would never end");
}

static bool is_listed(enum amp_protocol p, const char *word)
{
    for (const struct amp_meaning *m = amp_meanings(p); m->code; m++)
        if (strcmp(m->code, word) == 0)
            return true;
    return false;
}

static bool is_failure_class(const char *word)
{
#define X(class) strcmp(word, class) == 0 ||
    return AMP_RTP_FAILURE_LIST(X) false;
#undef X
}

static void code_check(const char *word)
{
    TAP_OK(is_listed(AMP_PROTO_SW4RM, amp_sw4rm_code(word)), "SW4RM has a code for %s", word);
    TAP_OK(is_listed(AMP_PROTO_AOP, amp_aop_code(word)), "AOP has a code for %s", word);
    TAP_OK(is_failure_class(amp_rtp_failure(amp_span_str(word), AMP_SPAN(""))),
           "the Runtime Protocol has a class for %s", word);
}

/* Each code of these tools has a class, and becomes a code of the protocol's list. */
static void codes(void)
{
    static const char *const rows[][4] = {
        {"log_failed", "internal_error", "E_UNKNOWN", "execution_error"},
        {"eio", "internal_error", "E_UNKNOWN", "execution_error"},
        {"command_failed", "internal_error", "E_PROCESS_CRASH", "execution_error"},
        {"worker_lost", "internal_error", "E_PROCESS_CRASH", "execution_error"},
        {"no_verdict", "internal_error", "E_MALFORMED_RESPONSE", "execution_error"},
        {"repo_not_git", "internal_error", "E_FILE_NOT_FOUND", "dependency_missing"},
        {"unsigned", "permission_denied", "E_PERMISSION_DENIED", "authz_denied"},
        {"budget_exceeded", "permission_denied", "E_COST_LIMIT_EXCEEDED", "policy_blocked"},
        {"nested_delegation", "validation_error", "E_MAX_DEPTH_EXCEEDED", "policy_blocked"},
        {"line_too_long", "oversize_payload", "E_CONTEXT_OVERFLOW", "failed_terminal"},
        {"usage_limit", "agent_unavailable", "E_MODEL_UNAVAILABLE", "overloaded"},
        {"no_route", "no_route", "E_AGENT_NOT_FOUND", "invalid_target"},
        {"deadline_passed", "ttl_expired", "E_TIMEOUT", "timeout"},
        {"command_timeout", "tool_timeout", "E_TIMEOUT", "timeout"},
        {"bad_scope", "validation_error", "E_SCHEMA_VALIDATION", "failed_terminal"},
        {"withdrawn", "cancelled", "E_UNKNOWN", "failed_terminal"},
        {"FORCED_PREEMPTION", "forced_preemption", "E_UNKNOWN", "overloaded"},
        {"E_TIMEOUT", "tool_timeout", "E_TIMEOUT", "timeout"},
        {"dependency missing", "internal_error", "E_UNKNOWN", "dependency_missing"},
    };
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
        TAP_STR(amp_sw4rm_code(rows[i][0]), rows[i][1], rows[i][0]);
        TAP_STR(amp_aop_code(rows[i][0]), rows[i][2], rows[i][0]);
        TAP_SPAN(amp_span_str(amp_rtp_failure(amp_span_str(rows[i][0]), AMP_SPAN(""))), rows[i][3],
                 rows[i][0]);
    }
    for (int k = 0; k < AMP_CODE_CLASSES; k++) {
        char list[4096], *save, *word;
        snprintf(list, sizeof list, "%s", lists[k]);
        for (word = strtok_r(list, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
            TAP_OK((int)amp_code_class(word) == k, "%s has one class", word);
            code_check(word);
        }
    }
    for (enum amp_protocol p = AMP_PROTO_NONE; p < AMP_PROTO_COUNT; p++)
        for (const struct amp_meaning *m = amp_meanings(p); m->code; m++)
            TAP_OK(strncmp(m->code, "E_", 2) == 0 || is_listed(AMP_PROTO_SW4RM, m->code) ||
                       amp_code_class(m->code) != AMP_CODE_FOREIGN,
                   "%s has a class", m->code);
}

int main(void)
{
    struct amp_error err;
    reader = amp_reader_new(NULL, &err);
    if (!reader)
        return 1;
    questions();
    work();
    commands();
    refusals();
    codes();
    amp_reader_free(reader);
    return tap_done();
}
