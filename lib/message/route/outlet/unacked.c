/* Unacknowledged messages of a port: kept for its next reader, and counted against its credits. */
#include "message/route/outlet/unacked.h"

#include <stdlib.h>
#include <string.h>

#include <amp/base/clock.h>

#include "base/grow.h"
#include "message/delivery/inbox/inbox.h"
#include "message/delivery/ledger/ledger.h"
#include "message/delivery/ledger/timeouts.h"
#include "message/delivery/record/record.h"
#include "message/protocol/delivery.h"
#include "message/route/count.h"
#include "message/route/outlet/units.h"
#include "message/route/record.h"

#define LOOK_GAP_MS      10
#define BYTES_MAX        ((size_t)16 << 20) /* of a port without credits */
#define RECORDED_AT_ONCE 256

/* ---- the ledger ---- */

/* Whether RECEIVED means that the receiver has the message on disk. */
static bool is_durable(const struct parcel *j)
{
    return amp_delivery_of(j->protocol)->acks_are_durable;
}

/* Whether the state means that the receiver will not lose the message. */
static bool is_read(const struct parcel *j, int state)
{
    return state == AMP_DELIVERY_READ || state == AMP_DELIVERY_FULFILLED ||
           state == AMP_DELIVERY_REJECTED || state == AMP_DELIVERY_FAILED ||
           (state == AMP_DELIVERY_RECEIVED && is_durable(j));
}

/* Whether this one of several recipients has read the message. */
static int read_by(const struct parcel *j, const struct amp_store_rec *row, bool *read,
                   struct amp_error *err)
{
    static const enum amp_ack_stage stages[] = {AMP_STAGE_READ, AMP_STAGE_FULFILLED,
                                                AMP_STAGE_REJECTED, AMP_STAGE_FAILED};
    struct amp_message_rec rec;
    AMP_BUF struct amp_buf mem = {0};
    bool late;
    amp_buf_init(&mem, AMP_RECORD_MAX);
    if (amp_message_parse(row, &mem, &rec, err) < 0)
        return -1;
    *read = is_durable(j) && amp_record_has_ack(&rec, amp_ack_stage_name(AMP_STAGE_RECEIVED),
                                                j->address.name, &late);
    for (size_t i = 0; i < sizeof(stages) / sizeof(stages[0]) && !*read; i++)
        *read = amp_record_has_ack(&rec, amp_ack_stage_name(stages[i]), j->address.name, &late);
    return 0;
}

/* *waits: the ledger has the message and waits for its acknowledgement. */
static int ledger_look(const struct amp_route_run *run, const struct parcel *j, bool *read,
                       bool *waits, struct amp_error *err)
{
    struct amp_store_rec row;
    *read = *waits = false;
    if (!run->store ||
        amp_store_get(run->store, AMP_KEY(AMP_MESSAGE_KIND, amp_span_str(j->id)), &row, err) < 0)
        return run->store ? -1 : 0;
    int state = row.found ? amp_fsm_state(&amp_delivery_fsm, row.state) : -1;
    if (state < 0)
        return 0;
    *read = is_read(j, state);
    if (*read && j->address.of && j->address.of->address.is_group &&
        read_by(j, &row, read, err) < 0)
        return -1;
    *waits = !*read && (state == AMP_DELIVERY_SENT || state == AMP_DELIVERY_RECEIVED ||
                        (j->address.of && is_read(j, state)));
    return 0;
}

/* Whether an agent read the message from a place in its inbox before the delivery was recorded, so
 * that its sender has no answer. */
static int is_unanswered(const struct amp_route_run *run, const struct parcel *j,
                         struct amp_error *err)
{
    struct amp_message_rec rec;
    AMP_BUF struct amp_buf mem = {0};
    struct amp_span id = amp_span_str(j->id);
    int early = 0;
    amp_buf_init(&mem, AMP_RECORD_MAX);
    if (amp_message_find(run->store, id, &mem, &rec, err) < 0)
        return -1;
    for (uint32_t i = 0; rec.found && i < rec.n_acks && early == 0; i++)
        if (strcmp(rec.acks[i].stage, amp_ack_stage_name(AMP_STAGE_READ)) == 0)
            early = amp_inbox_is_early(run->store, amp_span_str(rec.acks[i].by), id, err);
    return early;
}

