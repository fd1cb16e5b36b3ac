/*
 * Offers a message to its outlets: every rule that counts gets it, and every port reports its
 * outcome. A message for agents is delivered to each of its recipients.
 */
#include "message/route/router/private.h"

#include <stdio.h>
#include <string.h>

#include <amp/base/clock.h>
#include <amp/json/writer.h>

#include "base/codes.h"
#include "message/delivery/inbox/bell.h"
#include "message/delivery/ledger/timeouts.h"
#include "message/delivery/record/sequence.h"
#include "message/protocol/compose/answer.h"
#include "message/protocol/delivery.h"
#include "message/protocol/routing.h"
#include "message/route/count.h"

void amp_dispatch_leave(void *router, struct parcel *j)
{
    struct amp_router *r = router;
    if (--j->waiting > 0)
        return;
    /* All ports have reported the outcome. */
    struct parcel *of = j->address.of;
    amp_dispatch_drop(r, j);
    amp_keeper_settled(r->keeper, j);
    amp_parcel_free(j);
    if (of)
        amp_dispatch_leave(r, of);
}

void amp_dispatch_drop(struct amp_router *r, struct parcel *j)
{
    struct parcel *kid;
    while ((kid = j->address.kids)) {
        j->address.kids = kid->next;
        amp_keeper_settled(r->keeper, kid);
        amp_parcel_free(kid);
    }
}

/* ---- into an inbox ---- */

struct inbox_answer {
    const struct amp_route_run *run;
    const struct amp_view *v;
    const char *actor;
    struct amp_answer answer;
    struct amp_buf *line; /* the answer without its LF */
};

static int admitted_compose(void *ctx, struct amp_buf *line, struct amp_error *err)
{
    struct inbox_answer *a = ctx;
    if (amp_sequence_answer(a->run->store, a->v, a->actor, &a->answer, err) < 0 ||
        amp_answer_line(a->v, &a->answer, line, err) < 0)
        return -1;
    line->len--; /* without its LF */
    return amp_buf_add(a->line, line->data, line->len, err);
}

static int inbox_put(struct amp_router *r, const struct parcel *j, struct amp_span agent,
                     uint32_t outlet, struct amp_buf *answer, struct amp_store_entry_id *entry,
                     struct amp_error *err)
{
    const struct amp_route_run *run = &r->run;
    struct amp_view v;
    struct amp_check_options check = {0};
    char actor[ANSWERS_NAME_MAX], by[AMP_INBOX_AGENT_MAX + 1];
    int64_t now = amp_now_ms();
    struct amp_inbox_options opt = {.actor = actor, .line = {j->line, j->n}};
    amp_outlet_inbox_terms(r->outlets, outlet, j, &opt);
    if (amp_reader_line(run->reader, amp_parcel_whole(j), &check, &v, NULL, NULL, err) < 0)
        return -1;
    const struct amp_delivery_terms *terms = amp_delivery_of(v.protocol);
    if (v.expires_ms == 0 || terms->expiry_is_advisory)
        v.expires_ms = j->expires_ms;
    amp_keeper_answers_name(run, actor);
    amp_span_copy(agent, by, sizeof(by));
    /* A sender that waits for the admission gets an acknowledgement. */
    struct inbox_answer admitted = {
        .run = run,
        .v = &v,
        .actor = actor,
        .answer = {.stage = AMP_STAGE_RECEIVED, .by = by, .node = run->name, .now_ms = now},
        .line = answer};
    struct amp_inbox_answer composed = {admitted_compose, &admitted};
    bool waits = terms->acknowledges && terms->waits_for == AMP_STAGE_RECEIVED &&
                 amp_timeouts_ack(&v) > 0 && v.id.n > 0 && v.kind != AMP_KIND_ACK &&
                 v.kind != AMP_KIND_NACK;
    return amp_inbox_put(run->store, agent, &v, &opt, now, waits ? &composed : NULL, entry, NULL,
                         err);
}

/* The message is in the router's outbox until the inbox has committed it. The acknowledgement
 * RECEIVED is one commit with the delivery. */
