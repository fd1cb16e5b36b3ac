/*
 * The holder's handle of a cursor. Every step is one compare-and-set of the record, which fails if
 * the holder's epoch or position differs from the record's. The same frame has the event, in the
 * outbox. Waiting events are in an outbox of their own until they are queued. After a crash between
 * the queueing and the end of the waiting entry, the position shows that the event was queued.
 */
#include "message/delivery/cursor/cursor.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/codes.h"
#include "message/delivery/cursor/gap.h"
#include "message/delivery/cursor/held.h"
#include "message/delivery/cursor/record.h"

#define HELD_BYTES ((size_t)16 << 20)

struct amp_cursor {
    struct amp_store *store;
    const struct amp_cursor_options *opt;
    char *origin;                      /* the source, as it is; of the key */
    char source[AMP_KEY_PART_MAX + 1]; /* the source by its name */
    char held_box[AMP_KEY_MAX];
    int64_t lease_ms, gap_ms;
    uint32_t max_held;
    struct amp_buf mem, lines; /* texts of the record, the reports of a turn */
    struct amp_cursor_rec rec;
    struct amp_held_list held;
};

static struct amp_key key_of(const struct amp_cursor *c)
{
    return AMP_KEY(amp_cursor_subject.kind, amp_span_str(c->opt->consumer),
                   amp_span_str(c->origin));
}

/* ---- one commit ---- */

struct step {
    struct amp_cursor *c;
    struct amp_cursor_step s;
    const char *actor;
    struct amp_store_emit emit;
    bool emits;
    const struct amp_cursor_item *item; /* its lines, if it has some, replace emit */
};

static int fence_refuse(const struct amp_cursor *c, struct amp_error *err)
{
    return amp_fail(err, AMP_TEMPFAIL, cursor_fenced,
                    "the cursor of %.100s over %.200s was taken over or moved: start again",
                    c->opt->consumer, c->source);
}

/* The holder's epoch and position must be those of the record. */
static int fence_check(void *ctx, struct amp_cursor_rec *r, const struct amp_store_rec *now,
                       struct amp_error *err)
{
    const struct amp_cursor *c = ((struct step *)ctx)->c;

    return now->found && r->epoch == c->rec.epoch && r->last_seq == c->rec.last_seq
               ? 0
               : fence_refuse(c, err);
}

static int step_commit(struct step *w, const struct amp_store_input *input,
                       enum amp_store_outcome *how, struct amp_error *err)
{
    struct amp_cursor *c = w->c;
    const bool own = w->item && w->item->n_emits > 0;
    enum amp_store_outcome what = AMP_STORE_UNCHANGED;
    struct amp_cursor_rec rec;
    AMP_BUF struct amp_buf mem = {.max = 1 << 20};

    if (!w->s.check) {
        w->s.check = fence_check;
        w->s.held = c->held.n;
    }
    w->s.ctx = w;
    w->s.lease_ms = c->lease_ms;
    w->s.gap_ms = c->gap_ms;
    w->s.commit = (struct amp_subject_step){.key = key_of(c),
                                            .actor = w->actor,
                                            .input = input,
                                            .emits = own ? w->item->emits : &w->emit,
                                            .n_emits = own ? w->item->n_emits : w->emits};
    int rc = amp_cursor_apply(c->store, &w->s, &mem, &rec, &what, err);
    /* Only of a step of this holder: another one may have the cursor now. */
    if (rc == 0 && what == AMP_STORE_COMMITTED) {
        const struct amp_buf old = c->mem;
        c->mem = mem;
        mem = old;
        c->rec = rec;
    }
    if (how)
        *how = what;
    return rc;
}

/* ---- taking a cursor ---- */

