/* One message through its ports: every rule that counts gets it, every port tells its outcome. */
#include "router.h"

#include <stdlib.h>
#include <string.h>

void router_break(struct router *r, const struct amp_error *why)
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
    address_drop(r, j);
    keep_settled(r, j);
    job_free(r, j);
    if (of)
        job_leave(r, of);
}

void job_leave(struct router *r, struct job *j)
{
    if (--j->waiting == 0)
        settle(r, j);
}

/* Between machines a SW4RM message has to be signed, and none is yet. */
static bool may_leave(struct router *r, const struct job *j, const struct target *t)
{
    if (j->protocol != AMP_PROTO_SW4RM || !amp_port_is_network(t->port))
        return true;
    if (!r->allow_unsigned)
        return false;
    keep_unsigned(r, j, t->spec);
    return true;
}

void job_refuse(struct job *j, const char *code, const char *why, const char *by, bool again)
{
    if (j->refused)
        return;
    j->refused = code;
    j->refused_by = by;
    j->again = again;
    snprintf(j->why, sizeof(j->why), "%.150s", why);
}

typedef void offer_fn(struct router *r, struct job *j, const struct rule *rule);

static void offer_reject(struct router *r, struct job *j, const struct rule *rule)
{
    char why[512];
    snprintf(why, sizeof(why), "the route \"%.200s\" refuses it", rule->text);
    keep_refuse(r, j, "rejected", why, rule->text, false);
}

static void offer_dead(struct router *r, struct job *j, const struct rule *rule)
{
    char why[512];
    snprintf(why, sizeof(why), "the route \"%.200s\" keeps it back", rule->text);
    keep_dead(r, j, "kept_back", why, rule->text);
}

static void offer_port(struct router *r, struct job *j, const struct rule *rule)
{
    const struct target *t = r->targets[rule->port];
    struct amp_error err;
    if (!may_leave(r, j, t)) {
        keep_refuse(r, j, "unsigned",
                    "it is not signed, and may not leave this machine without (--allow-unsigned)",
                    t->spec, false);
    } else if (target_offer(r, rule->port, j, &err) == 0) {
        j->waiting++;
        if (r->eager)
            target_step(r, rule->port);
    } else if (strcmp(err.code, "duplicate_msg_id") == 0) {
        keep_duplicate(r, j, &err);
    } else {
        keep_refuse(r, j, err.code, err.what, t->spec, true);
        if (strcmp(err.code, "buffer_full") != 0)
            amp_status_note(err.status);
    }
}

static void offer_inbox(struct router *r, struct job *j, const struct rule *rule)
{
    inbox_put(r, j, amp_span_str(r->targets[rule->port]->arg), rule->port);
}

static offer_fn *const offer_to[TARGET_ACTIONS] = {
    [TARGET_PORT] = offer_port, [TARGET_AGENTS] = address_offer, [TARGET_REJECT] = offer_reject,
    [TARGET_DEAD] = offer_dead, [TARGET_INBOX] = offer_inbox,
};

void job_offer(struct router *r, struct job *j, const struct rule *rule)
{
    offer_to[r->targets[rule->port]->action](r, j, rule);
}

bool job_holds(struct router *r, const struct job *j)
{
    for (uint32_t i = 0; i < r->n_rules && !j->refused; i++) {
        if (!(j->hit[i / 64] >> (i % 64) & 1))
            continue;
        if (target_holds(r, r->rules[i].port) || address_holds(r, j))
            return true;
        if (!r->all)
            break;
    }
    return false;
}

void job_dispatch(struct router *r, struct job *j)
{
    j->waiting++; /* ours, so that an outcome that comes at once does not end the job */
    if (r->dry) {
        dry_say(r, j);
        job_leave(r, j);
        return;
    }
    bool any = j->refused;
    if (j->refused)
        keep_refuse(r, j, j->refused, j->why, j->refused_by, j->again);
    for (uint32_t i = 0; i < r->n_rules && !(any && (!r->all || j->refused)); i++) {
        if (!(j->hit[i / 64] >> (i % 64) & 1))
            continue;
        any = true;
        job_offer(r, j, &r->rules[i]);
    }
    if (any && !j->refused)
        tee_copy(r, j);
    if (!any && (j->kind == AMP_KIND_ACK || j->kind == AMP_KIND_NACK))
        r->unmatched_acks++;
    else if (!any)
        keep_refuse(r, j, "no_route", "no route takes it", "", true);
    job_leave(r, j);
}

void job_done(void *ctx, uint64_t tag, const struct amp_error *why)
{
    struct router *r = ctx;
    struct job *j = (struct job *)(uintptr_t)tag;
    if (!j) {
        direct_done(r, why);
        return;
    }
    if (j->copy) {
        r->copies_lost += why != NULL;
        r->n_copies--;
    } else if (why && j->answer) {
        /* Nobody hears our answers any more; those of a durable router stay in the outbox. */
        j->entry.n = 0;
        if (strcmp(why->code, "closed_pipe") != 0) {
            amp_complain(why);
            amp_status_note(why->status);
        }
    } else if (why && strcmp(why->code, "closed_pipe") == 0) {
        /* Whoever reads our output had enough: a quiet end. What it did not get stays open. */
        for (struct job *x = j; x; x = x->address.of)
            x->entry.n = 0;
        router_break(r, why);
    } else if (why) {
        unacked_done(r, j, false);
        j->tried = r->stepping;
        keep_refuse(r, j, why->code, why->what, j->tried ? j->tried->spec : "",
                    why->status != AMP_NO);
        j->tried = NULL;
        amp_status_note(why->status);
    } else if (!j->answer) {
        r->delivered++;
        if (unacked_done(r, j, true))
            return;
    }
    job_leave(r, j);
}
