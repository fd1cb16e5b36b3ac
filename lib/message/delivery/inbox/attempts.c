/*
 * Several attempts at one operation in inboxes: the first was delayed, its sender sent another,
 * perhaps to another agent, and then both arrived. One agent gets one of them.
 */
#include <string.h>

#include "message/delivery/inbox/bell.h"
#include "message/delivery/inbox/private.h"
#include "message/delivery/operation/idempotency.h"

/* Whether the attempt ended without success, so that the next one is due. */
static bool has_failed(const struct amp_message_rec *r)
{
    return r->state == AMP_DELIVERY_FAILED || r->state == AMP_DELIVERY_REJECTED ||
           r->failure.n > 0 || amp_record_has_stage(r, "FAILED"); /* also late */
}

/* The attempts at the operation of a message, with their ids in mem; none if it has no operation.
 */
static int attempts_find(struct amp_store *s, struct amp_span id, struct amp_buf *mem,
                         struct amp_span ids[AMP_IDEM_ATTEMPTS], uint32_t *n, struct amp_error *err)
{
    struct amp_message_rec r;
    AMP_BUF struct amp_buf own = {.max = AMP_RECORD_MAX};
    *n = 0;
    if (amp_message_find(s, id, &own, &r, err) < 0)
        return -1;
    return r.found && r.claim.n > 0 ? amp_idem_attempts(s, r.claim, mem, ids, n, err) : 0;
}

/* The delivery of a message to an agent, if there is one. */
static int delivery_of(struct amp_store *s, struct amp_span agent, struct amp_span id,
                       struct amp_inbox_key *k, struct amp_buf *mem, struct amp_inbox_delivery *d,
                       struct amp_error *err)
{
    *d = (struct amp_inbox_delivery){.state = AMP_INBOX_ABSENT};
    if (id.n == 0 || amp_inbox_agent_check(agent, NULL) < 0)
        return 0;
    return amp_inbox_delivery_find(s, agent, id, k, mem, d, err);
}

/* Calls fn for each other agent that has or had the message in its inbox. fn returns 0 to continue.
 */
typedef int (*agent_fn)(void *ctx, struct amp_span agent, struct amp_span id,
                        struct amp_error *err);
static int inbox_each(struct amp_store *s, struct amp_span agent, struct amp_span id, agent_fn fn,
                      void *ctx, struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {.max = AMP_RECORD_MAX};
    struct amp_message_rec r;
    int rc = 0;
    if (amp_message_find(s, id, &mem, &r, err) < 0)
        return -1;
    for (uint32_t i = 0; r.found && rc == 0 && i < r.n_acks; i++) {
        struct amp_span who = amp_span_str(r.acks[i].by);
        if (who.n > 0 && strcmp(r.acks[i].stage, "RECEIVED") == 0 && !amp_span_eq(who, agent))
            rc = fn(ctx, who, id, err);
    }
    return rc;
}

/* Whether the agent has READ the message, which the ledger may not have yet, or a live process is
 * handing it over. */
static int agent_is_served(void *ctx, struct amp_span agent, struct amp_span id,
                           struct amp_error *err)
{
    struct amp_store *s = ctx;
    struct amp_inbox_key k;
    struct amp_inbox_delivery d;
    AMP_BUF struct amp_buf mem = {.max = AMP_RECORD_MAX};
    if (delivery_of(s, agent, id, &k, &mem, &d, err) < 0)
        return -1;
    return d.state == AMP_INBOX_READ ||
           (d.state == AMP_INBOX_OFFERED && amp_inbox_is_served(amp_store_dir(s), agent));
}

struct standing {
    struct amp_store *s;
    struct amp_span agent;
    bool newer;   /* the other attempt came after ours */
    bool offered; /* ours may have arrived: only an attempt in progress replaces it */
};