static void inbox_deliver(struct amp_router *r, struct parcel *j, struct amp_span agent,
                          uint32_t outlet)
{
    struct amp_error err = {0};
    struct amp_store_entry_id entry = {0};
    char port[AMP_INBOX_AGENT_MAX + 8];
    AMP_BUF struct amp_buf answer = {0};
    amp_buf_init(&answer, 1 << 20);
    snprintf(port, sizeof(port), "inbox:%.*s", (int)agent.n, agent.p);
    if (inbox_put(r, j, agent, outlet, &answer, &entry, &err) == 0) {
        r->run.delivered++;
        amp_route_count_placed(&r->run, port, j);
        amp_route_count_parcel(&r->run, AMP_METRIC_SENT, port, j);
        if (entry.n > 0)
            amp_keeper_answer(r->keeper, amp_buf_span(&answer), entry);
        amp_inbox_ring(amp_store_dir(r->run.store), agent);
    } else if (err.status != AMP_NO) {
        amp_route_break(&r->run, &err);
    } else if (amp_code_is(err.code, duplicate_msg_id)) {
        amp_keeper_duplicate(r->keeper, j, &err);
    } else {
        amp_keeper_refuse(r->keeper, j, err.code, err.what, port,
                          amp_code_is(err.code, buffer_full) ||
                              amp_code_is(err.code, producer_full));
    }
}

/* ---- offers, by the action of the outlet ---- */

static void parcel_offer(struct amp_router *r, struct parcel *j, uint32_t outlet, const char *rule);

/* Whether the message is signed, by a key that may speak for its sender if identities are used. */
static bool is_signed(struct amp_router *r, const struct parcel *j, struct amp_error *why)
{
    struct amp_view v;
    struct amp_said said;
    struct amp_check_options opt = {0};
    struct amp_error err = {0};
    int rc = amp_reader_line(r->run.reader, (struct amp_span){j->line, j->n}, &opt, &v, NULL, NULL,
                             &err);
    if (rc > 0 && v.sig.key.n == 0) {
        amp_fail(why, AMP_NO, unsigned,
                 "it is unsigned and must not leave this machine (--allow-unsigned)");
        return false;
    }
    if (rc > 0)
        rc = amp_identities_refresh(r->opt->ids, &err);
    if (rc >= 0)
        rc = amp_identities_who(r->opt->ids, &v, false, &said, why, &err);
    if (rc < 0)
        *why = err;
    return rc > 0;
}

/* Whether the message may leave this machine by the outlet (SW4RM §6.2). */
static bool may_leave(struct amp_router *r, const struct parcel *j, uint32_t outlet,
                      struct amp_error *why)
{
    if (!amp_routing_of(j->protocol)->signs || !amp_outlet_info(r->outlets, outlet)->network ||
        is_signed(r, j, why))
        return true;
    if (!r->opt->allow_unsigned || !amp_code_is(why->code, unsigned))
        return false;
    amp_keeper_unsigned(r->keeper, j, amp_outlet_info(r->outlets, outlet)->spec);
    return true;
}

static void port_offer(struct amp_router *r, struct parcel *j, uint32_t outlet)
{
    const char *spec = amp_outlet_info(r->outlets, outlet)->spec;
    struct amp_error err;
    if (!may_leave(r, j, outlet, &err)) {
        amp_keeper_refuse(r->keeper, j, err.code, err.what, spec, err.status != AMP_NO);
    } else if (amp_outlet_offer(r->outlets, outlet, j, &err) == 0) {
        j->waiting++;
        if (r->opt->eager)
            amp_outlet_step(r->outlets, outlet);
    } else if (amp_code_is(err.code, duplicate_msg_id)) {
        amp_keeper_duplicate(r->keeper, j, &err);
    } else {
        amp_keeper_refuse(r->keeper, j, err.code, err.what, spec, true);
        if (!amp_code_is(err.code, buffer_full))
            r->run.voice->status(err.status);
    }
}

static void recipient_deliver(struct amp_router *r, struct parcel *kid)
{
    const char *name = kid->address.name;
    struct amp_error err = {0};
    uint32_t outlet;
    bool retryable = false;
    kid->waiting++;
    if (kid->refused)
        amp_keeper_refuse(r->keeper, kid, kid->refused, kid->why, kid->refused_by, kid->again);
    else if (amp_addressing_outlet(r->addressing, kid, &outlet, &retryable, &err) == 0)
        parcel_offer(r, kid, outlet, name);
    else if (err.status == AMP_NO)
        amp_keeper_refuse(r->keeper, kid, err.code, err.what, name, retryable);
    else
        amp_route_break(&r->run, &err);
    amp_dispatch_leave(r, kid);
}

