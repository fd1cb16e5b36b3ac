/* Growing arrays. */
#include "base/grow.h"

#include <stdlib.h>

#define FIRST 16 /* elements */

void *amp_grow(void *array, size_t n, size_t *cap, size_t size, struct amp_error *err)
{
    if (n < *cap)
        return array;
    size_t more = *cap ? *cap * 2 : FIRST;
    void *moved = realloc(array, more * size);
    if (!moved)
        amp_fail_memory(err);
    else
        *cap = more;
    return moved;
}
