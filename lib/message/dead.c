/*
 * Dead letters. A letter and the answer that tells the sender about it are one commit, so that no
 * message is ever refused without being kept, nor kept without being answered. The ledger follows
 * in a commit of its own: should a crash come between, the router still holds the message in its
 * outbox and comes here again, which only counts one more attempt.
 */
#include "message/dead.h"

#include <stdio.h>
#include <string.h>

#include <amp/base/id.h>

#include "message/message.h"
#include "message/record.h"

#define KIND        "dead"
#define DEAD        "DEAD"
#define REQUEUED    "REQUEUED"
#define MAX_HISTORY 32
#define ID_MAX      900 /* longer ids than a key takes are told apart by the line's digest */

struct letter {
    struct amp_dead_letter d;
    struct amp_span history; /* elements of a JSON array */
    uint32_t n_history;
    struct amp_span code, why, route, protocol;
};

struct work {
    const struct amp_dead_letter *add;
    struct letter old;
    struct amp_buf mem, out;
    struct amp_store_emit emit;
    const char *actor;
    int64_t now_ms;
};

static void work_init(struct work *w)
{
    memset(w, 0, sizeof(*w));
    amp_buf_init(&w->mem, AMP_RECORD_MAX);
    amp_buf_init(&w->out, AMP_RECORD_MAX);
}

static void work_release(struct work *w)
{
    amp_buf_release(&w->mem);
    amp_buf_release(&w->out);
}

void amp_dead_from_view(struct amp_dead_letter *d, const struct amp_view *v)
{
    d->line = v->line;
    d->msg_id = v->id;
    d->task = v->task;
    d->type = v->type;
    d->from = v->from;
    d->to = v->n_to > 0 ? v->to[0] : (struct amp_span){"", 0};
    d->protocol = amp_protocol_name(v->protocol);
    d->created_ms = v->created_ms;
}

static struct amp_span letter_id(const struct amp_dead_letter *d, char digest[AMP_SHA256_MAX])
{
    if (d->msg_id.n > 0 && d->msg_id.n <= ID_MAX)
        return d->msg_id;
    amp_sha256_hex(d->line, digest);
    return (struct amp_span){digest, 16};
}

static void member(struct amp_jw *w, const char *key, struct amp_span text)
{
    amp_jw_key(w, key);
    amp_jw_str(w, text);
}

static void number(struct amp_jw *w, const char *key, int64_t n)
{
    amp_jw_key(w, key);
    amp_jw_int(w, n);
}

static void write_history(struct amp_jw *w, const struct letter *old,
                          const struct amp_dead_letter *d)
{
    amp_jw_key(w, "history");
    amp_jw_open(w, '[');
    if (old->history.n > 0)
        amp_jw_raw(w, old->history);
    for (uint32_t i = 0; old->history.n == 0 && i < d->n_before && i < MAX_HISTORY - 1; i++) {
        const struct amp_dead_attempt *b = &d->before[i];
        amp_jw_open(w, '{');
        if (b->msg_id.n > 0)
            member(w, "msg_id", b->msg_id);
        number(w, "at_ms", b->at_ms);
        member(w, "code", amp_span_str(b->code));
        member(w, "route", amp_span_str(b->route));
        member(w, "why", amp_span_str(b->why));
        amp_jw_close(w, '}');
    }
    if (old->n_history < MAX_HISTORY) {
        amp_jw_open(w, '{');
        number(w, "at_ms", d->failed_ms);
        member(w, "code", amp_span_str(d->code));
        member(w, "route", amp_span_str(d->route));
        member(w, "why", amp_span_str(d->why));
        amp_jw_close(w, '}');
    }
    amp_jw_close(w, ']');
}

static int write_letter(const struct letter *old, const struct amp_dead_letter *d,
                        struct amp_buf *out, struct amp_error *err)
{
    struct amp_jw w;
    amp_buf_reset(out);
    amp_jw_init(&w, out);
    amp_jw_open(&w, '{');
    member(&w, "msg_id", d->msg_id);
    member(&w, "protocol", amp_span_str(d->protocol));
    member(&w, "type", d->type);
    member(&w, "from", d->from);
    member(&w, "to", d->to);
    member(&w, "task", d->task);
    member(&w, "code", amp_span_str(d->code));
    member(&w, "class", amp_span_str(d->retryable ? "temporary" : "permanent"));
    member(&w, "why", amp_span_str(d->why));
    member(&w, "route", amp_span_str(d->route));
    number(&w, "created_ms", d->created_ms);
    number(&w, "failed_ms", d->failed_ms);
    number(&w, "attempts", d->attempts);
    number(&w, "size", (int64_t)d->line.n);
    write_history(&w, old, d);
    amp_record_line(&w, d->line);
    amp_jw_close(&w, '}');
    return amp_jw_end(&w, err);
}

