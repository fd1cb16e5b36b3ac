/* Arrays on the heap that grow by doubling. */
#ifndef AMP_BASE_GROW_H
#define AMP_BASE_GROW_H

#include <stddef.h>

#include <amp/base/error.h>

/* Makes room for one more element after n elements. `array` is the address of the array's pointer,
 * *cap its room in elements. On failure neither changes. */
int amp_grow(void *array, size_t *cap, size_t n, size_t size, struct amp_error *err);

#endif
