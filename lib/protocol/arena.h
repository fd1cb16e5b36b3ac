/* Memory of one line: handed out in pieces that never move, given back all at once. */
#ifndef AMP_PROTOCOL_ARENA_H
#define AMP_PROTOCOL_ARENA_H

#include <amp/base/buf.h>

struct amp_arena_block;
struct amp_arena {
    struct amp_arena_block *first, *last;
    size_t total, max;
};

void amp_arena_init(struct amp_arena *a, size_t max);
void amp_arena_release(struct amp_arena *a);
/* Forgets all pieces; keeps one block of moderate size for the next line. */
void amp_arena_reset(struct amp_arena *a);
/* n zeroed bytes aligned for any type; NULL when memory is short or past the maximum. */
void *amp_arena_get(struct amp_arena *a, size_t n);

#endif
