/*
 * SIGHUP: the configuration is read again, its routes and lanes count from then on. All or nothing:
 * with a bad one the old routes stay. Ports that stay keep what waits for them; those that no route
 * leads to any more deliver what they have and are closed.
 */
#include "route/router/router.h"

#include <stdlib.h>
#include <string.h>

/* What is replaced, to be put back. */
struct former {
    struct rule rules[RULES_MAX];
    const char *filters[RULES_MAX + 1];
    struct amp_lane_rules lanes;
    struct amp_helper *jq;
    uint32_t n_rules, n_ports;
    int n_filters;
};

static void keep_former(struct router *r, struct former *f)
{
    memcpy(f->rules, r->rules, sizeof(f->rules));
    memcpy(f->filters, r->filters, sizeof(f->filters));
    f->lanes = r->lane_rules;
    f->jq = r->jq;
    f->n_rules = r->n_rules;
    f->n_ports = r->n_ports;
    f->n_filters = r->n_filters;
    memset(r->filters, 0, sizeof(r->filters));
    r->jq = NULL;
    r->n_rules = 0;
    r->n_filters = 0;
}

static void put_back(struct router *r, const struct former *f)
{
    amp_rules_free(r);
    amp_helper_free(r->jq);
    while (r->n_ports > f->n_ports)
        amp_outlet_release(r, r->outlets[--r->n_ports]);
    memcpy(r->rules, f->rules, sizeof(f->rules));
    memcpy(r->filters, f->filters, sizeof(f->filters));
    r->lane_rules = f->lanes;
    r->jq = f->jq;
    r->n_rules = f->n_rules;
    r->n_filters = f->n_filters;
}

static bool is_used(const struct router *r, uint32_t port)
{
    bool used = port == 0;
    for (uint32_t i = 0; i < r->n_rules; i++)
        used = used || r->rules[i].port == port;
    for (uint32_t i = 0; i < r->addressing.n; i++)
        used = used || r->addressing.ports[i].port == port;
    for (uint32_t i = 0; i < r->n_tees; i++)
        used = used || r->tees[i] == port;
    return used;
}

static int build(struct router *r, char *const *texts, uint32_t n, struct amp_error *err)
{
    for (uint32_t i = 0; i < n; i++)
        if (amp_rules_add(r, texts[i], err) < 0)
            return -1;
    for (uint32_t i = 0; i < r->n_rules; i++)
        if (!r->addressing.book && r->outlets[r->rules[i].port]->action == AMP_OUTLET_AGENTS)
            return amp_fail(err, AMP_CONFIG, "bad_port",
                            "a route to agents needs one from the start on");
    return amp_match_start(r, err);
}

int amp_reload(struct router *r, char *const *texts, uint32_t n, const struct amp_lane_rules *lanes,
               struct amp_error *err)
{
    static struct former f;
    keep_former(r, &f);
    r->lane_rules = *lanes;
    int rc = build(r, texts, n, err);
    if (rc < 0) {
        put_back(r, &f);
    } else {
        amp_helper_free(f.jq);
        for (uint32_t i = 0; i < f.n_rules; i++) {
            amp_predicate_free(f.rules[i].predicate);
            free(f.rules[i].text);
        }
        r->era++;
        amp_rules_heads(r);
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
