/* A chain of blocks: pieces never move, because views point at them. */
#include "protocol/view/pool.h"

#include <stdlib.h>
#include <string.h>

enum { BLOCK_LEAST = 16 * 1024, BLOCK_KEPT = 1024 * 1024, ALIGN = 16 };

struct amp_pool_block {
    struct amp_pool_block *next;
    size_t used, cap;
    _Alignas(ALIGN) char data[];
};

void amp_pool_init(struct amp_pool *a, size_t max)
{
    *a = (struct amp_pool){.max = max};
}

static void drop_blocks(struct amp_pool *a)
{
    struct amp_pool_block *b = a->first;
    while (b) {
        struct amp_pool_block *next = b->next;
        free(b);
        b = next;
    }
    a->first = a->last = NULL;
    a->total = 0;
}

void amp_pool_release(struct amp_pool *a)
{
    drop_blocks(a);
    free(a->plans);
    a->plans = NULL;
}

void amp_pool_reset(struct amp_pool *a)
{
    struct amp_pool_block *first = a->first;
    if (first && !first->next && first->cap <= BLOCK_KEPT) {
        first->used = 0;
        return;
    }
    drop_blocks(a);
}

static struct amp_pool_block *block_add(struct amp_pool *a, size_t n)
{
    size_t cap = a->last ? a->last->cap * 2 : BLOCK_LEAST;
    if (cap > BLOCK_KEPT)
        cap = BLOCK_KEPT;
    if (cap < n)
        cap = n;
    if (cap > a->max - a->total)
        cap = a->max - a->total;
    if (cap < n)
        return NULL;
    struct amp_pool_block *b = malloc(sizeof *b + cap);
    if (!b)
        return NULL;
    b->next = NULL;
    b->used = 0;
    b->cap = cap;
    if (a->last)
        a->last->next = b;
    else
        a->first = b;
    a->last = b;
    a->total += cap;
    return b;
}

void *amp_pool_get(struct amp_pool *a, size_t n)
{
    if (n > a->max)
        return NULL;
    n = (n + ALIGN - 1) & ~(size_t)(ALIGN - 1);
    struct amp_pool_block *b = a->last;
    if (!b || b->cap - b->used < n) {
        b = block_add(a, n);
        if (!b)
            return NULL;
    }
    void *p = b->data + b->used;
    b->used += n;
    memset(p, 0, n);
    return p;
}
