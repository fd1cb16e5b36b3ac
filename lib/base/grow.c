/* Arrays on the heap that grow by doubling. */
#include "base/grow.h"

#include <stdlib.h>
#include <string.h>

int amp_grow(void *array, size_t *cap, size_t n, size_t size, struct amp_error *err)
{
    void *p;
    size_t more = *cap ? *cap * 2 : 16;
    if (n < *cap)
        return 0;
    memcpy(&p, array, sizeof p);
    p = reallocarray(p, more, size);
    if (!p)
        return amp_fail_memory(err);
    memcpy(array, &p, sizeof p);
    *cap = more;
    return 0;
}
