/* What was handed to a port and not acknowledged: kept for its next reader, counted as credit. */
#include "route/router/router.h"

#include <stdlib.h>
#include <string.h>

#include <amp/base/clock.h>

#include "message/ledger/ledger.h"
#include "message/ledger/stages.h"
#include "message/record/record.h"

#define LOOK_GAP_MS  10
#define BYTES_MAX    ((size_t)16 << 20) /* of a port without credits */
#define TOLD_AT_ONCE 256

/* ---- what the ledger says ---- */

/* Whether that state means that the receiver has it for good. Runtime Protocol: `accepted` is
 * said after the event is on disk. */
static bool is_read(const struct job *j, int state)
{
    return state == AMP_DELIVERY_READ || state == AMP_DELIVERY_FULFILLED ||
           state == AMP_DELIVERY_REJECTED || state == AMP_DELIVERY_FAILED ||
           (state == AMP_DELIVERY_RECEIVED && j->protocol == AMP_PROTO_RTP);
}

/* One of several recipients speaks for itself only. */
static int read_by(const struct job *j, const struct amp_store_rec *row, bool *read,
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
    *read =
        j->protocol == AMP_PROTO_RTP &&
        amp_record_has_ack(&rec, amp_ack_stage_name(AMP_STAGE_RECEIVED), j->address.name, &late);
    for (size_t i = 0; i < sizeof(stages) / sizeof(stages[0]) && !*read; i++)
        *read = amp_record_has_ack(&rec, amp_ack_stage_name(stages[i]), j->address.name, &late);
    return 0;
}

/* *waits: the ledger has it and still waits for its acknowledgement. */
static int look_up(struct router *r, const struct job *j, bool *read, bool *waits,
                   struct amp_error *err)
{
    struct amp_store_rec row;
    *read = *waits = false;
    if (!r->store || amp_store_get(r->store, AMP_MESSAGE_KIND, amp_span_str(j->id), &row, err) < 0)
        return r->store ? -1 : 0;
    int state = row.found ? amp_fsm_state(&amp_delivery_fsm, row.state) : -1;
    if (state < 0)
        return 0;
    *read = is_read(j, state);
    if (*read && j->address.of && j->address.of->address.mark && read_by(j, &row, read, err) < 0)
        return -1;
    *waits = !*read && (state == AMP_DELIVERY_SENT || state == AMP_DELIVERY_RECEIVED ||
                        (j->address.of && is_read(j, state)));
    return 0;
}

int amp_unacked_was_read(struct router *r, const struct job *j, struct amp_error *err)
{
    bool read, waits;
    if (!j->wants_ack)
        return 0;
    return look_up(r, j, &read, &waits, err) < 0 ? -1 : read;
}

/* ---- keeping ---- */

static void let_go(struct router *r, struct amp_outlet *t, uint32_t i)
{
    struct unacked *u = &t->unacked;
    struct job *j = u->v[i].job;
    memmove(&u->v[i], &u->v[i + 1], (--u->n - i) * sizeof(*u->v));
    u->bytes -= j->n;
    u->away--;
    amp_route_job_leave(r, j);
}

static void release_read(struct router *r, struct amp_outlet *t)
{
    struct amp_error err;
    for (uint32_t i = 0; i < t->unacked.n && !r->broken;) {
        bool read, waits;
        const struct job *j = t->unacked.v[i].job;
        if (look_up(r, j, &read, &waits, &err) < 0)
            amp_route_break(r, &err);
        else if (read || (!waits && !t->unacked.credits))
            let_go(r, t, i);
        else
            i++;
    }
}

static bool is_piped(const struct amp_outlet *t)
{
    return amp_port_has(t->port, AMP_PORT_PIPED);
}

static bool is_past_bound(const struct unacked *u)
{
    return !u->credits && (u->n >= UNACKED_MAX || u->bytes > BYTES_MAX);
}

static int keep(struct amp_outlet *t, struct job *j, uint64_t number, struct amp_error *err)
{
    struct unacked *u = &t->unacked;
    if (u->n == u->cap) {
        uint32_t cap = u->cap ? u->cap * 2 : 16;
        struct kept *v = realloc(u->v, cap * sizeof(*v));
        if (!v)
            return amp_fail_memory(err);
        u->v = v;
        u->cap = cap;
    }
    u->v[u->n++] = (struct kept){.job = j, .number = number};
    u->bytes += j->n;
    return 0;
}

