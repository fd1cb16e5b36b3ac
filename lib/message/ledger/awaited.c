/* Messages that wait for an outcome, and the attempts that an outcome answers. */
#include "message/ledger/awaited.h"

#include <string.h>

#include <amp/base/id.h>

#include "message/record/named.h"
#include "message/record/record.h"

#define KIND    "awaited"
#define KEY_MAX 700
#define IDS_MAX 64 /* attempts that are kept: the newest */
#define KEEP_MS ((int64_t)24 * 3600 * 1000)

struct named {
    const char *protocol;
    struct amp_span first, second;
};

/* One of the four messages that may follow a handoff.request: no file, no line of the event log. */
static bool is_aof_answer(const struct amp_view *v)
{
    return amp_span_is(v->type, "handoff.accepted") || amp_span_is(v->type, "handoff.rejected") ||
           amp_span_is(v->type, "status.update") || amp_span_is(v->type, "completion.report");
}

/* What a request and its outcome both name; false where the message is neither. */
static bool operation_name(const struct amp_view *v, struct named *out)
{
    if (v->protocol == AMP_PROTO_SW4RM && v->kind == AMP_KIND_TOOL_CALL)
        *out = (struct named){"sw4rm", v->correlation, v->body.tool_call.call};
    else if (v->protocol == AMP_PROTO_SW4RM && v->kind == AMP_KIND_TOOL_RESULT)
        *out = (struct named){"sw4rm", v->correlation, v->body.tool_result.call};
    else if (v->protocol == AMP_PROTO_RTP && v->task.n > 0 &&
             (v->kind == AMP_KIND_DISPATCH || v->kind == AMP_KIND_RESULT ||
              amp_span_is(v->type, "task_accept")))
        *out = (struct named){"rtp", AMP_SPAN("task"), v->task};
    else if (v->protocol == AMP_PROTO_RTP &&
             (amp_span_is(v->type, "message") || amp_span_is(v->type, "reply")))
        *out = (struct named){"rtp", AMP_SPAN("reply"), v->correlation};
    else if (v->protocol == AMP_PROTO_AOP && v->correlation.n > 0 && v->kind != AMP_KIND_NACK)
        *out = (struct named){"aop", v->correlation, v->task};
    else if (v->protocol == AMP_PROTO_AOF && (amp_message_is_named(v) || is_aof_answer(v)))
        *out = (struct named){"aof", AMP_SPAN("task"), v->task};
    else if (v->protocol == AMP_PROTO_AMP)
        *out = (struct named){"amp", AMP_SPAN("task"), v->task};
    else
        return false;
    return out->second.n > 0;
}

static int key_write(const struct named *n, struct amp_buf *out, struct amp_error *err)
{
    if (amp_buf_fmt(out, err, "%s\n", n->protocol) < 0 ||
        amp_buf_add(out, n->first.p, n->first.n, err) < 0 || amp_buf_add(out, "\n", 1, err) < 0 ||
        amp_buf_add(out, n->second.p, n->second.n, err) < 0)
        return -1;
    if (out->len <= KEY_MAX && !memchr(out->data, '\0', out->len) &&
        !memchr(n->first.p ? n->first.p : "", '\n', n->first.n))
        return 0;
    char sum[AMP_SHA256_MAX];
    amp_sha256_hex(amp_buf_span(out), sum);
    amp_buf_reset(out);
    return amp_buf_fmt(out, err, "%s\nsha256:%s", n->protocol, sum);
}

/* The attempts that wait for the outcome. */
struct awaited {
    struct amp_span *ids;
    uint32_t n_ids;
};
static const struct amp_rec_field fields[] = {AMP_REC_WORDS(struct awaited, "ids", ids, true)};
AMP_REC_TABLE(awaited_rec, "the record of an awaited outcome", struct awaited, fields);

struct work {
    struct amp_span id;
    int64_t now_ms;
    struct amp_buf key, mem, out; /* mem: of rec */
    struct awaited rec;
};

static void work_init(struct work *w)
{
    memset(w, 0, sizeof(*w));
    amp_buf_init(&w->key, 1 << 20);
    amp_buf_init(&w->mem, AMP_RECORD_MAX);
    amp_buf_init(&w->out, 1 << 20);
}

static void work_release(struct work *w)
{
    amp_buf_release(&w->key);
    amp_buf_release(&w->mem);
    amp_buf_release(&w->out);
}

static int ids_read(struct work *w, const struct amp_store_rec *rec, struct amp_error *err)
{
    return rec->found ? amp_rec_parse(&awaited_rec, rec->json, &w->mem, &w->rec, err)
                      : amp_rec_init(&awaited_rec, &w->rec, err);
}

static int await_fn(void *ctx, const struct amp_store_rec *now, struct amp_store_change *change,
                    struct amp_error *err)
{
    struct work *w = ctx;
    struct awaited *r = &w->rec;
    if (ids_read(w, now, err) < 0)
        return -1;
    for (uint32_t i = 0; i < r->n_ids; i++)
        if (amp_span_eq(w->id, r->ids[i]))
            return 1;
    if (r->n_ids == 0)
        r->ids = &w->id;
    else if (r->n_ids == IDS_MAX)
        memmove(r->ids, r->ids + 1, --r->n_ids * sizeof(*r->ids));
    r->ids[r->n_ids++] = w->id; /* lists have room for one more */
    amp_buf_reset(&w->out);
    if (amp_rec_write(&awaited_rec, r, &w->out, err) < 0)
        return -1;
    change->event = "await";
    change->to = "AWAITED";
    change->due_ms = w->now_ms + KEEP_MS;
    change->json = amp_buf_span(&w->out);
    return 0;
}

