/*
 * The port "agents": a message goes to whoever it is addressed to, one delivery a recipient. Whom
 * it is for is decided while it is in view, and committed with it: what a killed router had not
 * delivered goes to those who were meant then, whoever has come or gone since. In the outbox stands
 * the message, its id marked by a LF at the end, and behind it an entry for each recipient: a LF
 * and the name. A recipient's entry is closed when its port has the message, the message's own when
 * all are.
 */
#include "route/router/router.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "message/inbox/inbox.h"
#include "route/address/modality.h"

static bool is_agents(const struct router *r, uint32_t rule)
{
    return r->outlets[amp_rules_at(r->rules, rule)->port]->action == AMP_OUTLET_AGENTS;
}

static int add_agent(struct router *r, const char *text, struct amp_error *err)
{
    const char *eq = strchr(text, '=');
    if (!eq || eq == text || !eq[1])
        return amp_fail(err, AMP_USAGE, "bad_agent", "--agent takes NAME=PORT, not \"%.200s\"",
                        text);
    struct amp_span name = {text, (size_t)(eq - text)};
    if (amp_addresses_has(r->addressing.book, name))
        return amp_fail(err, AMP_USAGE, "bad_agent", "%.*s has two ports", (int)name.n, name.p);
    struct agent_port *a = &r->addressing.ports[r->addressing.n];
    if (amp_addresses_add(r->addressing.book, name, err) < 0 ||
        amp_router_port(r, eq + 1, true, &a->port, err) < 0)
        return -1;
    if (!(a->name = amp_span_dup(name)))
        return amp_fail_memory(err);
    r->addressing.n++;
    r->outlets[a->port]->unacked.credits = a->port > 0 ? (uint32_t)r->credits : 0;
    if (r->outlets[a->port]->action == AMP_OUTLET_AGENTS)
        return amp_fail(err, AMP_USAGE, "bad_agent", "%s is no port for one agent", eq + 1);
    return amp_router_usable(r, a->port, err);
}

int amp_recipients_start(struct router *r, const char *const *agents, int n, struct amp_error *err)
{
    bool any = n > 0;
    for (uint32_t i = 0; i < amp_rules_n(r->rules); i++)
        any = any || is_agents(r, i);
    if (!any)
        return 0;
    if (!r->store && !r->dry && n == 0)
        return amp_fail(err, AMP_USAGE, "no_state",
                        "the port agents leads nowhere: it needs --state or --agent");
    if (!(r->addressing.book = amp_addresses_new(r->store, err)))
        return -1;
    r->addressing.ports = calloc((size_t)n + 1, sizeof(*r->addressing.ports));
    if (!r->addressing.ports)
        return amp_fail_memory(err);
    for (int i = 0; i < n; i++)
        if (add_agent(r, agents[i], err) < 0)
            return -1;
    return 0;
}

void amp_recipients_stop(struct router *r)
{
    amp_addresses_free(r->addressing.book);
    for (uint32_t i = 0; i < r->addressing.n; i++)
        free(r->addressing.ports[i].name);
    free(r->addressing.ports);
    r->addressing.book = NULL;
    r->addressing.ports = NULL;
    r->addressing.n = 0;
}

void amp_recipients_turn(struct router *r)
{
    if (r->addressing.book)
        amp_addresses_turn(r->addressing.book);
}

/* ---- recipients ---- */

int amp_recipients_add(struct router *r, struct job *j, struct amp_span name,
                       struct amp_store_entry_id entry, struct amp_error *err)
{
    struct job *kid = amp_route_job_new(r, (struct amp_span){"", 0}, NULL);
    if (!kid || !(kid->address.name = amp_span_dup(name)))
        return amp_fail_memory(err);
    kid->entry = entry;
    kid->address.of = j;
    if (j->address.last)
        j->address.last->next = kid;
    else
        j->address.kids = kid;
    j->address.last = kid;
    j->address.n++;
    return 0;
}

/* What a recipient gets: the message, out of what only told the way. */
static int fill(const struct router *r, struct job *j, const struct amp_view *v,
                struct amp_error *err)
{
    struct amp_span line = v->protocol == AMP_PROTO_SW4RM ? v->text : v->line;
    for (struct job *kid = j->address.kids; kid; kid = kid->next) {
        if (amp_route_job_fill(r, kid, line, v, err) < 0)
            return -1;
        kid->lane = j->lane;
        /* Where the message does not say how urgent it is, the recipient's class does. */
        if (v->priority == 0 &&
            amp_addresses_lane(r->addressing.book, amp_span_str(kid->address.name), &kid->lane,
                               err) < 0)
            return -1;
        kid->order = j->order;
        kid->expires_ms = j->expires_ms;
        kid->wants_ack = j->wants_ack;
        kid->came_ms = j->came_ms;
    }
    return 0;
}

static int mark(struct job *j, struct amp_error *err)
{
    size_t n = strlen(j->id);
    j->address.mark = malloc(n + 2);
    if (!j->address.mark)
        return amp_fail_memory(err);
    memcpy(j->address.mark, j->id, n);
    memcpy(j->address.mark + n, "\n", 2);
    return 0;
}

/* Whether a route to agents holds, or may as far as is known. */
static bool may_hold(const struct router *r, const struct job *j)
{
    for (uint32_t i = 0; i < amp_rules_n(r->rules); i++)
        if (is_agents(r, i) && (amp_rules_hold(j, i) || (j->stage != JOB_DECIDED &&
                                                         amp_rules_at(r->rules, i)->filter >= 0)))
            return true;
    return false;
}

