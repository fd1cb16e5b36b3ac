/* Memory that is freed all at once. */
#ifndef SCHEMA_ARENA_H
#define SCHEMA_ARENA_H

#include <amp/base/buf.h>

struct amp_arena {
    struct amp_arena_block *blocks;
    size_t total;
};

/* Zeroed memory, aligned for pointers and 64-bit numbers; NULL if memory is short or past 256 MiB.
 */
void *amp_arena_get(struct amp_arena *a, size_t size);
/* A copy with a NUL at its end; false as above. */
bool amp_arena_text(struct amp_arena *a, struct amp_span text, struct amp_span *out);
void amp_arena_release(struct amp_arena *a);

#endif
