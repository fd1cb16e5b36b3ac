/* Corrections by persons, the sweep over cursors without a holder, and the gauges. */
#include "message/cursor/cursors.h"

#include <stdlib.h>
#include <string.h>

#include "base/codes.h"
#include "base/grow.h"
#include "message/cursor/cursor_fsm.h"
#include "message/cursor/gap.h"
#include "metrics/metrics.h"

struct each {
    amp_cursors_fn fn;
    void *ctx;
    struct amp_buf *mem;
};

static int record_parse(const struct amp_store_rec *rec, struct amp_buf *mem,
                        struct amp_cursor_rec *out, uint8_t *state, struct amp_error *err)
{
    int st = amp_fsm_state(&amp_cursor_fsm, rec->state);
    if (st < 0)
        return amp_fail(err, AMP_IOERR, bad_record, "a cursor in the state \"%.*s\"",
                        (int)rec->state.n, rec->state.p);
    *state = (uint8_t)st;
    return amp_cursor_rec_read(rec->json, mem, out, err);
}

static int each_fn(void *ctx, struct amp_span id, const struct amp_store_rec *row,
                   struct amp_error *err)
{
    struct each *w = ctx;
    struct amp_cursor_rec rec;
    uint8_t state;
    return record_parse(row, w->mem, &rec, &state, err) < 0 ? -1 : w->fn(w->ctx, &rec, state, err);
}

int amp_cursors_each(struct amp_store *s, amp_cursors_fn fn, void *ctx, struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {.max = 1 << 20};
    struct each w = {.fn = fn, .ctx = ctx, .mem = &mem};
    return amp_store_each(s, AMP_CURSOR_KIND, NULL, each_fn, &w, err);
}

int amp_cursors_find(struct amp_store *s, struct amp_span consumer, struct amp_span source,
                     struct amp_buf *mem, struct amp_cursor_rec *out, uint8_t *state,
                     struct amp_error *err)
{
    struct amp_store_rec rec;
    if (amp_store_get(s, AMP_KEY(AMP_CURSOR_KIND, consumer, source), &rec, err) < 0)
        return -1;
    if (!rec.found)
        return 0;
    return record_parse(&rec, mem, out, state, err) < 0 ? -1 : 1;
}

/* ---- by persons ---- */

struct edit {
    const struct amp_cursors_edit *e;
    uint8_t event;
    struct amp_cursor_rec rec;
    struct amp_buf mem, out;
    struct amp_store_emit emit; /* an incident */
    const char *actor;
};
#define EDIT AMP_CLEANUP(edit_release) struct edit

static struct edit edit_make(const struct amp_cursors_edit *e, uint8_t event, const char *actor)
{
    return (struct edit){
        .e = e, .event = event, .actor = actor, .mem = {.max = 1 << 20}, .out = {.max = 1 << 20}};
}

static void edit_release(struct edit *w)
{
    amp_buf_release(&w->mem);
    amp_buf_release(&w->out);
}

static int change_fill(struct edit *w, uint8_t state, struct amp_store_change *change,
                       struct amp_error *err)
{
    if (amp_cursor_rec_write(&w->rec, &w->out, err) < 0)
        return -1;
    change->event = amp_cursor_fsm.events[w->event].name;
    change->to = amp_cursor_fsm.states[state].name;
    change->json = amp_buf_span(&w->out);
    change->due_ms = amp_cursor_rec_due(&w->rec, state);
    change->actor = w->actor;
    change->emits = &w->emit;
    change->n_emits = w->emit.line.n > 0;
    return 0;
}

static int edit_fn(void *ctx, const struct amp_store_rec *now, struct amp_store_change *change,
                   struct amp_error *err)
{
    struct edit *w = ctx;
    const struct amp_cursors_edit *e = w->e;
    uint8_t state = AMP_CURSOR_ACTIVE;
    uint32_t effects;
    w->rec = (struct amp_cursor_rec){.consumer = e->consumer, .source = e->source};
    if (now->found && record_parse(now, &w->mem, &w->rec, &state, err) < 0)
        return -1;
    if (!now->found && w->event == AMP_CURSOR_EV_RETIRE)
        return amp_fail(err, AMP_NO, unknown_ref, "%.*s has no cursor over %.*s",
                        (int)e->consumer.n, e->consumer.p, (int)e->source.n, e->source.p);
    if (!e->force && w->rec.holder.n > 0 && w->rec.lease_until_ms > e->now_ms)
        return amp_fail(err, AMP_NO, cursor_leased,
                        "%.*s holds it for another %lld s: stop it, or fence it with --force",
                        (int)w->rec.holder.n, w->rec.holder.p,
                        (long long)(w->rec.lease_until_ms - e->now_ms + 999) / 1000);
    if (w->event == AMP_CURSOR_EV_RETIRE && state == AMP_CURSOR_RETIRED)
        return 1;
    struct amp_cursor_step step = {
        .event = w->event, .seq = e->seq, .now_ms = e->now_ms, .lease_ms = e->lease_ms};
    if (amp_cursor_apply(&w->rec, &state, &step, &effects, err) < 0)
        return -1;
    return change_fill(w, state, change, err);
}