static int open_check(void *ctx, struct amp_cursor_rec *r, const struct amp_store_rec *now,
                      struct amp_error *err)
{
    struct step *w = ctx;
    const struct amp_cursor *c = w->c;
    const struct amp_cursor_options *opt = c->opt;
    if (!now->found) {
        r->consumer = amp_span_str(opt->consumer);
        r->source = amp_span_str(c->source);
        r->last_seq = w->s.seq;
    }
    if (r->state == AMP_CURSOR_RETIRED)
        return amp_fail(
            err, AMP_NO, cursor_retired,
            "the cursor of %.100s over %.200s is retired: 'amp-ack cursors move' reactivates it",
            opt->consumer, c->source);
    if (!opt->alone && r->holder.n > 0 && !amp_span_is(r->holder, opt->holder) &&
        r->lease_until_ms > w->s.now_ms)
        return amp_fail(err, AMP_TEMPFAIL, cursor_leased,
                        "%.*s holds the cursor of %.100s over %.200s for another %lld s",
                        (int)r->holder.n, r->holder.p, opt->consumer, c->source,
                        (long long)(r->lease_until_ms - w->s.now_ms + 999) / 1000);
    uint32_t i = 0;
    while (i < c->held.n && c->held.v[i].seq <= r->last_seq)
        i++;
    if (i < c->held.n && c->held.v[i].seq - 1 > r->last_seq) {
        w->s.facts |= AMP_CURSOR_IF_MISSING;
        w->s.gap_to = c->held.v[i].seq - 1;
    }
    w->s.held = c->held.n - i;
    return 0;
}

/* Drops waiting events that are queued, or that a person moved the cursor past. */
static int held_drop_old(struct amp_cursor *c, struct amp_error *err)
{
    while (c->held.n > 0 && c->held.v[0].seq <= c->rec.last_seq) {
        if (amp_store_outbox_close(c->store, c->held_box, &c->held.v[0].entry, 1, err) < 0)
            return -1;
        amp_held_drop_first(&c->held);
    }
    return 0;
}

int amp_cursor_open(struct amp_store *s, struct amp_span source,
                    const struct amp_cursor_options *opt, int64_t start, int64_t now_ms,
                    struct amp_cursor **out, struct amp_error *err)
{
    struct amp_cursor *c = calloc(1, sizeof *c);
    if (!c)
        return amp_fail_memory(err);
    *c = (struct amp_cursor){.store = s,
                             .opt = opt,
                             .lease_ms = opt->lease_ms > 0 ? opt->lease_ms : AMP_CURSOR_LEASE_MS,
                             .gap_ms = opt->gap_ms > 0 ? opt->gap_ms : AMP_GAP_TIMEOUT_MS,
                             .max_held = opt->max_held ? opt->max_held : AMP_CURSOR_HELD,
                             .mem = {.max = 1 << 20},
                             .lines = {.max = 1 << 20}};
    amp_key_part_name(source, c->source);
    struct step w = {.c = c,
                     .actor = opt->outbox,
                     .s = {.event = AMP_CURSOR_EV_TAKE_OVER,
                           .seq = start,
                           .now_ms = now_ms,
                           .holder = opt->holder,
                           .check = open_check}};
    struct amp_key held = AMP_KEY("held", amp_span_str(opt->consumer), source);
    struct amp_span box;
    if (!(c->origin = amp_span_dup(source))) {
        amp_cursor_free(c);
        return amp_fail_memory(err);
    }
    if (amp_key_text(&held, c->held_box, &box, err) < 0 ||
        amp_held_load(s, c->held_box, &c->held, err) < 0 || step_commit(&w, NULL, NULL, err) < 0 ||
        held_drop_old(c, err) < 0) {
        amp_cursor_free(c);
        return -1;
    }
    *out = c;
    return 0;
}

void amp_cursor_free(struct amp_cursor *c)
{
    if (!c)
        return;
    amp_held_release(&c->held);
    free(c->origin);
    amp_buf_release(&c->mem);
    amp_buf_release(&c->lines);
    free(c);
}

