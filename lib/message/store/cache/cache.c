/* The cache: hash tables of the newest frames. */
#include "message/store/cache/cache.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SEED = 0x7461696c };
/* The cache is full at this number of frames or lines, and takes up to TIMES as many. */
enum { FRAMES = AMP_CACHE_FRAMES, OUTS = 8192, TIMES = 4 };
enum entry_kind { OF_KEY, OF_INPUT, OF_BLOB };

void amp_cache_init(struct amp_cache *c)
{
    *c = (struct amp_cache){0};
    amp_buf_init(&c->text, 64 * AMP_FRAME_MAX);
}

void amp_cache_release(struct amp_cache *c)
{
    free(c->entry);
    free(c->slot);
    free(c->out);
    free(c->out_slot);
    amp_buf_release(&c->text);
    amp_cache_init(c);
}

void amp_cache_clear(struct amp_cache *c, uint64_t from)
{
    c->from = from;
    c->past = AMP_CACHE_PAST_UNKNOWN;
    c->n = 0;
    c->n_out = 0;
    c->frames = 0;
    c->incomplete = false;
    amp_buf_reset(&c->text);
    if (c->slot)
        memset(c->slot, 0, c->slots * sizeof *c->slot);
    if (c->out_slot)
        memset(c->out_slot, 0, c->out_slots * sizeof *c->out_slot);
}

static bool entry_is(const struct amp_cache *c, const struct amp_cache_entry *e, struct amp_span a,
                     struct amp_span b)
{
    return e->n_a == a.n && e->n_b == b.n && (!a.n || memcmp(c->text.data + e->a, a.p, a.n) == 0) &&
           (!b.n || memcmp(c->text.data + e->b, b.p, b.n) == 0);
}

static uint64_t hash_of(enum entry_kind kind, struct amp_span a, struct amp_span b)
{
    return amp_store_hash(SEED + kind, a, b);
}

static struct amp_cache_entry *entry_find(const struct amp_cache *c, uint64_t h,
                                          enum entry_kind kind, struct amp_span a,
                                          struct amp_span b)
{
    if (!c->n)
        return NULL;
    for (uint32_t i = (uint32_t)h & (c->slots - 1); c->slot[i]; i = (i + 1) & (c->slots - 1)) {
        if (c->slot[i] >> 32 != h >> 32)
            continue;
        struct amp_cache_entry *e = &c->entry[(uint32_t)c->slot[i] - 1];
        if (e->h == h && e->kind == kind && entry_is(c, e, a, b))
            return e;
    }
    return NULL;
}

static void entry_place(struct amp_cache *c, uint32_t number)
{
    uint32_t i = (uint32_t)c->entry[number].h & (c->slots - 1);
    while (c->slot[i])
        i = (i + 1) & (c->slots - 1);
    c->slot[i] = c->entry[number].h >> 32 << 32 | (number + 1u);
}

static int entry_grow(struct amp_cache *c, struct amp_error *err)
{
    if (c->n < c->cap)
        return 0;
    uint32_t cap = c->cap ? c->cap * 2 : 64;
    struct amp_cache_entry *e = realloc(c->entry, cap * sizeof *e);
    if (e)
        c->entry = e;
    uint64_t *slot = e ? calloc(cap * 2u, sizeof *slot) : NULL;
    if (!slot)
        return amp_fail_memory(err);
    free(c->slot);
    c->slot = slot;
    c->slots = cap * 2;
    c->cap = cap;
    for (uint32_t i = 0; i < c->n; i++)
        entry_place(c, i);
    return 0;
}

static int text_add(struct amp_cache *c, struct amp_span v, uint32_t *at, uint32_t *n,
                    struct amp_error *err)
{
    *at = (uint32_t)c->text.len;
    *n = (uint32_t)v.n;
    return amp_buf_add(&c->text, v.n ? v.p : "", v.n, err);
}

