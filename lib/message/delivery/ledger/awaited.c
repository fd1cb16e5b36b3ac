/*
 * Messages that wait for an outcome, and the attempts that an outcome answers.
 *
 * The record of the work has the newest ids. It is rewritten for each attempt, so it stays short:
 * when it has PAGE_MAX ids, they are copied to a page of their own before it is emptied. The pages
 * are a ring, whose keys end with the page's place in it. A crash between the two commits leaves a
 * full record, which is copied again.
 */
#include "message/delivery/ledger/awaited.h"

#include <string.h>

#include "message/delivery/record/forget.h"
#include "message/delivery/record/record.h"
#include "message/protocol/work.h"

enum {
    PAGE_MAX = 8, /* ids in a record */
    PAGES = 8     /* full pages that are kept: the newest */
};
#define KEEP_MS ((int64_t)24 * 3600 * 1000)

/* The key of the work that a request and its outcome both name; false if the message is neither. */
static bool work_key(const struct amp_view *v, struct amp_key *key, bool *is_request)
{
    const struct amp_work_terms *t = amp_work_of(v->protocol);
    struct amp_work work;
    if (!t->work || !t->work(v, &work) || work.second.n == 0)
        return false;
    *key = AMP_KEY(AMP_AWAITED_KIND, amp_span_str(amp_protocol_name(v->protocol)), work.first,
                   work.second);
    *is_request = work.requested;
    return true;
}

/* The key of a full page; place has room for its name. */
static struct amp_key page_key(struct amp_key key, int64_t page, char place[2])
{
    place[0] = (char)('0' + page % PAGES);
    key.part[key.n++] = (struct amp_span){place, 1};
    return key;
}

/* Attempts that wait for the outcome, the oldest first. */
struct awaited {
    int64_t page; /* full pages before this one */
    struct amp_span *ids;
    uint32_t n_ids;
};
static const struct amp_rec_field fields[] = {AMP_REC(INT, struct awaited, "page", page),
                                              AMP_REC_WORDS(struct awaited, "ids", ids, true)};
AMP_REC_TABLE(awaited_rec, "the record of an awaited outcome", struct awaited, fields);

struct work {
    struct amp_span id;
    int64_t now_ms;
    struct amp_buf mem, out; /* mem: of rec */
    struct awaited rec;
    bool full;      /* rec has to be copied to its page first, */
    int64_t copied; /* as this page was; -1: none */
};

#define WORK AMP_CLEANUP(work_release) struct work

