/*
 * A job for each recipient of a message. In the outbox is the message, in the role of a group, and
 * behind it an entry for each recipient under the recipient's name. A recipient's entry is closed
 * when its port has the message, the message's own when all are.
 */
#include "route/address/addressing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "message/inbox/inbox.h"
#include "protocol/terms.h"
#include "route/address/address.h"

struct amp_addressing {
    struct amp_route_run *run;
    struct amp_outlets *outlets;
    const struct amp_rules *rules;
    struct amp_addresses *book; /* NULL: no message goes to agents by their names */
    struct agent_port {
        char *name;
        uint32_t outlet;
    } * agents;
    uint32_t n;
};

int amp_addressing_new(struct amp_route_run *run, struct amp_outlets *outlets,
                       const struct amp_rules *rules, struct amp_addressing **out,
                       struct amp_error *err)
{
    struct amp_addressing *a = calloc(1, sizeof(*a));
    if (!a)
        return amp_fail_memory(err);
    a->run = run;
    a->outlets = outlets;
    a->rules = rules;
    *out = a;
    return 0;
}

void amp_addressing_free(struct amp_addressing *a)
{
    if (!a)
        return;
    amp_addresses_free(a->book);
    for (uint32_t i = 0; i < a->n; i++)
        free(a->agents[i].name);
    free(a->agents);
    free(a);
}

static int agent_add(struct amp_addressing *a, const char *text, struct amp_error *err)
{
    const char *eq = strchr(text, '=');
    if (!eq || eq == text || !eq[1])
        return amp_fail(err, AMP_USAGE, "bad_agent", "--agent takes NAME=PORT, not \"%.200s\"",
                        text);
    struct amp_span name = {text, (size_t)(eq - text)};
    if (amp_addresses_has(a->book, name))
        return amp_fail(err, AMP_USAGE, "bad_agent", "%.*s has two ports", (int)name.n, name.p);
    struct agent_port *p = &a->agents[a->n];
    if (amp_addresses_add(a->book, name, err) < 0 ||
        amp_outlets_open(a->outlets, eq + 1, true, &p->outlet, err) < 0)
        return -1;
    if (!(p->name = amp_span_dup(name)))
        return amp_fail_memory(err);
    a->n++;
    amp_outlet_limit_credits(a->outlets, p->outlet);
    if (amp_outlet_info(a->outlets, p->outlet)->action == AMP_OUTLET_AGENTS)
        return amp_fail(err, AMP_USAGE, "bad_agent", "%s cannot be the port of an agent", eq + 1);
    return amp_outlet_usable(a->outlets, p->outlet, err);
}

int amp_addressing_start(struct amp_addressing *a, const char *const *agents, int n,
                         struct amp_error *err)
{
    if (!a->run->store && !a->run->dry && n == 0)
        return amp_fail(err, AMP_USAGE, "no_state", "the port agents needs --state or --agent");
    if (!(a->book = amp_addresses_new(a->run->store, err)))
        return -1;
    if (!(a->agents = calloc((size_t)n + 1, sizeof(*a->agents))))
        return amp_fail_memory(err);
    for (int i = 0; i < n; i++)
        if (agent_add(a, agents[i], err) < 0)
            return -1;
    return 0;
}

bool amp_addressing_started(const struct amp_addressing *a)
{
    return a->book != NULL;
}

void amp_addressing_turn(struct amp_addressing *a)
{
    if (a->book)
        amp_addresses_turn(a->book);
}

/* ---- whom a message is for ---- */

/* What a recipient gets: the message, without the envelope that led it here. */
static int recipients_fill(const struct amp_addressing *a, struct job *j, const struct amp_view *v,
                           struct amp_error *err)
{
    struct amp_span line = amp_terms_of(v->protocol)->delivers_content ? v->text : v->line;
    for (struct job *kid = j->address.kids; kid; kid = kid->next) {
        if (amp_route_job_fill(kid, line, v, err) < 0)
            return -1;
        kid->lane = j->lane;
        /* Where the message does not say how urgent it is, the recipient's class does. */
        if (v->priority == 0 &&
            amp_addresses_lane(a->book, amp_span_str(kid->address.name), &kid->lane, err) < 0)
            return -1;
        kid->order = j->order;
        kid->expires_ms = j->expires_ms;
        kid->wants_ack = j->wants_ack;
        kid->came_ms = j->came_ms;
    }
    return 0;
}

