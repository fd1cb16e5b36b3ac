/*
 * The short way of a message of which nothing has to be kept: no state, native predicates, and
 * files that take it at once. Only what the rules and the predicates ask for is looked at, and the
 * line goes from the input into the port's queue, as line 0 without a job; a job is made only if
 * writing fails, for the answer. Every other line takes the long way.
 */
#include "route/router/router.h"

#include <string.h>

#include <amp/base/clock.h>
#include <amp/json/tape.h>

#include "message/ledger/ledger.h"

#define ENOUGH ((size_t)64 << 10) /* for a write */

static bool takes_lines_at_once(const struct router *r, uint32_t port)
{
    const struct amp_outlet *t = r->outlets[port];
    return t->port && amp_port_has(t->port, AMP_PORT_PROMPT) && !t->inbound;
}

void amp_direct_set(struct router *r)
{
    struct direct *d = &r->direct;
    bool plain = true;
    d->open = !r->store && !r->dry && !r->all && !r->eager && !r->metrics && r->n_tees == 0;
    for (uint32_t i = 0; i < amp_rules_n(r->rules) && d->open; i++) {
        d->open = amp_rules_at(r->rules, i)->filter < 0 &&
                  takes_lines_at_once(r, amp_rules_at(r->rules, i)->port);
        plain = plain && d->open && amp_predicate_is_plain(amp_rules_at(r->rules, i)->predicate);
    }
    d->check = r->intake.check;
    d->check.brief = true;
    d->check.bare = plain;
}

/* An id may not hold a NUL: the long way says where it is. */
static bool has_nul(const struct amp_tape *tape)
{
    unsigned flags = 0;
    for (uint32_t i = 0; i < tape->n; i++)
        flags |= tape->tok[i].flags;
    return flags & AMP_TOK_NUL;
}

static const struct rule *find_rule(const struct router *r, const struct amp_view *v)
{
    if ((v->expires_ms > 0 && amp_message_expired(v, amp_now_ms())) ||
        amp_lane_of(&r->lane_rules, v) == AMP_LANE_PRIVILEGED)
        return NULL;
    for (uint32_t i = 0; i < amp_rules_n(r->rules); i++)
        if (amp_predicate_match(amp_rules_at(r->rules, i)->predicate, v))
            return amp_rules_at(r->rules, i);
    return NULL;
}

static bool has_room(struct router *r, struct amp_outlet *t, uint32_t port, size_t n)
{
    if (t->n == 0 && !amp_port_room(t->port, 0))
        amp_outlet_step(r, port);
    return t->n == 0 && amp_port_room(t->port, 0) &&
           amp_port_pending(t->port) + n + 1 <= r->port_options.max_pending;
}

bool amp_direct_take(struct router *r, struct amp_span line)
{
    struct amp_view v;
    struct amp_error err;
    const struct direct *d = &r->direct;
    if (!d->open || r->first ||
        amp_reader_line(r->intake.reader, line, &d->check, &v, NULL, NULL, &err) != 1 ||
        v.text.p != line.p || has_nul(v.tape))
        return false;
    const struct rule *rule = find_rule(r, &v);
    if (!rule)
        return false;
    struct amp_outlet *t = r->outlets[rule->port];
    if (!has_room(r, t, rule->port, line.n) ||
        amp_port_offer_since(t->port, (struct amp_span){"", 0}, line, 0, r->now_ms, NULL) < 0)
        return false;
    t->given++;
    r->intake.accepted++;
    if (amp_port_pending(t->port) >= ENOUGH)
        amp_outlet_step(r, rule->port); /* while it is in the cache */
    return true;
}

void amp_direct_done(struct router *r, const struct amp_error *why)
{
    if (!why) {
        r->delivered++;
        return;
    }
    if (strcmp(why->code, "closed_pipe") == 0) {
        amp_route_break(r, why);
        return;
    }
    struct job *j =
        r->stepping ? amp_route_job_new(r, amp_port_failed(r->stepping->port), NULL) : NULL;
    if (!j) {
        amp_route_break(r, why);
        return;
    }
    amp_keeper_refuse(r, j, why->code, why->what, r->stepping->spec, why->status != AMP_NO);
    r->voice->status(why->status);
    amp_route_job_free(r, j);
}
