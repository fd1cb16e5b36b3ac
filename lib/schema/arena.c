/* The arena of a compiled schema: blocks of growing size, which do not move. */
#include "schema/arena.h"

#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_BLOCK = 1 << 10, MOST = 256 << 20, ALIGNED = alignof(uint64_t) };

struct amp_arena_block {
    struct amp_arena_block *next;
    size_t used, size;
    alignas(ALIGNED) char data[];
};

void *amp_arena_get(struct amp_arena *a, size_t size)
{
    struct amp_arena_block *b = a->blocks;
    if (size > MOST)
        return NULL;
    size = (size + ALIGNED - 1) / ALIGNED * ALIGNED;
    if (!b || b->size - b->used < size) {
        /* The unused rest of a block is small compared to the total. */
        size_t want = FIRST_BLOCK + a->total / 8;
        if (want < size)
            want = size;
        if (a->total + want > MOST)
            return NULL;
        b = calloc(1, sizeof *b + want);
        if (!b)
            return NULL;
        b->next = a->blocks;
        b->size = want;
        a->blocks = b;
        a->total += want;
    }
    void *p = b->data + b->used;
    b->used += size;
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

void amp_arena_release(struct amp_arena *a)
{
    while (a->blocks) {
        struct amp_arena_block *next = a->blocks->next;
        free(a->blocks);
        a->blocks = next;
    }
    a->total = 0;
}
