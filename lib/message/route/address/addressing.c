/*
 * A parcel for each recipient of a message. The outbox has the message, in the role of a group, and
 * then an entry for each recipient under the recipient's name. A recipient's entry is closed when
 * its port has the message, the entry of the message when all have it.
 */
#include "message/route/address/addressing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/codes.h"
#include "message/delivery/inbox/inbox.h"
#include "message/identity/signature.h"
#include "message/protocol/routing.h"
#include "message/protocol/spec.h"
#include "message/route/address/address.h"
#include "message/route/address/worktree.h"

struct amp_addressing {
    struct amp_route_run *run;
    struct amp_outlets *outlets;
    const struct amp_rules *rules;
    bool started; /* messages go to agents */
    struct amp_addresses book;
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
    amp_addresses_release(&a->book);
    free(a);
}

static int agent_add(struct amp_addressing *a, const char *text, struct amp_error *err)
{
    const char *eq = strchr(text, '=');
    if (!eq || eq == text || !eq[1])
        return amp_fail(err, AMP_USAGE, bad_agent, "--agent takes NAME=PORT, not \"%.200s\"", text);
    struct amp_span name = {text, (size_t)(eq - text)};
    if (amp_addresses_given(&a->book, name))
        return amp_fail(err, AMP_USAGE, bad_agent, "%.*s has two ports", (int)name.n, name.p);
    if (amp_span_is(name, "all"))
        return amp_fail(err, AMP_USAGE, bad_agent, "\"all\" is not an agent's name");
    struct amp_given *p = &a->book.given[a->book.n_given];
    if (amp_outlets_open(a->outlets, eq + 1, AMP_OUTLET_FOR_AGENT, &p->outlet, err) < 0)
        return -1;
    if (!(p->name = amp_span_dup(name)))
        return amp_fail_memory(err);
    a->book.n_given++;
    if (amp_outlet_own(a->outlets, p->outlet, name, err) < 0)
        return -1;
    if (amp_outlet_info(a->outlets, p->outlet)->action == AMP_OUTLET_AGENTS)
        return amp_fail(err, AMP_USAGE, bad_agent, "%s cannot be the port of an agent", eq + 1);
    return amp_outlet_usable(a->outlets, p->outlet, err);
}

int amp_addressing_start(struct amp_addressing *a, const char *const *agents, int n,
                         struct amp_error *err)
{
    if (!a->run->store && !a->run->dry && n == 0)
        return amp_fail(err, AMP_USAGE, no_state, "the port agents needs --state or --agent");
    a->started = true;
    a->book.store = a->run->store;
    if (!(a->book.given = calloc((size_t)n + 1, sizeof(*a->book.given))))
        return amp_fail_memory(err);
    for (int i = 0; i < n; i++)
        if (agent_add(a, agents[i], err) < 0)
            return -1;
    return 0;
}

void amp_addressing_turn(struct amp_addressing *a)
{
    amp_addresses_turn(&a->book);
}

/* ---- the recipients of a message ---- */

/* The line for the recipients: the message, without an envelope if its protocol delivers the
 * content. A signed message keeps its signature, in a line without `to` in mem. */
static int content_find(const struct amp_view *v, struct amp_buf *mem, struct amp_span *line,
                        struct amp_error *err)
{
    struct amp_signed s;
    *line = amp_routing_of(v->protocol)->delivers_content ? v->text : v->line;
    if (v->sig.key.n == 0 || line->p == v->line.p || !amp_signed_split(v->line, &s))
        return 0;
    s.to = (struct amp_span){0};
    amp_buf_init(mem, 2 * v->line.n + 1024);
    if (amp_signed_write(&s, mem, err) < 0)
        return -1;
    *line = amp_buf_span(mem);
    return 0;
}

/* Fills the recipients' parcels. */
static int recipients_fill(struct amp_addressing *a, struct parcel *j, const struct amp_view *v,
                           struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {0};
    struct amp_span line;
    if (content_find(v, &mem, &line, err) < 0)
        return -1;
    for (struct parcel *kid = j->address.kids; kid; kid = kid->next) {
        if (amp_parcel_fill(kid, line, v, err) < 0)
            return -1;
        kid->lane = j->lane;
        /* Without a priority, the recipient's communication class selects the lane. */
        if (v->priority == 0 &&
            amp_addresses_lane(&a->book, amp_span_str(kid->address.name), &kid->lane, err) < 0)
            return -1;
        kid->order = j->order;
        kid->expires_ms = j->expires_ms;
        kid->wants_ack = j->wants_ack;
        kid->came_ms = j->came_ms;
    }
    return 0;
}

/* Whether a route to agents holds, or may hold after its jq predicate is evaluated. */
static bool may_hold(const struct amp_addressing *a, const struct parcel *j)
{
    for (uint32_t i = 0; i < amp_rules_n(a->rules); i++) {
        const struct rule *rule = amp_rules_at(a->rules, i);
        if (amp_outlet_info(a->outlets, rule->port)->action == AMP_OUTLET_AGENTS &&
            (amp_rules_hold(j, i) || (j->stage != PARCEL_DECIDED && rule->filter >= 0)))
            return true;
    }
    return false;
}

/* Refuses the message for recipients that registered other content types. */
static int types_check(const struct amp_addressing *a, struct parcel *j, const struct amp_view *v,
                       struct amp_error *err)
{
    for (struct parcel *kid = j->address.kids; kid && a->run->store && v->content_type.n > 0;
         kid = kid->next) {
        bool takes;
        if (amp_addresses_takes(&a->book, amp_span_str(kid->address.name), v->content_type, &takes,
                                err) < 0)
            return -1;
        if (!takes)
            amp_parcel_refuse(kid, AMP_CODE(unsupported_message_type),
                              "its recipient does not accept its content_type", kid->address.name,
                              false);
    }
    return 0;
}

