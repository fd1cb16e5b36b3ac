/* Asks a person about a tool call and waits for the decision. */
#include "people/question/hook/ask.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include <amp/base/clock.h>
#include <amp/base/id.h>
#include <amp/json/writer.h>

#include "base/codes.h"
#include "message/store/wake.h"
#include "people/answer/ask/ask.h"

#define TEXT_MAX  ((size_t)16 << 10) /* bytes of a command line that the question shows */
#define PATHS_MAX 32                 /* paths that it shows */
#define REASON    "TOOL_PRIVILEGE_ESCALATION"
#define ACTOR     "hook"

struct asking {
    const struct amp_hook_question *q;
    struct amp_asking ask;
    int64_t until_ms;
    bool has_input; /* the question shows it, so it can be changed */
};

/* ---- the question ---- */

static void text_put(struct amp_jw *w, const char *key, struct amp_span text)
{
    if (text.n)
        amp_jw_member_str(w, key, text.n > TEXT_MAX ? (struct amp_span){text.p, TEXT_MAX} : text);
}

static void command_put(struct amp_jw *w, const struct amp_call_command *c)
{
    if (!c->words) {
        text_put(w, "command", c->line);
        return;
    }
    amp_jw_member_open(w, "command", '[');
    for (size_t i = 0; i < c->n && i < PATHS_MAX; i++)
        amp_jw_str(w, amp_span_str(c->words[i]));
    amp_jw_close(w, ']');
}

/* Composes the evidence: what would be done, where, and for whom. */
static void context_put(struct amp_jw *w, struct asking *a)
{
    const struct amp_hook_question *q = a->q;
    const struct amp_call_event *e = q->event;
    a->has_input = e->input.n && e->input.n <= AMP_HOOK_INPUT_MAX;
    amp_jw_open(w, '{');
    amp_jw_member_text(w, "cli", amp_call_cli_name(e->cli));
    text_put(w, "tool", e->tool);
    amp_jw_member_text(w, "kind", amp_call_kind_name(e->kind));
    if (e->n_commands)
        command_put(w, &e->commands[0]);
    if (e->n_paths) {
        amp_jw_member_open(w, "paths", '[');
        for (size_t i = 0; i < e->n_paths && i < PATHS_MAX; i++)
            amp_jw_str(w, amp_span_str(e->paths[i]));
        amp_jw_close(w, ']');
    }
    amp_jw_member_text(w, "cwd", q->at->cwd);
    amp_jw_member_text(w, "worktree", q->at->top);
    amp_jw_member_text(w, "why", q->why);
    amp_jw_some_str(w, "agent", amp_span_str(q->agent));
    amp_jw_some_str(w, "role", amp_span_str(q->role));
    text_put(w, "session", e->session);
    text_put(w, "call", e->call);
    if (q->scope) {
        amp_jw_member_open(w, "session_permission", '{');
        amp_jw_member_text(w, "answer", AMP_HOOK_SESSION_ACTION);
        amp_jw_member_text(w, "allows", q->scope->text);
        amp_jw_member_uint(w, "minutes", (uint64_t)(q->session_ms / 60000));
        amp_jw_close(w, '}');
    }
    if (a->has_input)
        amp_jw_member_raw(w, "input", e->input);
    else if (e->input.n)
        amp_jw_member_uint(w, "input_bytes", e->input.n);
    amp_jw_close(w, '}');
}

static int question_record(struct asking *a, struct amp_error *err)
{
    static const char *const session[] = {AMP_HOOK_SESSION_ACTION, NULL};
    AMP_BUF struct amp_buf context = {0};
    char from[160];
    struct amp_jw w;
    amp_buf_init(&context, AMP_ASK_LINE_MAX);
    amp_jw_init(&w, &context);
    context_put(&w, a);
    if (amp_jw_end(&w, err) < 0)
        return -1;
    snprintf(from, sizeof from, ACTOR "/%.100s",
             a->q->agent && *a->q->agent ? a->q->agent : amp_call_cli_name(a->q->event->cli));
    const struct amp_ask ask = {.from = from,
                                .reason = REASON,
                                .task = a->q->task,
                                .context = amp_buf_span(&context),
                                .proposed = a->q->scope ? session : NULL,
                                .until_ms = a->until_ms};
    return amp_asking_record(&a->ask, &ask, err);
}

/* ---- the decision ---- */

