/*
 * The short way of a message that nothing has to be kept of: no state, native routes, and a port
 * that takes it at once. It goes from the input into the port's queue, as line 0 of nobody; only
 * where it fails it becomes a job, for the answer.
 */
#include "router.h"

#include <string.h>

#include <amp/base/clock.h>

#include "message/ledger/ledger.h"

#define ENOUGH ((size_t)64 << 10) /* for a write */

bool direct_may(const struct router *r)
{
    return !r->store && !r->dry && !r->jq && !r->all && !r->eager && !r->metrics && !r->cursors &&
           !r->from && !r->addressing.book && !r->credits && r->n_tees == 0;
}

static const struct rule *first_rule(const struct router *r, const struct amp_view *v)
{
    for (uint32_t i = 0; i < r->n_rules; i++)
        if (amp_predicate_match(r->rules[i].predicate, v))
            return &r->rules[i];
    return NULL;
}

static bool has_room(struct router *r, uint32_t port, size_t n)
{
    struct target *t = r->targets[port];
    enum amp_port_kind kind = amp_port_kind(t->port);
    if ((kind != AMP_PORT_FILE && kind != AMP_PORT_STDOUT) || t->n > 0 || t->inbound)
        return false;
    if (!amp_port_room(t->port, 0))
        target_step(r, port);
    return t->n == 0 && amp_port_room(t->port, 0) &&
           amp_port_pending(t->port) + n + 1 <= r->port_options.max_pending;
}

const struct rule *direct_rule(const struct router *r, const struct amp_view *v)
{
    if ((v->expires_ms > 0 && amp_message_expired(v, amp_now_ms())) ||
        amp_lane_of(&r->lane_rules, v) == AMP_LANE_PRIVILEGED)
        return NULL;
    return first_rule(r, v);
}

bool direct_give(struct router *r, const struct rule *rule, struct amp_span line)
{
    if (!has_room(r, rule->port, line.n))
        return false;
    struct target *t = r->targets[rule->port];
    if (amp_port_offer_since(t->port, (struct amp_span){"", 0}, line, 0, r->now_ms, NULL) < 0)
        return false;
    t->given++;
    if (amp_port_pending(t->port) >= ENOUGH)
        target_step(r, rule->port); /* while it is in the cache, and others look at what follows */
    return true;
}

bool direct_take(struct router *r, const struct amp_view *v)
{
    if (!direct_may(r) || r->first)
        return false;
    const struct rule *rule = direct_rule(r, v);
    return rule && direct_give(r, rule, v->line);
}

void direct_done(struct router *r, const struct amp_error *why)
{
    if (!why) {
        r->delivered++;
        return;
    }
    if (strcmp(why->code, "closed_pipe") == 0) {
        router_break(r, why);
        return;
    }
    struct job *j = r->stepping ? job_new(r, amp_port_failed(r->stepping->port), NULL) : NULL;
    if (!j) {
        router_break(r, why);
        return;
    }
    keep_refuse(r, j, why->code, why->what, amp_port_spec(r->stepping->port),
                why->status != AMP_NO);
    amp_status_note(why->status);
    job_free(r, j);
}