/* Reads which units the recipients take, if that matters. */
static int units_look(const struct amp_addressing *a, struct parcel *j, struct amp_error *err)
{
    bool matters = a->run->store && amp_outlets_units(a->outlets);
    for (struct parcel *kid = j->address.kids; kid && matters; kid = kid->next)
        if (amp_addresses_units(&a->book, amp_span_str(kid->address.name), &kid->takes, err) < 0)
            return -1;
    return 0;
}

/* Refuses work about a worktree for recipients that are not bound to one. */
static int worktrees_check(const struct amp_addressing *a, struct parcel *j,
                           const struct amp_view *v, struct amp_error *err)
{
    bool work = a->run->store && amp_worktree_is_work(v), bound;
    for (struct parcel *kid = j->address.kids; kid && work; kid = kid->next) {
        if (amp_worktree_has(a->run->store, amp_span_str(kid->address.name), &bound, err) < 0)
            return -1;
        if (!bound)
            amp_parcel_refuse(kid, AMP_NOT_BOUND,
                              "the work is about a worktree, and its recipient is not bound",
                              kid->address.name, true);
    }
    return 0;
}

/* Whether it is a record without an envelope, such as the index of a capability, which is for no
 * agent. */
static bool is_record(const struct amp_view *v)
{
    const struct amp_spec *spec = amp_spec_of(v->protocol);
    return v->n_to == 0 && v->from.n == 0 && spec && spec->detect_record &&
           spec->detect_record(v->tape);
}

int amp_addressing_look(struct amp_addressing *a, struct parcel *j, const struct amp_view *v,
                        struct amp_error *err)
{
    struct amp_recipients to;
    struct amp_error why = {0};
    if (!a->started || (!j->address.is_group && !may_hold(a, j)))
        return 0;
    if (j->address.is_group) /* an earlier run found the recipients */
        return recipients_fill(a, j, v, err) < 0 ? -1 : units_look(a, j, err);
    if (amp_addresses_find(&a->book, v, &to, &why) < 0) {
        if (why.status != AMP_NO) {
            *err = why;
            return -1;
        }
        if (is_record(v))
            return 0;
        to = (struct amp_recipients){.n_lost = 1};
    }
    for (uint32_t i = 0; i < to.n; i++)
        if (amp_parcel_add_recipient(j, to.to[i], (struct amp_store_entry_id){0}, err) < 0)
            return -1;
    if (to.n > 1 || to.expanded)
        j->address.is_group = true;
    if (to.n_lost > 0) {
        const char *lost = amp_routing_of(v->protocol)->lost_code;
        if (!why.status)
            amp_fail_text(&why, AMP_NO, lost ? lost : AMP_CODE(no_route),
                          "%.*s is neither an agent nor a role (%u of its recipients are unknown)",
                          (int)(to.lost.n < 160 ? to.lost.n : 160), to.lost.p, to.n_lost);
        if (!(j->address.no_recipient = malloc(sizeof(*j->address.no_recipient))))
            return amp_fail_memory(err);
        j->address.no_recipient->why = why;
        j->address.no_recipient->seed_code = amp_address_seed_code(v, why.code);
        j->address.no_recipient->retryable = amp_address_is_temporary(why.code);
    }
    return recipients_fill(a, j, v, err) < 0 || types_check(a, j, v, err) < 0 ||
                   units_look(a, j, err) < 0
               ? -1
               : worktrees_check(a, j, v, err);
}

/* ---- the outlets of recipients ---- */

bool amp_addressing_holds(const struct amp_addressing *a, const struct parcel *j)
{
    for (const struct parcel *kid = j->address.kids; kid; kid = kid->next) {
        const struct amp_given *given =
            amp_addresses_given(&a->book, amp_span_str(kid->address.name));
        if (given && amp_outlet_holds(a->outlets, given->outlet))
            return true;
    }
    return false;
}

int amp_addressing_outlet(struct amp_addressing *a, const struct parcel *recipient,
                          uint32_t *outlet, bool *retryable, struct amp_error *err)
{
    struct amp_span name = amp_span_str(recipient->address.name);
    const struct amp_given *given = amp_addresses_given(&a->book, name);
    char spec[AMP_INBOX_AGENT_MAX + 8];
    struct amp_error why;
    bool has = false;
    *retryable = true;
    if (given) {
        *outlet = given->outlet;
        return 0;
    }
    if (a->run->store && name.n <= AMP_INBOX_AGENT_MAX &&
        amp_addresses_registered(&a->book, name, &has, err) < 0)
        return -1;
    if (!has)
        return amp_fail(err, AMP_NO, agent_unavailable, "no port for %.200s (--agent)", name.p);
    snprintf(spec, sizeof(spec), "inbox:%.*s", AMP_INBOX_AGENT_MAX, name.p);
    if (amp_outlets_open(a->outlets, spec, AMP_OUTLET_FOR_AGENT, outlet, &why) == 0)
        return 0;
    return amp_fail(err, AMP_NO, agent_unavailable, "%s", why.what);
}

bool amp_addressing_uses(const struct amp_addressing *a, uint32_t outlet)
{
    for (uint32_t i = 0; i < a->book.n_given; i++)
        if (a->book.given[i].outlet == outlet)
            return true;
    return false;
}