static struct amp_cache_entry *entry_of(struct amp_cache *c, enum entry_kind kind,
                                        struct amp_span a, struct amp_span b, struct amp_error *err)
{
    uint64_t h = hash_of(kind, a, b);
    struct amp_cache_entry *e = entry_find(c, h, kind, a, b);
    if (e)
        return e;
    if (entry_grow(c, err) < 0)
        return NULL;
    e = &c->entry[c->n];
    *e = (struct amp_cache_entry){.h = h, .kind = (uint8_t)kind};
    if (text_add(c, a, &e->a, &e->n_a, err) < 0 || text_add(c, b, &e->b, &e->n_b, err) < 0)
        return NULL;
    entry_place(c, c->n++);
    return e;
}

/* The slot of an entry, or the free slot for it. */
static uint32_t *out_place(const struct amp_cache *c, uint64_t n, uint32_t i)
{
    uint64_t h = (n * UINT64_C(0x9e3779b97f4a7c15)) ^ (i * UINT64_C(0xc2b2ae3d27d4eb4f));
    uint32_t at = (uint32_t)(h >> 32) & (c->out_slots - 1);
    while (c->out_slot[at] &&
           (c->out[c->out_slot[at] - 1].n != n || c->out[c->out_slot[at] - 1].i != i))
        at = (at + 1) & (c->out_slots - 1);
    return &c->out_slot[at];
}

static struct amp_cache_out *out_find(const struct amp_cache *c, uint64_t n, uint32_t i)
{
    uint32_t *at = c->n_out ? out_place(c, n, i) : NULL;
    return at && *at ? &c->out[*at - 1] : NULL;
}

/* Makes room for more; the table is never more than half full. */
static int out_grow(struct amp_cache *c, struct amp_error *err)
{
    uint32_t cap = c->cap_out ? c->cap_out * 2 : 64;
    struct amp_cache_out *p = realloc(c->out, cap * sizeof *p);
    if (p)
        c->out = p;
    uint32_t *slot = p ? calloc((size_t)cap * 2, sizeof *slot) : NULL;
    if (!slot)
        return amp_fail_memory(err);
    free(c->out_slot);
    c->out_slot = slot;
    c->out_slots = cap * 2;
    c->cap_out = cap;
    for (uint32_t k = 0; k < c->n_out; k++)
        *out_place(c, c->out[k].n, c->out[k].i) = k + 1;
    return 0;
}

static int out_put(struct amp_cache *c, const struct amp_cache_out *o, struct amp_error *err)
{
    struct amp_cache_out *old = out_find(c, o->n, o->i);
    if (old) {
        *old = *o;
        return 0;
    }
    if (c->n_out == c->cap_out && out_grow(c, err) < 0)
        return -1;
    c->out[c->n_out++] = *o;
    *out_place(c, o->n, o->i) = c->n_out;
    return 0;
}

static int note_blob(struct amp_cache *c, struct amp_span name, uint64_t n, struct amp_error *err)
{
    if (!name.n)
        return 0;
    struct amp_cache_entry *e = entry_of(c, OF_BLOB, name, (struct amp_span){0}, err);
    if (!e)
        return -1;
    e->n = n;
    return 0;
}

static int note_outs(struct amp_cache *c, const struct amp_frame *f, const struct amp_pos *after,
                     struct amp_error *err)
{
    bool stand = f->head.log == AMP_FRAME_stand;
    for (uint32_t i = 0; i < f->n_out; i++) {
        struct amp_cache_out o = {
            .n = stand ? f->out[i].n : f->head.n,
            .i = stand ? f->out[i].i : i,
            .at = amp_pos_frame(after),
            .h = amp_store_hash(SEED, f->out[i].id, (struct amp_span){0}),
            .c = amp_store_hash(SEED, amp_frame_consumer(f, i), (struct amp_span){0}),
            .open = true,
        };
        if (text_add(c, f->out[i].id, &o.id, &o.n_id, err) < 0 ||
            text_add(c, amp_frame_consumer(f, i), &o.name, &o.n_name, err) < 0 ||
            out_put(c, &o, err) < 0 || note_blob(c, f->out[i].blob, f->head.n, err) < 0)
            return -1;
    }
    for (uint32_t i = 0; i < f->n_close; i++) {
        struct amp_cache_out o = {.n = f->close[i].n, .i = f->close[i].i};
        if (out_put(c, &o, err) < 0)
            return -1;
    }
    return 0;
}

