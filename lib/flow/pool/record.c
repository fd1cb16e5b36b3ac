/* The records of the pools of a state. */
#include "flow/pool/record.h"

#include "json/record.h"

#define KIND "pool"

static const struct amp_rec_field fields[] = {
    AMP_REC_EVER(CSTR, struct amp_pool_rec, "types", types),
    AMP_REC_EVER(INT, struct amp_pool_rec, "pid", pid),
    AMP_REC_EVER(TIME, struct amp_pool_rec, "since", since_ms),
    AMP_REC(CSTR, struct amp_pool_rec, "by", by),
    AMP_REC(TIME, struct amp_pool_rec, "asked", asked_ms),
};
AMP_REC_TABLE(pool_rec, "the record of a pool", struct amp_pool_rec, fields);

struct change {
    enum { BEGIN, END, ASK } what;
    const struct amp_pool_rec *rec;
    const char *by;
    int64_t now_ms;
    struct amp_buf mem, json;
    bool found;
};

static int on_change(void *ctx, const struct amp_store_rec *now, struct amp_store_change *c,
                     struct amp_error *err)
{
    struct change *x = ctx;
    struct amp_pool_rec r = {0};
    static const char *const events[] = {"begin", "end", "shutdown"};

    x->found = now->found;
    if (x->what != BEGIN && !now->found)
        return 1;
    c->event = events[x->what];
    c->to = x->what == ASK ? "STOPPING" : "WORKING";
    if (x->what == END) {
        c->remove = true;
        c->json = now->json;
        return 0;
    }
    if (x->what == BEGIN) {
        r = *x->rec;
    } else {
        if (amp_span_is(now->state, "STOPPING"))
            return 1;
        if (amp_rec_parse(&pool_rec, now->json, &x->mem, &r, err) < 0)
            return -1;
        r.by = x->by;
        r.asked_ms = x->now_ms;
    }
    amp_buf_reset(&x->json);
    int rc = amp_rec_write(&pool_rec, &r, &x->json, err);
    c->json = amp_buf_span(&x->json);
    return rc;
}

static int change_run(struct amp_store *s, const char *name, struct change *x,
                      struct amp_error *err)
{
    amp_buf_init(&x->mem, AMP_REC_MAX);
    amp_buf_init(&x->json, AMP_REC_MAX);
    int rc = amp_store_update(s, AMP_KEY(KIND, amp_span_str(name)), NULL, on_change, x, NULL, err);
    amp_buf_release(&x->mem);
    amp_buf_release(&x->json);
    return rc;
}

int amp_pool_rec_begin(struct amp_store *s, const struct amp_pool_rec *r, struct amp_error *err)
{
    struct change x = {.what = BEGIN, .rec = r};
    return change_run(s, r->name, &x, err);
}

int amp_pool_rec_end(struct amp_store *s, const char *name, int64_t now_ms, struct amp_error *err)
{
    struct change x = {.what = END, .now_ms = now_ms};
    return change_run(s, name, &x, err);
}

int amp_pool_rec_ask(struct amp_store *s, const char *name, const char *by, int64_t now_ms,
                     struct amp_error *err)
{
    struct change x = {.what = ASK, .by = by, .now_ms = now_ms};
    return change_run(s, name, &x, err) < 0 ? -1 : x.found;
}

int amp_pool_rec_asked(struct amp_store *s, const char *name, struct amp_error *err)
{
    struct amp_store_rec rec;

    if (amp_store_get(s, AMP_KEY(KIND, amp_span_str(name)), &rec, err) < 0)
        return -1;
    return rec.found && amp_span_is(rec.state, "STOPPING");
}

struct each {
    amp_pool_rec_fn fn;
    void *ctx;
    struct amp_buf mem;
};

static int on_pool(void *ctx, struct amp_span id, const struct amp_store_rec *rec,
                   struct amp_error *err)
{
    struct each *e = ctx;
    struct amp_pool_rec r = {0};
    char name[256];

    if (amp_rec_parse(&pool_rec, rec->json, &e->mem, &r, err) < 0)
        return -1;
    amp_span_copy(id, name, sizeof name);
    r.name = name;
    r.stopping = amp_span_is(rec->state, "STOPPING");
    return e->fn(e->ctx, &r, err);
}

int amp_pool_recs(struct amp_store *s, amp_pool_rec_fn fn, void *ctx, struct amp_error *err)
{
    struct each e = {.fn = fn, .ctx = ctx};

    amp_buf_init(&e.mem, AMP_REC_MAX);
    int rc = amp_store_each(s, KIND, NULL, on_pool, &e, err);
    amp_buf_release(&e.mem);
    return rc;
}
