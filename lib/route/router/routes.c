/* Routes as they are given: rules and the outlets that they lead to. */
#include "route/router/router.h"

#include <stdlib.h>
#include <string.h>

#include <amp/base/num.h>

#include "message/inbox/inbox.h"

/* How many messages may wait for it: as the options say, the last that names it counts; 0 any. */
static int inbound_of(const struct router *r, const char *spec, bool agent, uint32_t *inbound,
                      struct amp_error *err)
{
    *inbound = agent || strncmp(spec, "inbox:", 6) == 0 ? INBOUND_AGENT : 0;
    bool named = false;
    for (int i = 0; i < r->n_inbounds; i++) {
        const char *text = r->inbounds[i], *eq = strrchr(text, '=');
        int64_t n;
        if (amp_num_parse(amp_span_str(eq ? eq + 1 : text), 0, UINT32_MAX, &n, NULL) < 0)
            return amp_fail(err, AMP_USAGE, "bad_inbound", "--inbound takes [PORT=]N: %s", text);
        bool it = eq && strlen(spec) == (size_t)(eq - text) &&
                  strncmp(spec, text, (size_t)(eq - text)) == 0;
        if (it || (!eq && !named))
            *inbound = (uint32_t)n;
        named = named || it;
    }
    return 0;
}

int amp_router_port(struct router *r, const char *spec, bool agent, uint32_t *index,
                    struct amp_error *err)
{
    uint32_t inbound = 0;
    if (inbound_of(r, spec, agent, &inbound, err) < 0)
        return -1;
    if (strcmp(spec, "stdout") == 0) {
        *index = 0;
        return 0;
    }
    uint32_t at = r->n_ports;
    for (uint32_t i = 1; i < r->n_ports; i++) {
        if (!r->outlets[i]->leaving && strcmp(r->outlets[i]->spec, spec) == 0) {
            *index = i;
            return 0;
        }
        if (r->outlets[i]->closed && at == r->n_ports)
            at = i; /* it makes room */
    }
    if (at == PORTS_MAX)
        return amp_fail(err, AMP_USAGE, "too_many", "more than %d ports", PORTS_MAX - 1);
    struct amp_outlet *old = at < r->n_ports ? r->outlets[at] : NULL;
    if (amp_outlet_add(r, at, spec, inbound, &r->port_options, err) < 0)
        return -1;
    amp_outlet_release(r, old);
    r->n_ports += !old;
    *index = at;
    return 0;
}

int amp_router_usable(const struct router *r, uint32_t port, struct amp_error *err)
{
    const struct amp_outlet *t = r->outlets[port];
    struct amp_error why;
    if (!r->store && !r->dry && (t->action == AMP_OUTLET_DEAD || t->action == AMP_OUTLET_INBOX))
        return amp_fail(err, AMP_USAGE, "no_state", "the port %s needs --state", t->spec);
    if (t->action == AMP_OUTLET_INBOX && amp_inbox_agent_check(amp_span_str(t->arg), &why) < 0)
        return amp_fail(err, AMP_USAGE, why.code, "the port %.200s: %s", t->spec, why.what);
    return 0;
}

int amp_router_route(struct router *r, struct amp_rules *rules, const char *text,
                     struct amp_error *err)
{
    struct amp_span predicate, port;
    struct rule *rule;
    if (amp_route_split(amp_span_str(text), &predicate, &port, err) < 0 ||
        amp_rules_add(rules, predicate, &rule, err) < 0)
        return -1;
    AMP_FREE char *spec = amp_span_dup(port);
    if (!spec)
        return amp_fail_memory(err);
    if (amp_router_port(r, spec, false, &rule->port, err) < 0)
        return -1;
    return amp_router_usable(r, rule->port, err);
}

void amp_router_ruled(struct router *r)
{
    r->intake.check.heads = !r->store && !r->addressing.book && !amp_rules_ask_body(r->rules);
    r->wants_text = amp_rules_ask_jq(r->rules);
    amp_direct_set(r);
}