/* Keys whose records left the live set, and that are remembered. */
static int note_past(struct amp_cache *c, const struct amp_frame *f, struct amp_error *err)
{
    const struct amp_span none = {0};
    for (uint32_t i = 0; i < f->n_past; i++) {
        const struct amp_frame_past *p = &f->past[i];
        struct amp_cache_entry *e;
        if (f->forgets) {
            if (!(e = entry_of(c, OF_KEY, p->key, none, err)))
                return -1;
            if (!e->first) {
                e->first = f->head.n;
                e->existed = true;
            }
            e->gone = true;
            e->n = f->head.n;
        }
        if (!p->since)
            continue;
        if (!(e = entry_of(c, OF_INPUT, none, p->key, err)))
            return -1;
        e->n = f->head.n;
        e->rec.at = (struct amp_place){.off = (uint64_t)p->since};
        c->past = AMP_CACHE_PAST_SOME;
    }
    return 0;
}

static int note_frame(struct amp_cache *c, const struct amp_frame *f, const struct amp_pos *after,
                      struct amp_error *err)
{
    struct amp_cache_entry *e;
    if (f->key.n) {
        if (!(e = entry_of(c, OF_KEY, f->key, (struct amp_span){0}, err)))
            return -1;
        if (!e->first) {
            e->first = f->head.n;
            e->existed = f->head.log == AMP_FRAME_stand || f->was > 0;
        }
        e->gone = f->gone;
        e->n = f->head.n;
        e->rec = amp_index_rec_of(f, after);
        if (note_blob(c, f->state_blob, f->head.n, err) < 0)
            return -1;
    }
    if (f->in_id.n) {
        if (!(e = entry_of(c, OF_INPUT, f->in_consumer, f->in_id, err)))
            return -1;
        e->n = f->head.n;
        e->rec.at = amp_pos_frame(after);
    }
    return note_outs(c, f, after, err) < 0 || note_past(c, f, err) < 0 ? -1 : 0;
}

int amp_cache_note(struct amp_cache *c, const struct amp_frame *f, const struct amp_pos *after,
                   struct amp_error *err)
{
    c->frames++;
    if (note_frame(c, f, after, err) == 0)
        return 0;
    c->incomplete = true;
    return -1;
}

static bool is_full_at(const struct amp_cache *c, uint32_t times)
{
    return c->frames >= times * FRAMES || c->n_out >= times * OUTS;
}

bool amp_cache_full(const struct amp_cache *c)
{
    return c->off ? c->frames > 0 : is_full_at(c, 1);
}

bool amp_cache_takes(const struct amp_cache *c, bool follows)
{
    return !c->off && !is_full_at(c, follows ? TIMES : 1);
}

const struct amp_cache_out *amp_cache_out(const struct amp_cache *c, uint64_t n, uint32_t i)
{
    return out_find(c, n, i);
}

const struct amp_cache_out *amp_cache_next_out(const struct amp_cache *c, struct amp_span id,
                                               struct amp_span consumer, uint32_t *at)
{
    uint64_t h = amp_store_hash(SEED, id.n ? id : consumer, (struct amp_span){0});
    while (*at < c->n_out) {
        const struct amp_cache_out *o = &c->out[(*at)++];
        if (o->open && (id.n ? o->h : o->c) == h)
            return o;
    }
    return NULL;
}

int amp_cache_find(const struct amp_cache *c, struct amp_span key, struct amp_index_rec *out)
{
    struct amp_span none = {0};
    const struct amp_cache_entry *e = entry_find(c, hash_of(OF_KEY, key, none), OF_KEY, key, none);
    if (!e)
        return -1;
    if (out)
        *out = e->rec;
    return !e->gone;
}

