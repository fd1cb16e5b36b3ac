/* The tail: a small hash table over the newest frames. */
#include "store/cache/tail.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SEED = 0x7461696c };

void amp_tail_init(struct amp_tail *t)
{
    *t = (struct amp_tail){0};
    amp_buf_init(&t->text, 64 * AMP_FRAME_MAX);
}

void amp_tail_release(struct amp_tail *t)
{
    free(t->entry);
    free(t->slot);
    free(t->out);
    free(t->out_slot);
    amp_buf_release(&t->text);
    amp_tail_init(t);
}

void amp_tail_clear(struct amp_tail *t, uint64_t from)
{
    t->from = from;
    if (from > t->upto)
        t->upto = from;
    t->n = 0;
    t->n_out = 0;
    t->frames = 0;
    amp_buf_reset(&t->text);
    if (t->slot)
        memset(t->slot, 0, t->slots * sizeof *t->slot);
    if (t->out_slot)
        memset(t->out_slot, 0, t->out_slots * sizeof *t->out_slot);
}

static bool same(const struct amp_tail *t, const struct amp_tail_entry *e, struct amp_span a,
                 struct amp_span b)
{
    return e->n_a == a.n && e->n_b == b.n && (!a.n || memcmp(t->text.data + e->a, a.p, a.n) == 0) &&
           (!b.n || memcmp(t->text.data + e->b, b.p, b.n) == 0);
}

uint64_t amp_tail_hash(enum amp_tail_kind kind, struct amp_span a, struct amp_span b)
{
    return amp_store_hash(SEED + kind, a, b);
}

void amp_tail_into_filter(const struct amp_tail *t, struct amp_filter *out)
{
    for (uint32_t i = 0; i < t->n; i++)
        amp_filter_add(out, t->entry[i].h);
}

static struct amp_tail_entry *find(const struct amp_tail *t, uint64_t h, enum amp_tail_kind kind,
                                   struct amp_span a, struct amp_span b)
{
    if (!t->n)
        return NULL;
    for (uint32_t i = (uint32_t)h & (t->slots - 1); t->slot[i]; i = (i + 1) & (t->slots - 1)) {
        if (t->slot[i] >> 32 != h >> 32)
            continue;
        struct amp_tail_entry *e = &t->entry[(uint32_t)t->slot[i] - 1];
        if (e->h == h && e->kind == kind && same(t, e, a, b))
            return e;
    }
    return NULL;
}

static void place(struct amp_tail *t, uint32_t number)
{
    uint32_t i = (uint32_t)t->entry[number].h & (t->slots - 1);
    while (t->slot[i])
        i = (i + 1) & (t->slots - 1);
    t->slot[i] = t->entry[number].h >> 32 << 32 | (number + 1u);
}

static int grow(struct amp_tail *t, struct amp_error *err)
{
    if (t->n < t->cap)
        return 0;
    uint32_t cap = t->cap ? t->cap * 2 : 64;
    struct amp_tail_entry *e = realloc(t->entry, cap * sizeof *e);
    if (e)
        t->entry = e;
    uint64_t *slot = e ? calloc(cap * 2u, sizeof *slot) : NULL;
    if (!slot)
        return amp_fail_memory(err);
    free(t->slot);
    t->slot = slot;
    t->slots = cap * 2;
    t->cap = cap;
    for (uint32_t i = 0; i < t->n; i++)
        place(t, i);
    return 0;
}

static int keep_text(struct amp_tail *t, struct amp_span v, uint32_t *at, uint32_t *n,
                     struct amp_error *err)
{
    *at = (uint32_t)t->text.len;
    *n = (uint32_t)v.n;
    return amp_buf_add(&t->text, v.n ? v.p : "", v.n, err);
}

static struct amp_tail_entry *entry(struct amp_tail *t, enum amp_tail_kind kind, struct amp_span a,
                                    struct amp_span b, struct amp_error *err)
{
    uint64_t h = amp_tail_hash(kind, a, b);
    struct amp_tail_entry *e = find(t, h, kind, a, b);
    if (e)
        return e;
    if (grow(t, err) != 0)
        return NULL;
    e = &t->entry[t->n];
    *e = (struct amp_tail_entry){.h = h, .kind = (uint8_t)kind};
    if (keep_text(t, a, &e->a, &e->n_a, err) != 0 || keep_text(t, b, &e->b, &e->n_b, err) != 0)
        return NULL;
    place(t, t->n++);
    return e;
}

