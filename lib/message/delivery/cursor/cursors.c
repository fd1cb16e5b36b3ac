/* Corrections by persons, the sweep over cursors without a holder, and the gauges. */
#include "message/delivery/cursor/cursors.h"

#include <stdlib.h>
#include <string.h>

#include "base/codes.h"
#include "base/grow.h"
#include "message/delivery/cursor/cursor_fsm.h"
#include "message/delivery/cursor/gap.h"
#include "message/metrics/metrics.h"

struct each {
    amp_cursors_fn fn;
    void *ctx;
};

static int on_cursor(void *ctx, const void *rec, struct amp_error *err)
{
    const struct each *w = ctx;
    const struct amp_cursor_rec *r = rec;
    return w->fn(w->ctx, r, r->state, err);
}

int amp_cursors_each(struct amp_store *s, amp_cursors_fn fn, void *ctx, struct amp_error *err)
{
    return amp_subject_each(&amp_cursor_subject, s, NULL, on_cursor, &(struct each){fn, ctx}, err);
}

int amp_cursors_find(struct amp_store *s, struct amp_span consumer, struct amp_span source,
                     struct amp_buf *mem, struct amp_cursor_rec *out, uint8_t *state,
                     struct amp_error *err)
{
    int found = amp_subject_find(&amp_cursor_subject, s, AMP_KEY(AMP_CURSOR_KIND, consumer, source),
                                 mem, out, err);
    *state = out->state;
    return found;
}

/* ---- by persons ---- */

struct edit {
    const struct amp_cursors_edit *e;
    uint8_t event;
};

static int edit_check(void *ctx, struct amp_cursor_rec *r, const struct amp_store_rec *now,
                      struct amp_error *err)
{
    const struct edit *w = ctx;
    const struct amp_cursors_edit *e = w->e;
    if (!now->found && w->event == AMP_CURSOR_EV_RETIRE)
        return amp_fail(err, AMP_NO, unknown_ref, "%.*s has no cursor over %.*s",
                        (int)e->consumer.n, e->consumer.p, (int)e->source.n, e->source.p);
    if (!now->found) {
        r->consumer = e->consumer;
        r->source = e->source;
    }
    if (!e->force && r->holder.n > 0 && r->lease_until_ms > e->now_ms)
        return amp_fail(err, AMP_NO, cursor_leased,
                        "%.*s holds it for another %lld s: stop it, or fence it with --force",
                        (int)r->holder.n, r->holder.p,
                        (long long)(r->lease_until_ms - e->now_ms + 999) / 1000);
    return w->event == AMP_CURSOR_EV_RETIRE && r->state == AMP_CURSOR_RETIRED;
}

static int cursor_edit(struct amp_store *s, const struct amp_cursors_edit *e, uint8_t event,
                       struct amp_error *err)
{
    struct edit w = {e, event};
    struct amp_cursor_step step = {
        .event = event,
        .seq = e->seq,
        .now_ms = e->now_ms,
        .lease_ms = e->lease_ms,
        .held = -1,
        .check = edit_check,
        .ctx = &w,
        .commit = {.key = AMP_KEY(AMP_CURSOR_KIND, e->consumer, e->source), .actor = e->actor}};
    return amp_cursor_apply(s, &step, NULL, NULL, NULL, err);
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

static int due_check(void *ctx, struct amp_cursor_rec *r, const struct amp_store_rec *now,
                     struct amp_error *err)
{
    struct amp_cursor_step *step = ctx;
    (void)err;
    if (!now->found || r->due_ms == 0 || r->due_ms > step->now_ms)
        return 1; /* it has changed since */
    step->gap_to = r->gap_to;
    return step->event == AMP_CURSOR_EV_TIMEOUT &&
           (r->state != AMP_CURSOR_GAP || r->gap_due_ms > step->now_ms);
}

/* 1: the gap is still there. */
static int gap_is_open(const struct sweep *w, const struct amp_cursor_rec *seen,
                       struct amp_error *err)
{
    struct amp_cursor_rec rec;
    AMP_BUF struct amp_buf mem = {.max = 1 << 20};
    int found = amp_subject_find(&amp_cursor_subject, w->store, *seen->key, &mem, &rec, err);
    if (found <= 0)
        return found;
    return rec.state == AMP_CURSOR_GAP && rec.gap_due_ms <= w->now_ms &&
           rec.last_seq == seen->last_seq && rec.gap_to == seen->gap_to;
}

/* 1: committed. In a turn, so that the number of an incident is used by it. */
static int due_in_turn(struct sweep *w, const struct amp_cursor_rec *r, uint8_t event,
                       struct amp_error *err)
{
    struct amp_store_emit incident = {0};
    struct amp_cursor_step step = {.event = event,
                                   .now_ms = w->now_ms,
                                   .held = -1,
                                   .check = due_check,
                                   .ctx = &step,
                                   .commit = {.key = *r->key, .actor = w->actor}};
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
        int open = gap_is_open(w, r, err);
        if (open <= 0)
            return open;
        if (amp_cursor_gap_line(w->store, &gap, w->now_ms, &said, &incident.id, &incident.line,
                                err) < 0)
            return -1;
        step.commit.emits = &incident;
        step.commit.n_emits = 1;
    }
    return amp_cursor_apply(w->store, &step, NULL, NULL, &how, err) < 0
               ? -1
               : how == AMP_STORE_COMMITTED;
}

static int due_step(struct sweep *w, const struct amp_cursor_rec *r, uint8_t event,
                    struct amp_error *err)
{
    if (amp_store_begin(w->store, err) < 0)
        return -1;
    int rc = due_in_turn(w, r, event, err);
    amp_store_end(w->store);
    return rc;
}

static int sweep_one(void *ctx, const void *rec, struct amp_error *err)
{
    const struct amp_cursor_rec *r = rec;
    struct sweep *w = ctx;
    int rc = 0;
    if (r->state == AMP_CURSOR_GAP && r->gap_due_ms <= w->now_ms)
        rc = due_step(w, r, AMP_CURSOR_EV_TIMEOUT, err);
    struct amp_metric_labels l = {.agent = r->consumer, .code = r->source};
    if (rc > 0)
        amp_metrics_add(w->metrics, AMP_METRIC_CURSOR_TIMEOUTS, &l, 1);
    if (rc >= 0)
        w->done += (uint32_t)rc;
    if (rc >= 0 && r->lease_until_ms <= w->now_ms)
        rc = due_step(w, r, AMP_CURSOR_EV_EXPIRE, err);
    if (rc > 0 && r->lease_until_ms <= w->now_ms)
        amp_metrics_add(w->metrics, AMP_METRIC_CURSOR_EXPIRIES, &l, 1);
    return rc < 0 ? -1 : 0;
}

int amp_cursors_sweep(struct amp_store *s, int64_t now_ms, const char *actor,
                      struct amp_metrics *metrics, uint32_t *done, struct amp_error *err)
{
    struct sweep w = {.store = s, .actor = actor, .now_ms = now_ms, .metrics = metrics};
    int rc = amp_subject_due(&amp_cursor_subject, s, now_ms, sweep_one, &w, err);
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
