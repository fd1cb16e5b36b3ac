/* Giving messages to a port: one at a time, in chunks, or several in a batch (SW4RM §5.4). */
#include "message/route/outlet/private.h"

#include <stdlib.h>

#include "message/route/count.h"

#define AHEAD_OF 4 /* this part of a bounded buffer may be unread in the pipe */

uint32_t amp_outlet_ahead(const struct outlet *t)
{
    return t->inbound ? (t->inbound + AHEAD_OF - 1) / AHEAD_OF : 0;
}

bool amp_outlet_takes_more(const struct outlet *t)
{
    return !amp_unacked_full(&t->unacked) && amp_port_room(t->port, amp_outlet_ahead(t));
}

int amp_outlet_give(struct amp_outlets *o, struct outlet *t, struct parcel *j, int64_t since_ms,
                    struct amp_error *err)
{
    if (amp_port_offer(t->port, amp_span_str(j->id), (struct amp_span){j->line, j->n}, (uintptr_t)j,
                       since_ms, err) < 0) {
        if (err->status != AMP_INTERRUPTED)
            return -1;
        /* The message is neither delivered nor refused. */
        amp_route_break(o->run, err);
        return 0;
    }
    t->given++;
    t->unacked.away += j->wants_ack;
    amp_route_count_parcel(o->run, AMP_METRIC_SENT, t->spec, j);
    return 0;
}

/* ---- reports ---- */

void amp_outlet_say_urgent(struct amp_outlets *o, const struct outlet *t, const struct parcel *j)
{
    amp_route_count_parcel(o->run, AMP_METRIC_URGENT, t->spec, j);
    if (o->run->verbose)
        o->run->voice->note("%s: urgent: %s", t->spec, j->id);
}

static void turn_report(struct amp_outlets *o, const struct outlet *t, const struct parcel *j,
                        const struct amp_lane_turn *turn)
{
    amp_route_count_waited(o->run, t->spec, turn->waited_ms);
    if (turn->starved) {
        amp_route_count_parcel(o->run, AMP_METRIC_STARVATION, t->spec, j);
        o->run->voice->warn("%s: a %s message waited %lld ms while others went: %s", t->spec,
                            amp_lane_name(turn->lane), (long long)turn->waited_ms, j->id);
    }
    if (turn->urgent)
        amp_outlet_say_urgent(o, t, j);
}

/* ---- chunks ---- */

static bool is_message(const struct parcel *j)
{
    return !j->copy && !j->answer && !j->carried;
}

/* The progress of the message to the outlet in chunks, or NULL. */
static struct parcel_chunks *chunks_of(const struct outlet *t, const struct parcel *j)
{
    return j->notes ? amp_chunks_of(j, &t->unacked) : NULL;
}

static bool goes_in_chunks(const struct amp_outlets *o, const struct outlet *t,
                           const struct parcel *j)
{
    return o->opt->units.chunk > 0 && j->n > o->opt->units.chunk &&
           (t->takes | j->takes) & AMP_TAKES_CHUNKS && is_message(j) && !chunks_of(t, j);
}

static bool goes_in_batches(const struct amp_outlets *o, const struct outlet *t,
                            const struct parcel *j)
{
    return o->opt->units.batch > 1 && (t->takes | j->takes) & AMP_TAKES_BATCHES &&
           j->n <= AMP_BATCH_BYTES && is_message(j) && !chunks_of(t, j);
}

int amp_outlet_prepare(struct amp_outlets *o, struct outlet *t, struct parcel *j, bool *waits,
                       struct amp_error *err)
{
    if (goes_in_chunks(o, t, j) && amp_chunks_begin(j, &t->unacked, o->opt->units.chunk, err) < 0)
        return -1;
    *waits = goes_in_batches(o, t, j) || chunks_of(t, j);
    return 0;
}

static int unit_give(struct outlet *t, const struct parcel *unit, int64_t since_ms,
                     struct amp_error *err)
{
    if (amp_port_offer(t->port, amp_span_str(unit->id), (struct amp_span){unit->line, unit->n},
                       (uintptr_t)unit, since_ms, err) < 0)
        return -1;
    t->given++;
    return 0;
}

