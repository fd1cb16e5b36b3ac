/*
 * Makes the router's parts in the order of their dependencies. Reloads the routes after a hang-up:
 * all or nothing, so with invalid ones the former routes stay.
 */
#include "message/route/router/private.h"

#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/codes.h"

static int route_add(struct amp_router *r, const char *text, bool *to_agents, struct amp_error *err)
{
    struct amp_span predicate, port;
    struct rule *rule;
    if (amp_route_split(amp_span_str(text), &predicate, &port, err) < 0 ||
        amp_rules_add(r->rules, predicate, &rule, err) < 0)
        return -1;
    AMP_FREE char *spec = amp_span_dup(port);
    if (!spec)
        return amp_fail_memory(err);
    if (amp_outlets_open(r->outlets, spec, AMP_OUTLET_FOR_ROUTE, &rule->port, err) < 0)
        return -1;
    *to_agents = *to_agents || amp_outlet_info(r->outlets, rule->port)->action == AMP_OUTLET_AGENTS;
    return amp_outlet_usable(r->outlets, rule->port, err);
}

static void rules_apply(struct amp_router *r)
{
    bool body = false;
    r->parcels.wants_text = false;
    for (uint32_t i = 0; i < amp_rules_n(r->rules); i++) {
        const struct rule *rule = amp_rules_at(r->rules, i);
        r->parcels.wants_text = r->parcels.wants_text || rule->filter >= 0;
        body = body || amp_predicate_asks_body(rule->predicate);
    }
    r->intake.check.heads = !r->run.store && !r->to_agents && !body;
    amp_direct_set(r);
}

/* ---- open and close ---- */

static int parts_make(struct amp_router *r, struct amp_error *err)
{
    const struct amp_router_options *o = r->opt;
    struct amp_route_run *run = &r->run;
    struct amp_outlet_events events = {.ctx = r,
                                       .done = amp_dispatch_done,
                                       .leave = amp_dispatch_leave,
                                       .failed = amp_dispatch_failed};
    if (amp_outlets_new(run, &o->outlets, r->lanes, &events, &r->outlets, err) < 0 ||
        amp_rules_new(o->all, o->predicate_limit_ms, o->stop, &r->rules, err) < 0 ||
        amp_keeper_new(run, &r->parcels, r->outlets, &r->keeper, err) < 0 ||
        amp_addressing_new(run, r->outlets, r->rules, &r->addressing, err) < 0)
        return -1;
    struct amp_source_env env = o->source;
    env.run = run;
    env.parcels = &r->parcels;
    env.keeper = r->keeper;
    env.outlets = r->outlets;
    env.rules = r->rules;
    env.addressing = r->addressing;
    env.lanes = r->lanes;
    env.pass = amp_decide_pass;
    env.pass_ctx = r;
    return amp_admission_new(&env, &r->admission, err);
}

static int routes_open(struct amp_router *r, struct amp_error *err)
{
    const struct amp_router_options *o = r->opt;
    r->to_agents = o->agents.n > 0;
    if (amp_rules_begin(r->rules, err) < 0)
        return -1;
    for (int i = 0; i < o->routes.n; i++)
        if (route_add(r, o->routes.v[i], &r->to_agents, err) < 0)
            return -1;
    if ((r->to_agents && amp_addressing_start(r->addressing, o->agents.v, o->agents.n, err) < 0) ||
        amp_tee_start(r, err) < 0)
        return -1;
    return amp_rules_start(r->rules, err);
}

