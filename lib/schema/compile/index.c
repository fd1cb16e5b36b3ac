/* Open addressing, at most half full. Earlier slots stay in the arena; together they are smaller
 * than the present ones. */
#include "schema/compile/index.h"

static void put_slot(struct amp_hash_index *x, uint32_t hash, uint32_t slot)
{
    uint32_t at = hash & x->mask;
    while (x->slots[at])
        at = (at + 1) & x->mask;
    x->slots[at] = slot;
    x->hashes[at] = hash;
}

bool amp_index_add(struct amp_hash_index *x, uint32_t hash, uint32_t number)
{
    if (!x->slots || x->n * 2 > x->mask) {
        uint32_t size = x->slots ? (x->mask + 1) * 2 : 16;
        struct amp_hash_index more = {.arena = x->arena, .n = x->n, .mask = size - 1};
        more.slots = amp_arena_get(x->arena, size * sizeof *more.slots);
        more.hashes = amp_arena_get(x->arena, size * sizeof *more.hashes);
        if (!more.slots || !more.hashes)
            return false;
        for (uint32_t i = 0; x->slots && i <= x->mask; i++)
            if (x->slots[i])
                put_slot(&more, x->hashes[i], x->slots[i]);
        *x = more;
    }
    put_slot(x, hash, number + 1);
    x->n++;
    return true;
}
