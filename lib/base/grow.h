/* Arrays on the heap that grow by doubling. */
#ifndef AMP_BASE_GROW_H
#define AMP_BASE_GROW_H

#include <stddef.h>

#include <amp/base/error.h>

/* Makes room for one more element behind n of them. `array` is the address of the array's pointer,
 * *cap the number of elements that it has room for. On failure neither changes. */
int amp_grow(void *array, size_t *cap, size_t n, size_t size, struct amp_error *err);

#endif