static int cursor_edit(struct amp_store *s, const struct amp_cursors_edit *e, uint8_t event,
                       struct amp_error *err)
{
    EDIT w = edit_make(e, event, e->actor);
    return amp_store_update(s, AMP_KEY(AMP_CURSOR_KIND, e->consumer, e->source), NULL, edit_fn, &w,
                            NULL, err);
}

int amp_cursors_move(struct amp_store *s, const struct amp_cursors_edit *e, struct amp_error *err)
{
    return cursor_edit(s, e, AMP_CURSOR_EV_MOVE, err);
}

int amp_cursors_retire(struct amp_store *s, const struct amp_cursors_edit *e, struct amp_error *err)
{
    return cursor_edit(s, e, AMP_CURSOR_EV_RETIRE, err);
}

/* ---- the sweep ---- */

struct sweep {
    struct amp_store *store;
    const char *actor;
    int64_t now_ms;
    struct amp_metrics *metrics;
    uint32_t done;
};

static int due_fn(void *ctx, const struct amp_store_rec *now, struct amp_store_change *change,
                  struct amp_error *err)
{
    struct edit *w = ctx;
    uint8_t state;
    uint32_t effects;
    if (!now->found || record_parse(now, &w->mem, &w->rec, &state, err) < 0)
        return now->found ? -1 : 1;
    struct amp_cursor_step step = {
        .event = w->event, .now_ms = w->e->now_ms, .gap_to = w->rec.gap_to};
    int64_t due = amp_cursor_rec_due(&w->rec, state);
    if (due == 0 || due > step.now_ms)
        return 1; /* it has changed since */
    if (w->event == AMP_CURSOR_EV_TIMEOUT &&
        (state != AMP_CURSOR_GAP || w->rec.gap_due_ms > step.now_ms))
        return 1;
    if (amp_cursor_apply(&w->rec, &state, &step, &effects, err) < 0)
        return -1;
    return change_fill(w, state, change, err);
}

/* 1: the gap is still there. */
static int gap_is_open(const struct sweep *w, const struct amp_key *key,
                       const struct amp_cursor_rec *seen, struct amp_error *err)
{
    struct amp_store_rec now;
    struct amp_cursor_rec rec;
    uint8_t state;
    AMP_BUF struct amp_buf mem = {.max = 1 << 20};
    if (amp_store_get(w->store, *key, &now, err) < 0)
        return -1;
    if (!now.found)
        return 0;
    if (record_parse(&now, &mem, &rec, &state, err) < 0)
        return -1;
    return state == AMP_CURSOR_GAP && rec.gap_due_ms <= w->now_ms &&
           rec.last_seq == seen->last_seq && rec.gap_to == seen->gap_to;
}

/* 1: committed. In a turn, so that the number of an incident is used by it. */
static int due_in_turn(struct sweep *w, const struct amp_key *key, const struct amp_cursor_rec *r,
                       uint8_t event, struct amp_error *err)
{
    struct amp_cursors_edit e = {.now_ms = w->now_ms};
    EDIT d = edit_make(&e, event, w->actor);
    enum amp_store_outcome how;
    AMP_BUF struct amp_buf said = {.max = 1 << 20};
    AMP_FREE char *consumer = amp_span_dup(r->consumer);
    if (!consumer)
        return amp_fail_memory(err);
    if (event == AMP_CURSOR_EV_TIMEOUT) {
        struct amp_cursor_gap gap = {.consumer = consumer,
                                     .source = r->source,
                                     .from = r->last_seq + 1,
                                     .to = r->gap_to,
                                     .on_gap = AMP_ON_GAP_HOLD};
        int open = gap_is_open(w, key, r, err);
        if (open <= 0)
            return open;
        if (amp_cursor_gap_line(w->store, &gap, w->now_ms, &said, &d.emit.id, &d.emit.line, err) <
            0)
            return -1;
    }
    return amp_store_update(w->store, *key, NULL, due_fn, &d, &how, err) < 0
               ? -1
               : how == AMP_STORE_COMMITTED;
}