static int read_members(const struct amp_tape *t, struct amp_buf *mem, struct letter *l,
                        struct amp_error *err)
{
    struct amp_dead_letter *d = &l->d;
    struct amp_span class;
    if (amp_record_line_read(t, mem, &d->line, err) < 0 ||
        amp_record_text(t, "msg_id", mem, &d->msg_id, err) < 0 ||
        amp_record_text(t, "type", mem, &d->type, err) < 0 ||
        amp_record_text(t, "from", mem, &d->from, err) < 0 ||
        amp_record_text(t, "to", mem, &d->to, err) < 0 ||
        amp_record_text(t, "task", mem, &d->task, err) < 0 ||
        amp_record_text(t, "class", mem, &class, err) < 0)
        return -1;
    struct {
        const char *key;
        struct amp_span *text;
        const char **str;
    } words[] = {{"protocol", &l->protocol, &d->protocol},
                 {"code", &l->code, &d->code},
                 {"why", &l->why, &d->why},
                 {"route", &l->route, &d->route}};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (amp_record_text(t, words[i].key, mem, words[i].text, err) < 0)
            return -1;
        /* As C strings too: the NUL stands behind the text in the same memory. */
        size_t at = mem->len;
        if (amp_buf_add(mem, words[i].text->p, words[i].text->n, err) < 0 ||
            amp_buf_add(mem, "", 1, err) < 0)
            return -1;
        *words[i].str = mem->data + at;
    }
    d->retryable = amp_span_is(class, "temporary");
    d->created_ms = amp_record_int(t, "created_ms");
    d->failed_ms = amp_record_int(t, "failed_ms");
    d->attempts = amp_record_int(t, "attempts");
    uint32_t h = amp_tape_get(t, 0, AMP_SPAN("history"));
    if (h == AMP_TOK_NONE || t->tok[h].type != AMP_JSON_ARRAY || t->tok[h].count == 0)
        return 0;
    struct amp_span src = amp_tok_source(t, h);
    size_t at = mem->len;
    if (amp_buf_add(mem, src.p + 1, src.n - 2, err) < 0)
        return -1;
    l->history = (struct amp_span){mem->data + at, src.n - 2};
    l->n_history = t->tok[h].count;
    return 0;
}

static int read_letter(struct amp_span json, struct amp_buf *mem, struct letter *out,
                       struct amp_error *err)
{
    struct letter l = {0};
    struct amp_tape t;
    amp_buf_reset(mem);
    amp_record_tape(&t);
    int rc = -1;
    /* Room for all parts (the words twice) at once, so that spans into mem stay where they are. */
    if (amp_buf_reserve(mem, json.n * 2 + 16, err) == 0 && amp_record_scan(&t, json, err) == 0 &&
        read_members(&t, mem, &l, err) == 0) {
        *out = l;
        rc = 0;
    }
    amp_tape_release(&t);
    return rc;
}

static int add_fn(void *ctx, const struct amp_store_rec *now, struct amp_store_change *change,
                  struct amp_error *err)
{
    struct work *w = ctx;
    struct amp_dead_letter d = *w->add;
    if (d.attempts <= 0)
        d.attempts = 1;
    if (now->found) {
        if (read_letter(now->json, &w->mem, &w->old, err) < 0)
            return -1;
        d.attempts = w->old.d.attempts + 1;
    }
    if (write_letter(&w->old, &d, &w->out, err) < 0)
        return -1;
    change->event = d.code;
    change->to = DEAD;
    change->json = amp_buf_span(&w->out);
    change->actor = w->actor;
    if (w->emit.line.n > 0) {
        change->emits = &w->emit;
        change->n_emits = 1;
    }
    return 0;
}

