/*
 * SIGHUP: the configuration is read again, its routes and lanes count from then on. All or nothing:
 * with a bad one the old routes stay. Ports that stay keep what waits for them; those that no route
 * leads to any more deliver what they have and are closed.
 */
#include "route/router/router.h"

#include <stdlib.h>
#include <string.h>

static bool is_used(const struct router *r, uint32_t port)
{
    bool used = port == 0;
    for (uint32_t i = 0; i < amp_rules_n(r->rules); i++)
        used = used || amp_rules_at(r->rules, i)->port == port;
    for (uint32_t i = 0; i < r->addressing.n; i++)
        used = used || r->addressing.ports[i].port == port;
    for (uint32_t i = 0; i < r->n_tees; i++)
        used = used || r->tees[i] == port;
    return used;
}

static int build(struct router *r, struct amp_rules *rules, char *const *texts, uint32_t n,
                 struct amp_error *err)
{
    for (uint32_t i = 0; i < n; i++)
        if (amp_router_route(r, rules, texts[i], err) < 0)
            return -1;
    for (uint32_t i = 0; i < n; i++)
        if (!r->addressing.book &&
            r->outlets[amp_rules_at(rules, i)->port]->action == AMP_OUTLET_AGENTS)
            return amp_fail(err, AMP_CONFIG, "bad_port",
                            "a route to agents needs one from the start on");
    return amp_rules_start(rules, r->predicate_limit_ms, r->stop, err);
}

int amp_reload(struct router *r, char *const *texts, uint32_t n, const struct amp_lane_rules *lanes,
               struct amp_error *err)
{
    struct amp_lane_rules former = r->lane_rules;
    uint32_t n_ports = r->n_ports;
    struct amp_rules *fresh;
    if (amp_rules_new(r->all, &fresh, err) < 0)
        return -1;
    r->lane_rules = *lanes;
    int rc = build(r, fresh, texts, n, err);
    if (rc < 0) {
        amp_rules_free(fresh);
        while (r->n_ports > n_ports)
            amp_outlet_release(r, r->outlets[--r->n_ports]);
        r->lane_rules = former;
    } else {
        amp_rules_free(r->rules);
        r->rules = fresh;
        r->era++;
        amp_router_ruled(r);
    }
    for (uint32_t i = 1; i < r->n_ports; i++)
        r->outlets[i]->leaving = !is_used(r, i);
    return rc;
}

void amp_reload_turn(struct router *r)
{
    if (!*r->hangup || r->n_undecided > 0)
        return;
    *r->hangup = 0;
    r->reread(r);
}

void amp_reload_close(struct router *r)
{
    for (uint32_t i = 1; i < r->n_ports && r->era > 0; i++) {
        const struct amp_outlet *t = r->outlets[i];
        if (t->leaving && !t->closed)
            amp_outlet_finish(r, i);
    }
}
