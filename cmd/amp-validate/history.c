/*
 * The history checks of lines that are valid by themselves. state-worker gets all such lines of a
 * chunk; its answers are kept until the chunk has been judged.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <amp/base/pipe.h>

#include "base/codes.h"
#include "base/loop.h"
#include "cli/cli.h"
#include "message/port/helper.h"
#include "validate.h"

enum {
    TEXT_MOST = 512 * 1024 * 1024,
    LIMIT_MS = 30 * 1000,
};

/* An answer: a part of h->answers, or the reason why there is none. */
struct reply {
    bool answered;
    size_t at, n;
    char why[160];
};

struct history {
    struct amp_helper *helper;
    struct reply *reply; /* to each of the chunk's asks */
    size_t n, cap, open;
    struct amp_buf answers;
    struct amp_tape tape;
    struct amp_buf text;
    struct amp_error failure; /* of a reply; ends the run */
    bool failed;
};

struct history *history_open(const char *state, struct amp_error *err)
{
    const char *const args[] = {"--state", state, NULL};
    struct amp_helper_options opt = {.name = "state-worker", .args = args, .limit_ms = LIMIT_MS};
    struct history *h = calloc(1, sizeof *h);
    if (!h) {
        amp_fail_memory(err);
        return NULL;
    }
    amp_buf_init(&h->text, TEXT_MOST);
    amp_buf_init(&h->answers, TEXT_MOST);
    amp_tape_init(&h->tape, NULL);
    if (amp_helper_new(&opt, &h->helper, err) < 0) {
        history_close(h);
        return NULL;
    }
    return h;
}

void history_close(struct history *h)
{
    if (!h)
        return;
    amp_helper_free(h->helper);
    free(h->reply);
    amp_buf_release(&h->text);
    amp_buf_release(&h->answers);
    amp_tape_release(&h->tape);
    free(h);
}

/* A member of an object as a string in h->text; "" if it is absent. */
static const char *text_member(struct history *h, uint32_t object, const char *key)
{
    const struct amp_tape *t = &h->tape;
    struct amp_span s;
    uint32_t tok = amp_tape_get(t, object, amp_span_str(key));
    size_t before = h->text.len;
    if (tok == AMP_TOK_NONE || t->tok[tok].type != AMP_JSON_STRING ||
        amp_tok_text(t, tok, &h->text, &s, NULL) < 0)
        return "";
    if (h->text.len == before && amp_buf_add(&h->text, s.p, s.n, NULL) < 0)
        return "";
    if (amp_buf_add(&h->text, "", 1, NULL) < 0)
        return "";
    return h->text.data + before;
}

static int state_failed(struct history *h, uint32_t error, struct amp_error *err)
{
    int64_t status = AMP_TEMPFAIL;
    amp_buf_reset(&h->text);
    uint32_t tok = amp_tape_get(&h->tape, error, AMP_SPAN("status"));
    if (tok != AMP_TOK_NONE && h->tape.tok[tok].type == AMP_JSON_NUMBER)
        amp_tok_int(&h->tape, tok, &status);
    return amp_fail(err, (enum amp_status)status, state_failed,
                    "the state directory cannot be queried: %s", text_member(h, error, "what"));
}

/* Scans an answer; *findings becomes the token of its list. */
static int read_answer(struct history *h, struct amp_span answer, uint32_t *findings,
                       struct amp_error *err)
{
    struct amp_json_fault fault;
    if (amp_tape_scan(&h->tape, answer.p, answer.n, &fault) < 0 ||
        h->tape.tok[0].type != AMP_JSON_OBJECT)
        return amp_fail(err, AMP_INTERNAL, helper_protocol,
                        "state-worker's reply is not an object");
    uint32_t error = amp_tape_get(&h->tape, 0, AMP_SPAN("error"));
    if (error != AMP_TOK_NONE && h->tape.tok[error].type == AMP_JSON_OBJECT)
        return state_failed(h, error, err);
    *findings = amp_tape_get(&h->tape, 0, AMP_SPAN("findings"));
    if (*findings == AMP_TOK_NONE || h->tape.tok[*findings].type != AMP_JSON_ARRAY)
        return amp_fail(err, AMP_INTERNAL, helper_protocol, "state-worker's reply is empty");
    return 0;
}