/* Whether an agent works on the attempt. read: ours has it. */
static int agent_at_work(const struct standing *st, struct amp_span id, bool read,
                         struct amp_error *err)
{
    struct amp_message_rec r;
    AMP_BUF struct amp_buf mem = {.max = AMP_RECORD_MAX};
    if (amp_message_find(st->s, id, &mem, &r, err) < 0)
        return -1;
    if (!r.found)
        return read;
    if (has_failed(&r) && !amp_record_has_stage(&r, "FULFILLED"))
        return 0;
    if (read || amp_record_has_stage(&r, "READ") || amp_record_has_stage(&r, "FULFILLED"))
        return 1;
    return st->offered ? 0 : inbox_each(st->s, st->agent, id, agent_is_served, st->s, err);
}

/* Whether the other attempt replaces ours. */
static int attempt_replaces(const struct standing *st, struct amp_span id, struct amp_error *err)
{
    struct amp_inbox_key k;
    struct amp_inbox_delivery d;
    AMP_BUF struct amp_buf mem = {.max = AMP_RECORD_MAX};
    if (delivery_of(st->s, st->agent, id, &k, &mem, &d, err) < 0)
        return -1;
    if ((d.state == AMP_INBOX_WAITING && st->newer && !st->offered) ||
        (d.state == AMP_INBOX_OFFERED && !st->offered))
        return 1;
    return agent_at_work(st, id, d.state == AMP_INBOX_READ, err);
}

int amp_inbox_superseded(struct amp_store *s, struct amp_span agent, const struct amp_inbox_key *k,
                         const struct amp_inbox_delivery *d, struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {.max = AMP_RECORD_MAX};
    struct amp_span ids[AMP_IDEM_ATTEMPTS];
    struct standing st = {.s = s, .agent = agent, .offered = d->state == AMP_INBOX_OFFERED};
    uint32_t n;
    if (d->requeue > 0) /* by a person, to this inbox */
        return 0;
    if (attempts_find(s, k->id, &mem, ids, &n, err) < 0)
        return -1;
    int rc = 0;
    for (uint32_t i = 0; i < n && rc == 0; i++) {
        if (amp_span_eq(ids[i], k->id))
            st.newer = true;
        else
            rc = attempt_replaces(&st, ids[i], err);
    }
    return rc;
}

struct withdrawing {
    struct amp_store *s;
    int64_t now_ms;
};

static int delivery_withdraw(void *ctx, struct amp_span agent, struct amp_span id,
                             struct amp_error *err)
{
    const struct withdrawing *w = ctx;
    struct amp_inbox_key k;
    struct amp_inbox_delivery d;
    struct amp_error e = {0};
    struct amp_inbox_step step = {.event = AMP_INBOX_EV_SUPERSEDE, .now_ms = w->now_ms};
    AMP_BUF struct amp_buf mem = {.max = AMP_RECORD_MAX};
    if (delivery_of(w->s, agent, id, &k, &mem, &d, err) < 0)
        return -1;
    if (d.state != AMP_INBOX_WAITING || d.requeue > 0)
        return 0;
    if (amp_inbox_step(w->s, k.key, &step, &e) == 0)
        return amp_inbox_carry(w->s, agent, &k, &step, err);
    return amp_fail_unless_no(err, &e); /* NO: it was handed over since */
}

int amp_inbox_withdraw_others(struct amp_store *s, struct amp_span agent, struct amp_span id,
                              int64_t now_ms, struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {.max = AMP_RECORD_MAX};
    struct amp_span ids[AMP_IDEM_ATTEMPTS];
    struct withdrawing w = {.s = s, .now_ms = now_ms};
    uint32_t n;
    if (attempts_find(s, id, &mem, ids, &n, err) < 0)
        return -1;
    for (uint32_t i = 0; i < n; i++)
        if (!amp_span_eq(ids[i], id) &&
            inbox_each(s, agent, ids[i], delivery_withdraw, &w, err) < 0)
            return -1;
    return 0;
}
