/*
 * The direct path of messages without durability: no state directory, native predicates, and files
 * that accept the line at once. The router reads only the fields that rules and predicates need and
 * puts the line into the port's queue without a parcel; one is created only if the write fails, for
 * the answer. Every other line takes the path in router.h.
 */
#include "message/route/router/private.h"

#include <amp/base/clock.h>
#include <amp/json/tape.h>

#include "message/delivery/admit/access.h"
#include "message/delivery/admit/tokens.h"
#include "message/delivery/ledger/ledger.h"

void amp_direct_set(struct amp_router *r)
{
    bool plain = true;
    bool open = !amp_access_is_set() && !r->opt->signed_only && !amp_tokens_are_needed() &&
                !r->run.store && !r->run.dry && !r->opt->all && !r->opt->eager && !r->run.metrics &&
                !r->producers && r->tees.n == 0;
    for (uint32_t i = 0; i < amp_rules_n(r->rules) && open; i++) {
        const struct rule *rule = amp_rules_at(r->rules, i);
        open = rule->filter < 0 && amp_outlet_info(r->outlets, rule->port)->prompt;
        plain = plain && amp_predicate_is_plain(rule->predicate);
    }
    r->direct.open = open;
    r->direct.check = r->intake.check;
    r->direct.check.brief = true;
    r->direct.check.bare = plain;
}

/* An id must not have a NUL: the other path reports where it is. */
static bool has_nul(const struct amp_tape *tape)
{
    unsigned flags = 0;
    for (uint32_t i = 0; i < tape->n; i++)
        flags |= tape->tok[i].flags;
    return flags & AMP_TOK_NUL;
}

static const struct rule *rule_find(const struct amp_router *r, const struct amp_view *v)
{
    if ((v->expires_ms > 0 && amp_message_expired(v, amp_now_ms())) ||
        amp_lane_of(r->lanes, v) == AMP_LANE_PRIVILEGED)
        return NULL;
    for (uint32_t i = 0; i < amp_rules_n(r->rules); i++) {
        const struct rule *rule = amp_rules_at(r->rules, i);
        if (amp_predicate_match(rule->predicate, v))
            return rule;
    }
    return NULL;
}

/* Tells whether the router has to assign a call_id; a bare view does not read it. */
static bool call_is_unnamed(const struct amp_view *v)
{
    return v->kind == AMP_KIND_TOOL_CALL &&
           amp_tape_pointer(v->tape, 0, AMP_SPAN("/payload/call_id")) == AMP_TOK_NONE;
}

bool amp_direct_take(struct amp_router *r, struct amp_span line)
{
    struct amp_view v;
    struct amp_error err;
    if (!r->direct.open || r->undecided.first ||
        amp_reader_line(r->intake.reader, line, &r->direct.check, &v, NULL, NULL, &err) != 1 ||
        v.text.p != v.message.p || v.kind == AMP_KIND_CHUNK || v.kind == AMP_KIND_BATCH ||
        call_is_unnamed(&v) || has_nul(v.tape))
        return false;
    const struct rule *rule = rule_find(r, &v);
    if (!rule || !amp_outlet_write(r->outlets, rule->port, line))
        return false;
    r->intake.accepted++;
    return true;
}