/* Where an entry stands in the table of entries, or the free place for it. */
static uint32_t *out_place(const struct amp_tail *t, uint64_t n, uint32_t i)
{
    uint64_t h = (n * UINT64_C(0x9e3779b97f4a7c15)) ^ (i * UINT64_C(0xc2b2ae3d27d4eb4f));
    uint32_t at = (uint32_t)(h >> 32) & (t->out_slots - 1);
    while (t->out_slot[at] &&
           (t->out[t->out_slot[at] - 1].n != n || t->out[t->out_slot[at] - 1].i != i))
        at = (at + 1) & (t->out_slots - 1);
    return &t->out_slot[at];
}

static struct amp_tail_out *find_out(const struct amp_tail *t, uint64_t n, uint32_t i)
{
    uint32_t *at = t->n_out ? out_place(t, n, i) : NULL;
    return at && *at ? &t->out[*at - 1] : NULL;
}

/* Room for one more, the table never more than half full. */
static int grow_out(struct amp_tail *t, struct amp_error *err)
{
    uint32_t cap = t->cap_out ? t->cap_out * 2 : 64;
    struct amp_tail_out *p = realloc(t->out, cap * sizeof *p);
    if (p)
        t->out = p;
    uint32_t *slot = p ? calloc((size_t)cap * 2, sizeof *slot) : NULL;
    if (!slot)
        return amp_fail_memory(err);
    free(t->out_slot);
    t->out_slot = slot;
    t->out_slots = cap * 2;
    t->cap_out = cap;
    for (uint32_t k = 0; k < t->n_out; k++)
        *out_place(t, t->out[k].n, t->out[k].i) = k + 1;
    return 0;
}

static int put_out(struct amp_tail *t, const struct amp_tail_out *o, struct amp_error *err)
{
    struct amp_tail_out *old = find_out(t, o->n, o->i);
    if (old) {
        *old = *o;
        return 0;
    }
    if (t->n_out == t->cap_out && grow_out(t, err) != 0)
        return -1;
    t->out[t->n_out++] = *o;
    *out_place(t, o->n, o->i) = t->n_out;
    return 0;
}

static int apply_blob(struct amp_tail *t, struct amp_span name, uint64_t n, struct amp_error *err)
{
    if (!name.n)
        return 0;
    struct amp_tail_entry *e = entry(t, AMP_TAIL_BLOB, name, (struct amp_span){0}, err);
    if (!e)
        return -1;
    e->n = n;
    return 0;
}

static int apply_outs(struct amp_tail *t, const struct amp_frame *f, const struct amp_pos *after,
                      struct amp_error *err)
{
    bool stand = f->head.log == AMP_FRAME_stand;
    for (uint32_t i = 0; i < f->n_out; i++) {
        struct amp_tail_out o = {
            .n = stand ? f->out[i].n : f->head.n,
            .i = stand ? f->out[i].i : i,
            .seg = after->seg,
            .off = after->off - after->len,
            .len = after->len,
            .h = amp_store_hash(SEED, f->out[i].id, (struct amp_span){0}),
            .c = amp_store_hash(SEED, amp_frame_consumer(f, i), (struct amp_span){0}),
            .open = true,
        };
        if (keep_text(t, f->out[i].id, &o.id, &o.n_id, err) != 0 ||
            keep_text(t, amp_frame_consumer(f, i), &o.name, &o.n_name, err) != 0 ||
            put_out(t, &o, err) != 0 || apply_blob(t, f->out[i].blob, f->head.n, err) != 0)
            return -1;
    }
    for (uint32_t i = 0; i < f->n_close; i++) {
        struct amp_tail_out o = {.n = f->close[i].n, .i = f->close[i].i};
        if (put_out(t, &o, err) != 0)
            return -1;
    }
    return 0;
}

int amp_tail_apply(struct amp_tail *t, const struct amp_frame *f, const struct amp_pos *after,
                   struct amp_error *err)
{
    struct amp_tail_entry *e;
    t->upto = f->head.n;
    if (f->key.n) {
        if (!(e = entry(t, AMP_TAIL_KEY, f->key, (struct amp_span){0}, err)))
            return -1;
        e->gone = f->gone;
        e->n = f->head.n;
        amp_index_place(f, after, &e->rec);
        if (apply_blob(t, f->state_blob, f->head.n, err) != 0)
            return -1;
    }
    if (f->in_id.n) {
        if (!(e = entry(t, AMP_TAIL_INPUT, f->in_consumer, f->in_id, err)))
            return -1;
        e->n = f->head.n;
        amp_index_place(f, after, &e->rec);
    }
    t->frames++;
    return apply_outs(t, f, after, err);
}