int amp_unacked_was_read(struct amp_route_run *run, const struct parcel *j, struct amp_error *err)
{
    bool read, waits;
    if (!j->wants_ack)
        return 0;
    if (ledger_look(run, j, &read, &waits, err) < 0)
        return -1;
    int unanswered = read ? is_unanswered(run, j, err) : 0;
    return unanswered < 0 ? -1 : read && !unanswered;
}

/* ---- keeping ---- */

static void parcel_drop(struct amp_unacked *u, uint32_t i)
{
    struct parcel *j = u->v[i].parcel;
    memmove(&u->v[i], &u->v[i + 1], (--u->n - i) * sizeof(*u->v));
    u->bytes -= j->n;
    u->away--;
    u->shared->leave(u->shared->ctx, j);
}

static void read_drop(struct amp_unacked *u)
{
    struct amp_error err;
    for (uint32_t i = 0; i < u->n && !u->run->broken;) {
        bool read, waits;
        if (ledger_look(u->run, u->v[i].parcel, &read, &waits, &err) < 0)
            amp_route_break(u->run, &err);
        else if (read || (!waits && !u->credits))
            parcel_drop(u, i);
        else
            i++;
    }
}

static bool is_past_bound(const struct amp_unacked *u)
{
    return !u->credits && (u->n >= UNACKED_MAX || u->bytes > BYTES_MAX);
}

static int parcel_keep(struct amp_unacked *u, struct parcel *j, uint64_t number,
                       struct amp_error *err)
{
    if (amp_grow(&u->v, &u->cap, u->n, sizeof *u->v, err) < 0)
        return -1;
    u->v[u->n++] = (struct amp_unacked_kept){.parcel = j, .number = number};
    u->bytes += j->n;
    return 0;
}

bool amp_unacked_full(const struct amp_unacked *u)
{
    return u->credits && u->away >= u->credits;
}

bool amp_unacked_done(struct amp_unacked *u, struct parcel *j, bool delivered)
{
    struct amp_error err;
    bool piped = amp_port_has(u->port, AMP_PORT_PIPED), read = false, waits = false;
    if (!j->wants_ack)
        return false;
    if (delivered && (piped || u->credits) && ledger_look(u->run, j, &read, &waits, &err) < 0)
        amp_route_break(u->run, &err);
    if (!read && (u->credits || (waits && piped)) && delivered && !u->run->broken) {
        /* An unread message that is dropped here has a deadline in the ledger. */
        if (is_past_bound(u))
            read_drop(u);
        while (is_past_bound(u))
            parcel_drop(u, 0);
        if (parcel_keep(u, j, amp_port_number(u->port), &err) == 0)
            return true;
        amp_route_break(u->run, &err);
    }
    u->away--;
    return false;
}

/* ---- acknowledgements ---- */

static bool is_of(const struct parcel *j, const struct amp_view *v)
{
    return amp_span_is(v->body.ack.ref, j->id) &&
           (!j->address.name || amp_span_is(v->from, j->address.name));
}

void amp_unacked_hear(struct amp_unacked *u, const struct amp_view *v)
{
    for (uint32_t i = 0; i < u->n && v->body.ack.ref.n > 0;) {
        const struct parcel *j = u->v[i].parcel;
        bool enough = v->body.ack.stage != AMP_STAGE_RECEIVED || is_durable(j);
        if (enough && is_of(j, v))
            parcel_drop(u, i);
        else
            i++;
    }
}

void amp_unacked_turn(struct amp_unacked *u)
{
    const struct amp_unacked_shared *s = u->shared;
    if (!u->run->store || (s->wake.log >= 0 && u->moves == s->log_moves) ||
        u->run->now_ms - u->looked_ms < LOOK_GAP_MS)
        return;
    u->looked_ms = u->run->now_ms;
    u->moves = s->log_moves;
    read_drop(u);
}

