/* Bounded hash tables from a 64-bit hash to a value of fixed size. */
#ifndef AMP_BASE_MAP_H
#define AMP_BASE_MAP_H

#include <stddef.h>
#include <stdint.h>

#include <amp/base/buf.h>

struct amp_map {
    size_t value_size;
    uint32_t cap, used;
    uint64_t *keys; /* 0: empty */
    char *values;
};

void amp_map_init(struct amp_map *t, size_t value_size);
void amp_map_release(struct amp_map *t);
/* The value under the key, or NULL. */
void *amp_map_find(const struct amp_map *t, uint64_t key);
/* Like amp_map_find, but adds a missing value, zeroed, which may move the others. NULL with err if
 * memory is short or the table is full. */
void *amp_map_add(struct amp_map *t, uint64_t key, struct amp_error *err);
/* Calls fn for each value. */
void amp_map_each(const struct amp_map *t, void (*fn)(void *value));

/* A hash that stands for a text. Texts with the same hash cannot be made without the key. */
uint64_t amp_keyed_hash(const uint64_t key[2], struct amp_span text);

#endif