int amp_cursor_close(struct amp_cursor *c, int64_t now_ms, struct amp_error *err)
{
    int rc = 0;
    if (c && now_ms > 0) {
        struct step w = {
            .c = c,
            .actor = c->opt->outbox,
            .s = {.event = AMP_CURSOR_EV_LET_GO, .now_ms = now_ms, .gap_to = c->rec.gap_to}};
        rc = held_drop_old(c, err) < 0 ? -1 : step_commit(&w, NULL, NULL, err);
    }
    amp_cursor_free(c);
    return rc;
}

/* ---- events ---- */

/* Sets the facts about the gap for the position `last`, without the first `skip` waiting events. */
static void held_look_behind(const struct amp_cursor *c, int64_t last, uint32_t skip,
                             struct amp_cursor_step *s)
{
    if (skip >= c->held.n || c->held.v[skip].seq - 1 <= last)
        return;
    s->facts |= AMP_CURSOR_IF_MISSING;
    s->gap_to = c->held.v[skip].seq - 1;
    if (s->gap_to == c->rec.gap_to)
        s->facts |= AMP_CURSOR_IF_SAME;
}

/* The id by which the store recognizes an event. After a person moved the cursor, events are new.
 */
static int input_id(const struct amp_cursor *c, int64_t moves, int64_t seq, char out[AMP_KEY_MAX],
                    struct amp_span *id, struct amp_error *err)
{
    char move[24], number[24];
    snprintf(move, sizeof move, "%" PRId64, moves);
    snprintf(number, sizeof number, "%" PRId64, seq);
    struct amp_key key = AMP_KEY(amp_cursor_subject.kind, amp_span_str(c->opt->consumer),
                                 amp_span_str(c->origin), amp_span_str(move), amp_span_str(number));
    return amp_key_text(&key, out, id, err);
}

static int item_enqueue(struct amp_cursor *c, struct amp_cursor_item *e, int64_t now_ms,
                        uint32_t skip, enum amp_store_outcome *how, struct amp_error *err)
{
    char id[AMP_KEY_MAX];
    struct amp_store_input input = {.consumer = c->opt->outbox, .bytes = e->line};
    if (input_id(c, c->rec.moves, e->seq, id, &input.id, err) < 0)
        return -1;
    struct step w = {.c = c,
                     .actor = c->opt->outbox,
                     .s = {.event = AMP_CURSOR_EV_ENQUEUE, .seq = e->seq, .now_ms = now_ms},
                     .emit = {.id = e->id, .line = e->line},
                     .emits = !e->nothing,
                     .item = e};
    held_look_behind(c, e->seq, skip, &w.s);
    if (step_commit(&w, &input, how, err) < 0)
        return -1;
    e->entry = (struct amp_store_entry_id){.n = amp_store_last_frame(c->store)};
    return 0;
}

static bool bytes_equal(const struct amp_held *h, struct amp_span line)
{
    return h->n == line.n && memcmp(h->line, line.p, line.n) == 0;
}

/* An event at or below the position. */
static int item_classify_old(struct amp_cursor *c, const struct amp_cursor_item *e,
                             enum amp_cursor_verdict *verdict, struct amp_error *err)
{
    char id[AMP_KEY_MAX];
    for (uint32_t i = 0; i < c->rec.n_holes; i++)
        if (e->seq >= c->rec.hole[i].from && e->seq <= c->rec.hole[i].to) {
            *verdict = AMP_CURSOR_LATE;
            return 0;
        }
    *verdict = AMP_CURSOR_OTHER;
    for (int64_t m = c->rec.moves; m >= 0 && m > c->rec.moves - 8; m--) {
        struct amp_store_input input = {.consumer = c->opt->outbox, .bytes = e->line};
        int seen = input_id(c, m, e->seq, id, &input.id, err) < 0
                       ? -1
                       : amp_store_seen(c->store, &input, err);
        if (seen < 0)
            return -1;
        if (seen == AMP_STORE_SEEN)
            *verdict = AMP_CURSOR_SEEN;
        if (seen != AMP_STORE_NOT_SEEN)
            break;
    }
    return 0;
}