static void on_reply(void *ctx, uint64_t tag, struct amp_span answer, const struct amp_error *why)
{
    struct history *h = ctx;
    if (h->failed)
        return;
    if (tag >= h->n || h->reply[tag].answered) {
        amp_fail(&h->failure, AMP_INTERNAL, helper_protocol, "state-worker answered out of turn");
        h->failed = true;
        return;
    }
    struct reply *s = &h->reply[tag];
    s->answered = true;
    h->open--;
    if (why) {
        amp_span_copy(amp_span_str(why->what), s->why, sizeof s->why);
        return;
    }
    s->at = h->answers.len;
    s->n = answer.n;
    h->failed = amp_buf_add(&h->answers, answer.p, answer.n, &h->failure) < 0;
}

/* Waits until the helper is ready, and exchanges requests and replies. */
static int history_turn(struct history *h, struct amp_error *err)
{
    struct pollfd fds[2];
    struct amp_loop turn = amp_loop_turn(fds, 2, &amp_stop, NULL);
    int timeout = -1;
    amp_helper_watch(h->helper, amp_loop_places(&turn, 2), &timeout);
    amp_loop_within(&turn, timeout);
    if (amp_loop_wait(&turn, err) < 0)
        return -1;
    if (amp_stop)
        return amp_fail(err, AMP_INTERRUPTED, interrupted, "interrupted");
    if (amp_helper_step(h->helper, on_reply, h, err) < 0)
        return -1;
    if (h->failed) {
        *err = h->failure;
        return -1;
    }
    return 0;
}

static int ask_line(struct history *h, struct amp_span line, uint64_t tag, struct amp_error *err)
{
    AMP_BUF struct amp_buf request = {0};
    amp_buf_init(&request, TEXT_MOST);
    if (amp_buf_str(&request, "\"msg\":", err) < 0 ||
        amp_buf_add(&request, line.p, line.n, err) < 0)
        return -1;
    for (;;) {
        int got = amp_helper_ask(h->helper, tag, amp_buf_span(&request), err);
        if (got != AMP_HELPER_FULL)
            return got;
        if (history_turn(h, err) < 0)
            return -1;
    }
}

int history_ask(struct history *h, const struct chunk_result *r, struct amp_error *err)
{
    if (r->n_asks > h->cap) {
        struct reply *reply = realloc(h->reply, r->n_asks * sizeof *reply);
        if (!reply)
            return amp_fail_memory(err);
        h->reply = reply;
        h->cap = r->n_asks;
    }
    memset(h->reply, 0, r->n_asks * sizeof *h->reply);
    amp_buf_reset(&h->answers);
    h->n = h->open = r->n_asks;
    for (size_t i = 0; i < r->n_asks; i++)
        if (ask_line(h, r->asks[i], i, err) < 0)
            return -1;
    while (h->open > 0)
        if (history_turn(h, err) < 0)
            return -1;
    return 0;
}

int history_answer(struct history *h, size_t n, amp_finding_fn fn, void *ctx,
                   const char **undecided, struct amp_error *err)
{
    const struct amp_tape *t = &h->tape;
    uint32_t findings = 0;
    if (n >= h->n)
        return amp_fail(err, AMP_INTERNAL, helper_protocol, "a line was not checked");
    struct reply *s = &h->reply[n];
    if (s->why[0]) {
        *undecided = s->why;
        return 1;
    }
    if (read_answer(h, (struct amp_span){h->answers.data + s->at, s->n}, &findings, err) < 0)
        return -1;
    amp_buf_reset(&h->text);
    /* Room for all texts, so that none moves: each is copied once, with a NUL. */
    if (amp_buf_reserve(&h->text, (size_t)t->len * 2 + 1024, err) < 0)
        return -1;
    for (uint32_t i = findings + 1; i < t->tok[findings].next; i = t->tok[i].next) {
        struct amp_finding f = {
            .code = text_member(h, i, "code"),
            .field = text_member(h, i, "field"),
            .pointer = text_member(h, i, "pointer"),
            .rule = text_member(h, i, "rule"),
            .message = text_member(h, i, "message"),
            .found = text_member(h, i, "found"),
            .expected = text_member(h, i, "expected"),
        };
        bool warning = strcmp(text_member(h, i, "severity"), "warning") == 0;
        f.severity = warning ? AMP_SEV_WARNING : AMP_SEV_ERROR;
        fn(ctx, &f);
    }
    return 0;
}