/* A recipient that has said what it takes gets nothing else. */
static int takes(struct router *r, struct job *j, const struct amp_view *v, struct amp_error *err)
{
    for (struct job *kid = j->address.kids; kid && r->store && v->content_type.n > 0;
         kid = kid->next) {
        struct amp_span name = amp_span_str(kid->address.name);
        int rc = amp_modality_takes(r->store, name, v->content_type, err);
        if (rc < 0)
            return -1;
        if (rc == 0)
            amp_route_job_refuse(kid, "unsupported_message_type",
                                 "its recipient takes no messages of its content_type",
                                 kid->address.name, false);
    }
    return STEP_GO;
}

int amp_recipients_look(struct router *r, struct job *j, const struct amp_view *v,
                        struct amp_error *err)
{
    struct amp_recipients to;
    struct amp_error why;
    if (!r->addressing.book || (!j->address.mark && !may_hold(r, j)))
        return STEP_GO;
    why = (struct amp_error){0};
    if (j->address.mark) /* a former run expanded it */
        return fill(r, j, v, err);
    if (amp_addresses_find(r->addressing.book, v, &to, &why) < 0) {
        if (why.status != AMP_NO) {
            *err = why;
            return -1;
        }
        to = (struct amp_recipients){.n_lost = 1};
    }
    for (uint32_t i = 0; i < to.n; i++)
        if (amp_recipients_add(r, j, to.to[i], (struct amp_store_entry_id){0}, err) < 0)
            return -1;
    if (to.n > 1 || to.expanded)
        if (mark(j, err) < 0)
            return -1;
    if (to.n_lost > 0) {
        if (!why.status)
            amp_fail(&why, AMP_NO, v->protocol == AMP_PROTO_RTP ? "invalid_targets" : "no_route",
                     "%.*s is neither an agent nor a role (%u of its recipients are not)",
                     (int)(to.lost.n < 160 ? to.lost.n : 160), to.lost.p, to.n_lost);
        if (!(j->address.nobody = malloc(sizeof(*j->address.nobody))))
            return amp_fail_memory(err);
        j->address.nobody->why = why;
        j->address.nobody->seed_code = amp_address_seed_code(v, why.code);
    }
    if (fill(r, j, v, err) < 0)
        return -1;
    return takes(r, j, v, err);
}

/* ---- delivering ---- */

static int port_of(struct router *r, const char *agent, uint32_t *port, struct amp_error *err)
{
    for (uint32_t i = 0; i < r->addressing.n; i++)
        if (strcmp(r->addressing.ports[i].name, agent) == 0) {
            *port = r->addressing.ports[i].port;
            return 0;
        }
    return amp_fail(err, AMP_NO, "agent_unavailable", "no port leads to %.200s (--agent)", agent);
}

bool amp_recipients_holds(struct router *r, const struct job *j)
{
    uint32_t port;
    for (const struct job *kid = j->address.kids; kid; kid = kid->next)
        if (port_of(r, kid->address.name, &port, NULL) == 0 && amp_outlet_holds(r, port))
            return true;
    return false;
}

/* Who is registered and was given no port has an inbox. */
static void deliver_inbox(struct router *r, struct job *kid, const struct amp_error *no_port)
{
    struct amp_span name = amp_span_str(kid->address.name);
    struct amp_error err = {0};
    char spec[AMP_INBOX_AGENT_MAX + 8];
    uint32_t port;
    bool has = false;
    if (r->store && name.n <= AMP_INBOX_AGENT_MAX &&
        amp_addresses_registered(r->addressing.book, name, &has, &err) < 0) {
        amp_route_break(r, &err);
        return;
    }
    snprintf(spec, sizeof(spec), "inbox:%.*s", AMP_INBOX_AGENT_MAX, name.p);
    if (has && amp_router_port(r, spec, true, &port, &err) < 0)
        amp_keeper_refuse(r, kid, "agent_unavailable", err.what, spec, true);
    else if (has)
        amp_enqueue(r, kid, name, port);
    else
        amp_keeper_refuse(r, kid, no_port->code, no_port->what, kid->address.name,
                          amp_address_is_temporary(no_port->code));
}

static void deliver(struct router *r, struct job *kid)
{
    struct rule rule = {.text = kid->address.name};
    struct amp_error err = {0};
    kid->waiting++;
    if (kid->refused)
        amp_keeper_refuse(r, kid, kid->refused, kid->why, kid->refused_by, kid->again);
    else if (port_of(r, kid->address.name, &rule.port, &err) < 0)
        deliver_inbox(r, kid, &err);
    else
        amp_route_job_offer(r, kid, &rule);
    amp_route_job_leave(r, kid);
}

void amp_recipients_offer(struct router *r, struct job *j, const struct rule *rule)
{
    struct job *kid;
    (void)rule;
    if (j->address.nobody && (j->kind == AMP_KIND_ACK || j->kind == AMP_KIND_NACK))
        r->unmatched_acks++;
    else if (j->address.nobody)
        amp_keeper_unaddressed(r, j);
    while ((kid = j->address.kids)) {
        j->address.kids = kid->next;
        kid->next = NULL;
        j->waiting++;
        deliver(r, kid);
    }
    j->address.last = NULL;
}

void amp_recipients_drop(struct router *r, struct job *j)
{
    struct job *kid;
    while ((kid = j->address.kids)) {
        j->address.kids = kid->next;
        amp_keeper_settled(r, kid);
        amp_route_job_free(r, kid);
    }
}