/* Whether a route to agents holds, or may as far as is known. */
static bool may_hold(const struct amp_addressing *a, const struct job *j)
{
    for (uint32_t i = 0; i < amp_rules_n(a->rules); i++) {
        const struct rule *rule = amp_rules_at(a->rules, i);
        if (amp_outlet_info(a->outlets, rule->port)->action == AMP_OUTLET_AGENTS &&
            (amp_rules_hold(j, i) || (j->stage != JOB_DECIDED && rule->filter >= 0)))
            return true;
    }
    return false;
}

/* A recipient whose registration lists content types gets nothing else. */
static int types_check(const struct amp_addressing *a, struct job *j, const struct amp_view *v,
                       struct amp_error *err)
{
    for (struct job *kid = j->address.kids; kid && a->run->store && v->content_type.n > 0;
         kid = kid->next) {
        bool takes;
        if (amp_addresses_takes(a->book, amp_span_str(kid->address.name), v->content_type, &takes,
                                err) < 0)
            return -1;
        if (!takes)
            amp_route_job_refuse(kid, "unsupported_message_type",
                                 "its recipient does not accept its content_type",
                                 kid->address.name, false);
    }
    return 0;
}

int amp_addressing_look(struct amp_addressing *a, struct job *j, const struct amp_view *v,
                        struct amp_error *err)
{
    struct amp_recipients to;
    struct amp_error why = {0};
    if (!a->book || (!j->address.is_group && !may_hold(a, j)))
        return 0;
    if (j->address.is_group) /* a former run expanded it */
        return recipients_fill(a, j, v, err);
    if (amp_addresses_find(a->book, v, &to, &why) < 0) {
        if (why.status != AMP_NO) {
            *err = why;
            return -1;
        }
        to = (struct amp_recipients){.n_lost = 1};
    }
    for (uint32_t i = 0; i < to.n; i++)
        if (amp_route_job_add_recipient(j, to.to[i], (struct amp_store_entry_id){0}, err) < 0)
            return -1;
    if (to.n > 1 || to.expanded)
        j->address.is_group = true;
    if (to.n_lost > 0) {
        const char *lost = amp_terms_of(v->protocol)->lost_code;
        if (!why.status)
            amp_fail(&why, AMP_NO, lost ? lost : "no_route",
                     "%.*s is neither an agent nor a role (%u of its recipients are unknown)",
                     (int)(to.lost.n < 160 ? to.lost.n : 160), to.lost.p, to.n_lost);
        if (!(j->address.nobody = malloc(sizeof(*j->address.nobody))))
            return amp_fail_memory(err);
        j->address.nobody->why = why;
        j->address.nobody->seed_code = amp_address_seed_code(v, why.code);
    }
    return recipients_fill(a, j, v, err) < 0 ? -1 : types_check(a, j, v, err);
}

/* ---- where a recipient is ---- */

static int given_find(const struct amp_addressing *a, const char *agent, uint32_t *outlet,
                      struct amp_error *err)
{
    for (uint32_t i = 0; i < a->n; i++)
        if (strcmp(a->agents[i].name, agent) == 0) {
            *outlet = a->agents[i].outlet;
            return 0;
        }
    return amp_fail(err, AMP_NO, "agent_unavailable", "no port for %.200s (--agent)", agent);
}

bool amp_addressing_holds(const struct amp_addressing *a, const struct job *j)
{
    uint32_t outlet;
    for (const struct job *kid = j->address.kids; kid; kid = kid->next)
        if (given_find(a, kid->address.name, &outlet, NULL) == 0 &&
            amp_outlet_holds(a->outlets, outlet))
            return true;
    return false;
}

int amp_addressing_outlet(struct amp_addressing *a, const struct job *recipient, uint32_t *outlet,
                          bool *retryable, struct amp_error *err)
{
    struct amp_span name = amp_span_str(recipient->address.name);
    char spec[AMP_INBOX_AGENT_MAX + 8];
    bool has = false;
    if (given_find(a, name.p, outlet, err) == 0)
        return 0;
    *retryable = amp_address_is_temporary(err->code);
    if (a->run->store && name.n <= AMP_INBOX_AGENT_MAX &&
        amp_addresses_registered(a->book, name, &has, err) < 0)
        return -1;
    if (!has)
        return -1;
    snprintf(spec, sizeof(spec), "inbox:%.*s", AMP_INBOX_AGENT_MAX, name.p);
    struct amp_error why;
    if (amp_outlets_open(a->outlets, spec, true, outlet, &why) == 0)
        return 0;
    *retryable = true;
    return amp_fail(err, AMP_NO, "agent_unavailable", "%s", why.what);
}

bool amp_addressing_uses(const struct amp_addressing *a, uint32_t outlet)
{
    for (uint32_t i = 0; i < a->n; i++)
        if (a->agents[i].outlet == outlet)
            return true;
    return false;
}
