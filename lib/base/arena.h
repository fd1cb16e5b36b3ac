/*
 * Memory that is freed all at once, such as that of a line or of a compiled schema. Its pieces
 * never move. One that is all zeros is empty, and has room for nothing.
 */
#ifndef AMP_BASE_ARENA_H
#define AMP_BASE_ARENA_H

#include <amp/base/buf.h>

struct amp_arena {
    struct amp_arena_block *first, *last;
    size_t total, max;
    void *kept; /* malloc'ed by its user: stays at a reset, is freed with the arena; or NULL */
};

void amp_arena_init(struct amp_arena *a, size_t max);
void amp_arena_release(struct amp_arena *a);
/* Releases all pieces, except one block of moderate size for the next line. */
void amp_arena_reset(struct amp_arena *a);
/* n zeroed bytes, aligned for any type; NULL if out of memory or above the maximum. */
void *amp_arena_get(struct amp_arena *a, size_t n);
/* A copy with a NUL at its end; false as above. */
bool amp_arena_text(struct amp_arena *a, struct amp_span text, struct amp_span *out);

#endif
