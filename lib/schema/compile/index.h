/* Tables from a hash to numbers. The caller compares the things that the numbers stand for. */
#ifndef AMP_SCHEMA_COMPILE_INDEX_H
#define AMP_SCHEMA_COMPILE_INDEX_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "json/hash.h"

struct amp_hash_index {
    uint32_t *slots; /* 1 + number; 0 is free */
    uint32_t *hashes;
    uint32_t n, mask;
    struct amp_arena *arena; /* holds the slots */
};

/* False if memory is short. */
bool amp_index_add(struct amp_hash_index *x, uint32_t hash, uint32_t number);

/* for (uint32_t at = hash, i; amp_index_next(x, hash, &at, &i);) … visits all numbers of this hash.
 */
static inline bool amp_index_next(const struct amp_hash_index *x, uint32_t hash, uint32_t *at,
                                  uint32_t *number)
{
    if (!x->slots)
        return false;
    for (; x->slots[*at & x->mask]; ++*at) {
        uint32_t k = *at & x->mask;
        if (x->hashes[k] == hash) {
            *number = x->slots[k] - 1;
            ++*at;
            return true;
        }
    }
    return false;
}

static inline uint32_t amp_index_hash(struct amp_span text)
{
    return amp_json_hash32(amp_json_hash_key(), text.p, text.n);
}

#endif
