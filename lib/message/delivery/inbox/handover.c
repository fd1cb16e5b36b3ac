/*
 * Handing over: one message at a time, in the buffer's order. OFFERED is committed before a message
 * leaves, and READ when the agent has it. A message that is OFFERED after a crash is handed over
 * again and marked.
 */
#include "base/codes.h"
#include "message/delivery/inbox/private.h"
#include "message/delivery/settle/answer.h"

#include <stdlib.h>
#include <string.h>

/* ---- offering ---- */

int amp_inbox_known_as(struct amp_store *s, struct amp_span agent, struct amp_span id,
                       struct amp_buf *mem, struct amp_span *out, struct amp_error *err)
{
    struct amp_inbox_key k;
    struct amp_inbox_delivery d;
    if (amp_inbox_delivery_find(s, agent, id, &k, mem, &d, err) < 0)
        return -1;
    *out = d.msg_id.n > 0 ? d.msg_id : id;
    return 0;
}

static int read_report(struct amp_store *s, struct amp_span agent, struct amp_span id,
                       int64_t now_ms, struct amp_error *err)
{
    char by[AMP_INBOX_AGENT_MAX + 1];
    struct amp_span known;
    AMP_BUF struct amp_buf mem = {.max = AMP_RECORD_MAX};
    if (amp_inbox_known_as(s, agent, id, &mem, &known, err) < 0)
        return -1;
    amp_span_copy(agent, by, sizeof(by));
    return amp_settle_known(s, known, AMP_STAGE_READ, by, (struct amp_span){"", 0}, now_ms, err);
}

/* Frees a place whose delivery ended before a crash. One turn, so that the message is not put there
 * again in between. */
static int place_drop_if_over(struct amp_store *s, struct amp_span agent,
                              const struct amp_inbox_key *k, struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {.max = AMP_RECORD_MAX};
    struct amp_inbox_delivery d;
    if (amp_store_begin(s, err) < 0)
        return -1;
    int rc = amp_inbox_delivery_get(s, k->key, &mem, &d, err);
    if (rc == 0 && d.state == AMP_INBOX_READ)
        rc = read_report(s, agent, k->id, d.read_ms, err);
    if (rc == 0 && amp_inbox_has_ended(&d))
        rc = amp_inbox_buffer_leave(s, agent, k->id, d.state == AMP_INBOX_READ, err);
    amp_store_end(s);
    return rc;
}

static int busy_fn(void *ctx, struct amp_inbox_buffer *b, struct amp_error *err)
{
    const int64_t *when = ctx;
    (void)err;
    if (b->busy_ms == when[0] && b->until_ms == when[1])
        return 1;
    b->busy_ms = when[1] > 0 ? when[0] : 0;
    b->until_ms = when[1];
    return 0;
}

int amp_inbox_busy(struct amp_store *s, struct amp_span agent, int64_t since_ms, int64_t until_ms,
                   struct amp_error *err)
{
    int64_t when[2] = {until_ms > 0 ? since_ms : 0, until_ms};
    if (amp_inbox_agent_check(agent, err) < 0)
        return -1;
    return amp_inbox_buffer_update(s, agent, until_ms > 0 ? "busy" : "idle", busy_fn, when, err);
}

struct offering {
    struct amp_store *s;
    struct amp_span agent;
    const struct amp_inbox_turn *turn;
    int64_t now_ms;
    struct amp_buf *mem, *own; /* own: of the delivery */
    struct amp_inbox_msg *out;
};

static int place_supersede(struct offering *o, const struct amp_inbox_key *k,
                           const struct amp_inbox_place *place, struct amp_error *err)
{
    struct amp_inbox_delivery fresh = {.msg_id = k->id, .at_ms = place->at_ms, .early = 1};
    struct amp_inbox_step step = {.event = AMP_INBOX_EV_SUPERSEDE,
                                  .now_ms = o->now_ms,
                                  .fresh = &fresh,
                                  .actor = o->turn->actor};
    if (amp_inbox_step(o->s, k->key, &step, err) < 0)
        return -1;
    return amp_inbox_carry(o->s, o->agent, k, &step, err);
}

