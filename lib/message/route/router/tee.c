/* Copies of routed messages for ports of --tee: the router does not wait for them, and failures get
 * no answer. */
#include "message/route/router/private.h"

#include <stdlib.h>
#include <string.h>

#include "base/codes.h"

/* text: PORT as in a route, or the name of a file or FIFO. */
static int tee_add(struct amp_router *r, const char *text, struct amp_error *err)
{
    AMP_BUF struct amp_buf spec = {0};
    size_t word = strspn(text, "abcdefghijklmnopqrstuvwxyz-");
    bool is_port = text[word] == ':' || strcmp(text, "stdout") == 0;
    uint32_t *outlet = &r->tees.outlets[r->tees.n];
    amp_buf_init(&spec, 8192);
    if ((is_port ? amp_buf_str(&spec, text, err) : amp_outlet_spec_of(text, &spec, err)) < 0 ||
        amp_outlets_open(r->outlets, spec.data, AMP_OUTLET_FOR_COPIES, outlet, err) < 0)
        return -1;
    r->tees.n++;
    if (amp_outlet_info(r->outlets, *outlet)->action != AMP_OUTLET_PORT)
        return amp_fail(err, AMP_USAGE, bad_port, "%s cannot be a port for copies", text);
    return 0;
}

int amp_tee_start(struct amp_router *r, struct amp_error *err)
{
    const struct amp_route_texts *tees = &r->opt->tees;
    r->tees.outlets = calloc((size_t)tees->n + 1, sizeof(*r->tees.outlets));
    if (!r->tees.outlets)
        return amp_fail_memory(err);
    for (int i = 0; i < tees->n; i++)
        if (tee_add(r, tees->v[i], err) < 0)
            return -1;
    return 0;
}

bool amp_tee_uses(const struct amp_router *r, uint32_t outlet)
{
    for (uint32_t i = 0; i < r->tees.n; i++)
        if (r->tees.outlets[i] == outlet)
            return true;
    return false;
}

void amp_tee_copy(struct amp_router *r, const struct parcel *j)
{
    for (uint32_t i = 0; i < r->tees.n; i++) {
        struct amp_error err;
        struct parcel *c = amp_parcel_new(&r->parcels, amp_parcel_whole(j), NULL);
        if (!c) {
            r->tees.lost++;
            continue;
        }
        c->copy = true;
        c->lane = j->lane;
        c->order = j->order;
        c->protocol = j->protocol;
        c->waiting = 1;
        r->tees.away++;
        if (amp_outlet_offer(r->outlets, r->tees.outlets[i], c, &err) < 0) {
            r->tees.away--;
            r->tees.lost++;
            amp_parcel_free(c);
        }
    }
}

void amp_tee_end(struct amp_router *r)
{
    uint64_t lost = r->tees.lost + r->tees.away;
    if (lost > 0)
        r->run.voice->warn("%llu %s (--tee)", (unsigned long long)lost,
                           lost == 1 ? "copy did not reach its port"
                                     : "copies did not reach their ports");
    free(r->tees.outlets);
}
