/*
 * Any event of a coding agent, and any command line, through the rules of the hook. What must hold:
 * a line that is allowed is not allowed with another command behind it, and a rule that denies
 * allows nothing. The calls of a line of a recording are events. The first byte chooses: an event
 * or a line of a recording, or a command line.
 */
#include <stdlib.h>
#include <string.h>

#include "must.h"
#include "people/question/hook/rules.h"
#include "work/git/call/event/recorded.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const texts[] = {
    "{\"decision\":\"allow\",\"command\":\"git status *\"}",
    "{\"decision\":\"allow\",\"command\":\"ls *\"}",
    "{\"decision\":\"allow\",\"kind\":\"write\",\"path\":\"src/**\"}",
    "{\"decision\":\"ask\",\"tool\":\"Web*\"}",
    "{\"decision\":\"deny\",\"command\":\"git push *\"}",
    "{\"decision\":\"deny\",\"path\":\"**/secret-x\"}",
};
enum { ALLOWING = 4, ALL = sizeof texts / sizeof *texts };
static struct amp_hook_rules few, all;
static const struct amp_hook_place at = {"/nowhere/x", "/nowhere/x"};

static void rules_make(void)
{
    struct amp_error err;
    for (int i = 0; i < ALL && all.n < ALL; i++) {
        MUST(amp_hook_rules_add(&all, amp_span_str(texts[i]), &err) == 0);
        if (i < ALLOWING)
            MUST(amp_hook_rules_add(&few, amp_span_str(texts[i]), &err) == 0);
    }
}

static enum amp_hook_decision decide(const struct amp_hook_rules *r, const struct amp_call_event *e)
{
    struct amp_hook_result out;
    struct amp_error err;
    MUST(amp_hook_decide(r, e, &at, &out, &err) == 0);
    return out.decision;
}

static void event_try(struct amp_span json)
{
    for (int cli = AMP_CLI_NONE; cli < AMP_CLI_COUNT; cli++) {
        AMP_CALL_EVENT struct amp_call_event e = {0};
        AMP_BUF struct amp_buf reply = {0};
        struct amp_error err;
        amp_buf_init(&reply, 1 << 22);
        if (amp_call_event_read(json, (enum amp_call_cli)cli, &e, &err) < 0)
            continue;
        if (decide(&all, &e) == AMP_HOOK_ALLOW)
            MUST(decide(&few, &e) == AMP_HOOK_ALLOW);
        MUST(amp_call_reply(&e, AMP_CALL_DENY, "no", (struct amp_span){0}, &reply, &err) == 0);
        MUST(memmem(reply.data, reply.len, "deny", 4));
    }
}

static int recorded_read(void *ctx, struct amp_span json, enum amp_call_cli expected,
                         struct amp_error *err)
{
    AMP_CALL_EVENT struct amp_call_event e = {0};
    AMP_TAPE struct amp_tape t = {0};
    struct amp_json_fault fault;
    size_t *n = ctx;
    ++*n;
    amp_tape_init(&t, NULL);
    MUST(amp_tape_scan(&t, json.p, json.n, &fault) == 0 && t.tok[0].type == AMP_JSON_OBJECT);
    if (amp_call_event_read(json, expected, &e, err) < 0)
        MUST(err->status == AMP_DATAERR);
    return 0;
}

static void recorded_try(struct amp_span line)
{
    static const enum amp_call_cli clis[] = {AMP_CLI_NONE, AMP_CLI_CODEX, AMP_CLI_OPENCODE};
    for (size_t i = 0; i < sizeof clis / sizeof *clis; i++) {
        struct amp_recording r;
        struct amp_error err;
        size_t n = 0;
        amp_recording_init(&r, clis[i]);
        enum amp_recording_line is = amp_recording_line(&r, line, recorded_read, &n, &err);
        MUST(is != AMP_RECORDING_FAILED && (n > 0 || is != AMP_RECORDING_CALLS));
        amp_recording_release(&r);
    }
}

static enum amp_hook_decision line_decide(const struct amp_hook_rules *r, struct amp_span line)
{
    const struct amp_call_event e = {.cli = AMP_CLI_CLAUDE,
                                     .kind = AMP_CALL_COMMAND,
                                     .known = true,
                                     .tool = AMP_SPAN("Bash"),
                                     .commands = {{.line = line}},
                                     .n_commands = 1};
    return decide(r, &e);
}

static void line_try(struct amp_span line)
{
    AMP_BUF struct amp_buf more = {0};
    enum amp_hook_decision d = line_decide(&all, line);
    if (d == AMP_HOOK_ALLOW)
        MUST(line_decide(&few, line) == AMP_HOOK_ALLOW);
    amp_buf_init(&more, 2 << 20);
    MUST(amp_buf_add(&more, line.p, line.n, NULL) == 0 &&
         amp_buf_str(&more, "\ntouch x", NULL) == 0);
    MUST(line_decide(&all, amp_buf_span(&more)) != AMP_HOOK_ALLOW);
    if (d != AMP_HOOK_ALLOW)
        return;
    more.len = 0;
    MUST(amp_buf_str(&more, "git push ; ", NULL) == 0 &&
         amp_buf_add(&more, line.p, line.n, NULL) == 0);
    /* A `cd` is plain only as the first command. */
    d = line_decide(&all, amp_buf_span(&more));
    MUST(d == AMP_HOOK_DENY || d == AMP_HOOK_ASK);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1 || size > 1 << 20)
        return 0;
    rules_make();
    struct amp_span text = {(const char *)data + 1, size - 1};
    if (data[0] & 1) {
        line_try(text);
    } else {
        event_try(text);
        recorded_try(text);
    }
    return 0;
}