static void agents_offer(struct amp_router *r, struct parcel *j)
{
    struct parcel *kid;
    if (!j->address.no_recipient && !j->address.kids)
        r->records++;
    else if (j->address.no_recipient && (j->kind == AMP_KIND_ACK || j->kind == AMP_KIND_NACK))
        r->unmatched_acks++;
    else if (j->address.no_recipient)
        amp_keeper_unaddressed(r->keeper, j);
    while ((kid = j->address.kids)) {
        j->address.kids = kid->next;
        kid->next = NULL;
        j->waiting++;
        recipient_deliver(r, kid);
    }
    j->address.last = NULL;
}

/* rule: the predicate of the route, or the name of the recipient. */
static void parcel_offer(struct amp_router *r, struct parcel *j, uint32_t outlet, const char *rule)
{
    const struct amp_outlet_info *to = amp_outlet_info(r->outlets, outlet);
    char why[512];
    switch (to->action) {
    case AMP_OUTLET_PORT:
        port_offer(r, j, outlet);
        break;
    case AMP_OUTLET_AGENTS:
        agents_offer(r, j);
        break;
    case AMP_OUTLET_REJECT:
        snprintf(why, sizeof(why), "refused by the route \"%.200s\"", rule);
        amp_keeper_refuse(r->keeper, j, AMP_CODE(rejected), why, rule, false);
        break;
    case AMP_OUTLET_DEAD:
        snprintf(why, sizeof(why), "kept back by the route \"%.200s\"", rule);
        amp_keeper_dead(r->keeper, j, AMP_CODE(kept_back), why, rule);
        break;
    case AMP_OUTLET_INBOX:
        inbox_deliver(r, j, amp_span_str(to->arg), outlet);
        break;
    }
}

bool amp_dispatch_holds(struct amp_router *r, const struct parcel *j)
{
    const struct rule *rule;
    for (uint32_t i = 0; !j->refused && (rule = amp_rules_next(r->rules, j, &i));)
        if (amp_outlet_holds(r->outlets, rule->port) || amp_addressing_holds(r->addressing, j))
            return true;
    return false;
}

/* ---- a dry run ---- */

/* The code of the refusal that the message would get; NULL: it would be delivered. */
static const char *refusal_find(const struct amp_router *r, const struct parcel *j,
                                const char **why)
{
    uint32_t i = 0;
    *why = j->why;
    if (j->refused)
        return j->refused;
    const struct rule *rule = amp_rules_next(r->rules, j, &i);
    if (!rule) {
        *why = "no route matches";
        return AMP_CODE(no_route);
    }
    enum amp_outlet_action does = amp_outlet_info(r->outlets, rule->port)->action;
    if (does == AMP_OUTLET_REJECT || does == AMP_OUTLET_DEAD) {
        *why = rule->text;
        return does == AMP_OUTLET_REJECT ? "rejected" : AMP_CODE(kept_back);
    }
    if (does != AMP_OUTLET_AGENTS)
        return NULL;
    if (j->address.no_recipient) {
        *why = j->address.no_recipient->why.what;
        return j->address.no_recipient->why.code;
    }
    for (const struct parcel *kid = j->address.kids; kid; kid = kid->next)
        if (kid->refused) {
            *why = kid->why;
            return kid->refused;
        }
    return NULL;
}

static void ports_write(struct amp_jw *w, const struct amp_router *r, const struct parcel *j)
{
    const struct rule *rule;
    amp_jw_member_open(w, "ports", '[');
    for (uint32_t i = 0; !j->refused && (rule = amp_rules_next(r->rules, j, &i));)
        amp_jw_str(w, amp_span_str(amp_outlet_info(r->outlets, rule->port)->spec));
    amp_jw_close(w, ']');
    if (!j->address.kids)
        return;
    amp_jw_member_open(w, "recipients", '[');
    for (const struct parcel *kid = j->address.kids; kid; kid = kid->next)
        if (!kid->refused)
            amp_jw_str(w, amp_span_str(kid->address.name));
    amp_jw_close(w, ']');
}