enum { OVER, OFFERED, HELD };

/* Commits the step (NULL: only checks), in one turn, so that only one of two inboxes offers an
 * operation, and a suspension comes before or after. 0; 1: another attempt replaces it; HELD. */
static int place_commit_offer(struct offering *o, const struct amp_inbox_key *k,
                              const struct amp_inbox_delivery *d, struct amp_span line,
                              struct amp_inbox_step *step, struct amp_error *err)
{
    if (amp_store_begin(o->s, err) < 0)
        return -1;
    int rc = amp_inbox_superseded(o->s, o->agent, k, d, err);
    if (rc == 0 && step && o->turn->held && (rc = o->turn->held(o->turn->ctx, line, err)) > 0)
        rc = HELD;
    if (rc == 0 && step)
        rc = amp_inbox_step(o->s, k->key, step, err);
    amp_store_end(o->s);
    return rc;
}

/* OVER: the place is free, try the next one. NO illegal_transition: the delivery has changed. */
static int place_try(struct offering *o, const struct amp_inbox_place *place, struct amp_error *err)
{
    struct amp_inbox_key k;
    struct amp_inbox_delivery d;
    struct amp_span line;
    if (amp_inbox_delivery_find(o->s, o->agent, place->id, &k, o->own, &d, err) < 0)
        return -1;
    if (amp_inbox_has_ended(&d))
        return place_drop_if_over(o->s, o->agent, &k, err);
    if (amp_inbox_line(o->s, &k, &d, o->mem, &line, err) < 0)
        return -1;
    /* The router ended before the delivery was recorded; its outbox has the message. */
    if (line.n == 0 || (place->own && d.state == AMP_INBOX_ABSENT))
        return amp_inbox_buffer_leave(o->s, o->agent, k.id, false, err);
    int64_t expires_ms = d.state == AMP_INBOX_ABSENT ? place->expires_ms : d.expires_ms;
    struct amp_inbox_delivery fresh = {.msg_id = k.id,
                                       .at_ms = place->at_ms,
                                       .expires_ms = place->expires_ms,
                                       .lane = place->lane,
                                       .early = 1};
    struct amp_inbox_step step = {
        .event = AMP_INBOX_EV_OFFER, .now_ms = o->now_ms, .fresh = &fresh};
    bool expired = expires_ms > 0 && expires_ms <= o->now_ms;
    int other = place_commit_offer(o, &k, &d, line, expired ? NULL : &step, err);
    if (other == HELD)
        return HELD;
    if (other != 0)
        return other < 0 ? -1 : place_supersede(o, &k, place, err);
    if (expired) {
        struct amp_inbox_refusal r = {.agent = o->agent,
                                      .id = k.id,
                                      .line = line,
                                      .code = AMP_CODE(ttl_expired),
                                      .why = AMP_INBOX_EXPIRED_WHY,
                                      .actor = o->turn->actor,
                                      .now_ms = o->now_ms};
        return amp_inbox_end(o->s, &k, &r, AMP_INBOX_EV_EXPIRE, err);
    }
    size_t line_at = (size_t)(line.p - o->mem->data), id_at = o->mem->len;
    if (amp_buf_add(o->mem, k.id.p, k.id.n, err) < 0)
        return -1;
    *o->out = (struct amp_inbox_msg){.id = {o->mem->data + id_at, k.id.n},
                                     .line = {o->mem->data + line_at, line.n},
                                     .state = AMP_INBOX_OFFERED,
                                     .at_ms = place->at_ms,
                                     .expires_ms = expires_ms,
                                     .lane = place->lane,
                                     .attempt = (uint32_t)step.attempt,
                                     .redelivered = (step.effects & AMP_INBOX_DO_REDELIVER) != 0};
    if (o->turn->between_turns &&
        amp_inbox_busy(o->s, o->agent, o->now_ms, o->now_ms + o->turn->lease_ms, err) < 0)
        return -1;
    return OFFERED;
}