int amp_dead_add(struct amp_store *s, const struct amp_dead_letter *d, const char *actor,
                 struct amp_span answer, struct amp_store_entry_id *entry, struct amp_error *err)
{
    struct work w;
    work_init(&w);
    char digest[AMP_SHA256_MAX];
    struct amp_span id = letter_id(d, digest);
    w.add = d;
    w.actor = actor;
    /* The answer has an id of its own: an acknowledgement of the message must not close it. */
    AMP_BUF struct amp_buf answer_id;
    amp_buf_init(&answer_id, id.n + 16);
    enum amp_store_outcome how;
    int rc = amp_buf_fmt(&answer_id, err, "answer-to-%.*s", (int)id.n, id.p);
    w.emit = (struct amp_store_emit){.id = amp_buf_span(&answer_id), .line = answer};
    if (rc == 0)
        rc = amp_store_update(s, KIND, id, NULL, add_fn, &w, &how, err);
    work_release(&w);
    if (rc < 0)
        return -1;
    struct amp_store_entry_id made = {.n = amp_store_last_frame(s)};
    if (d->msg_id.n > 0 && d->msg_id.n <= ID_MAX) {
        struct amp_error e = {0};
        if (amp_message_ack(s, d->msg_id, AMP_STAGE_REJECTED, actor, amp_span_str(d->code),
                            d->failed_ms, NULL, &e) < 0 &&
            e.status != AMP_NO) { /* NO: the ledger does not know it, or it came further */
            if (err)
                *err = e;
            return -1;
        }
    }
    if (entry)
        *entry = made;
    return 0;
}

struct each {
    amp_dead_fn fn;
    void *ctx;
    bool with_requeued;
    struct amp_buf mem, json;
    struct amp_error *err;
    int rc;
};

static int each_fn(void *ctx, struct amp_span id, const struct amp_store_rec *rec)
{
    struct each *e = ctx;
    struct letter l;
    if (!e->with_requeued && !amp_span_is(rec->state, DEAD))
        return 0;
    amp_buf_reset(&e->json);
    if (read_letter(rec->json, &e->mem, &l, e->err) < 0 ||
        amp_buf_add(&e->json, rec->json.p, rec->json.n, e->err) < 0) {
        e->rc = -1;
        return 1;
    }
    return e->fn(e->ctx, id, &l.d, amp_buf_span(&e->json));
}

int amp_dead_each(struct amp_store *s, bool with_requeued, amp_dead_fn fn, void *ctx,
                  struct amp_error *err)
{
    struct each e = {.fn = fn, .ctx = ctx, .with_requeued = with_requeued, .err = err};
    amp_buf_init(&e.mem, AMP_RECORD_MAX * 2);
    amp_buf_init(&e.json, AMP_RECORD_MAX);
    if (amp_store_each(s, KIND, NULL, each_fn, &e, err) < 0)
        e.rc = -1;
    amp_buf_release(&e.mem);
    amp_buf_release(&e.json);
    return e.rc;
}

static int requeue_fn(void *ctx, const struct amp_store_rec *now, struct amp_store_change *change,
                      struct amp_error *err)
{
    struct work *w = ctx;
    if (!now->found)
        return amp_fail(err, AMP_NO, "unknown_ref", "there is no such dead letter");
    if (!amp_span_is(now->state, DEAD))
        return amp_fail(err, AMP_NO, "already_requeued", "the letter was sent again already");
    if (read_letter(now->json, &w->mem, &w->old, err) < 0 ||
        amp_buf_add(&w->out, now->json.p, now->json.n, err) < 0)
        return -1;
    w->emit.line = w->old.d.line;
    change->event = "requeue";
    change->to = REQUEUED;
    change->json = amp_buf_span(&w->out);
    change->actor = w->actor;
    change->emits = &w->emit;
    change->n_emits = 1;
    return 0;
}

int amp_dead_requeue(struct amp_store *s, struct amp_span dead_id, const char *actor,
                     int64_t now_ms, struct amp_error *err)
{
    struct work w;
    work_init(&w);
    w.actor = actor;
    w.emit.id = dead_id;
    enum amp_store_outcome how;
    int rc = amp_store_update(s, KIND, dead_id, NULL, requeue_fn, &w, &how, err);
    struct amp_error e = {0};
    if (rc == 0 && w.old.d.msg_id.n > 0 && amp_message_requeue(s, w.old.d.msg_id, now_ms, &e) < 0 &&
        e.status != AMP_NO) {
        if (err)
            *err = e;
        rc = -1;
    }
    work_release(&w);
    return rc;
}
