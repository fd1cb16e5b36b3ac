/*
 * Shapes: the keys of an object in their order. The lines of a stream have few shapes, so facts
 * about a shape (no key is duplicated; the rule of a schema for each member) are remembered by its
 * number. Two objects have the same shape if the keyed 64-bit hashes of their keys chain to the
 * same value. A tape's table has room for some hundred shapes; after many misses it is emptied and
 * gets a new id. A tape uses its table from the second text on: many tapes scan only one.
 */
#ifndef AMP_JSON_SHAPES_H
#define AMP_JSON_SHAPES_H

#include <amp/json/tape.h>

#include "json/hash.h"

enum {
    AMP_SHAPES = 256,      /* numbered from 1; 0: no shape */
    AMP_SHAPE_KEYS = 32,   /* objects with more keys have no shape */
    AMP_SHAPE_DEPTH = 32,  /* deeper objects have no shape */
    AMP_SHAPE_SLOTS = 512, /* a power of two */
    AMP_SHAPE_MISSES = 8192,
};

struct amp_json_shapes {
    uint64_t id; /* of this table's current contents, unique in the process; 0: not yet used */
    uint32_t n, misses;
    uint64_t chain[AMP_SHAPE_SLOTS], names[AMP_SHAPE_SLOTS];
};

void amp_json_shapes_start(struct amp_json_shapes *s);

/* The memory that a tape keeps between scans; a settled tape has none. */
struct amp_tape_memory {
    uint32_t cap; /* room for tokens */
    uint32_t scratch_cap;
    void *scratch;
    uint64_t names; /* of the outermost object: a bit for each key, by its hash; a hint only */
    struct amp_json_shapes shapes;
};

/* The id of the table of a tape's shapes. Only for a tape with a token that has a shape. */
static inline uint64_t amp_tape_shapes(const struct amp_tape *t)
{
    return t->memory->shapes.id;
}

static inline uint64_t amp_shape_chain(uint64_t chain, uint64_t hash, uint64_t key)
{
    return amp_json_mix(chain ^ hash, key);
}

/* The number of a known shape; 0: it is unknown, *at is its slot. */
static inline uint16_t amp_shape_find(const struct amp_json_shapes *s, uint64_t chain, unsigned *at)
{
    unsigned i = (unsigned)chain & (AMP_SHAPE_SLOTS - 1);
    while (s->chain[i] && s->chain[i] != chain)
        i = (i + 1) & (AMP_SHAPE_SLOTS - 1);
    *at = i;
    return s->chain[i] ? (uint16_t)(i + 1) : 0;
}

static inline uint16_t amp_shape_add(struct amp_json_shapes *s, uint64_t chain, unsigned at,
                                     uint64_t names)
{
    if (s->n == AMP_SHAPES || !chain) {
        s->misses++;
        return 0;
    }
    s->n++;
    s->chain[at] = chain;
    s->names[at] = names;
    return (uint16_t)(at + 1);
}

#endif
