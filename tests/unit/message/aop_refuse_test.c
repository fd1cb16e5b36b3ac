/* What AOP answers to a line that it refuses is itself a valid AOP message. */
#include <stdlib.h>

#include "message/protocol/spec.h"

#include "../tap.h"

static struct amp_reader *reader, *second;
static struct amp_finding first;
static struct amp_view answer;
static struct amp_buf line;

static void note(void *ctx, const struct amp_finding *f)
{
    (void)ctx;
    if (!first.code && f->severity == AMP_SEV_ERROR)
        first = *f;
}

/* Refuses a line that is not valid, and reads the answer. */
static bool refuse(struct amp_span bad, bool strict)
{
    struct amp_error err;
    struct amp_view v;
    struct amp_check_options opt = {.only = AMP_PROTO_AOP, .strict = strict};
    first = (struct amp_finding){.code = NULL};
    amp_buf_reset(&line);
    return amp_reader_line(reader, bad, &opt, &v, note, NULL, &err) == 0 && first.code &&
           amp_spec_aop.refuse(&v, &first, 1772116327000, &line, &err) == 0 && line.len > 1 &&
           line.data[line.len - 1] == '\n' &&
           amp_reader_line(second, (struct amp_span){line.data, line.len - 1}, NULL, &answer, NULL,
                           NULL, &err) == 1;
}

static struct amp_span at(const char *pointer)
{
    uint32_t tok = amp_tape_pointer(answer.tape, 0, amp_span_str(pointer));
    return tok == AMP_TOK_NONE ? AMP_SPAN("(none)") : amp_tok_source(answer.tape, tok);
}

#define HEAD(type)                                                                                 \
    "{\"aop_version\":\"2.0.2-C\",\"schema_version\":\"2.0.2\",\"protocol_family\":\"AOP\","       \
    "\"message_type\":\"" type "\","
#define TASK(target, objective, task)                                                              \
    HEAD("TASK")                                                                                   \
    "\"session\":{\"session_id\":\"s\\u00e9\",\"created_at\":\"2026-02-26T14:00:00Z\","            \
    "\"orchestrator\":\"o\",\"origin\":\"CLI\"},\"target\":{\"agent_name\":\"a\",\"role\":"        \
    "\"" target "\",\"provider\":\"LOCAL\",\"model\":\"m\"},"                                      \
    "\"task\":{\"task_id\":\"t\",\"objective\":\"" objective "\",\"category\":\"OTHER\","          \
    "\"complexity\":\"LOW\",\"environment\":{\"workspace_root\":\"C:/w\"}" task "}}"

static void schema(void)
{
    TAP_OK(refuse(AMP_SPAN(TASK("BOSS", "read\\nit\\u001b[2J",
                                ",\"inputs\":[{\"type\":\"FILE\",\"path\":\"a.c\"}],"
                                "\"expected_outputs\":[{\"type\":\"FILE\",\"path\":\"b.c\","
                                "\"description\":\"d\"}]")),
                  false),
           "a TASK of an unknown role is answered");
    TAP_SPAN(at("/event"), "\"VERSION_FALLBACK\"", "by a fallback");
    TAP_INT(answer.kind, AMP_KIND_NACK, "which is a nack");
    TAP_SPAN(answer.correlation, "s\xc3\xa9", "in its session");
    TAP_SPAN(answer.task, "t", "about its task");
    TAP_SPAN(answer.body.ack.code, "E_SCHEMA_VALIDATION", "with the code");
    TAP_SPAN(at("/error_details/error_code"), "\"E_SCHEMA_VALIDATION\"", "in its details too");
    TAP_SPAN(at("/error_details/extensions/x_pointer"), "\"/target/role\"", "and the place");
    TAP_SPAN(at("/timestamp"), "\"2026-02-26T14:32:07.000Z\"", "at its time");
    TAP_SPAN(at("/classification"), "\"V2\"", "it was version 2");
    TAP_SPAN(at("/from_version"), "\"2.0.2-C\"", "by its own word");
    TAP_SPAN(at("/to_version"), "\"1.x\"", "and goes on as version 1");
    TAP_SPAN(at("/v1_prompt"),
             "\"# Task: t\\n\\n**Session:** s\xc3\xa9\\n**Agent:** a\\n**Role:** BOSS\\n"
             "**Category:** OTHER\\n**Complexity:** LOW\\n**Workspace:** C:/w\\n\\n## Objective\\n"
             "read\\nit[2J\\n\\n## Inputs\\n- a.c\\n\\n## Expected outputs\\n- b.c: d\\n\\n"
             "## Report\\nEnd with a status (SUCCESS, PARTIAL_SUCCESS, FAILURE or ABORTED), a "
             "summary, and the list of your actions.\\n\"",
             "with this prompt");
    struct amp_error err;
    struct amp_view v;
    struct amp_check_options only = {.only = AMP_PROTO_AOP};
    TAP_INT(amp_reader_line(reader, at("/v1_prompt"), &only, &v, NULL, NULL, &err), 1,
            "that is read as version 1");
    TAP_SPAN(v.type, "V1_MARKDOWN", "by that name");
}