int amp_router_open(struct amp_router_options *o, struct amp_router **out, struct amp_error *err)
{
    struct amp_router *r = calloc(1, sizeof(*r));
    if (!(*out = r))
        return amp_fail_memory(err);
    r->opt = o;
    r->lanes = &o->lanes;
    r->in.fd = -1;
    r->run = (struct amp_route_run){
        .voice = o->voice, .stop = o->stop, .name = o->name, .dry = o->dry, .verbose = o->verbose};
    bool keeps = o->state && (!o->dry || access(o->state, F_OK) == 0);
    if (parts_make(r, err) < 0 ||
        (keeps && amp_keeper_open(r->keeper, o->state,
                                  (struct amp_store_options){.lock_timeout_ms = o->lock_timeout_ms,
                                                             .facts = o->facts,
                                                             .keep = o->keep,
                                                             .actor = "amp-route"},
                                  err) < 0) ||
        amp_outlets_output(r->outlets, o->out_path, err) < 0 || routes_open(r, err) < 0 ||
        amp_intake_init(&r->intake, o->dry ? NULL : r->run.store, "amp-route", err) < 0 ||
        (!o->dry &&
         amp_intake_resume(&r->intake, o->name, !o->signed_only && amp_input_is_trusted(o->in_path),
                           err) < 0))
        return -1;
    r->intake.say = o->say;
    r->intake.lines.max_line = o->max_line;
    if (!(r->run.reader = amp_reader_new(NULL, err)) ||
        (o->producer_rate > 0 && !o->dry &&
         amp_producers_new(o->producer_rate,
                           o->producer_burst > 0 ? o->producer_burst : o->producer_rate,
                           &r->producers, err) < 0) ||
        (!o->dry && amp_admission_open(r->admission, err) < 0) ||
        amp_metrics_open(&o->metrics, &r->run.metrics, err) < 0)
        return -1;
    rules_apply(r);
    return amp_input_open(o->in_path, o->hold, &r->in, err);
}

void amp_router_say(struct amp_router *r)
{
    const struct amp_route_voice *voice = r->run.voice;
    struct amp_error err;
    if (!r->admission)
        return; /* out of memory at the start: nothing to report */
    if (r->run.metrics) {
        amp_outlets_measure(r->outlets);
        amp_admission_measure(r->admission);
        if (amp_metrics_close(r->run.metrics, &err) < 0)
            voice->status(voice->complain(&err));
        r->run.metrics = NULL;
    }
    if (!r->run.verbose)
        return;
    voice->note("%" PRIu64 " lines in, %" PRIu64 " rejected, %" PRIu64 " deliveries, %" PRIu64
                " acknowledgements without a route, %" PRIu64 " records for no agent",
                r->intake.accepted + r->intake.rejected, r->intake.rejected, r->run.delivered,
                r->unmatched_acks, r->records);
    amp_outlets_say(r->outlets);
    amp_admission_say(r->admission);
}

void amp_router_close(struct amp_router *r)
{
    if (!r)
        return;
    if (r->in.fd > 0)
        amp_input_close(&r->in);
    if (r->intake.reader)
        amp_intake_release(&r->intake);
    amp_reader_free(r->run.reader);
    amp_tee_end(r);
    amp_outlets_free(r->outlets);
    amp_parcels_release(&r->parcels);
    amp_rules_free(r->rules);
    amp_addressing_free(r->addressing);
    amp_admission_free(r->admission);
    amp_producers_free(r->producers);
    amp_keeper_free(r->keeper);
    free(r);
}

/* ---- after a hang-up ---- */

static bool is_used(void *router, uint32_t outlet)
{
    const struct amp_router *r = router;
    for (uint32_t i = 0; i < amp_rules_n(r->rules); i++)
        if (amp_rules_at(r->rules, i)->port == outlet)
            return true;
    return amp_addressing_uses(r->addressing, outlet) || amp_tee_uses(r, outlet);
}

static int routes_reload(struct amp_router *r, char *const *texts, uint32_t n,
                         struct amp_error *err)
{
    bool to_agents = false;
    if (amp_rules_begin(r->rules, err) < 0)
        return -1;
    for (uint32_t i = 0; i < n; i++)
        if (route_add(r, texts[i], &to_agents, err) < 0)
            return -1;
    if (to_agents && !r->to_agents)
        return amp_fail(err, AMP_CONFIG, bad_port, "a route to agents needs one at the start");
    return amp_rules_start(r->rules, err);
}

int amp_router_reload(struct amp_router *r, char *const *texts, uint32_t n,
                      const struct amp_lane_rules *lanes, struct amp_error *err)
{
    struct amp_lane_rules former = *r->lanes;
    uint32_t n_outlets = amp_outlets_n(r->outlets);
    *r->lanes = *lanes;
    int rc = routes_reload(r, texts, n, err);
    if (rc < 0) {
        amp_outlets_drop(r->outlets, n_outlets);
        *r->lanes = former;
    } else {
        rules_apply(r);
    }
    amp_outlets_retire(r->outlets, is_used, r);
    return rc;
}
