/* Messages that wait for an outcome, and the attempts that an outcome answers. */
#include "message/ledger/awaited.h"

#include <string.h>

#include "message/record/forget.h"
#include "message/record/record.h"
#include "protocol/terms.h"

#define KIND    "awaited"
#define IDS_MAX 64 /* attempts that are kept: the newest */
#define KEEP_MS ((int64_t)24 * 3600 * 1000)

struct named {
    const char *protocol;
    struct amp_work work;
};

/* What a request and its outcome both name; false where the message is neither. */
static bool operation_name(const struct amp_view *v, struct named *out)
{
    const struct amp_terms *t = amp_terms_of(v->protocol);
    out->protocol = amp_protocol_name(v->protocol);
    return t->work && t->work(v, &out->work) && out->work.second.n > 0;
}

static struct amp_key key_of(const struct named *n)
{
    return AMP_KEY(KIND, amp_span_str(n->protocol), n->work.first, n->work.second);
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
    struct amp_buf mem, out; /* mem: of rec */
    struct awaited rec;
};

static void work_init(struct work *w)
{
    memset(w, 0, sizeof(*w));
    amp_buf_init(&w->mem, AMP_RECORD_MAX);
    amp_buf_init(&w->out, 1 << 20);
}

static void work_release(struct work *w)
{
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
    if (v->id.n == 0 || memchr(v->id.p, '\0', v->id.n) || !operation_name(v, &name) ||
        !name.work.requested)
        return 0;
    struct work w;
    enum amp_store_outcome how;
    work_init(&w);
    w.id = v->id;
    w.now_ms = now_ms;
    int rc = amp_store_update(s, key_of(&name), NULL, await_fn, &w, &how, err);
    work_release(&w);
    return rc;
}

struct forgetting {
    struct amp_store *store;
    struct work w;
};

/* Kept while one of its messages is on its way or at work. */
static int forget_decide(void *ctx, const struct amp_store_rec *rec, int64_t *until_ms,
                         const char **state, struct amp_error *err)
{
    struct forgetting *f = ctx;
    AMP_BUF struct amp_buf mem = {0};
    (void)state;
    amp_buf_init(&mem, AMP_RECORD_MAX);
    if (ids_read(&f->w, rec, err) < 0)
        return -1;
    for (uint32_t i = 0; i < f->w.rec.n_ids && *until_ms == 0; i++) {
        struct amp_message_rec r;
        if (amp_message_find(f->store, f->w.rec.ids[i], &mem, &r, err) < 0)
            return -1;
        if (r.found && (r.state == AMP_DELIVERY_SENT || r.state == AMP_DELIVERY_RECEIVED ||
                        r.state == AMP_DELIVERY_READ || r.seen_ms > 0))
            *until_ms = f->w.now_ms + KEEP_MS;
    }
    return 0;
}

int amp_awaited_next_due(struct amp_store *s, int64_t *ms, struct amp_error *err)
{
    return amp_store_next_due(s, KIND, ms, err);
}

int amp_awaited_forget(struct amp_store *s, int64_t now_ms, const char *actor, uint32_t *gone,
                       struct amp_error *err)
{
    struct forgetting f = {.store = s};
    work_init(&f.w);
    f.w.now_ms = now_ms;
    const struct amp_forgetting how = {
        .kind = KIND, .actor = actor, .now_ms = now_ms, .decide = forget_decide, .ctx = &f};
    int rc = amp_forget(s, &how, gone, err);
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
    return amp_store_get(s, key_of(&name), &rec, err) < 0 || ids_read(w, &rec, err) < 0 ? -1 : 0;
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