static int item_hold(struct amp_cursor *c, const struct amp_cursor_item *e, int64_t now_ms,
                     struct amp_error *err)
{
    char mem[AMP_KEY_MAX];
    struct amp_span id;
    if (amp_held_id(e->seq, now_ms, e->id, mem, &id, err) < 0)
        return -1;
    struct step w = {.c = c,
                     .actor = c->held_box,
                     .s = {.event = AMP_CURSOR_EV_HOLD, .now_ms = now_ms},
                     .emit = {.id = id, .line = e->line, .role = AMP_ROLE_held},
                     .emits = true};
    w.s.gap_to = c->held.n > 0 && c->held.v[0].seq < e->seq ? c->held.v[0].seq - 1 : e->seq - 1;
    if (step_commit(&w, NULL, NULL, err) < 0)
        return -1;
    struct amp_held h = {
        .seq = e->seq, .at_ms = now_ms, .entry = {.n = amp_store_last_frame(c->store)}};
    return amp_held_add(&c->held, &h, e->line, e->id, err);
}

int amp_cursor_take(struct amp_cursor *c, struct amp_cursor_item *e, int64_t now_ms,
                    enum amp_cursor_verdict *verdict, struct amp_error *err)
{
    enum amp_store_outcome how;
    if (held_drop_old(c, err) < 0)
        return -1;
    if (e->seq <= c->rec.last_seq)
        return item_classify_old(c, e, verdict, err);
    const struct amp_held *h = amp_held_find(&c->held, e->seq);
    if (h) {
        *verdict = bytes_equal(h, e->line) ? AMP_CURSOR_SEEN : AMP_CURSOR_OTHER;
        return 0;
    }
    if (c->opt->ordered || e->seq - 1 == c->rec.last_seq) {
        if (item_enqueue(c, e, now_ms, 0, &how, err) < 0)
            return -1;
        *verdict = how == AMP_STORE_COMMITTED ? AMP_CURSOR_TAKEN : AMP_CURSOR_SEEN;
        return 0;
    }
    if (c->held.n >= c->max_held || c->held.bytes + e->line.n > HELD_BYTES) {
        *verdict = AMP_CURSOR_FULL;
        return 0;
    }
    *verdict = AMP_CURSOR_HELD_UP;
    return item_hold(c, e, now_ms, err);
}

int amp_cursor_peek(struct amp_cursor *c, struct amp_cursor_item *e, struct amp_error *err)
{
    if (held_drop_old(c, err) < 0)
        return -1;
    if (c->held.n == 0 || c->held.v[0].seq - 1 != c->rec.last_seq)
        return 0;
    const struct amp_held *h = &c->held.v[0];
    *e =
        (struct amp_cursor_item){.seq = h->seq, .id = amp_span_str(h->id), .line = {h->line, h->n}};
    return 1;
}

int amp_cursor_go(struct amp_cursor *c, struct amp_cursor_item *e, int64_t now_ms,
                  struct amp_error *err)
{
    return item_enqueue(c, e, now_ms, 1, NULL, err);
}

/* ---- gaps and leases ---- */

int64_t amp_cursor_position(const struct amp_cursor *c)
{
    return c->rec.last_seq;
}

uint32_t amp_cursor_waiting(const struct amp_cursor *c, int64_t *from, int64_t *to)
{
    uint32_t i = 0;
    while (i < c->held.n && c->held.v[i].seq <= c->rec.last_seq)
        i++;
    *from = c->rec.last_seq + 1;
    *to = i < c->held.n ? c->held.v[i].seq - 1 : c->rec.last_seq;
    return c->held.n - i;
}

static int64_t lease_renewal(const struct amp_cursor *c)
{
    return c->rec.lease_until_ms - c->lease_ms * 2 / 3;
}

