/*
 * Shapes: which keys an object has, in which order. Lines of one stream have few, so what was found
 * out about a shape once (that no key stands twice; which rule of a schema each member meets) is
 * remembered by its number. Two objects have one shape when the keyed 64-bit hashes of their keys
 * chain to the same value. A tape's table is full after some hundred shapes; when it then no longer
 * helps it is emptied and named anew.
 */
#ifndef JSON_SHAPES_H
#define JSON_SHAPES_H

#include <amp/json/tape.h>

#include "json/hash.h"

enum {
    AMP_SHAPES = 256,      /* numbered from 1; 0 is no shape */
    AMP_SHAPE_KEYS = 32,   /* objects of more keys have none */
    AMP_SHAPE_DEPTH = 32,  /* nor have deeper ones */
    AMP_SHAPE_SLOTS = 512, /* a power of two */
    AMP_SHAPE_MISSES = 8192,
};

struct amp_json_shapes {
    uint64_t id; /* of this table's present content, in the whole process */
    uint32_t n, misses;
    uint64_t chain[AMP_SHAPE_SLOTS], names[AMP_SHAPE_SLOTS];
};

void amp_json_shapes_start(struct amp_json_shapes *s);

/* What a tape keeps from scan to scan; a settled tape has none. */
struct amp_tape_memory {
    uint32_t cap; /* tokens that there is room for */
    uint32_t scratch_cap;
    void *scratch;
    uint64_t names; /* of the outermost object: a bit for each key, by its hash; a hint only */
    struct amp_json_shapes shapes;
};

/* The id of the table that the shapes of a tape's tokens belong to. Only for a tape that has a
 * token with a shape. */
static inline uint64_t amp_tape_shapes(const struct amp_tape *t)
{
    return t->memory->shapes.id;
}

static inline uint64_t amp_shape_chain(uint64_t chain, uint64_t hash, uint64_t key)
{
    return amp_json_mix(chain ^ hash, key);
}

/* The number of a shape that is known, or 0 and where it could be put. */
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
