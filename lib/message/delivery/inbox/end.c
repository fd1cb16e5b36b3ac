/*
 * Deliveries that end without the agent: the message expired, or the agent's command failed too
 * often. The dead letter with the answer to the sender and the end of the delivery are one turn of
 * the store.
 */
#include "message/delivery/inbox/private.h"

#include <stdio.h>
#include <string.h>

#include "base/codes.h"
#include "message/delivery/dead/dead.h"
#include "message/delivery/record/sequence.h"
#include "message/delivery/settle/answer.h"
#include "message/protocol/compose/answer.h"

static int answer_write(struct amp_store *s, const struct amp_view *v,
                        const struct amp_inbox_refusal *r, struct amp_buf *out,
                        struct amp_error *err)
{
    if (v->kind == AMP_KIND_ACK || v->kind == AMP_KIND_NACK || v->id.n == 0)
        return 0;
    struct amp_answer a = {.stage = AMP_STAGE_FAILED,
                           .by = "system",
                           .code = r->code,
                           .note = r->why,
                           .rule = "inbox",
                           .node = r->actor,
                           .now_ms = r->now_ms};
    int rc = amp_sequence_answer(s, v, r->actor, &a, err);
    if (rc == 0)
        rc = amp_answer_line(v, &a, out, err);
    if (rc == 0 && out->len > 0)
        out->len--; /* its LF */
    return rc;
}

/* Sets the ledger's record to FAILED and adds the dead letter with its answer. The ledger may have
 * the message under another id than the inbox. */
static int letter_bury(struct amp_store *s, const struct amp_inbox_refusal *r,
                       struct amp_span known_as, struct amp_error *err)
{
    struct amp_view v;
    struct amp_check_options opt = {0};
    struct amp_reader *reader = amp_reader_new(NULL, err);
    char route[AMP_INBOX_AGENT_MAX + 8], by[AMP_INBOX_AGENT_MAX + 1];
    AMP_BUF struct amp_buf answer = {.max = 1 << 20};
    if (!reader)
        return -1;
    snprintf(route, sizeof(route), "inbox:%.*s", (int)r->agent.n, r->agent.p);
    amp_span_copy(r->agent, by, sizeof(by));
    int rc = amp_reader_line(reader, r->line, &opt, &v, NULL, NULL, err);
    if (rc >= 0)
        rc = answer_write(s, &v, r, &answer, err);
    if (rc == 0 && known_as.n > 0)
        rc = amp_settle_known(s, known_as, AMP_STAGE_FAILED, by, amp_span_str(r->code), r->now_ms,
                              err);
    if (rc == 0) {
        struct amp_dead_letter d = {
            .code = r->code, .why = r->why, .route = route, .failed_ms = r->now_ms};
        amp_dead_from_view(&d, &v);
        rc = amp_dead_add(s, &d, r->actor, amp_buf_span(&answer), NULL, err);
    }
    amp_reader_free(reader);
    return rc < 0 ? -1 : 0;
}

int amp_inbox_line(struct amp_store *s, const struct amp_inbox_key *k,
                   const struct amp_inbox_delivery *d, struct amp_buf *mem, struct amp_span *line,
                   struct amp_error *err)
{
    struct amp_message_rec rec = {0};
    amp_buf_reset(mem);
    if (d->line.n > 0) {
        if (amp_buf_add(mem, d->line.p, d->line.n, err) < 0)
            return -1;
        *line = amp_buf_span(mem);
        return 0;
    }
    if (amp_message_find(s, k->id, mem, &rec, err) < 0)
        return -1;
    *line = rec.found ? rec.line : (struct amp_span){"", 0};
    return 0;
}

/* Whether the ledger's own deadline ended the message. Then it has a letter and an answer already.
 */
static int ledger_expired(struct amp_store *s, struct amp_span id, bool *expired,
                          struct amp_error *err)
{
    struct amp_message_rec rec;
    AMP_BUF struct amp_buf mem = {.max = AMP_RECORD_MAX};
    if (amp_message_find(s, id, &mem, &rec, err) < 0)
        return -1;
    *expired =
        rec.found && rec.state == AMP_DELIVERY_FAILED && amp_span_is(rec.given_up, "ttl_expired");
    return 0;
}

struct buried {
    const struct amp_inbox_refusal *r;
    int64_t since_ms;
    bool is;
};

static int letter_compare(void *ctx, struct amp_span id, const struct amp_dead_letter *d,
                          struct amp_span json, struct amp_error *err)
{
    struct buried *b = ctx;
    const size_t inbox = strlen("inbox:");
    b->is = d->open && d->failed_ms >= b->since_ms && strncmp(d->route, "inbox:", inbox) == 0 &&
            amp_span_is(b->r->agent, d->route + inbox);
    return 0;
}

/* Whether the delivery has its letter, but not its end, as after a crash of an earlier build. Then
 * the sender has the answer of the letter, or gets it from the outbox, and there is no other. */
static int letter_exists(struct amp_store *s, const struct amp_inbox_key *k,
                         const struct amp_inbox_refusal *r, int64_t since_ms, bool *exists,
                         struct amp_error *err)
{
    struct buried b = {.r = r, .since_ms = since_ms};
    struct amp_error e = {0};
    if (amp_dead_find(s, k->id, letter_compare, &b, &e) < 0 && amp_fail_unless_no(err, &e) < 0)
        return -1;
    *exists = b.is;
    return 0;
}

