/* SIGHUP reads the routes and lanes of the configuration again. With an invalid configuration the
 * old routes stay. */
#include "cli/config.h"
#include "wiring.h"

#include <stdlib.h>
#include <string.h>

#include "base/codes.h"

static struct reload_source source;
static bool configured; /* the routes are the configuration's */

struct texts {
    char *v[RULES_MAX];
    uint32_t n;
};

static int text_collect(void *arg, const char *text, struct amp_error *err)
{
    struct texts *t = arg;
    if (t->n == RULES_MAX)
        return amp_fail(err, AMP_CONFIG, too_many, "more than %d routes", RULES_MAX);
    if (!(t->v[t->n] = strdup(text)))
        return amp_fail_memory(err);
    t->n++;
    return 0;
}

static void texts_free(struct texts *t)
{
    while (t->n > 0)
        free(t->v[--t->n]);
}

void reload_start(const struct reload_source *from, const struct amp_list *routes)
{
    struct texts t = {.n = 0};
    struct amp_error err;
    amp_signals_reload();
    source = *from;
    bool same = amp_config_values(source.config, source.state, "route.routes", text_collect, &t,
                                  &err) == 0 &&
                (int)t.n == routes->n;
    for (uint32_t i = 0; same && i < t.n; i++)
        same = strcmp(t.v[i], routes->v[i]) == 0;
    configured = same;
    texts_free(&t);
}

/* *n: the number of routes. */
static int routes_reread(struct amp_router *r, uint32_t *n, struct amp_error *err)
{
    struct texts t = {.n = 0};
    struct amp_lane_rules lanes;
    int rc = -1;
    if (amp_config_reload(source.config, source.state, err) < 0)
        return -1;
    if (amp_config_values(source.config, source.state, "route.routes", text_collect, &t, err) < 0)
        rc = -1;
    else if (t.n == 0)
        rc = amp_fail(err, AMP_CONFIG, no_routes, "the configuration has no routes");
    else if (lanes_set(source.config, source.state, (const char *const *)source.lanes->v,
                       source.lanes->n, &lanes, err) == 0)
        rc = amp_router_reload(r, t.v, t.n, &lanes, err);
    *n = t.n;
    texts_free(&t);
    return rc;
}

void reload_routes(struct amp_router *r)
{
    struct amp_error err = {0};
    uint32_t n;
    if (!configured) {
        amp_warn("SIGHUP: routes were given with -r; not reloaded");
    } else if (routes_reread(r, &n, &err) < 0) {
        amp_complain(&err);
        amp_warn("SIGHUP: routes not changed");
    } else {
        amp_note("SIGHUP: %u route%s", n, n == 1 ? "" : "s");
    }
}