static struct work work_make(int64_t now_ms)
{
    return (struct work){
        .now_ms = now_ms, .mem = {.max = AMP_RECORD_MAX}, .out = {.max = 1 << 20}, .copied = -1};
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

static int ids_find(struct amp_store *s, struct amp_key key, struct work *w, struct amp_error *err)
{
    struct amp_store_rec rec;
    return amp_store_get(s, key, &rec, err) < 0 || ids_read(w, &rec, err) < 0 ? -1 : 0;
}

static int ids_commit(struct work *w, struct amp_store_change *change, struct amp_error *err)
{
    amp_buf_reset(&w->out);
    if (amp_buf_reserve(&w->out, 1000, err) < 0 ||
        amp_rec_write(&awaited_rec, &w->rec, &w->out, err) < 0)
        return -1;
    change->event = "await";
    change->to = "AWAITED";
    change->due_ms = w->now_ms + KEEP_MS;
    change->json = amp_buf_span(&w->out);
    return 0;
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
    if (r->n_ids >= PAGE_MAX && r->page != w->copied) {
        w->full = true;
        return 1;
    }
    if (r->n_ids >= PAGE_MAX) {
        r->page++;
        r->n_ids = 0;
    }
    if (r->n_ids == 0)
        r->ids = &w->id;
    r->ids[r->n_ids++] = w->id; /* lists have room for one more */
    return ids_commit(w, change, err);
}

static int copy_fn(void *ctx, const struct amp_store_rec *now, struct amp_store_change *change,
                   struct amp_error *err)
{
    (void)now;
    return ids_commit(ctx, change, err);
}

int amp_awaited_note(struct amp_store *s, const struct amp_view *v, int64_t now_ms,
                     struct amp_error *err)
{
    struct amp_key key;
    char place[2];
    bool is_request;
    if (v->id.n == 0 || memchr(v->id.p, '\0', v->id.n) || !work_key(v, &key, &is_request) ||
        !is_request)
        return 0;
    WORK w = work_make(now_ms);
    w.id = v->id;
    for (;;) {
        w.full = false;
        if (amp_store_update(s, key, NULL, await_fn, &w, NULL, err) < 0)
            return -1;
        if (!w.full)
            return 0;
        w.copied = w.rec.page;
        if (amp_store_update(s, page_key(key, w.copied, place), NULL, copy_fn, &w, NULL, err) < 0)
            return -1;
    }
}

/* Whether one of the full pages before the record is kept. */
static int pages_kept(struct amp_store *s, struct amp_key key, int64_t page, bool *kept,
                      struct amp_error *err)
{
    struct amp_store_rec rec = {0};
    char place[2];
    for (int64_t i = page > PAGES ? page - PAGES : 0; i < page && !rec.found; i++)
        if (amp_store_get(s, page_key(key, i, place), &rec, err) < 0)
            return -1;
    *kept = rec.found;
    return 0;
}

struct forgetting {
    struct amp_store *store;
    struct work *w;
};

/* A record is kept while one of its messages is on its way or at work, and while there are pages
 * that only it leads to. */
static int forget_decide(void *ctx, const struct amp_store_rec *rec, int64_t *until_ms,
                         const char **state, struct amp_error *err)
{
    struct forgetting *f = ctx;
    struct amp_key key = *rec->key;
    bool kept = false;
    AMP_BUF struct amp_buf mem = {.max = AMP_RECORD_MAX};
    (void)state;
    if (ids_read(f->w, rec, err) < 0)
        return -1;
    for (uint32_t i = 0; i < f->w->rec.n_ids && !kept; i++) {
        struct amp_message_rec r;
        if (amp_message_find(f->store, f->w->rec.ids[i], &mem, &r, err) < 0)
            return -1;
        kept = r.found && (r.state == AMP_DELIVERY_SENT || r.state == AMP_DELIVERY_RECEIVED ||
                           r.state == AMP_DELIVERY_READ || r.seen_ms > 0);
    }
    key.text = key.full = (struct amp_span){0};
    if (!kept && key.n == 3 && pages_kept(f->store, key, f->w->rec.page, &kept, err) < 0)
        return -1;
    if (kept)
        *until_ms = f->w->now_ms + KEEP_MS;
    return 0;
}

int amp_awaited_forget(struct amp_store *s, int64_t now_ms, const char *actor, uint32_t *gone,
                       struct amp_error *err)
{
    WORK w = work_make(now_ms);
    struct forgetting f = {.store = s, .w = &w};
    const struct amp_forgetting how = {.kind = AMP_AWAITED_KIND,
                                       .actor = actor,
                                       .now_ms = now_ms,
                                       .decide = forget_decide,
                                       .ctx = &f};
    return amp_forget(s, &how, gone, err);
}

bool amp_awaited_is_named(const struct amp_view *v)
{
    struct amp_key key;
    bool is_request;
    return work_key(v, &key, &is_request);
}

/* Calls fn for each id of the record that w has. */
static int ids_each(const struct work *w, amp_awaited_fn fn, void *ctx, struct amp_error *err)
{
    int rc = 0;
    for (uint32_t i = 0; rc == 0 && i < w->rec.n_ids; i++)
        rc = fn(ctx, w->rec.ids[i], err);
    return rc;
}

int amp_awaited_each(struct amp_store *s, const struct amp_view *v, amp_awaited_fn fn, void *ctx,
                     struct amp_error *err)
{
    struct amp_key key;
    char place[2];
    bool is_request;
    if (!work_key(v, &key, &is_request))
        return 0;
    WORK newest = work_make(0), page = work_make(0);
    int rc = ids_find(s, key, &newest, err);
    int64_t last = newest.rec.page;
    for (int64_t i = last > PAGES ? last - PAGES : 0; rc == 0 && i < last; i++) {
        rc = ids_find(s, page_key(key, i, place), &page, err);
        if (rc == 0)
            rc = ids_each(&page, fn, ctx, err);
    }
    return rc == 0 ? ids_each(&newest, fn, ctx, err) : rc;
}