bool amp_cache_seen(const struct amp_cache *c, struct amp_span consumer, struct amp_span id,
                    struct amp_place *out)
{
    const struct amp_cache_entry *e =
        entry_find(c, hash_of(OF_INPUT, consumer, id), OF_INPUT, consumer, id);
    if (e)
        *out = e->rec.at;
    return e != NULL;
}

static struct amp_span text_at(const struct amp_cache *c, uint32_t at, uint32_t n)
{
    return (struct amp_span){c->text.data + at, n};
}

/* Orders by kind, then as SQLite orders texts, so that rows of a page are written together. */
static int entry_order(const void *x, const void *y, void *ctx)
{
    const struct amp_cache *c = ctx;
    const struct amp_cache_entry *a = &c->entry[*(const uint32_t *)x];
    const struct amp_cache_entry *b = &c->entry[*(const uint32_t *)y];
    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    int by = memcmp(c->text.data + a->a, c->text.data + b->a, a->n_a < b->n_a ? a->n_a : b->n_a);
    if (by == 0 && a->n_a != b->n_a)
        return a->n_a < b->n_a ? -1 : 1;
    if (by == 0)
        by = memcmp(c->text.data + a->b, c->text.data + b->b, a->n_b < b->n_b ? a->n_b : b->n_b);
    return by ? by : a->n_b < b->n_b ? -1 : a->n_b > b->n_b;
}

static int entry_index(const struct amp_cache *c, const struct amp_cache_entry *e,
                       struct amp_index *ix, struct amp_error *err)
{
    struct amp_span a = text_at(c, e->a, e->n_a), b = text_at(c, e->b, e->n_b);
    switch ((enum entry_kind)e->kind) {
    case OF_KEY:
        return amp_index_put_rec(ix, a, e->gone ? NULL : &e->rec, e->n, err);
    case OF_INPUT:
        return amp_index_put_seen(ix, a, b, e->rec.at, e->n, err);
    case OF_BLOB:
        return amp_index_put_blob(ix, a, e->n, err);
    }
    return 0;
}

static int entry_count(const struct amp_cache *c, const struct amp_cache_entry *e,
                       struct amp_index *ix, struct amp_error *err)
{
    struct amp_span key = text_at(c, e->a, e->n_a);
    struct amp_index_rec old;
    int found = 0;
    if (e->kind != OF_KEY || e->n <= ix->pos.n)
        return 0;
    /* Another process may have written some of its frames into the index. */
    if ((e->first <= ix->pos.n || e->existed) && (found = amp_index_rec(ix, key, &old, err)) < 0)
        return -1;
    return amp_index_count(ix, key, found ? &old : NULL, e->gone ? NULL : &e->rec, err);
}

int amp_cache_count(const struct amp_cache *c, struct amp_index *ix, struct amp_error *err)
{
    for (uint32_t i = 0; i < c->n; i++)
        if (entry_count(c, &c->entry[i], ix, err) < 0)
            return -1;
    return 0;
}

int amp_cache_into(const struct amp_cache *c, struct amp_index *ix, struct amp_error *err)
{
    AMP_FREE uint32_t *order = calloc(c->n + 1u, sizeof *order);
    if (!order)
        return amp_fail_memory(err);
    for (uint32_t i = 0; i < c->n; i++)
        order[i] = i;
    qsort_r(order, c->n, sizeof *order, entry_order, (void *)(uintptr_t)c);
    for (uint32_t i = 0; i < c->n; i++)
        /* Another process may have written some of them into the index. */
        if (c->entry[order[i]].n > ix->pos.n && (entry_count(c, &c->entry[order[i]], ix, err) < 0 ||
                                                 entry_index(c, &c->entry[order[i]], ix, err) < 0))
            return -1;
    for (uint32_t i = 0; i < c->n_out; i++) {
        const struct amp_cache_out *o = &c->out[i];
        if (!o->open && o->n > ix->pos.n)
            continue; /* opened and closed after the end of the index */
        if (amp_index_put_out(ix, o->n, o->i, text_at(c, o->id, o->n_id),
                              text_at(c, o->name, o->n_name), o->open ? &o->at : NULL, err) < 0)
            return -1;
    }
    return 0;
}