/* If all of the message was given to the port, and the port has reported every chunk. */
static void chunks_end(struct amp_outlets *o, uint32_t outlet, struct parcel_chunks *c)
{
    struct outlet *t = o->v[outlet];
    struct amp_error why = c->why;
    bool failed = c->failed;
    if (c->next < c->t.count || c->away > 0)
        return;
    for (struct parcel_chunks **at = &t->chunked; *at; at = &(*at)->link)
        if (*at == c) {
            *at = c->link;
            break;
        }
    o->run->delivered += !failed;
    /* The state stays: a kept message may have to be sent again. */
    bool kept = c->given && amp_unacked_done(&t->unacked, c->parcel, !failed);
    o->events.done(o->events.ctx, c->parcel, outlet, failed ? &why : NULL, kept);
}

static void chunks_fail(struct parcel_chunks *c, const struct amp_error *why)
{
    if (!c->failed)
        c->why = *why;
    c->failed = true;
}

static void chunks_link(struct outlet *t, struct parcel_chunks *c)
{
    const struct parcel_chunks *x = t->chunked;
    while (x && x != c)
        x = x->link;
    if (x)
        return;
    c->link = t->chunked;
    t->chunked = c;
}

static int chunk_offer(struct amp_outlets *o, struct outlet *t, struct parcel_chunks *c,
                       int64_t since_ms, struct amp_error *err)
{
    struct parcel *unit = NULL;
    if (amp_chunks_next(o->run, c, &unit, err) == 0 && unit_give(t, unit, since_ms, err) == 0)
        return 0;
    amp_parcel_free(unit);
    return -1;
}

/* Gives the port the next chunk of a message that left its lane. */
static void chunk_give(struct amp_outlets *o, uint32_t outlet, struct parcel_chunks *c,
                       enum amp_lane lane, int64_t since_ms)
{
    struct outlet *t = o->v[outlet];
    struct amp_error err = {0};
    c->waits = false;
    chunks_link(t, c);
    if (!c->failed && chunk_offer(o, t, c, since_ms, &err) < 0) {
        if (err.status == AMP_INTERRUPTED) { /* it is neither delivered nor refused */
            amp_route_break(o->run, &err);
            return;
        }
        chunks_fail(c, &err);
    }
    if (c->failed) {
        c->next = c->t.count;
        chunks_end(o, outlet, c);
        return;
    }
    if (!c->given) {
        t->unacked.away += c->parcel->wants_ack;
        amp_route_count_parcel(o->run, AMP_METRIC_SENT, t->spec, c->parcel);
    }
    c->given = true;
    c->away++;
    c->waits = ++c->next < c->t.count;
    if (c->waits && amp_waiting_again(&t->waiting, c->parcel, lane, since_ms, &err) < 0)
        amp_route_break(o->run, &err);
}

/* A kept message is sent again. If its last chunk was read, the receiver may have ended after the
 * transfer was complete, so this is a new one; else the unread chunks are still in the port. */
int amp_outlet_again(void *ctx, struct amp_unacked *u, struct parcel *j, bool unread,
                     struct amp_error *err)
{
    struct amp_outlets *o = ctx;
    struct parcel_chunks *c = amp_chunks_of(j, u);
    uint32_t i = 0;
    while (i < o->n && &o->v[i]->unacked != u)
        i++;
    if (i == o->n || !c)
        return 0;
    if (!unread)
        amp_unit_transfer_begin(&c->t);
    c->next = 0;
    c->waits = true;
    return amp_waiting_again(&o->v[i]->waiting, j, j->lane, o->run->now_ms, err);
}

/* The reader is gone, and with it perhaps chunks of unfinished messages. They are sent again in the
 * same transfer, because the rest of them is still in the port's queue. */
void amp_outlet_restart(struct amp_outlets *o, struct outlet *t)
{
    struct amp_error err;
    for (struct parcel_chunks *c = t->chunked; c; c = c->link) {
        if (c->failed || c->next == c->away) /* the reader got none of them */
            continue;
        c->next = 0;
        if (!c->waits &&
            amp_waiting_again(&t->waiting, c->parcel, c->parcel->lane, o->run->now_ms, &err) < 0)
            amp_route_break(o->run, &err);
        c->waits = true;
    }
}

