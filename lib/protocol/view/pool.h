/* The memory of one line: allocated in pieces that never move, released all at once. */
#ifndef AMP_PROTOCOL_POOL_H
#define AMP_PROTOCOL_POOL_H

#include <amp/base/buf.h>

struct amp_pool_block;
struct amp_fill_plan;
struct amp_pool {
    struct amp_pool_block *first, *last;
    size_t total, max;
    struct amp_fill_plan *plans; /* the plans of amp_fill, which outlive a line */
};

void amp_pool_init(struct amp_pool *a, size_t max);
void amp_pool_release(struct amp_pool *a);
/* Releases all pieces, except one block of moderate size for the next line. */
void amp_pool_reset(struct amp_pool *a);
/* n zeroed bytes, aligned for any type; NULL if out of memory or above the maximum. */
void *amp_pool_get(struct amp_pool *a, size_t n);

#endif