bool amp_tail_full(const struct amp_tail *t)
{
    return t->frames >= AMP_TAIL_MAX || t->n_out >= AMP_TAIL_OUTS;
}

bool amp_tail_brimming(const struct amp_tail *t)
{
    return t->frames >= AMP_TAIL_TIMES * AMP_TAIL_MAX || t->n_out >= AMP_TAIL_TIMES * AMP_TAIL_OUTS;
}

const struct amp_tail_out *amp_tail_out(const struct amp_tail *t, uint64_t n, uint32_t i)
{
    return find_out(t, n, i);
}

const struct amp_tail_out *amp_tail_next_out(const struct amp_tail *t, struct amp_span id,
                                             struct amp_span consumer, uint32_t *at)
{
    uint64_t h = amp_store_hash(SEED, id.n ? id : consumer, (struct amp_span){0});
    while (*at < t->n_out) {
        const struct amp_tail_out *o = &t->out[(*at)++];
        if (o->open && (id.n ? o->h : o->c) == h)
            return o;
    }
    return NULL;
}

int amp_tail_rec(const struct amp_tail *t, uint64_t h, struct amp_span key,
                 struct amp_index_rec *out)
{
    const struct amp_tail_entry *e = find(t, h, AMP_TAIL_KEY, key, (struct amp_span){0});
    if (!e)
        return -1;
    if (out)
        *out = e->rec;
    return !e->gone;
}

int amp_tail_seen(const struct amp_tail *t, uint64_t h, struct amp_span consumer,
                  struct amp_span id, struct amp_index_rec *out)
{
    const struct amp_tail_entry *e = find(t, h, AMP_TAIL_INPUT, consumer, id);
    if (!e)
        return -1;
    *out = e->rec;
    return 1;
}

static struct amp_span text_at(const struct amp_tail *t, uint32_t at, uint32_t n)
{
    return (struct amp_span){t->text.data + at, n};
}

/* By kind, then as SQLite orders texts: rows of one page one behind the other. */
static int in_order(const void *x, const void *y, void *ctx)
{
    const struct amp_tail *t = ctx;
    const struct amp_tail_entry *a = &t->entry[*(const uint32_t *)x];
    const struct amp_tail_entry *b = &t->entry[*(const uint32_t *)y];
    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    int c = memcmp(t->text.data + a->a, t->text.data + b->a, a->n_a < b->n_a ? a->n_a : b->n_a);
    if (c == 0 && a->n_a != b->n_a)
        return a->n_a < b->n_a ? -1 : 1;
    if (c == 0)
        c = memcmp(t->text.data + a->b, t->text.data + b->b, a->n_b < b->n_b ? a->n_b : b->n_b);
    return c ? c : a->n_b < b->n_b ? -1 : a->n_b > b->n_b;
}

static int put_entry(struct amp_tail *t, const struct amp_tail_entry *e, struct amp_index *ix,
                     struct amp_error *err)
{
    struct amp_span a = text_at(t, e->a, e->n_a), b = text_at(t, e->b, e->n_b);
    switch ((enum amp_tail_kind)e->kind) {
    case AMP_TAIL_KEY:
        return amp_index_put_rec(ix, a, e->gone ? NULL : &e->rec, e->n, err);
    case AMP_TAIL_INPUT:
        return amp_index_put_seen(ix, a, b, &e->rec, e->n, err);
    case AMP_TAIL_BLOB:
        return amp_index_put_blob(ix, a, e->n, err);
    }
    return 0;
}

int amp_tail_into(struct amp_tail *t, struct amp_index *ix, struct amp_error *err)
{
    AMP_FREE uint32_t *order = calloc(t->n + 1u, sizeof *order);
    if (!order)
        return amp_fail_memory(err);
    for (uint32_t i = 0; i < t->n; i++)
        order[i] = i;
    qsort_r(order, t->n, sizeof *order, in_order, t);
    for (uint32_t i = 0; i < t->n; i++)
        /* Another process may have brought a part of them in. */
        if (t->entry[order[i]].n > ix->pos.n && put_entry(t, &t->entry[order[i]], ix, err) != 0)
            return -1;
    for (uint32_t i = 0; i < t->n_out; i++) {
        const struct amp_tail_out *o = &t->out[i];
        if (!o->open && o->n > ix->pos.n)
            continue; /* it came and went behind the index */
        struct amp_index_rec at = {.seg = o->seg, .off = o->off, .len = o->len};
        if (amp_index_put_out(ix, o->n, o->i, text_at(t, o->id, o->n_id),
                              text_at(t, o->name, o->n_name), o->open ? &at : NULL, err) != 0)
            return -1;
    }
    return 0;
}
