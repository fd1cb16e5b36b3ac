/*
 * Two attempts at one operation in inboxes: the first was held up on its way, its sender gave it up
 * and sent another, perhaps to another agent, and then both came. One agent gets one of them.
 */
#include <string.h>

#include "message/inbox/bell.h"
#include "message/inbox/private.h"
#include "message/operation/idempotency.h"

/* Whether what the agent had of an attempt ended without success, so that the next one is due. */
static bool has_failed(const struct amp_message_rec *r)
{
    return r->state == AMP_DELIVERY_FAILED || r->state == AMP_DELIVERY_REJECTED ||
           r->failure.n > 0 || amp_record_has_stage(r, "FAILED"); /* also late */
}

/* The operation that the message is an attempt at; empty where it is none, or it is over. */
static int operation_of(struct amp_store *s, struct amp_span id, struct amp_buf *mem,
                        struct amp_span *out, struct amp_error *err)
{
    struct amp_message_rec r;
    if (amp_message_find(s, id, mem, &r, err) < 0)
        return -1;
    *out = r.found ? r.claim : (struct amp_span){"", 0};
    return 0;
}

/* The delivery of a message to an agent, if there is one. */
static int delivery_of(struct amp_store *s, struct amp_span agent, struct amp_span id,
                       struct amp_inbox_key *k, struct amp_buf *mem, struct amp_inbox_delivery *d,
                       struct amp_error *err)
{
    *d = (struct amp_inbox_delivery){.state = AMP_INBOX_ABSENT};
    if (id.n == 0 || amp_inbox_agent_check(agent, NULL) < 0)
        return 0;
    if (amp_inbox_key_of(agent, id, k, err) < 0)
        return -1;
    return amp_inbox_delivery_get(s, k->key, mem, d, err);
}

/* Each other agent that has, or had, the message in its inbox. fn returns 0 to go on. */
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

/* Being handed over just now, or read, though the ledger does not say so yet; what a process that
 * died left is not. */
static int is_at_it(void *ctx, struct amp_span agent, struct amp_span id, struct amp_error *err)
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
    bool newer;   /* the attempt that is looked at came after ours */
    bool offered; /* ours may be there already: only what is taken up elsewhere stands for it */
};

/* read: our agent has it. */
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
    return st->offered ? 0 : inbox_each(st->s, st->agent, id, is_at_it, st->s, err);
}

static int attempt_stands_for(const struct standing *st, struct amp_span id, struct amp_error *err)
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
    AMP_BUF struct amp_buf own = {.max = AMP_RECORD_MAX}, mem = {.max = AMP_RECORD_MAX};
    struct amp_span operation, ids[AMP_IDEM_ATTEMPTS];
    struct standing st = {.s = s, .agent = agent, .offered = d->state == AMP_INBOX_OFFERED};
    uint32_t n;
    if (d->requeue > 0) /* a person wants it there */
        return 0;
    if (operation_of(s, k->id, &own, &operation, err) < 0)
        return -1;
    if (operation.n == 0)
        return 0;
    if (amp_idem_attempts(s, operation, &mem, ids, &n, err) < 0)
        return -1;
    int rc = 0;
    for (uint32_t i = 0; i < n && rc == 0; i++) {
        if (amp_span_eq(ids[i], k->id))
            st.newer = true;
        else
            rc = attempt_stands_for(&st, ids[i], err);
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
    if (e.status == AMP_NO) /* it is handed over there since */
        return 0;
    *err = e;
    return -1;
}

int amp_inbox_withdraw_others(struct amp_store *s, struct amp_span agent, struct amp_span id,
                              int64_t now_ms, struct amp_error *err)
{
    AMP_BUF struct amp_buf own = {.max = AMP_RECORD_MAX}, mem = {.max = AMP_RECORD_MAX};
    struct amp_span operation, ids[AMP_IDEM_ATTEMPTS];
    struct withdrawing w = {.s = s, .now_ms = now_ms};
    uint32_t n;
    if (operation_of(s, id, &own, &operation, err) < 0)
        return -1;
    if (operation.n == 0)
        return 0;
    if (amp_idem_attempts(s, operation, &mem, ids, &n, err) < 0)
        return -1;
    for (uint32_t i = 0; i < n; i++)
        if (!amp_span_eq(ids[i], id) &&
            inbox_each(s, agent, ids[i], delivery_withdraw, &w, err) < 0)
            return -1;
    return 0;
}