static int delivery_end(struct amp_store *s, const struct amp_inbox_key *k,
                        const struct amp_inbox_refusal *r, uint8_t event, struct amp_error *err)
{
    struct amp_inbox_step step = {.event = event, .now_ms = r->now_ms, .code = r->code};
    struct amp_inbox_delivery d;
    struct amp_fsm_result would;
    AMP_BUF struct amp_buf mem = {.max = AMP_RECORD_MAX};
    bool known = false;
    /* If it ended already, it has its letter. */
    if (amp_inbox_delivery_get(s, k->key, &mem, &d, err) < 0 ||
        amp_fsm_step(&amp_inbox_fsm, d.state, event, 0, &would, err) < 0)
        return -1;
    if (event == AMP_INBOX_EV_EXPIRE && ledger_expired(s, r->id, &known, err) < 0)
        return -1;
    if (!known && letter_exists(s, k, r, d.at_ms, &known, err) < 0)
        return -1;
    if (r->line.n > 0 && !known && letter_bury(s, r, d.msg_id, err) < 0)
        return -1;
    if (amp_inbox_step(s, k->key, &step, err) < 0)
        return -1;
    return amp_inbox_carry(s, r->agent, k, &step, err);
}

int amp_inbox_end(struct amp_store *s, const struct amp_inbox_key *k,
                  const struct amp_inbox_refusal *r, uint8_t event, struct amp_error *err)
{
    if (amp_store_begin(s, err) < 0)
        return -1;
    int rc = delivery_end(s, k, r, event, err);
    amp_store_end(s);
    return rc;
}

int amp_inbox_give_up(struct amp_store *s, struct amp_span agent, struct amp_span id,
                      const char *code, const char *why, const char *actor, int64_t now_ms,
                      struct amp_error *err)
{
    struct amp_inbox_key k;
    struct amp_inbox_delivery d;
    AMP_BUF struct amp_buf own = {.max = AMP_RECORD_MAX}, mem = {.max = AMP_RECORD_MAX};
    struct amp_inbox_refusal r = {
        .agent = agent, .code = code, .why = why, .actor = actor, .now_ms = now_ms};
    if (amp_inbox_delivery_find(s, agent, id, &k, &own, &d, err) < 0 ||
        amp_inbox_line(s, &k, &d, &mem, &r.line, err) < 0)
        return -1;
    if (d.state != AMP_INBOX_OFFERED)
        return amp_fail(err, AMP_NO, unknown_ref, "%.*s is not being handed over", (int)id.n, id.p);
    return amp_inbox_end(s, &k, &r, AMP_INBOX_EV_GIVE_UP, err);
}

/* ---- in time ---- */

struct sweeping {
    struct amp_store *s;
    const char *actor;
    int64_t now_ms;
    uint32_t expired;
};

/* The process that hands a message over handles its expiry: the buffer's deadline ignores it. */
static int forget_fn(void *ctx, struct amp_inbox_buffer *b, struct amp_error *err)
{
    const struct amp_inbox_place *p = ctx;
    (void)err;
    uint32_t i = amp_inbox_buffer_find(b, p->id);
    if (i == b->n_waiting)
        return 1;
    b->waiting[i].expires_ms = 0;
    return 0;
}

static int place_sweep(struct sweeping *sw, struct amp_span agent, struct amp_inbox_place *p,
                       struct amp_error *err)
{
    struct amp_inbox_key k;
    struct amp_inbox_delivery d;
    AMP_BUF struct amp_buf own = {.max = AMP_RECORD_MAX}, mem = {.max = AMP_RECORD_MAX};
    struct amp_inbox_refusal r = {.agent = agent,
                                  .id = p->id,
                                  .code = AMP_CODE(ttl_expired),
                                  .why = AMP_INBOX_EXPIRED_WHY,
                                  .actor = sw->actor,
                                  .now_ms = sw->now_ms};
    if (amp_inbox_delivery_find(sw->s, agent, p->id, &k, &own, &d, err) < 0)
        return -1;
    if (d.state != AMP_INBOX_WAITING)
        return amp_inbox_buffer_update(sw->s, agent, "forget", forget_fn, p, err);
    if (amp_inbox_line(sw->s, &k, &d, &mem, &r.line, err) < 0)
        return -1;
    sw->expired++;
    return amp_inbox_end(sw->s, &k, &r, AMP_INBOX_EV_EXPIRE, err);
}

static int buffer_sweep(void *ctx, const void *rec, struct amp_error *err)
{
    const struct amp_inbox_buffer *b = rec;
    struct sweeping *sw = ctx;
    for (uint32_t i = 0; i < b->n_waiting; i++) {
        struct amp_inbox_place p = b->waiting[i];
        struct amp_error e = {0};
        if (p.expires_ms == 0 || p.expires_ms > sw->now_ms)
            continue;
        /* NO: another process ended it. */
        if (place_sweep(sw, b->agent, &p, &e) < 0 && e.status != AMP_NO) {
            if (err)
                *err = e;
            return -1;
        }
    }
    return 0;
}

int amp_inbox_sweep(struct amp_store *s, int64_t now_ms, const char *actor, uint32_t *expired,
                    struct amp_error *err)
{
    struct sweeping sw = {.s = s, .actor = actor, .now_ms = now_ms};
    int rc = amp_subject_due(&amp_inbox_buffers, s, now_ms, buffer_sweep, &sw, err);
    *expired = sw.expired;
    return rc;
}