int amp_awaited_note(struct amp_store *s, const struct amp_view *v, int64_t now_ms,
                     struct amp_error *err)
{
    struct named name;
    bool waits = v->wants_outcome || v->kind == AMP_KIND_TOOL_CALL || amp_message_is_named(v) ||
                 (v->protocol == AMP_PROTO_AMP &&
                  (v->kind == AMP_KIND_DISPATCH || v->kind == AMP_KIND_REVIEW));
    if (!waits || v->id.n == 0 || memchr(v->id.p, '\0', v->id.n) || !operation_name(v, &name))
        return 0;
    struct work w;
    enum amp_store_outcome how;
    work_init(&w);
    w.id = v->id;
    w.now_ms = now_ms;
    int rc = key_write(&name, &w.key, err);
    if (rc == 0)
        rc = amp_store_update(s, KIND, amp_buf_span(&w.key), NULL, await_fn, &w, &how, err);
    work_release(&w);
    return rc;
}

struct forgetting {
    struct work w;
    struct amp_store *store;
    const char *actor;
    uint64_t rev;
    bool open;
    uint32_t gone;
    struct amp_error *err;
    int rc;
};

static int forget_fn(void *ctx, const struct amp_store_rec *now, struct amp_store_change *change,
                     struct amp_error *err)
{
    struct forgetting *f = ctx;
    if (!now->found || now->rev != f->rev)
        return 1;
    amp_buf_reset(&f->w.out);
    if (amp_buf_add(&f->w.out, now->json.p, now->json.n, err) < 0)
        return -1;
    change->remove = !f->open;
    change->event = f->open ? "keep" : "forget";
    change->to = "AWAITED";
    change->json = amp_buf_span(&f->w.out);
    change->due_ms = f->w.now_ms + KEEP_MS;
    change->actor = f->actor;
    f->gone += change->remove;
    return 0;
}

/* Whether one of its messages is on its way or at work. */
static int ids_any_open(struct forgetting *f)
{
    AMP_BUF struct amp_buf mem = {0};
    amp_buf_init(&mem, AMP_RECORD_MAX);
    f->open = false;
    for (uint32_t i = 0; i < f->w.rec.n_ids && !f->open; i++) {
        struct amp_message_rec r;
        if (amp_message_find(f->store, f->w.rec.ids[i], &mem, &r, f->err) < 0)
            return -1;
        f->open = r.found && (r.state == AMP_DELIVERY_SENT || r.state == AMP_DELIVERY_RECEIVED ||
                              r.state == AMP_DELIVERY_READ || r.seen_ms > 0);
    }
    return 0;
}

static int due_forget(void *ctx, struct amp_span id, const struct amp_store_rec *rec)
{
    struct forgetting *f = ctx;
    enum amp_store_outcome how;
    amp_buf_reset(&f->w.key);
    f->rev = rec->rev;
    f->rc = amp_buf_add(&f->w.key, id.p, id.n, f->err);
    if (f->rc == 0)
        f->rc = ids_read(&f->w, rec, f->err);
    if (f->rc == 0)
        f->rc = ids_any_open(f);
    if (f->rc == 0)
        f->rc = amp_store_update(f->store, KIND, amp_buf_span(&f->w.key), NULL, forget_fn, f, &how,
                                 f->err);
    return f->rc < 0;
}

int amp_awaited_next_due(struct amp_store *s, int64_t *ms, struct amp_error *err)
{
    return amp_store_next_due(s, KIND, ms, err);
}

int amp_awaited_forget(struct amp_store *s, int64_t now_ms, const char *actor, uint32_t *gone,
                       struct amp_error *err)
{
    struct forgetting f = {.store = s, .actor = actor, .err = err};
    work_init(&f.w);
    f.w.now_ms = now_ms;
    int rc = amp_store_due(s, KIND, now_ms, due_forget, &f, err);
    if (rc == 0)
        rc = f.rc;
    if (rc == 0 && gone)
        *gone = f.gone;
    work_release(&f.w);
    return rc;
}

bool amp_awaited_is_named(const struct amp_view *v)
{
    struct named name;
    return operation_name(v, &name);
}

/* The attempts that the message answers, into w->rec. */
static int attempts_find(struct amp_store *s, const struct amp_view *v, struct work *w,
                         struct amp_error *err)
{
    struct amp_store_rec rec;
    struct named name;
    if (!operation_name(v, &name))
        return 0;
    return key_write(&name, &w->key, err) < 0 ||
                   amp_store_get(s, KIND, amp_buf_span(&w->key), &rec, err) < 0 ||
                   ids_read(w, &rec, err) < 0
               ? -1
               : 0;
}

int amp_awaited_each(struct amp_store *s, const struct amp_view *v, amp_awaited_fn fn, void *ctx,
                     struct amp_error *err)
{
    struct work w;
    work_init(&w);
    int rc = attempts_find(s, v, &w, err);
    for (uint32_t i = 0; rc == 0 && i < w.rec.n_ids; i++)
        rc = fn(ctx, w.rec.ids[i], err);
    work_release(&w);
    return rc;
}
