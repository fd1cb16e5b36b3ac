/* Removing the records of a kind that are due. */
#include "message/delivery/record/forget.h"

#include <amp/base/buf.h>

#include "json/record.h"

struct round {
    struct amp_store *store;
    const struct amp_forgetting *f;
    struct amp_buf *json;
    uint64_t rev;
    int64_t until_ms;
    const char *state;
    uint32_t gone;
};

static int change_fn(void *ctx, const struct amp_store_rec *now, struct amp_store_change *change,
                     struct amp_error *err)
{
    struct round *r = ctx;
    if (!now->found || now->rev != r->rev)
        return 1;
    amp_buf_reset(r->json);
    if (amp_buf_add(r->json, now->json.p, now->json.n, err) < 0)
        return -1;
    change->remove = r->until_ms == 0;
    change->event = change->remove ? "forget" : "keep";
    change->to = r->state;
    change->json = amp_buf_span(r->json);
    change->due_ms = r->until_ms;
    change->actor = r->f->actor;
    r->gone += change->remove;
    return 0;
}

static int due_fn(void *ctx, struct amp_span id, const struct amp_store_rec *rec,
                  struct amp_error *err)
{
    struct round *r = ctx;
    char state[32];
    amp_span_copy(rec->state, state, sizeof(state));
    r->rev = rec->rev;
    r->until_ms = 0;
    r->state = state;
    if (r->f->decide && r->f->decide(r->f->ctx, rec, &r->until_ms, &r->state, err) < 0)
        return -1;
    return amp_store_update(r->store, *rec->key, NULL, change_fn, r, NULL, err);
}

int amp_forget(struct amp_store *s, const struct amp_forgetting *f, uint32_t *gone,
               struct amp_error *err)
{
    AMP_BUF struct amp_buf json = {.max = AMP_REC_MAX};
    struct round r = {.store = s, .f = f, .json = &json};
    if (amp_store_due(s, f->kind, f->now_ms, due_fn, &r, err) < 0)
        return -1;
    if (gone)
        *gone = r.gone;
    return 0;
}