static int place_offer(struct offering *o, const struct amp_inbox_place *place,
                       struct amp_error *err)
{
    struct amp_inbox_key k;
    struct amp_inbox_delivery d;
    struct amp_error e = {0};
    int rc = place_try(o, place, &e);
    if (rc >= 0)
        return rc;
    /* A sweep, or an agent with another attempt, ended it since. */
    if (e.status == AMP_NO && amp_code_is(e.code, illegal_transition) &&
        amp_inbox_delivery_find(o->s, o->agent, place->id, &k, o->own, &d, &e) == 0 &&
        amp_inbox_has_ended(&d))
        return OVER;
    if (err)
        *err = e;
    return -1;
}

/* The first place with the same order. */
static uint32_t first_of_order(const struct amp_inbox_buffer *b, uint32_t i)
{
    uint32_t k = 0;
    while (k < i && (b->waiting[i].order == 0 || b->waiting[k].order != b->waiting[i].order))
        k++;
    return k;
}

/* The place whose message is next; n_waiting: none. Messages with the same order are in the lane of
 * the first one, and held if it is held. */
static uint32_t place_choose(const struct amp_inbox_buffer *b, const bool *held,
                             struct amp_lanes *lanes, int64_t now_ms)
{
    struct amp_lane_head heads[AMP_LANE_COUNT] = {{0}};
    uint32_t first[AMP_LANE_COUNT] = {0}, earliest = b->n_waiting;
    for (uint32_t i = 0; i < b->n_waiting; i++) {
        const struct amp_inbox_place *p = &b->waiting[i];
        uint32_t k = first_of_order(b, i);
        int64_t lane = b->waiting[k].lane;
        if (held[i] || held[k])
            continue;
        if (earliest == b->n_waiting)
            earliest = i;
        if (!lanes)
            break;
        if (lane < 0 || lane >= AMP_LANE_COUNT ||
            (heads[lane].any && p->round >= b->waiting[first[lane]].round))
            continue;
        first[lane] = i;
        heads[lane] = (struct amp_lane_head){
            .any = true, .bytes = (size_t)(p->size > 0 ? p->size : 0), .since_ms = p->at_ms};
    }
    if (!lanes || earliest == b->n_waiting)
        return earliest;
    struct amp_lane_turn t = amp_lanes_next(lanes, heads, now_ms);
    return t.lane == AMP_LANE_COUNT ? earliest : first[t.lane];
}

/* Offers the next message of the buffer that is not held. OVER: the buffer must be read again. */
static int buffer_offer(struct offering *o, const struct amp_inbox_buffer *b, int64_t *wake_ms,
                        bool *any, struct amp_error *err)
{
    AMP_FREE bool *held = calloc(b->n_waiting + 1, sizeof *held);
    if (!held)
        return amp_fail_memory(err);
    for (;;) {
        uint32_t i = place_choose(b, held, o->turn->lanes, o->now_ms);
        *any = i < b->n_waiting;
        int rc = *any ? place_offer(o, &b->waiting[i], err) : OVER;
        if (rc != HELD)
            return rc;
        held[i] = true;
        *wake_ms = o->now_ms + AMP_INBOX_HELD_MS;
    }
}

static int place_offer_next(struct offering *o, int64_t *wake_ms, struct amp_error *err)
{
    struct amp_inbox_buffer b;
    AMP_BUF struct amp_buf names = {.max = AMP_RECORD_MAX};
    for (;;) {
        if (amp_inbox_buffer_get(o->s, o->agent, &names, &b, NULL, err) < 0)
            return -1;
        int rc = 0;
        bool busy = o->turn->between_turns && b.until_ms > o->now_ms, any = false;
        *wake_ms = busy ? b.until_ms : 0;
        if (!busy)
            rc = buffer_offer(o, &b, wake_ms, &any, err);
        if (rc != 0 || !any)
            return rc;
    }
}

