/*
 * SIGHUP: the configuration is read again, its routes and lanes count from then on. All or nothing:
 * with a bad one the old routes stay. Ports that stay keep what waits for them; those that no route
 * leads to any more deliver what they have and are closed.
 */
#include "router.h"

#include <stdlib.h>
#include <string.h>

struct texts {
    char *v[RULES_MAX];
    uint32_t n;
};

static int collect(void *arg, const char *text, struct amp_error *err)
{
    struct texts *t = arg;
    if (t->n == RULES_MAX)
        return amp_fail(err, AMP_CONFIG, "too_many", "more than %d routes", RULES_MAX);
    if (!(t->v[t->n] = strdup(text)))
        return amp_fail_memory(err);
    t->n++;
    return 0;
}

static void forget(struct texts *t)
{
    while (t->n > 0)
        free(t->v[--t->n]);
}

void reload_start(struct router *r, const struct amp_list *routes)
{
    struct texts t = {.n = 0};
    struct amp_error err;
    amp_signals_reload();
    bool same = amp_config_values(r->config, r->state, "route.routes", collect, &t, &err) == 0 &&
                (int)t.n == routes->n;
    for (uint32_t i = 0; same && i < t.n; i++)
        same = strcmp(t.v[i], routes->v[i]) == 0;
    r->configured = same;
    forget(&t);
}

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
    routes_free(r);
    amp_helper_free(r->jq);
    while (r->n_ports > f->n_ports)
        target_release(r, r->targets[--r->n_ports]);
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

static int build(struct router *r, const struct texts *t, struct amp_error *err)
{
    if (t->n == 0)
        return amp_fail(err, AMP_CONFIG, "no_routes", "the configuration has no routes");
    if (lanes_set(r->config, r->state, (const char *const *)r->lane_settings->v,
                  r->lane_settings->n, &r->lane_rules, err) < 0)
        return -1;
    for (uint32_t i = 0; i < t->n; i++)
        if (routes_add(r, t->v[i], err) < 0)
            return -1;
    for (uint32_t i = 0; i < r->n_rules; i++)
        if (!r->addressing.book && r->targets[r->rules[i].port]->action == TARGET_AGENTS)
            return amp_fail(err, AMP_CONFIG, "bad_port",
                            "a route to agents needs one from the start on");
    return judge_start(r, err);
}

static int reload(struct router *r, struct amp_error *err)
{
    static struct former f;
    struct texts t = {.n = 0};
    int rc = -1;
    if (amp_config_reload(r->config, r->state, err) < 0)
        return -1;
    keep_former(r, &f);
    if (amp_config_values(r->config, r->state, "route.routes", collect, &t, err) == 0 &&
        build(r, &t, err) == 0)
        rc = 0;
    if (rc < 0) {
        put_back(r, &f);
    } else {
        amp_helper_free(f.jq);
        for (uint32_t i = 0; i < f.n_rules; i++) {
            amp_predicate_free(f.rules[i].predicate);
            free(f.rules[i].text);
        }
        r->era++;
        routes_heads(r);
    }
    for (uint32_t i = 1; i < r->n_ports; i++)
        r->targets[i]->leaving = !is_used(r, i);
    forget(&t);
    return rc;
}

void reload_turn(struct router *r)
{
    struct amp_error err = {0};
    if (!amp_hangup || r->n_undecided > 0)
        return;
    amp_hangup = 0;
    if (!r->configured) {
        amp_warn("SIGHUP: the routes are given with -r: nothing is read again");
    } else if (reload(r, &err) < 0) {
        amp_complain(&err);
        amp_warn("SIGHUP: the routes stay as they were");
    } else {
        amp_note("SIGHUP: %u routes", r->n_rules);
    }
}

void reload_close(struct router *r)
{
    for (uint32_t i = 1; i < r->n_ports && r->era > 0; i++) {
        const struct target *t = r->targets[i];
        if (t->leaving && !t->closed)
            target_finish(r, i);
    }
}
