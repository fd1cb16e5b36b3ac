/* One message through its ports: every rule that counts gets it, every port tells its outcome. */
#include "route/router/router.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void amp_route_break(struct router *r, const struct amp_error *why)
{
    if (r->broken)
        return;
    r->broken = true;
    r->why = *why;
}

/* All ports have said what became of it. */
static void settle(struct router *r, struct job *j)
{
    struct job *of = j->address.of;
    amp_recipients_drop(r, j);
    amp_keeper_settled(r, j);
    amp_route_job_free(r, j);
    if (of)
        amp_route_job_leave(r, of);
}

void amp_route_job_leave(struct router *r, struct job *j)
{
    if (--j->waiting == 0)
        settle(r, j);
}

/* Between machines a SW4RM message has to be signed, and none is yet. */
static bool may_leave(struct router *r, const struct job *j, const struct amp_outlet *t)
{
    if (j->protocol != AMP_PROTO_SW4RM || !amp_port_is_network(t->port))
        return true;
    if (!r->allow_unsigned)
        return false;
    amp_keeper_unsigned(r, j, t->spec);
    return true;
}

typedef void offer_fn(struct router *r, struct job *j, const struct rule *rule);

static void offer_reject(struct router *r, struct job *j, const struct rule *rule)
{
    char why[512];
    snprintf(why, sizeof(why), "the route \"%.200s\" refuses it", rule->text);
    amp_keeper_refuse(r, j, "rejected", why, rule->text, false);
}

static void offer_dead(struct router *r, struct job *j, const struct rule *rule)
{
    char why[512];
    snprintf(why, sizeof(why), "the route \"%.200s\" keeps it back", rule->text);
    amp_keeper_dead(r, j, "kept_back", why, rule->text);
}

static void offer_port(struct router *r, struct job *j, const struct rule *rule)
{
    const struct amp_outlet *t = r->outlets[rule->port];
    struct amp_error err;
    if (!may_leave(r, j, t)) {
        amp_keeper_refuse(
            r, j, "unsigned",
            "it is not signed, and may not leave this machine without (--allow-unsigned)", t->spec,
            false);
    } else if (amp_outlet_offer(r, rule->port, j, &err) == 0) {
        j->waiting++;
        if (r->eager)
            amp_outlet_step(r, rule->port);
    } else if (strcmp(err.code, "duplicate_msg_id") == 0) {
        amp_keeper_duplicate(r, j, &err);
    } else {
        amp_keeper_refuse(r, j, err.code, err.what, t->spec, true);
        if (strcmp(err.code, "buffer_full") != 0)
            r->voice->status(err.status);
    }
}

static void offer_inbox(struct router *r, struct job *j, const struct rule *rule)
{
    amp_enqueue(r, j, amp_span_str(r->outlets[rule->port]->arg), rule->port);
}

static offer_fn *const offer_to[AMP_OUTLET_ACTIONS] = {
    [AMP_OUTLET_PORT] = offer_port,     [AMP_OUTLET_AGENTS] = amp_recipients_offer,
    [AMP_OUTLET_REJECT] = offer_reject, [AMP_OUTLET_DEAD] = offer_dead,
    [AMP_OUTLET_INBOX] = offer_inbox,
};

void amp_route_job_offer(struct router *r, struct job *j, const struct rule *rule)
{
    offer_to[r->outlets[rule->port]->action](r, j, rule);
}

bool amp_route_job_holds(struct router *r, const struct job *j)
{
    for (uint32_t i = 0; i < amp_rules_n(r->rules) && !j->refused; i++) {
        if (!amp_rules_hold(j, i))
            continue;
        if (amp_outlet_holds(r, amp_rules_at(r->rules, i)->port) || amp_recipients_holds(r, j))
            return true;
        if (!r->all)
            break;
    }
    return false;
}

void amp_route_job_dispatch(struct router *r, struct job *j)
{
    j->waiting++; /* ours, so that an outcome that comes at once does not end the job */
    if (r->dry) {
        amp_dry_say(r, j);
        amp_route_job_leave(r, j);
        return;
    }
    bool any = j->refused;
    if (j->refused)
        amp_keeper_refuse(r, j, j->refused, j->why, j->refused_by, j->again);
    for (uint32_t i = 0; i < amp_rules_n(r->rules) && !(any && (!r->all || j->refused)); i++) {
        if (!amp_rules_hold(j, i))
            continue;
        any = true;
        amp_route_job_offer(r, j, amp_rules_at(r->rules, i));
    }
    if (any && !j->refused)
        amp_tee_copy(r, j);
    if (!any && (j->kind == AMP_KIND_ACK || j->kind == AMP_KIND_NACK))
        r->unmatched_acks++;
    else if (!any)
        amp_keeper_refuse(r, j, "no_route", "no route takes it", "", true);
    amp_route_job_leave(r, j);
}

void amp_route_job_done(void *ctx, uint64_t tag, const struct amp_error *why)
{
    struct router *r = ctx;
    struct job *j = (struct job *)(uintptr_t)tag;
    if (!j) {
        amp_direct_done(r, why);
        return;
    }
    if (j->copy) {
        r->copies_lost += why != NULL;
        r->n_copies--;
    } else if (why && j->answer) {
        /* Nobody hears our answers any more; those of a durable router stay in the outbox. */
        j->entry.n = 0;
        if (strcmp(why->code, "closed_pipe") != 0) {
            r->voice->complain(why);
            r->voice->status(why->status);
        }
    } else if (why && strcmp(why->code, "closed_pipe") == 0) {
        /* Whoever reads our output had enough: a quiet end. What it did not get stays open. */
        for (struct job *x = j; x; x = x->address.of)
            x->entry.n = 0;
        amp_route_break(r, why);
    } else if (why) {
        amp_unacked_done(r, j, false);
        j->tried = r->stepping;
        amp_keeper_refuse(r, j, why->code, why->what, j->tried ? j->tried->spec : "",
                          why->status != AMP_NO);
        j->tried = NULL;
        r->voice->status(why->status);
    } else if (!j->answer) {
        r->delivered++;
        if (amp_unacked_done(r, j, true))
            return;
    }
    amp_route_job_leave(r, j);
}