/* The port reports the outcome of a unit. */
void amp_outlet_unit_done(struct amp_outlets *o, struct outlet *t, struct parcel *unit,
                          const struct amp_error *why)
{
    struct parcel_chunks *c = chunks_of(t, unit->carried[0]);
    if (c) {
        c->away--;
        if (why)
            chunks_fail(c, why);
        if (c->failed && !c->waits)
            c->next = c->t.count;
        chunks_end(o, o->stepping, c);
    }
    for (uint32_t i = 0; i < unit->n_carried && !c; i++) {
        struct parcel *j = unit->carried[i];
        o->run->delivered += !why;
        bool kept = amp_unacked_done(&t->unacked, j, !why);
        o->events.done(o->events.ctx, j, o->stepping, why, kept);
    }
    amp_parcel_free(unit);
}

/* Reports the failure of a message that the port never got. */
void amp_outlet_fail(struct amp_outlets *o, uint32_t outlet, struct parcel *j,
                     const struct amp_error *why)
{
    struct parcel_chunks *c = chunks_of(o->v[outlet], j);
    if (c) { /* the port may still have some of them */
        chunks_fail(c, why);
        c->waits = false;
        c->next = c->t.count;
        chunks_end(o, outlet, c);
        return;
    }
    o->events.done(o->events.ctx, j, outlet, why, false);
}

/* ---- the next message, or a batch ---- */

/* Takes the next message out of its lane. */
static struct parcel *next_take(struct amp_outlets *o, struct outlet *t, enum amp_lane *lane,
                                int64_t *since_ms)
{
    struct amp_lane_turn turn;
    struct parcel *j = amp_waiting_next(&t->waiting, o->run->now_ms, &turn, since_ms);
    turn_report(o, t, j, &turn);
    *lane = turn.lane;
    return j;
}

static void one_give(struct amp_outlets *o, uint32_t outlet, struct parcel *j, enum amp_lane lane,
                     int64_t since_ms)
{
    struct outlet *t = o->v[outlet];
    struct amp_error err = {0};
    struct parcel_chunks *c = NULL;
    if (goes_in_chunks(o, t, j) && amp_chunks_begin(j, &t->unacked, o->opt->units.chunk, &err) < 0)
        amp_outlet_fail(o, outlet, j, &err);
    else if ((c = chunks_of(t, j)))
        chunk_give(o, outlet, c, lane, since_ms);
    else if (amp_outlet_give(o, t, j, since_ms, &err) < 0)
        amp_outlet_fail(o, outlet, j, &err);
}

/* Gives the port what waits now as a batch; a message that does not go into it comes after it. */
static void batch_give(struct amp_outlets *o, uint32_t outlet, struct parcel *first,
                       enum amp_lane lane, int64_t since_ms)
{
    struct outlet *t = o->v[outlet];
    struct parcel *v[AMP_BATCH_MAX] = {first}, *unit = NULL, *alone = NULL;
    struct amp_error err = {0};
    uint32_t n = 1, away = first->wants_ack;
    size_t bytes = first->n;
    int64_t since = since_ms;
    while (n < o->opt->units.batch && t->waiting.n > 0 && !alone &&
           (!t->unacked.credits || t->unacked.away + away < t->unacked.credits)) {
        struct parcel *j = next_take(o, t, &lane, &since);
        if (!goes_in_batches(o, t, j) || bytes + j->n > AMP_BATCH_BYTES) {
            alone = j;
            break;
        }
        v[n++] = j;
        bytes += j->n;
        away += j->wants_ack;
    }
    if (n == 1) {
        one_give(o, outlet, first, lane, since_ms);
    } else if (amp_batch_make(o->run, v, n, &unit, &err) < 0 ||
               unit_give(t, unit, since_ms, &err) < 0) {
        amp_parcel_free(unit);
        if (err.status == AMP_INTERRUPTED)
            amp_route_break(o->run, &err);
        for (uint32_t i = 0; i < n && err.status != AMP_INTERRUPTED; i++) {
            amp_outlet_fail(o, outlet, v[i], &err);
        }
    } else {
        t->unacked.away += away;
        for (uint32_t i = 0; i < n; i++)
            amp_route_count_parcel(o->run, AMP_METRIC_SENT, t->spec, v[i]);
    }
    if (alone)
        one_give(o, outlet, alone, lane, since);
}

void amp_outlet_give_next(struct amp_outlets *o, uint32_t outlet)
{
    struct outlet *t = o->v[outlet];
    enum amp_lane lane;
    int64_t since;
    struct parcel *j = next_take(o, t, &lane, &since);
    if (goes_in_batches(o, t, j))
        batch_give(o, outlet, j, lane, since);
    else
        one_give(o, outlet, j, lane, since);
}