static bool gap_gives_up(const struct amp_cursor *c)
{
    return c->rec.state == AMP_CURSOR_OVERDUE && c->opt->on_gap != AMP_ON_GAP_HOLD;
}

int64_t amp_cursor_due(const struct amp_cursor *c)
{
    int64_t due = lease_renewal(c);
    if (gap_gives_up(c))
        return 1;
    if (c->rec.state == AMP_CURSOR_GAP && c->rec.gap_due_ms < due)
        due = c->rec.gap_due_ms;
    return due;
}

/* Commits a step about the gap done->from to done->to, with the report of it in `e`; without one if
 * e is NULL. */
static int gap_commit(struct amp_cursor *c, struct step *w, const struct amp_cursor_turn *done,
                      struct amp_cursor_item *e, struct amp_error *err)
{
    struct amp_cursor_gap gap = {.consumer = c->opt->consumer,
                                 .source = amp_span_str(c->source),
                                 .from = done->from,
                                 .to = done->to,
                                 .on_gap = c->opt->on_gap,
                                 .tombstone = w->s.event == AMP_CURSOR_EV_TOMBSTONE};
    if (e) {
        if (amp_cursor_gap_line(c->store, &gap, w->s.now_ms, &c->lines, &e->id, &e->line, err) < 0)
            return -1;
        w->emits = true;
        w->emit = (struct amp_store_emit){.id = e->id, .line = e->line};
    }
    if (step_commit(w, NULL, NULL, err) < 0)
        return -1;
    if (e)
        e->entry = (struct amp_store_entry_id){.n = amp_store_last_frame(c->store)};
    return 0;
}

static int gap_time_out(struct amp_cursor *c, int64_t now_ms, struct amp_cursor_turn *done,
                        struct amp_error *err)
{
    struct step w = {
        .c = c,
        .actor = c->opt->answers,
        .s = {.event = AMP_CURSOR_EV_TIMEOUT, .now_ms = now_ms, .gap_to = c->rec.gap_to}};
    done->from = c->rec.last_seq + 1;
    done->to = c->rec.gap_to;
    return gap_commit(c, &w, done, &done->incident, err);
}

static int gap_give_up(struct amp_cursor *c, int64_t now_ms, struct amp_cursor_turn *done,
                       struct amp_error *err)
{
    bool tombstone = c->opt->on_gap == AMP_ON_GAP_TOMBSTONE;
    struct step w = {.c = c,
                     .actor = c->opt->outbox,
                     .s = {.event = tombstone ? AMP_CURSOR_EV_TOMBSTONE : AMP_CURSOR_EV_SKIP,
                           .seq = c->held.n > 0 ? c->held.v[0].seq - 1 : c->rec.gap_to,
                           .now_ms = now_ms}};
    done->from = c->rec.last_seq + 1;
    done->to = w.s.seq;
    done->given_up = true;
    return gap_commit(c, &w, done, tombstone ? &done->mark : NULL, err);
}

int amp_cursor_turn(struct amp_cursor *c, int64_t now_ms, struct amp_cursor_turn *done,
                    struct amp_error *err)
{
    *done = (struct amp_cursor_turn){.from = 1};
    if (held_drop_old(c, err) < 0)
        return -1;
    amp_buf_reset(&c->lines);
    if (c->rec.state == AMP_CURSOR_GAP && now_ms >= c->rec.gap_due_ms)
        return gap_time_out(c, now_ms, done, err) < 0 ? -1 : 1;
    if (gap_gives_up(c))
        return gap_give_up(c, now_ms, done, err) < 0 ? -1 : 1;
    if (now_ms < lease_renewal(c))
        return 0;
    struct step w = {
        .c = c,
        .actor = c->opt->outbox,
        .s = {.event = AMP_CURSOR_EV_RENEW, .now_ms = now_ms, .gap_to = c->rec.gap_to}};
    return step_commit(&w, NULL, NULL, err) < 0 ? -1 : 0;
}