int64_t amp_unacked_due(const struct amp_unacked *u)
{
    if (!u->run->store || (u->shared->wake.log >= 0 && u->moves == u->shared->log_moves))
        return -1;
    int64_t due = u->looked_ms + LOOK_GAP_MS - u->run->now_ms;
    return due > 0 ? due : 0;
}

/* ---- the log wakes the router ---- */

void amp_unacked_shared_open(struct amp_unacked_shared *s, bool credits)
{
    const struct amp_route_run *run = s->run;
    struct amp_error err;
    s->log_moves = 1;
    /* If it fails, the ledger is read every LOOK_GAP_MS. */
    if (run->store && credits && !run->dry &&
        amp_wake_open(&s->wake, amp_store_dir(run->store), &err) < 0)
        run->voice->warn("%s", err.what);
}

void amp_unacked_shared_wake(struct amp_unacked_shared *s)
{
    struct amp_error err;
    if (amp_wake_drain(&s->wake, &err) < 0) {
        s->run->voice->warn("the log is no longer watched");
        amp_wake_close(&s->wake);
    }
    s->log_moves++;
}

/* ---- a lost reader ---- */

/* Reports and records that the first n kept messages are delivered again. */
static int redelivery_record(struct amp_unacked *u, uint32_t n, struct amp_error *err)
{
    struct amp_route_run *run = u->run;
    struct amp_span ids[RECORDED_AT_ONCE];
    struct amp_route_commit c = {
        .event = "redeliver", .port = amp_span_str(u->spec), .redelivered = ids};
    enum amp_store_outcome how;
    if (n == 0)
        return 0;
    for (uint32_t i = 0; i < n; i++)
        amp_route_count_parcel(run, AMP_METRIC_REDELIVERED, u->spec, u->v[i].parcel);
    run->voice->note("%s: its reader is gone: %u unacknowledged %s to the next one, from %.100s on",
                     u->spec, n, n == 1 ? "message goes" : "messages go", u->v[0].parcel->id);
    if (!run->store)
        return 0;
    for (uint32_t i = 0; i < n; i++) {
        ids[c.n_redelivered++] = amp_span_str(u->v[i].parcel->id);
        if (c.n_redelivered < RECORDED_AT_ONCE && i + 1 < n)
            continue;
        if (amp_route_record(run, &c, &how, err) < 0)
            return -1;
        c.n_redelivered = 0;
    }
    return amp_store_sync(run->store, err);
}

static int all_redeliver(struct amp_unacked *u, struct amp_error *err)
{
    uint64_t first = amp_port_first(u->port);
    uint32_t n = 0;
    AMP_FREE struct amp_port_line *lines = calloc((size_t)u->n + 1, sizeof(*lines));
    if (!lines)
        return amp_fail_memory(err);
    while (n < u->n && u->v[n].number < first)
        n++;
    if (redelivery_record(u, n, err) < 0)
        return -1;
    n = 0;
    for (uint32_t i = 0; i < u->n; i++)
        if (!amp_chunks_of(u->v[i].parcel, u))
            lines[n++] = (struct amp_port_line){.number = u->v[i].number,
                                                .tag = (uintptr_t)u->v[i].parcel,
                                                .line = {u->v[i].parcel->line, u->v[i].parcel->n}};
    for (uint32_t i = u->n; i-- > 0;)
        if (amp_chunks_of(u->v[i].parcel, u) &&
            u->shared->again(u->shared->again_ctx, u, u->v[i].parcel, u->v[i].number >= first,
                             err) < 0)
            return -1;
    if (amp_port_again(u->port, lines, n, err) < 0)
        return -1;
    u->n = 0;
    u->bytes = 0;
    return 0;
}

void amp_unacked_lost(struct amp_unacked *u)
{
    struct amp_error err;
    if (u->run->store)
        read_drop(u);
    if (!u->run->broken && all_redeliver(u, &err) < 0)
        amp_route_break(u->run, &err);
}

void amp_unacked_end(struct amp_unacked *u)
{
    while (u->n > 0)
        parcel_drop(u, u->n - 1);
}