static void deny(struct amp_hook_answer *out, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
static void deny(struct amp_hook_answer *out, const char *fmt, ...)
{
    va_list ap;
    out->verdict = AMP_CALL_DENY;
    va_start(ap, fmt);
    vsnprintf(out->why, sizeof out->why, fmt, ap);
    va_end(ap);
}

/* The changed input, in base64: a JSON object, or the question's payload with another
 * context.input. false: it is none. */
static bool input_take(const struct asking *a, struct amp_span patch, struct amp_buf *out)
{
    struct amp_json_fault fault;
    AMP_TAPE struct amp_tape t = {0};
    AMP_BUF struct amp_buf text = {0};
    size_t n = 0, most = patch.n / 4 * 3 + 3;
    amp_tape_init(&t, NULL);
    amp_buf_init(&text, AMP_QUESTION_BYTES);
    if (!patch.n || amp_buf_reserve(&text, most, NULL) < 0 ||
        sodium_base642bin((unsigned char *)text.data, most, patch.p, patch.n, "\n", &n, NULL,
                          sodium_base64_VARIANT_ORIGINAL) != 0 ||
        amp_tape_scan(&t, text.data, n, &fault) < 0 || t.tok[0].type != AMP_JSON_OBJECT)
        return false;
    uint32_t input = 0, own = amp_tape_get(&t, 0, AMP_SPAN("invocation_id"));
    if (own != AMP_TOK_NONE && t.tok[own].type == AMP_JSON_STRING &&
        amp_tok_is(&t, own, amp_span_str(a->ask.invocation)))
        input = amp_tape_pointer(&t, 0, AMP_SPAN("/context/input"));
    if (input == AMP_TOK_NONE || t.tok[input].type != AMP_JSON_OBJECT)
        return false;
    struct amp_span json = amp_tok_source(&t, input);
    if (amp_buf_add(out, json.p, json.n, NULL) < 0)
        return false;
    /* A reply is one line; JSON has line ends only between its parts. */
    for (size_t i = 0; i < out->len; i++)
        if (out->data[i] == '\n' || out->data[i] == '\r')
            out->data[i] = ' ';
    return true;
}

static void decision_take(const struct asking *a, const struct amp_question_rec *r,
                          struct amp_hook_answer *out)
{
    struct amp_span by = r->policy.n ? r->policy : r->operator;
    if (amp_span_is(r->decision, "approve")) {
        out->verdict = AMP_CALL_ALLOW;
        snprintf(out->why, sizeof out->why, "approved by %.*s", AMP_CLIP(by, 100));
    } else if (a->q->scope && amp_span_is(r->decision, AMP_HOOK_SESSION_ACTION) && !r->policy.n) {
        out->verdict = AMP_CALL_ALLOW;
        out->session = true;
        snprintf(out->why, sizeof out->why, "approved for this session by %.*s", AMP_CLIP(by, 100));
    } else if (amp_span_is(r->decision, "modify")) {
        out->verdict = AMP_CALL_ALLOW;
        if (!amp_call_can_modify(a->q->event) || !a->has_input)
            deny(out, "%.*s wants another call: %.*s", AMP_CLIP(by, 100), AMP_CLIP(r->note, 300));
        else if (!input_take(a, r->patch, &out->input))
            deny(out, "%.*s wants another call, but its input is not a JSON object: %.*s",
                 AMP_CLIP(by, 100), AMP_CLIP(r->note, 300));
    } else {
        deny(out, "denied by %.*s%s%.*s", AMP_CLIP(by, 100), r->note.n ? ": " : "",
             AMP_CLIP(r->note, 300));
    }
}

/* 1: out has the decision; 0: the question is open; -1: failure. */
static int decision_look(const struct asking *a, struct amp_hook_answer *out, struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {0};
    struct amp_question_rec r;
    amp_buf_init(&mem, AMP_REC_MAX);
    switch (amp_asking_look(&a->ask, &mem, &r, err)) {
    case AMP_ASKING_FAILED:
        return -1;
    case AMP_ASKING_OPEN:
        return 0;
    case AMP_ASKING_ENDED:
        deny(out, "the question has ended without a decision");
        return 1;
    case AMP_ASKING_DECIDED:
        decision_take(a, &r, out);
        return 1;
    }
    return 0;
}

/* Closes a question that is not waited for any more. A decision that came meanwhile counts. */
static int question_close(struct asking *a, const char *why, struct amp_hook_answer *out,
                          struct amp_error *err)
{
    deny(out, "%s", why);
    int rc = amp_asking_end(&a->ask, AMP_CODE(timed_out), why, err);
    return rc > 0 ? (decision_look(a, out, err) < 0 ? -1 : 0) : rc;
}

static int decision_wait(struct asking *a, struct amp_wake *wake, struct amp_hook_answer *out,
                         struct amp_error *err)
{
    const struct amp_wake_for events = {
        .log = true, .out_fd = -1, .timeout_ms = -1, .stop = a->q->stop};
    unsigned why;
    if (amp_wake_at(wake, a->until_ms, err) < 0)
        return -1;
    for (;;) {
        if (amp_wake_drain(wake, err) < 0)
            return -1;
        int rc = decision_look(a, out, err);
        if (rc)
            return rc < 0 ? -1 : 0;
        if (*a->q->stop)
            return question_close(a, "the hook was interrupted", out, err);
        if (amp_now_ms() >= a->until_ms)
            return question_close(a, "no person decided in time", out, err);
        if (amp_wake_wait(wake, &events, &why, err) < 0)
            return -1;
    }
}

int amp_hook_ask(struct amp_store *s, const struct amp_hook_question *q,
                 struct amp_hook_answer *out, struct amp_error *err)
{
    struct asking a = {.q = q, .until_ms = amp_now_ms() + q->deadline_ms};
    struct amp_wake wake = {-1, -1, 0};
    *out = (struct amp_hook_answer){.verdict = AMP_CALL_DENY};
    amp_buf_init(&out->input, AMP_ASK_LINE_MAX);
    int rc = amp_asking_open(&a.ask, s, ACTOR, q->stop, q->note, err);
    /* Before the question is there, so that no answer is missed. */
    if (rc == 0)
        rc = amp_wake_open(&wake, amp_store_dir(s), err);
    if (rc == 0)
        rc = question_record(&a, err);
    if (rc == 0)
        rc = decision_wait(&a, &wake, out, err);
    if (rc == 0 && out->session)
        rc = amp_hook_grant_add(s, q->scope, a.ask.key, amp_now_ms() + q->session_ms, ACTOR, err);
    amp_wake_close(&wake);
    amp_asking_close(&a.ask);
    return rc;
}
