/* The table of shapes, empty: see shapes.h. */
#include "json/shapes.h"

#include <stdatomic.h>
#include <string.h>

void amp_json_shapes_start(struct amp_json_shapes *s)
{
    static atomic_uint_least64_t ids;
    memset(s, 0, sizeof *s);
    s->id = atomic_fetch_add(&ids, 1) + 1;
}