static int due_step(struct sweep *w, const struct amp_key *key, const struct amp_cursor_rec *r,
                    uint8_t event, struct amp_error *err)
{
    if (amp_store_begin(w->store, err) < 0)
        return -1;
    int rc = due_in_turn(w, key, r, event, err);
    amp_store_end(w->store);
    return rc;
}

static int sweep_fn(void *ctx, struct amp_span id, const struct amp_store_rec *row,
                    struct amp_error *err)
{
    struct sweep *w = ctx;
    struct amp_cursor_rec r;
    uint8_t state;
    AMP_BUF struct amp_buf mem = {.max = 1 << 20};
    int rc = record_parse(row, &mem, &r, &state, err);
    if (rc == 0 && state == AMP_CURSOR_GAP && r.gap_due_ms <= w->now_ms)
        rc = due_step(w, row->key, &r, AMP_CURSOR_EV_TIMEOUT, err);
    struct amp_metric_labels l = {.agent = r.consumer, .code = r.source};
    if (rc > 0)
        amp_metrics_add(w->metrics, AMP_METRIC_CURSOR_TIMEOUTS, &l, 1);
    if (rc >= 0)
        w->done += (uint32_t)rc;
    if (rc >= 0 && r.lease_until_ms <= w->now_ms)
        rc = due_step(w, row->key, &r, AMP_CURSOR_EV_EXPIRE, err);
    if (rc > 0 && r.lease_until_ms <= w->now_ms)
        amp_metrics_add(w->metrics, AMP_METRIC_CURSOR_EXPIRIES, &l, 1);
    return rc < 0 ? -1 : 0;
}

int amp_cursors_sweep(struct amp_store *s, int64_t now_ms, const char *actor,
                      struct amp_metrics *metrics, uint32_t *done, struct amp_error *err)
{
    struct sweep w = {.store = s, .actor = actor, .now_ms = now_ms, .metrics = metrics};
    int rc = amp_store_due(s, AMP_CURSOR_KIND, now_ms, sweep_fn, &w, err);
    *done += w.done;
    return rc;
}

/* ---- measuring ---- */

struct mark {
    char *source;
    int64_t n;
};

struct measuring {
    struct amp_metrics *metrics;
    int64_t now_ms;
    struct mark *marks; /* of active cursors */
    size_t n, cap;
};

static int measure_fn(void *ctx, const struct amp_cursor_rec *r, uint8_t state,
                      struct amp_error *err)
{
    struct measuring *m = ctx;
    struct amp_metric_labels l = {.agent = r->consumer, .code = r->source};
    if (state == AMP_CURSOR_RETIRED)
        return 0;
    int64_t missing = r->gap_since_ms > 0 ? r->gap_to - r->last_seq : 0;
    amp_metrics_set(m->metrics, AMP_METRIC_CURSOR_POSITION, &l, (double)r->last_seq);
    amp_metrics_set(m->metrics, AMP_METRIC_CURSOR_WAITING, &l, r->held);
    amp_metrics_set(m->metrics, AMP_METRIC_CURSOR_LAG, &l, (double)missing + r->held);
    if (state == AMP_CURSOR_EXPIRED || r->lease_until_ms <= m->now_ms)
        return 0;
    if (amp_grow(&m->marks, &m->cap, m->n, sizeof *m->marks, err) < 0)
        return -1;
    m->marks[m->n] = (struct mark){amp_span_dup(r->source), r->last_seq};
    if (!m->marks[m->n].source)
        return amp_fail_memory(err);
    m->n++;
    return 0;
}

static int by_source(const void *a, const void *b)
{
    const struct mark *x = a, *y = b;
    int d = strcmp(x->source, y->source);
    return d ? d : (x->n > y->n) - (x->n < y->n);
}

int amp_cursors_measure(struct amp_store *s, int64_t now_ms, struct amp_metrics *metrics,
                        struct amp_error *err)
{
    struct measuring m = {.metrics = metrics, .now_ms = now_ms};
    if (!metrics)
        return 0;
    int rc = amp_cursors_each(s, measure_fn, &m, err);
    if (rc == 0 && m.n > 0)
        qsort(m.marks, m.n, sizeof(*m.marks), by_source);
    for (size_t i = 0; i < m.n; i++) {
        struct amp_metric_labels l = {.code = amp_span_str(m.marks[i].source)};
        if (rc == 0 && (i == 0 || strcmp(m.marks[i - 1].source, m.marks[i].source) != 0))
            amp_metrics_set(metrics, AMP_METRIC_CURSOR_WATERMARK, &l, (double)m.marks[i].n);
    }
    while (m.n > 0)
        free(m.marks[--m.n].source);
    free(m.marks);
    return rc;
}
