/*
 * Lines that wait for what state-worker says about them. They leave in the order in which they
 * came, those of protocols without history too.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "port/helper.h"
#include "validate.h"

enum {
    ENTRIES = 256,
    BYTES = 4 * 1024 * 1024,
    TEXT_MOST = 512 * 1024 * 1024,
    LIMIT_MS = 30 * 1000,
};

enum progress { FREE, ASKED, DONE };

/* A line on its way. */
struct entry {
    struct history_line l; /* `whole` is a copy of ours */
    struct amp_span body;  /* the line without its end, inside the copy */
    struct amp_span type, id;
    char names[480]; /* type and id, for the records */
    enum amp_protocol protocol;
    enum progress progress;
};

struct history {
    bool strict;
    struct history_sink sink;
    struct amp_helper *helper;
    struct entry ring[ENTRIES];
    unsigned head, n;
    size_t bytes;
    uint64_t tag_head; /* number of the entry at head */
    struct amp_tape tape;
    struct amp_buf text;
    struct amp_error failure; /* of a reply, where the run cannot go on */
    bool failed;
};

struct history *history_open(const char *state, bool strict, const struct history_sink *sink,
                             struct amp_error *err)
{
    const char *const args[] = {"--state", state, NULL};
    struct amp_helper_options opt = {.name = "state-worker", .args = args, .limit_ms = LIMIT_MS};
    struct history *h = calloc(1, sizeof *h);
    if (!h) {
        amp_fail(err, AMP_INTERNAL, "no_memory", "no memory for the history checks");
        return NULL;
    }
    h->strict = strict;
    h->sink = *sink;
    amp_buf_init(&h->text, TEXT_MOST);
    amp_tape_init(&h->tape, NULL);
    if (amp_helper_new(&opt, &h->helper, err) < 0) {
        history_close(h);
        return NULL;
    }
    return h;
}

static struct entry *at(struct history *h, unsigned i)
{
    return &h->ring[(h->head + i) % ENTRIES];
}

static void drop_head(struct history *h)
{
    struct entry *e = at(h, 0);
    h->bytes -= e->l.whole.n;
    free((void *)(uintptr_t)e->l.whole.p);
    *e = (struct entry){.progress = FREE};
    h->head = (h->head + 1) % ENTRIES;
    h->n--;
    h->tag_head++;
}

/* Entries at the head that wait for no answer leave. */
static int release(struct history *h, struct amp_error *err)
{
    while (h->n > 0 && at(h, 0)->progress == DONE) {
        if (h->sink.pass(h->sink.ctx, &at(h, 0)->l, err) < 0)
            return -1;
        drop_head(h);
    }
    return 0;
}

/* One member of a finding, as a string that lives in h->text until it is reset. */
static const char *member(struct history *h, uint32_t object, const char *key)
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

/* Tells the findings of a reply; returns how many were errors, -1 on failure. */
static int tell(struct history *h, uint32_t findings, struct amp_error *err)
{
    const struct amp_tape *t = &h->tape;
    const struct entry *e = at(h, 0);
    int errors = 0;
    for (uint32_t i = findings + 1; i < t->tok[findings].next; i = t->tok[i].next) {
        amp_buf_reset(&h->text);
        /* Nothing moves while the members are collected. */
        if (amp_buf_reserve(&h->text, (size_t)t->len + 1024, err) < 0)
            return -1;
        struct amp_finding f = {
            .protocol = e->protocol,
            .type = e->type,
            .id = e->id,
            .code = member(h, i, "code"),
            .field = member(h, i, "field"),
            .pointer = member(h, i, "pointer"),
            .rule = member(h, i, "rule"),
            .message = member(h, i, "message"),
            .found = member(h, i, "found"),
            .expected = member(h, i, "expected"),
        };
        bool warning = strcmp(member(h, i, "severity"), "warning") == 0;
        f.severity = warning && !h->strict ? AMP_SEV_WARNING : AMP_SEV_ERROR;
        errors += f.severity == AMP_SEV_ERROR;
        report(&f, e->l.file, &e->l.at);
    }
    return errors;
}

/* The line at the head cannot be decided; it is not passed and is worth another try. */
static void undecided(struct history *h, const char *why)
{
    const struct entry *e = at(h, 0);
    struct amp_finding f = {.severity = AMP_SEV_ERROR,
                            .protocol = e->protocol,
                            .type = e->type,
                            .id = e->id,
                            .code = "undecided",
                            .field = "",
                            .pointer = "",
                            .rule = "history",
                            .message = why,
                            .found = "",
                            .expected = "the same line again later"};
    report(&f, e->l.file, &e->l.at);
    amp_status_note(AMP_TEMPFAIL);
    h->sink.refuse(h->sink.ctx, &e->l);
    drop_head(h);
}

static int state_failed(struct history *h, uint32_t error, struct amp_error *err)
{
    int64_t status = AMP_TEMPFAIL;
    amp_buf_reset(&h->text);
    uint32_t tok = amp_tape_get(&h->tape, error, AMP_SPAN("status"));
    if (tok != AMP_TOK_NONE && h->tape.tok[tok].type == AMP_JSON_NUMBER)
        amp_tok_int(&h->tape, tok, &status);
    return amp_fail(err, (enum amp_status)status, "state_failed", "the state cannot be asked: %s",
                    member(h, error, "what"));
}

