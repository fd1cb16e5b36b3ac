/* A chain of blocks: pieces never move, because views point at them. */
#include "base/arena.h"

#include <stdlib.h>
#include <string.h>

enum { BLOCK_LEAST = 16 * 1024, BLOCK_KEPT = 1024 * 1024, ALIGN = 16 };

struct amp_arena_block {
    struct amp_arena_block *next;
    size_t used, cap;
    _Alignas(ALIGN) char data[];
};

void amp_arena_init(struct amp_arena *a, size_t max)
{
    *a = (struct amp_arena){.max = max};
}

static void drop_blocks(struct amp_arena *a)
{
    struct amp_arena_block *b = a->first;
    while (b) {
        struct amp_arena_block *next = b->next;
        free(b);
        b = next;
    }
    a->first = a->last = NULL;
    a->total = 0;
}

void amp_arena_release(struct amp_arena *a)
{
    drop_blocks(a);
    free(a->kept);
    a->kept = NULL;
}

void amp_arena_reset(struct amp_arena *a)
{
    struct amp_arena_block *first = a->first;
    if (first && !first->next && first->cap <= BLOCK_KEPT) {
        first->used = 0;
        return;
    }
    drop_blocks(a);
}

static struct amp_arena_block *block_add(struct amp_arena *a, size_t n)
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
    struct amp_arena_block *b = malloc(sizeof *b + cap);
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

void *amp_arena_get(struct amp_arena *a, size_t n)
{
    if (n > a->max)
        return NULL;
    n = (n + ALIGN - 1) & ~(size_t)(ALIGN - 1);
    struct amp_arena_block *b = a->last;
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

bool amp_arena_text(struct amp_arena *a, struct amp_span text, struct amp_span *out)
{
    char *p = amp_arena_get(a, text.n + 1);
    if (!p)
        return false;
    if (text.n)
        memcpy(p, text.p, text.n);
    *out = (struct amp_span){p, text.n};
    return true;
}
