/* The numbers of a stream's messages, which only rise for each sender (SW4RM §11). */
#include "order.h"

#include <amp/base/id.h>

enum { SENDERS_MOST = 1 << 16 };

static uint64_t key[2]; /* set before the threads start */

void order_init(struct order *o)
{
    amp_random(key, sizeof key);
    amp_map_init(&o->last, sizeof(int64_t));
}

void order_release(struct order *o)
{
    amp_map_release(&o->last);
}

bool order_number(const struct amp_view *v, struct line_number *out)
{
    const struct amp_spec *spec = amp_spec_of(v->protocol);
    if (!spec || !spec->rises || !v->has_sequence || v->from.n == 0 ||
        (v->has_attempt && v->attempt > 0))
        return false;
    *out = (struct line_number){.sender = amp_keyed_hash(key, v->from), .n = v->sequence};
    return true;
}

int order_take(struct order *o, struct line_number *v, size_t n, bool strict, struct amp_error *err)
{
    int any = 0;
    for (size_t i = 0; i < n; i++) {
        if (o->last.used == SENDERS_MOST)
            order_release(o);
        bool known = amp_map_find(&o->last, v[i].sender) != NULL;
        int64_t *last = amp_map_add(&o->last, v[i].sender, err);
        if (!last)
            return -1;
        v[i].falls = known && v[i].n < *last;
        v[i].last = *last;
        any |= v[i].falls;
        if (!v[i].falls || !strict)
            *last = v[i].n;
    }
    return any;
}