int amp_inbox_offer(struct amp_store *s, struct amp_span agent, const struct amp_inbox_turn *turn,
                    int64_t now_ms, struct amp_buf *mem, struct amp_inbox_msg *out,
                    int64_t *wake_ms, struct amp_error *err)
{
    AMP_BUF struct amp_buf own = {.max = AMP_RECORD_MAX};
    struct offering o = {.s = s,
                         .agent = agent,
                         .turn = turn,
                         .now_ms = now_ms,
                         .mem = mem,
                         .own = &own,
                         .out = out};
    return amp_inbox_agent_check(agent, err) < 0 ? -1 : place_offer_next(&o, wake_ms, err);
}

int amp_inbox_read_and_say(struct amp_store *s, struct amp_span agent, struct amp_span id,
                           int64_t now_ms, const struct amp_store_emit *emit, const char *actor,
                           struct amp_error *err)
{
    struct amp_inbox_key k;
    struct amp_inbox_step step = {
        .event = AMP_INBOX_EV_READ, .now_ms = now_ms, .emit = emit, .actor = emit ? actor : NULL};
    /* One turn, so that other inboxes see all of these commits or none. */
    if (amp_inbox_key_of(agent, id, &k, err) < 0 || amp_store_begin(s, err) < 0)
        return -1;
    int rc = amp_inbox_step(s, k.key, &step, err);
    if (rc == 0)
        rc = read_report(s, agent, k.id, now_ms, err);
    if (rc == 0)
        rc = amp_inbox_withdraw_others(s, agent, k.id, now_ms, err);
    if (rc == 0)
        rc = amp_inbox_carry(s, agent, &k, &step, err);
    amp_store_end(s);
    return rc;
}

/* ---- returning ---- */

static int front_fn(void *ctx, struct amp_inbox_buffer *b, struct amp_error *err)
{
    const struct amp_inbox_place *p = ctx;
    (void)err;
    uint32_t open = 0;
    for (uint32_t i = 0; i < b->n_open; i++)
        if (!amp_span_eq(b->open[i], p->id))
            b->open[open++] = b->open[i];
    b->n_open = open;
    if (amp_inbox_buffer_find(b, p->id) < b->n_waiting)
        return 1;
    memmove(&b->waiting[1], &b->waiting[0], b->n_waiting * sizeof(*b->waiting));
    b->waiting[0] = *p;
    b->n_waiting++;
    return 0;
}

static int delivery_return(struct amp_store *s, struct amp_span agent,
                           const struct amp_inbox_key *k, int64_t now_ms, struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {.max = AMP_RECORD_MAX};
    struct amp_inbox_delivery d;
    struct amp_fsm_result r;
    struct amp_inbox_step step = {.event = AMP_INBOX_EV_RETURN, .now_ms = now_ms};
    if (amp_inbox_delivery_get(s, k->key, &mem, &d, err) < 0)
        return -1;
    if (d.state == AMP_INBOX_ABSENT)
        return amp_fail(err, AMP_NO, unknown_ref, "%.*s has no message %.*s", (int)agent.n, agent.p,
                        (int)k->id.n, k->id.p);
    if (amp_fsm_step(&amp_inbox_fsm, d.state, step.event, 0, &r, err) < 0)
        return -1;
    struct amp_inbox_place p = {
        .id = k->id, .at_ms = d.at_ms, .expires_ms = d.expires_ms, .lane = d.lane};
    if ((r.effects & AMP_INBOX_DO_PLACE) &&
        amp_inbox_buffer_update(s, agent, "return", front_fn, &p, err) < 0)
        return -1;
    return amp_inbox_step(s, k->key, &step, err);
}

int amp_inbox_return(struct amp_store *s, struct amp_span agent, struct amp_span id, int64_t now_ms,
                     struct amp_error *err)
{
    struct amp_inbox_key k;
    if (amp_inbox_key_of(agent, id, &k, err) < 0 || amp_store_begin(s, err) < 0)
        return -1;
    int rc = delivery_return(s, agent, &k, now_ms, err);
    amp_store_end(s);
    return rc;
}