void amp_unacked_given(struct amp_outlet *t, const struct job *j)
{
    t->unacked.away += j->wants_ack;
}

bool amp_unacked_full(const struct amp_outlet *t)
{
    return t->unacked.credits && t->unacked.away >= t->unacked.credits;
}

bool amp_unacked_done(struct router *r, struct job *j, bool delivered)
{
    struct amp_outlet *t = r->stepping;
    struct amp_error err;
    bool read = false, waits = false;
    if (!t || !j->wants_ack)
        return false;
    if (delivered && (is_piped(t) || t->unacked.credits) && look_up(r, j, &read, &waits, &err) < 0)
        amp_route_break(r, &err);
    if (!read && (t->unacked.credits || (waits && is_piped(t))) && delivered && !r->broken) {
        /* Whoever is let go unread has a deadline in the ledger. */
        if (is_past_bound(&t->unacked))
            release_read(r, t);
        while (is_past_bound(&t->unacked))
            let_go(r, t, 0);
        if (keep(t, j, amp_port_number(t->port), &err) == 0)
            return true;
        amp_route_break(r, &err);
    }
    t->unacked.away--;
    return false;
}

/* ---- acknowledgements ---- */

static bool is_of(const struct job *j, const struct amp_view *v)
{
    return amp_span_is(v->body.ack.ref, j->id) &&
           (!j->address.name || amp_span_is(v->from, j->address.name));
}

/* One that passes. That it was received is none yet, but for the Runtime Protocol. */
static void hear(struct router *r, const struct amp_view *v)
{
    if (v->body.ack.ref.n == 0)
        return;
    for (uint32_t p = 1; p < r->n_ports; p++)
        for (uint32_t i = 0; i < r->outlets[p]->unacked.n;) {
            const struct job *j = r->outlets[p]->unacked.v[i].job;
            bool enough = v->body.ack.stage != AMP_STAGE_RECEIVED || j->protocol == AMP_PROTO_RTP;
            if (enough && is_of(j, v))
                let_go(r, r->outlets[p], i);
            else
                i++;
        }
}

int amp_unacked_look(struct router *r, struct job *j, const struct amp_view *v,
                     struct amp_error *err)
{
    (void)err;
    bool answer = v->kind == AMP_KIND_ACK || v->kind == AMP_KIND_NACK;
    if (answer)
        hear(r, v);
    else if (r->store || r->credits)
        j->wants_ack = v->id.n > 0 && amp_stages_timeout(v) > 0;
    return STEP_GO;
}

void amp_unacked_turn(struct router *r, struct amp_outlet *t)
{
    bool told = r->wake.log >= 0;
    if (!r->store || (told && t->unacked.moves == r->log_moves) ||
        r->now_ms - t->unacked.looked_ms < LOOK_GAP_MS)
        return;
    t->unacked.looked_ms = r->now_ms;
    t->unacked.moves = r->log_moves;
    release_read(r, t);
}

/* Milliseconds until amp_unacked_turn has to look; -1: when somebody writes. */
int64_t amp_unacked_due(const struct router *r, const struct amp_outlet *t)
{
    if (!r->store)
        return -1; /* acknowledgements come by the input */
    if (r->wake.log >= 0 && t->unacked.moves == r->log_moves)
        return -1;
    int64_t due = t->unacked.looked_ms + LOOK_GAP_MS - r->now_ms;
    return due > 0 ? due : 0;
}

/* ---- the log tells that there may be some ---- */

void amp_unacked_open(struct router *r)
{
    struct amp_error err;
    r->log_moves = 1;
    r->wake.log = r->wake.timer = -1;
    /* Without it the ledger is looked at now and then. */
    if (r->store && r->credits > 0 && !r->dry &&
        amp_wake_open(&r->wake, amp_store_dir(r->store), &err) < 0)
        r->voice->warn("%s", err.what);
}

void amp_unacked_close(struct router *r)
{
    if (r->log_moves > 0)
        amp_wake_close(&r->wake);
}

void amp_unacked_wake(struct router *r)
{
    struct amp_error err;
    if (amp_wake_drain(&r->wake, &err) < 0) {
        r->voice->warn("the log is not watched any more");
        amp_wake_close(&r->wake);
    }
    r->log_moves++;
}

