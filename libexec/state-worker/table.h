/* Bounded hash tables from a 64-bit hash to a value of fixed size. */
#ifndef STATE_WORKER_TABLE_H
#define STATE_WORKER_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include <amp/base/buf.h>

struct table {
    size_t value_size;
    uint32_t cap, used;
    uint64_t *keys; /* 0: empty */
    char *values;
};

void table_init(struct table *t, size_t value_size);
void table_release(struct table *t);
/* The value under the key, or NULL. */
void *table_find(const struct table *t, uint64_t key);
/* The same; a new value is zeroed. NULL with err if memory is short or the table is full. Values
 * move when one is added. */
void *table_add(struct table *t, uint64_t key, struct amp_error *err);
/* Calls fn for each value. */
void table_each(const struct table *t, void (*fn)(void *value));

/* A hash that stands for a text. Texts with the same hash cannot be made without the key. */
uint64_t keyed_hash(const uint64_t key[2], struct amp_span text);

#endif
