/* A table of the pairs with a record. */
#include "work/item/conflict/pairs.h"

#include <stdlib.h>
#include <string.h>

#define TABLE_MIN 256

static size_t id_hash(const char *id)
{
    uint64_t h = 1469598103934665603u;

    for (; *id; id++)
        h = (h ^ (unsigned char)*id) * 1099511628211u;
    return (size_t)(h ^ h >> 32);
}

static struct amp_pair **pair_place(const struct amp_pairs *p, const char *id)
{
    struct amp_pair **at = &p->table[id_hash(id) & (p->n_buckets - 1)];

    while (*at && strcmp((*at)->id, id) != 0)
        at = &(*at)->next;
    return at;
}

static int table_grow(struct amp_pairs *p, struct amp_error *err)
{
    size_t n = p->n_buckets ? p->n_buckets * 2 : TABLE_MIN;
    struct amp_pair **table = calloc(n, sizeof *table);

    if (!table)
        return amp_fail_memory(err);
    free(p->table);
    p->table = table;
    p->n_buckets = n;
    for (struct amp_pair *x = p->first; x; x = x->after) {
        struct amp_pair **at = &table[id_hash(x->id) & (n - 1)];
        x->next = *at;
        *at = x;
    }
    return 0;
}

static void pair_remove(struct amp_pairs *p, const char *id)
{
    struct amp_pair **at = p->n_buckets ? pair_place(p, id) : NULL, *x = at ? *at : NULL;

    if (!x)
        return;
    *at = x->next;
    *(x->before ? &x->before->after : &p->first) = x->after;
    if (x->after)
        x->after->before = x->before;
    p->n_ordered -= x->first[0] != '\0';
    p->n--;
    free(x);
}

void amp_pairs_release(struct amp_pairs *p)
{
    while (p->first)
        pair_remove(p, p->first->id);
    free(p->table);
    *p = (struct amp_pairs){0};
}

static int pair_put(void *ctx, const void *rec, struct amp_error *err)
{
    const struct amp_conflict *c = rec;
    struct amp_pairs *p = ctx;
    struct amp_pair *x;

    if (p->n >= p->n_buckets && table_grow(p, err) < 0)
        return -1;
    if (!(x = calloc(1, sizeof *x)))
        return amp_fail_memory(err);
    amp_conflict_id(c->a, c->b, x->id);
    amp_span_copy(c->a, x->a, sizeof x->a);
    amp_span_copy(c->b, x->b, sizeof x->b);
    if (c->state == AMP_CONFLICT_SERIAL)
        amp_span_copy(c->first, x->first, sizeof x->first);
    x->state = c->state;
    x->until_ms = c->until_ms;
    pair_remove(p, x->id);
    struct amp_pair **at = pair_place(p, x->id);
    *at = x;
    x->after = p->first;
    if (x->after)
        x->after->before = x;
    p->first = x;
    p->n_ordered += x->first[0] != '\0';
    p->n++;
    return 0;
}

int amp_pairs_load(struct amp_pairs *p, struct amp_store *s, struct amp_error *err)
{
    return amp_subject_each(&amp_conflict_subject, s, NULL, pair_put, p, err);
}

int amp_pairs_reread(struct amp_pairs *p, struct amp_store *s, const char *id, struct amp_buf *mem,
                     struct amp_error *err)
{
    struct amp_conflict c;
    int found = amp_conflict_find(s, amp_span_str(id), mem, &c, err);

    if (found > 0)
        return pair_put(p, &c, err);
    if (found == 0)
        pair_remove(p, id);
    return found;
}

const struct amp_pair *amp_pairs_find(const struct amp_pairs *p, const char *x, const char *y)
{
    char id[AMP_CONFLICT_ID_MAX];

    if (!p->first)
        return NULL;
    amp_conflict_id(amp_span_str(x), amp_span_str(y), id);
    return *pair_place(p, id);
}
