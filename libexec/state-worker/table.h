/* Hash tables from a 64-bit hash to a value of fixed size, bounded. */
#ifndef STATE_WORKER_TABLE_H
#define STATE_WORKER_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include <amp/base/error.h>

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
/* The same, made of zeroes where there was none. NULL: no memory, or the table is full. Values
 * move when something is added. */
void *table_add(struct table *t, uint64_t key, struct amp_error *err);
/* Calls fn for each value. */
void table_each(const struct table *t, void (*fn)(void *value));

#endif