bool amp_unacked_hopeless(const struct router *r, const struct amp_outlet *t)
{
    int64_t limit = r->port_options.open_timeout_ms;
    return amp_unacked_full(t) && r->eof &&
           (!r->store || (limit >= 0 && r->now_ms - r->eof_ms > limit));
}

/* ---- a reader that went away ---- */

struct telling {
    const struct amp_outlet *target;
    uint32_t from, to;
    struct amp_buf json;
};

static int tell_fn(void *ctx, const struct amp_store_rec *now, struct amp_store_change *change,
                   struct amp_error *err)
{
    struct telling *t = ctx;
    struct amp_jw w;
    amp_buf_reset(&t->json);
    amp_jw_init(&w, &t->json);
    amp_jw_open(&w, '{');
    amp_jw_member_int(&w, "batches", (int64_t)now->rev + 1);
    amp_jw_member_str(&w, "port", amp_span_str(t->target->spec));
    amp_jw_key(&w, "redelivered");
    amp_jw_open(&w, '[');
    for (uint32_t i = t->from; i < t->to; i++)
        amp_jw_str(&w, amp_span_str(t->target->unacked.v[i].job->id));
    amp_jw_close(&w, ']');
    amp_jw_close(&w, '}');
    change->event = "redeliver";
    change->to = "OPEN";
    change->json = amp_buf_span(&t->json);
    return amp_jw_end(&w, err);
}

/* The first n of those kept come again. */
static int tell(struct router *r, struct amp_outlet *t, uint32_t n, struct amp_error *err)
{
    struct telling about = {.target = t};
    enum amp_store_outcome how;
    int rc = 0;
    if (n == 0)
        return 0;
    for (uint32_t i = 0; i < n; i++)
        amp_route_count_job(r, AMP_METRIC_REDELIVERED, t->spec, t->unacked.v[i].job);
    r->voice->note("%s: its reader is gone: %u unacknowledged %s to the next one, from %.100s on",
                   t->spec, n, n == 1 ? "message goes" : "messages go", t->unacked.v[0].job->id);
    t->unacked.again += n;
    amp_buf_init(&about.json, (size_t)4 << 20);
    for (uint32_t i = 0; i < n && rc == 0 && r->store; i += TOLD_AT_ONCE) {
        about.from = i;
        about.to = n - i < TOLD_AT_ONCE ? n : i + TOLD_AT_ONCE;
        rc = amp_store_update(r->store, AMP_ROUTE_KIND, amp_span_str(r->consumer), NULL, tell_fn,
                              &about, &how, err);
    }
    amp_buf_release(&about.json);
    return rc < 0 || !r->store ? rc : amp_store_sync(r->store, err);
}

static int again(struct router *r, struct amp_outlet *t, struct amp_error *err)
{
    struct unacked *u = &t->unacked;
    uint64_t first = amp_port_first(t->port);
    uint32_t n = 0;
    AMP_FREE struct amp_port_line *lines = calloc((size_t)u->n + 1, sizeof(*lines));
    if (!lines)
        return amp_fail_memory(err);
    while (n < u->n && u->v[n].number < first)
        n++;
    if (tell(r, t, n, err) < 0)
        return -1;
    for (uint32_t i = 0; i < u->n; i++)
        lines[i] = (struct amp_port_line){.number = u->v[i].number,
                                          .tag = (uintptr_t)u->v[i].job,
                                          .line = {u->v[i].job->line, u->v[i].job->n}};
    if (amp_port_again(t->port, lines, u->n, err) < 0)
        return -1;
    u->n = 0;
    u->bytes = 0;
    return 0;
}

void amp_unacked_lost(struct router *r, struct amp_outlet *t)
{
    struct amp_error err;
    if (r->store)
        release_read(r, t);
    if (!r->broken && again(r, t, &err) < 0)
        amp_route_break(r, &err);
}

/* ---- ends ---- */

void amp_unacked_end(struct router *r, struct amp_outlet *t)
{
    while (t->unacked.n > 0)
        let_go(r, t, t->unacked.n - 1);
}

void amp_unacked_stop(struct router *r)
{
    for (uint32_t i = 1; i < r->n_ports; i++) {
        struct amp_outlet *t = r->outlets[i];
        if (!t->port)
            continue;
        amp_port_notice(t->port);
        if (!amp_port_lost(t->port))
            amp_unacked_end(r, t);
    }
}
