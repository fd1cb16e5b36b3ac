/* The tail: a small hash table over the newest frames. */
#include "store/tail.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct amp_tail_entry {
    uint64_t h;
    uint32_t a, n_a, b, n_b; /* offsets in text: a key, or a consumer and an id (n_b > 0) */
    bool gone;
    char sum[72];
    struct amp_index_rec rec;
};

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
    amp_buf_release(&t->text);
    amp_tail_init(t);
}

void amp_tail_clear(struct amp_tail *t)
{
    t->n = 0;
    t->n_out = 0;
    t->frames = 0;
    amp_buf_reset(&t->text);
    if (t->slot)
        memset(t->slot, 0, t->slots * sizeof *t->slot);
}

static bool same(const struct amp_tail *t, const struct amp_tail_entry *e, struct amp_span a,
                 struct amp_span b)
{
    return e->n_a == a.n && e->n_b == b.n && memcmp(t->text.data + e->a, a.p, a.n) == 0 &&
           (!b.n || memcmp(t->text.data + e->b, b.p, b.n) == 0);
}

static struct amp_tail_entry *find(const struct amp_tail *t, struct amp_span a, struct amp_span b)
{
    if (!t->n || !a.n)
        return NULL;
    uint64_t h = amp_store_hash(SEED, a, b);
    for (uint32_t i = (uint32_t)h & (t->slots - 1); t->slot[i]; i = (i + 1) & (t->slots - 1)) {
        struct amp_tail_entry *e = &t->entry[t->slot[i] - 1];
        if (e->h == h && same(t, e, a, b))
            return e;
    }
    return NULL;
}

static void place(struct amp_tail *t, uint32_t number)
{
    uint32_t i = (uint32_t)t->entry[number].h & (t->slots - 1);
    while (t->slot[i])
        i = (i + 1) & (t->slots - 1);
    t->slot[i] = number + 1;
}

static int grow(struct amp_tail *t, struct amp_error *err)
{
    if (t->n < t->cap)
        return 0;
    uint32_t cap = t->cap ? t->cap * 2 : 64;
    struct amp_tail_entry *e = realloc(t->entry, cap * sizeof *e);
    if (e)
        t->entry = e;
    uint32_t *slot = e ? calloc(cap * 2u, sizeof *slot) : NULL;
    if (!slot)
        return amp_fail(err, AMP_INTERNAL, "out_of_memory", "no memory");
    free(t->slot);
    t->slot = slot;
    t->slots = cap * 2;
    t->cap = cap;
    for (uint32_t i = 0; i < t->n; i++)
        place(t, i);
    return 0;
}

static struct amp_tail_entry *entry(struct amp_tail *t, struct amp_span a, struct amp_span b,
                                    struct amp_error *err)
{
    struct amp_tail_entry *e = find(t, a, b);
    if (e)
        return e;
    size_t at = t->text.len;
    if (grow(t, err) != 0 || amp_buf_add(&t->text, a.p, a.n, err) != 0 ||
        amp_buf_add(&t->text, b.n ? b.p : "", b.n, err) != 0)
        return NULL;
    e = &t->entry[t->n];
    *e = (struct amp_tail_entry){
        .h = amp_store_hash(SEED, a, b),
        .a = (uint32_t)at,
        .n_a = (uint32_t)a.n,
        .b = (uint32_t)(at + a.n),
        .n_b = (uint32_t)b.n,
    };
    place(t, t->n++);
    return e;
}

static struct amp_tail_out *find_out(const struct amp_tail *t, uint64_t n, uint32_t i)
{
    /* Mostly the newest are asked for. */
    for (uint32_t k = t->n_out; k-- > 0;)
        if (t->out[k].n == n && t->out[k].i == i)
            return &t->out[k];
    return NULL;
}

static int put_out(struct amp_tail *t, bool known, const struct amp_tail_out *o,
                   struct amp_error *err)
{
    struct amp_tail_out *old = known ? find_out(t, o->n, o->i) : NULL;
    if (old) {
        *old = *o;
        return 0;
    }
    if (t->n_out == t->cap_out) {
        uint32_t cap = t->cap_out ? t->cap_out * 2 : 64;
        struct amp_tail_out *p = realloc(t->out, cap * sizeof *p);
        if (!p)
            return amp_fail(err, AMP_INTERNAL, "out_of_memory", "no memory");
        t->out = p;
        t->cap_out = cap;
    }
    t->out[t->n_out++] = *o;
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
        if (put_out(t, stand, &o, err) != 0)
            return -1;
    }
    for (uint32_t i = 0; i < f->n_close; i++) {
        struct amp_tail_out o = {.n = f->close[i].n, .i = f->close[i].i};
        if (put_out(t, true, &o, err) != 0)
            return -1;
    }
    return 0;
}

int amp_tail_apply(struct amp_tail *t, const struct amp_frame *f, const struct amp_pos *after,
                   struct amp_error *err)
{
    struct amp_tail_entry *e;
    if (f->key.n) {
        if (!(e = entry(t, f->key, (struct amp_span){0}, err)))
            return -1;
        e->gone = f->gone;
        amp_index_place(f, after, &e->rec);
    }
    if (f->in_id.n) {
        /* The id first: it is never empty, a consumer's name may be. */
        struct amp_span c = f->in_consumer.n ? f->in_consumer : AMP_SPAN("\1");
        if (!(e = entry(t, f->in_id, c, err)))
            return -1;
        amp_span_copy(f->in_sum, e->sum, sizeof e->sum);
    }
    t->frames++;
    return apply_outs(t, f, after, err);
}

bool amp_tail_full(const struct amp_tail *t)
{
    return t->frames >= AMP_TAIL_MAX || t->n_out >= AMP_TAIL_OUTS;
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

int amp_tail_rec(const struct amp_tail *t, struct amp_span key, struct amp_index_rec *out)
{
    const struct amp_tail_entry *e = find(t, key, (struct amp_span){0});
    if (!e)
        return -1;
    *out = e->rec;
    return !e->gone;
}

int amp_tail_seen(const struct amp_tail *t, struct amp_span consumer, struct amp_span id,
                  char sum[72])
{
    const struct amp_tail_entry *e = find(t, id, consumer.n ? consumer : AMP_SPAN("\1"));
    if (!e)
        return -1;
    memcpy(sum, e->sum, sizeof e->sum);
    return 1;
}