/* Writes a line about the message's routes to the router's output. */
static void dry_report(struct amp_router *r, const struct parcel *j)
{
    AMP_BUF struct amp_buf line = {0};
    struct amp_jw w;
    struct amp_error err;
    const char *why, *code = refusal_find(r, j, &why);
    amp_buf_init(&line, (size_t)1 << 20);
    amp_jw_init(&w, &line);
    amp_jw_open(&w, '{');
    amp_jw_member_uint(&w, "line", j->number);
    amp_jw_member_text(&w, "id", j->id);
    amp_jw_member_text(&w, "protocol", amp_protocol_name(j->protocol));
    amp_jw_member_open(&w, "tried", '[');
    bool any = false;
    for (uint32_t i = 0; i < amp_rules_n(r->rules) && !(any && !r->opt->all); i++) {
        amp_jw_open(&w, '{');
        amp_jw_member_text(&w, "predicate", amp_rules_at(r->rules, i)->text);
        amp_jw_member_bool(&w, "holds", amp_rules_hold(j, i));
        amp_jw_close(&w, '}');
        any = any || amp_rules_hold(j, i);
    }
    amp_jw_close(&w, ']');
    ports_write(&w, r, j);
    amp_jw_member_text(&w, "lane", amp_lane_name(j->lane));
    if (code) {
        amp_jw_member_text(&w, "refused", code);
        amp_jw_member_text(&w, "why", why);
    }
    amp_jw_close(&w, '}');
    if (amp_jw_end(&w, &err) < 0) {
        amp_route_break(&r->run, &err);
        return;
    }
    if (code)
        r->run.voice->status(AMP_NO);
    amp_keeper_say(r->keeper, amp_buf_span(&line));
}

/* ---- dispatching ---- */

void amp_dispatch(struct amp_router *r, struct parcel *j)
{
    j->waiting++; /* so that an immediate outcome does not free the parcel */
    if (r->run.dry) {
        dry_report(r, j);
        amp_dispatch_leave(r, j);
        return;
    }
    const struct rule *rule;
    bool any = j->refused;
    if (j->refused)
        amp_keeper_refuse(r->keeper, j, j->refused, j->why, j->refused_by, j->again);
    for (uint32_t i = 0; !j->refused && (rule = amp_rules_next(r->rules, j, &i));) {
        any = true;
        parcel_offer(r, j, rule->port, rule->text);
    }
    if (any && !j->refused)
        amp_tee_copy(r, j);
    if (!any && (j->kind == AMP_KIND_ACK || j->kind == AMP_KIND_NACK))
        r->unmatched_acks++;
    else if (!any)
        amp_keeper_refuse(r->keeper, j, AMP_CODE(no_route), "no route matches", "", true);
    amp_dispatch_leave(r, j);
}

void amp_dispatch_done(void *router, struct parcel *j, uint32_t outlet, const struct amp_error *why,
                       bool kept)
{
    struct amp_router *r = router;
    const struct amp_route_voice *voice = r->run.voice;
    bool closed = why && amp_code_is(why->code, closed_pipe);
    if (j->copy) {
        r->tees.lost += why != NULL;
        r->tees.away--;
    } else if (why && j->answer) {
        /* Answers have no reader now; a durable router's stay in the outbox. */
        j->entry.n = 0;
        if (!closed) {
            voice->complain(why);
            voice->status(why->status);
        }
    } else if (closed) {
        /* The output was closed: the router ends. Undelivered messages stay in the outbox. */
        for (struct parcel *x = j; x; x = x->address.of)
            x->entry.n = 0;
        amp_route_break(&r->run, why);
    } else if (why) {
        bool full = amp_code_is(why->code, buffer_full);
        j->tried = amp_outlet_info(r->outlets, outlet)->spec;
        amp_keeper_refuse(r->keeper, j, why->code, why->what, j->tried,
                          full || why->status != AMP_NO);
        j->tried = NULL;
        if (!full)
            voice->status(why->status);
    }
    if (!kept)
        amp_dispatch_leave(r, j);
}

void amp_dispatch_failed(void *router, struct amp_span line, uint32_t outlet,
                         const struct amp_error *why)
{
    struct amp_router *r = router;
    bool closed = amp_code_is(why->code, closed_pipe);
    struct parcel *j = closed ? NULL : amp_parcel_new(&r->parcels, line, NULL);
    if (!j) {
        amp_route_break(&r->run, why);
        return;
    }
    amp_keeper_refuse(r->keeper, j, why->code, why->what, amp_outlet_info(r->outlets, outlet)->spec,
                      why->status != AMP_NO);
    r->run.voice->status(why->status);
    amp_parcel_free(j);
}
