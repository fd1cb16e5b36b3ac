/* Growing arrays. */
#ifndef AMP_BASE_GROW_H
#define AMP_BASE_GROW_H

#include <stddef.h>

#include <amp/base/error.h>

/* Makes room for one more element in an array on the heap that has n elements of `size` bytes and
 * room for *cap; doubles the room when it is full. Returns the array at its new place, or NULL
 * (no_memory), with the array and *cap unchanged. */
void *amp_grow(void *array, size_t n, size_t *cap, size_t size, struct amp_error *err);

#endif