static int answered(struct history *h, struct amp_span answer, struct amp_error *err)
{
    struct amp_json_fault fault;
    if (amp_tape_scan(&h->tape, answer.p, answer.n, &fault) < 0 ||
        h->tape.tok[0].type != AMP_JSON_OBJECT)
        return amp_fail(err, AMP_INTERNAL, "helper_protocol", "state-worker's answer is no object");
    uint32_t error = amp_tape_get(&h->tape, 0, AMP_SPAN("error"));
    if (error != AMP_TOK_NONE && h->tape.tok[error].type == AMP_JSON_OBJECT)
        return state_failed(h, error, err);
    uint32_t findings = amp_tape_get(&h->tape, 0, AMP_SPAN("findings"));
    if (findings == AMP_TOK_NONE || h->tape.tok[findings].type != AMP_JSON_ARRAY)
        return amp_fail(err, AMP_INTERNAL, "helper_protocol", "state-worker's answer says nothing");
    int errors = tell(h, findings, err);
    if (errors > 0) {
        h->sink.refuse(h->sink.ctx, &at(h, 0)->l);
        drop_head(h);
    } else if (errors == 0) {
        at(h, 0)->progress = DONE;
    }
    return errors < 0 ? -1 : 0;
}

/* Replies come in the order of the requests, so each is about the first that was asked. */
static void on_reply(void *ctx, uint64_t tag, struct amp_span answer, const struct amp_error *why)
{
    struct history *h = ctx;
    if (h->failed)
        return;
    if (release(h, &h->failure) < 0) {
        h->failed = true;
    } else if (h->n == 0 || tag != h->tag_head) {
        amp_fail(&h->failure, AMP_INTERNAL, "helper_protocol", "state-worker answered out of turn");
        h->failed = true;
    } else if (why) {
        undecided(h, why->what);
    } else {
        h->failed = answered(h, answer, &h->failure) < 0;
    }
    if (!h->failed)
        h->failed = release(h, &h->failure) < 0;
}

/* One turn with the helper: waits until something can be done, and does it. */
static int turn(struct history *h, struct amp_error *err)
{
    struct pollfd fds[2];
    int timeout;
    amp_helper_watch(h->helper, fds, &timeout);
    if (poll(fds, 2, timeout) < 0 && errno != EINTR)
        return amp_fail_errno(err, AMP_IOERR, "cannot wait for state-worker");
    if (amp_stop)
        return amp_fail(err, AMP_INTERRUPTED, "interrupted", "interrupted");
    if (amp_helper_step(h->helper, on_reply, h, err) < 0)
        return -1;
    if (h->failed) {
        *err = h->failure;
        return -1;
    }
    return 0;
}

static int ask(struct history *h, const struct entry *e, uint64_t tag, struct amp_error *err)
{
    AMP_BUF struct amp_buf request;
    amp_buf_init(&request, TEXT_MOST);
    if (amp_buf_str(&request, "\"msg\":", err) < 0 ||
        amp_buf_add(&request, e->body.p, e->body.n, err) < 0)
        return -1;
    for (;;) {
        int got = amp_helper_ask(h->helper, tag, amp_buf_span(&request), err);
        if (got <= 0)
            return got;
        if (turn(h, err) < 0)
            return -1;
    }
}

int history_take(struct history *h, const struct history_line *l, const struct amp_view *v,
                 struct amp_error *err)
{
    while (h->n == ENTRIES || (h->n > 0 && h->bytes + l->whole.n > BYTES))
        if (turn(h, err) < 0)
            return -1;
    char *copy = malloc(l->whole.n + 1);
    if (!copy)
        return amp_fail(err, AMP_INTERNAL, "no_memory", "no memory for a line");
    memcpy(copy, l->whole.p, l->whole.n);
    struct entry *e = at(h, h->n);
    uint64_t tag = h->tag_head + h->n;
    *e = (struct entry){.l = *l, .protocol = v->protocol};
    e->l.whole.p = copy;
    e->body = (struct amp_span){copy + (v->line.p - l->whole.p), v->line.n};
    /* The view is gone when the answer comes. */
    size_t half = sizeof e->names / 2;
    amp_span_copy(v->type, e->names, half);
    amp_span_copy(v->id, e->names + half, half);
    e->type = amp_span_str(e->names);
    e->id = amp_span_str(e->names + half);
    e->progress = v->protocol == AMP_PROTO_AMP ? ASKED : DONE;
    h->n++;
    h->bytes += l->whole.n;
    return e->progress == ASKED ? ask(h, e, tag, err) : release(h, err);
}

int history_drain(struct history *h, struct amp_error *err)
{
    while (h->n > 0)
        if (turn(h, err) < 0)
            return -1;
    return 0;
}

void history_close(struct history *h)
{
    if (!h)
        return;
    amp_helper_free(h->helper);
    while (h->n > 0)
        drop_head(h);
    amp_buf_release(&h->text);
    amp_tape_release(&h->tape);
    free(h);
}