static void limits(void)
{
    AMP_BUF struct amp_buf big = {0};
    struct amp_error err;
    amp_buf_init(&big, 1 << 20);
    int bad = amp_buf_str(&big, TASK("EXECUTOR", "read", ""), &err);
    bad |= amp_buf_reserve(&big, 205 * 1024, &err);
    TAP_OK(!bad, "memory");
    memset(big.data + big.len, ' ', 205 * 1024);
    big.len += 205 * 1024;
    TAP_OK(refuse(amp_buf_span(&big), false), "a TASK that is too large is answered");
    TAP_SPAN(answer.type, "RESPONSE", "by a response");
    TAP_SPAN(at("/task_status/state"), "\"FAILED\"", "that it failed");
    TAP_SPAN(at("/error_details/error_code"), "\"E_CONTEXT_OVERFLOW\"", "with the code");
    TAP_SPAN(answer.task, "t", "about its task");
    TAP_SPAN(answer.from, "a", "from its agent");
    TAP_OK(refuse(AMP_SPAN(TASK("EXECUTOR", "read",
                                ",\"inputs\":[{\"type\":\"FILE\",\"path\":\"/../a\"}]")),
                  false),
           "so is one that reaches too far");
    TAP_SPAN(at("/error_details/error_code"), "\"E_PERMISSION_DENIED\"", "with its code");
    TAP_SPAN(at("/agent/provider"), "\"LOCAL\"", "from the provider");
}

static void others(void)
{
    static const struct {
        const char *bad, *code, *classification;
    } cases[] = {
        {"null", "E_PARSE_FAILURE", "UNSTRUCTURED"},
        {"[]", "E_PARSE_FAILURE", "UNSTRUCTURED"},
        {"\"x\"", "E_PARSE_FAILURE", "UNSTRUCTURED"},
        {"prose", "E_PARSE_FAILURE", "UNSTRUCTURED"},
        {"{\"a", "E_PARSE_FAILURE", "UNSTRUCTURED"},
        {"{}", "E_PARSE_FAILURE", "UNSTRUCTURED"},
        {"{\"aop_version\":\"2\"}", "E_PARSE_FAILURE", "UNSTRUCTURED"},
        {"{\"aop_version\":\"3.0\",\"message_type\":\"TASK\",\"task\":1}", "E_PARSE_FAILURE",
         "UNSTRUCTURED"},
        {"{\"aop_version\":\"2.0\"}", "E_SCHEMA_VALIDATION", "V2"},
        {"{\"aop_version\":\"2.0\",\"message_type\":\"TASK\"}", "E_SCHEMA_VALIDATION", "V2"},
        {"{\"aop_version\":\"2.0\",\"message_type\":\"TASK\",\"task\":[],\"session\":0}",
         "E_SCHEMA_VALIDATION", "V2"},
        {"{\"aop_version\":\"2.0\",\"message_type\":\"RESPONSE\",\"task_id\":\"\"}",
         "E_MALFORMED_RESPONSE", "V2"},
        {"{\"aop_version\":\"2.0\",\"message_type\":\"EVENT\",\"session_id\":\"s\"}",
         "E_SCHEMA_VALIDATION", "V2"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        TAP_OK(refuse(amp_span_str(cases[i].bad), false), "%s is answered", cases[i].bad);
        TAP_SPAN(answer.body.ack.code, cases[i].code, "with the code");
        struct amp_span got = at("/classification");
        got.p++;
        got.n -= 2;
        TAP_SPAN(got, cases[i].classification, "and what it is");
    }
}

int main(void)
{
    struct amp_error err;
    reader = amp_reader_new(NULL, &err);
    second = amp_reader_new(NULL, &err);
    amp_buf_init(&line, 1 << 20);
    if (!reader || !second)
        return 1;
    schema();
    limits();
    others();
    amp_buf_release(&line);
    amp_reader_free(reader);
    amp_reader_free(second);
    return tap_done();
}
