/*
 * Streams in order. An event that is the next of its source is committed by its cursor's own
 * commit; one beyond it waits in the store until the gap before it fills or is given up; one below
 * it came before, or is refused. A message without a number is none of this file's business.
 */
#include "route/admission/streams.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/clock.h>
#include <amp/base/id.h>

#include "flow/outbox.h"
#include "message/cursor/cursors.h"
#include "message/order.h"

#define BUCKETS     1024
#define STREAMS_MAX 4096
#define NAME_ROOM   ((size_t)128 << 20) /* a line's */

struct stream {
    struct stream *next; /* in its bucket */
    struct stream *also; /* of all */
    char *source;
    size_t source_n; /* it may hold a NUL */
    struct amp_cursor *cursor;
    int64_t gap_to; /* of the gap that was counted; 0: none */
    bool fresh;     /* an earlier holder may have left what may go */
};

struct cursors {
    struct amp_cursor_options numbered, rising; /* with gaps, and without */
    char answers[ANSWERS_NAME_MAX], holder[200];
    struct stream *bucket[BUCKETS], *all;
    uint32_t n;
    int lock;
    bool dirty;          /* something is not synced */
    struct amp_buf name; /* of a stream */
    uint64_t seen, held, given_up;
};

static uint32_t bucket_of(struct amp_span s)
{
    uint32_t h = 2166136261u;
    for (size_t i = 0; i < s.n; i++)
        h = (h ^ (unsigned char)s.p[i]) * 16777619u;
    return h % BUCKETS;
}

/* *out is NULL past the bound. */
static int stream_of(struct router *r, struct amp_span source, bool rising, int64_t start,
                     struct stream **out, struct amp_error *err)
{
    struct cursors *c = r->cursors;
    uint32_t b = bucket_of(source);
    for (struct stream *s = c->bucket[b]; s; s = s->next)
        if (amp_span_eq(source, (struct amp_span){s->source, s->source_n})) {
            *out = s;
            return 0;
        }
    *out = NULL;
    if (c->n == STREAMS_MAX)
        return 0;
    struct stream *s = calloc(1, sizeof *s);
    if (!s || !(s->source = amp_span_dup(source))) {
        free(s);
        return amp_fail_memory(err);
    }
    s->source_n = source.n;
    if (amp_cursor_open(r->store, source, rising ? &c->rising : &c->numbered, start, amp_now_ms(),
                        &s->cursor, err) < 0) {
        free(s->source);
        free(s);
        return -1;
    }
    s->next = c->bucket[b];
    c->bucket[b] = s;
    s->also = c->all;
    c->all = s;
    s->fresh = true;
    c->n++;
    c->dirty = true;
    *out = s;
    return 0;
}

static void refuse(struct job *j, enum amp_cursor_verdict verdict)
{
    bool sw4rm = j->protocol == AMP_PROTO_SW4RM;
    char why[160];
    if (verdict == AMP_CURSOR_FULL) {
        amp_route_job_refuse(j, sw4rm ? "buffer_full" : "backpressure",
                             j->stream ? "too many events wait behind a gap of its source"
                                       : "too many sources are followed already",
                             "cursor", true);
        return;
    }
    if (verdict == AMP_CURSOR_LATE)
        snprintf(why, sizeof why, "number %lld of its source was given up before it came",
                 (long long)j->seq);
    else
        snprintf(why, sizeof why, "number %lld is not above %lld, and not the event of that number",
                 (long long)j->seq, (long long)amp_cursor_position(j->stream->cursor));
    amp_route_job_refuse(j, sw4rm ? "validation_error" : "seq_not_monotonic", why, "cursor", false);
}

int amp_streams_admit(struct router *r, struct job *j, const struct amp_view *v,
                      struct amp_error *err)
{
    struct amp_span source;
    bool rising = v->protocol == AMP_PROTO_SW4RM;
    /* A further attempt of SW4RM may bear the number of the first (§11.2): that is another rule. */
    if (!r->cursors || v->sequence < 0 || (rising && v->attempt > 0))
        return STEP_GO;
    if (amp_order_stream(v, &r->cursors->name, &source, err) < 0)
        return -1;
    if (source.n == 0)
        return STEP_GO;
    if (stream_of(r, source, rising, v->sequence - 1, &j->stream, err) < 0)
        return -1;
    j->seq = v->sequence;
    if (!j->stream) {
        refuse(j, AMP_CURSOR_FULL);
    } else if (v->sequence <= amp_cursor_position(j->stream->cursor)) {
        int again = amp_resent_look(r, j, v->id, err);
        if (again < 0)
            return -1;
        if (again)
            j->stream = NULL;
    }
    return STEP_GO;
}

struct commit {
    struct job *job;
    struct amp_cursor *cursor;
    struct amp_cursor_item item;
    enum amp_cursor_verdict verdict;
    bool waited; /* it is the one that amp_cursor_peek told */
};

static int commit_fn(void *ctx, const struct amp_store_emit *emits, uint32_t n,
                     struct amp_store_entry_id *at, struct amp_error *err)
{
    struct commit *w = ctx;
    w->item.emits = emits;
    w->item.n_emits = n;
    int rc = w->waited ? amp_cursor_go(w->cursor, &w->item, amp_now_ms(), err)
                       : amp_cursor_take(w->cursor, &w->item, amp_now_ms(), &w->verdict, err);
    if (rc == 0 && w->verdict == AMP_CURSOR_TAKEN)
        *at = w->item.entry;
    return rc;
}

/* What waited and may go now, as a chain of jobs behind *tail. */
static int release(struct router *r, struct stream *s, struct job **tail, struct amp_error *err)
{
    struct commit w = {.cursor = s->cursor, .waited = true, .verdict = AMP_CURSOR_TAKEN};
    int rc;
    while ((rc = amp_cursor_peek(s->cursor, &w.item, err)) > 0) {
        struct job *j = amp_route_job_new(r, w.item.line, NULL);
        if (!j)
            return amp_fail_memory(err);
        if (amp_keeper_look(r, j, err) < 0 || amp_keeper_commit(&j, 1, commit_fn, &w, err) < 0) {
            amp_route_job_free(r, j);
            return -1;
        }
        *tail = j;
        tail = &j->next;
        r->cursors->dirty = true;
    }
    return rc;
}

static void count(struct router *r, const struct stream *s, enum amp_metric which, uint64_t n)
{
    struct amp_metric_labels l = {.agent = amp_span_str(r->streams_opt.consumer),
                                  .code = {s->source, s->source_n}};
    amp_metrics_add(r->metrics, which, &l, n);
}

/* Each gap once, however many wait behind it. */
static void count_gap(struct router *r, struct stream *s)
{
    int64_t from, to = 0;
    uint32_t n = r->metrics ? amp_cursor_waiting(s->cursor, &from, &to) : 0;
    if (n > 0 && to != s->gap_to)
        count(r, s, AMP_METRIC_CURSOR_GAPS, 1);
    s->gap_to = n > 0 ? to : 0;
}

static int take(struct router *r, struct job *j, enum amp_cursor_verdict *verdict,
                struct amp_error *err)
{
    struct cursors *c = r->cursors;
    struct commit w = {.job = j,
                       .cursor = j->stream->cursor,
                       .item = {.seq = j->seq, .id = amp_span_str(j->id), .line = {j->line, j->n}}};
    if (w.item.id.n == 0 || w.item.id.n > 900)
        w.item.id = AMP_SPAN("unnamed");
    if (amp_keeper_commit(&j, 1, commit_fn, &w, err) < 0)
        return -1;
    *verdict = w.verdict;
    c->dirty = true;
    c->held += w.verdict == AMP_CURSOR_HELD_UP;
    c->seen += w.verdict == AMP_CURSOR_SEEN;
    if (w.verdict == AMP_CURSOR_TAKEN && release(r, j->stream, &j->next, err) < 0)
        return -1;
    count_gap(r, j->stream);
    return 0;
}

int amp_streams_record(struct router *r, struct job **batch, uint32_t *n, struct amp_error *err)
{
    uint32_t kept = 0;
    int rc = 0;
    bool any = false;
    for (uint32_t i = 0; r->cursors && i < *n && !any; i++)
        any = batch[i]->stream != NULL || batch[i]->resent > 0;
    if (!any)
        return 0;
    /* One turn for all of them. */
    if (amp_store_begin(r->store, err) < 0)
        return -1;
    for (uint32_t i = 0; i < *n; i++) {
        enum amp_cursor_verdict verdict = AMP_CURSOR_TAKEN;
        struct job *j = batch[i];
        bool seen = false;
        if (rc == 0 && j->stream)
            rc = take(r, j, &verdict, err);
        else if (rc == 0 && j->resent > 0)
            rc = amp_resent_take(r, j, &seen, err);
        if (seen) {
            verdict = AMP_CURSOR_SEEN;
            r->cursors->seen++;
        }
        if (verdict == AMP_CURSOR_HELD_UP || verdict == AMP_CURSOR_SEEN) {
            amp_route_job_free(r, j);
            continue;
        }
        if (verdict != AMP_CURSOR_TAKEN)
            refuse(j, verdict);
        batch[kept++] = j;
    }
    amp_store_end(r->store);
    *n = kept;
    return rc;
}

static int sync_all(struct router *r, struct amp_error *err)
{
    if (!r->cursors->dirty)
        return 0;
    if (amp_store_sync(r->store, err) < 0)
        return -1;
    r->cursors->dirty = false;
    return 0;
}

/* A mark stands in the outbox already. */
static int add_mark(struct router *r, const struct amp_cursor_item *e, struct job **tail,
                    struct amp_error *err)
{
    struct job *j = amp_route_job_new(r, e->line, NULL);
    if (!j)
        return amp_fail_memory(err);
    j->entry = e->entry;
    *tail = j;
    return amp_keeper_look(r, j, err);
}

/* One turn of the store, so that a number which is taken for an incident leaves with it. */
static int turn_at_once(struct router *r, struct stream *s, struct amp_cursor_turn *done,
                        struct amp_error *err)
{
    if (amp_store_begin(r->store, err) < 0)
        return -1;
    int rc = amp_cursor_turn(s->cursor, amp_now_ms(), done, err);
    amp_store_end(r->store);
    return rc;
}

static int turn(struct router *r, struct stream *s, struct amp_error *err)
{
    struct cursors *c = r->cursors;
    struct amp_cursor_turn done;
    struct job *first = NULL, **tail = &first;
    int rc;
    while ((rc = turn_at_once(r, s, &done, err)) > 0) {
        c->dirty = true;
        if (done.incident.entry.n) {
            r->voice->warn("%.200s: %lld to %lld did not come in time", s->source,
                           (long long)done.from, (long long)done.to);
            amp_keeper_answer(r, done.incident.line, done.incident.entry);
        }
        if (done.to >= done.from && done.incident.entry.n)
            count(r, s, AMP_METRIC_CURSOR_TIMEOUTS, 1);
        if (done.given_up) {
            uint64_t n = (uint64_t)(done.to - done.from) + 1;
            c->given_up += n;
            count(r, s, AMP_METRIC_CURSOR_GIVEN_UP, n);
        }
        if (done.mark.entry.n && add_mark(r, &done.mark, tail, err) < 0)
            return -1;
        while (*tail)
            tail = &(*tail)->next;
        if (done.given_up && release(r, s, tail, err) < 0)
            return -1;
        while (*tail)
            tail = &(*tail)->next;
    }
    if (rc == 0 && s->fresh)
        rc = release(r, s, tail, err);
    s->fresh = false;
    count_gap(r, s);
    if (rc < 0 || sync_all(r, err) < 0)
        return -1;
    amp_match_add_all(r, first);
    return 0;
}

int amp_streams_turn(struct router *r, struct amp_error *err)
{
    int64_t now = amp_now_ms();
    if (!r->cursors)
        return 0;
    for (struct stream *s = r->cursors->all; s; s = s->also)
        if ((s->fresh || amp_cursor_due(s->cursor) <= now) && turn(r, s, err) < 0)
            return -1;
    return sync_all(r, err);
}

/* Lowers *timeout_ms to when the next lease or gap is due. */
void amp_streams_watch(const struct router *r, int *timeout_ms)
{
    int64_t now = amp_now_ms(), first = INT64_MAX;
    for (const struct stream *s = r->cursors ? r->cursors->all : NULL; s; s = s->also)
        if (amp_cursor_due(s->cursor) < first)
            first = amp_cursor_due(s->cursor);
    /* The clock may be set meanwhile. */
    int64_t wait = first == INT64_MAX    ? -1
                   : first <= now        ? 0
                   : first - now < 10000 ? first - now
                                         : 10000;
    if (wait >= 0 && (*timeout_ms < 0 || wait < *timeout_ms))
        *timeout_ms = (int)wait;
}

/* ---- begin and end ---- */

int amp_streams_alone(struct router *r, const char *consumer, int *fd, struct amp_error *err)
{
    char name[256];
    struct amp_error e;
    *fd = -1;
    if (r->cursors && strcmp(consumer, r->streams_opt.consumer) == 0)
        return r->cursors->numbered.alone;
    snprintf(name, sizeof name, "cursor.%s", consumer);
    if (amp_outbox_lock(r->store, name, 0, fd, &e) == 0)
        return 1;
    if (strcmp(e.code, "lock_timeout") == 0)
        return 0;
    *err = e;
    return -1;
}

struct left {
    struct router *r;
    struct amp_error *err;
    int rc;
};

static int left_fn(void *ctx, const struct amp_cursor_rec *rec, uint8_t state)
{
    struct left *w = ctx;
    struct stream *s;
    if (!amp_span_is(rec->consumer, w->r->streams_opt.consumer) || rec->held == 0 ||
        state == AMP_CURSOR_RETIRED)
        return 0;
    w->rc = stream_of(w->r, rec->source, false, 0, &s, w->err);
    return w->rc < 0;
}

int amp_streams_open(struct router *r, struct amp_error *err)
{
    const struct streams_options *o = &r->streams_opt;
    if (!o->consumer)
        return 0;
    if (!r->store)
        return amp_fail(err, AMP_USAGE, "no_state", "--cursor needs --state");
    if (!amp_id_is_safe(amp_span_str(o->consumer)))
        return amp_fail(err, AMP_USAGE, "bad_name",
                        "--cursor takes letters, digits, '.', '_' and '-'");
    struct cursors *c = calloc(1, sizeof *c);
    if (!c)
        return amp_fail_memory(err);
    c->lock = -1;
    amp_buf_init(&c->name, NAME_ROOM);
    int alone = amp_streams_alone(r, o->consumer, &c->lock, err);
    r->cursors = c;
    if (alone < 0)
        return -1;
    amp_keeper_answers_name(r, c->answers);
    snprintf(c->holder, sizeof c->holder, "%.128s/%ld", r->consumer, (long)getpid());
    c->numbered = (struct amp_cursor_options){.consumer = o->consumer,
                                              .outbox = r->consumer,
                                              .answers = c->answers,
                                              .holder = c->holder,
                                              .lease_ms = o->lease_ms,
                                              .on_gap = o->on_gap,
                                              .gap_ms = o->gap_ms,
                                              .max_held = (uint32_t)o->waiting,
                                              .alone = alone};
    c->rising = c->numbered;
    c->rising.ordered = true;
    struct left w = {.r = r, .err = err};
    return amp_cursors_each(r->store, left_fn, &w, err) < 0 ? -1 : w.rc;
}

static void tell_waiting(const struct router *r, const struct stream *s)
{
    int64_t from, to;
    uint32_t n = amp_cursor_waiting(s->cursor, &from, &to);
    if (n == 0)
        return;
    r->voice->note("%.200s: %u %s until %lld to %lld came", s->source, n,
                   n == 1 ? "event waits" : "events wait", (long long)from, (long long)to);
    r->voice->status(AMP_TEMPFAIL);
}

void amp_streams_close(struct router *r)
{
    struct cursors *c = r->cursors;
    struct amp_error err;
    if (!c)
        return;
    for (struct stream *s = c->all, *next; s; s = next) {
        next = s->also;
        if (!r->broken)
            tell_waiting(r, s);
        if (amp_cursor_close(s->cursor, r->broken ? 0 : amp_now_ms(), &err) < 0)
            r->voice->status(r->voice->complain(&err));
        free(s->source);
        free(s);
    }
    if (c->lock >= 0)
        close(c->lock);
    amp_buf_release(&c->name);
    free(c);
    r->cursors = NULL;
}

void amp_streams_say(const struct router *r)
{
    const struct cursors *c = r->cursors;
    if (c)
        r->voice->note("%u %s, %llu events again, %llu waited, %llu given up", c->n,
                       c->n == 1 ? "stream" : "streams", (unsigned long long)c->seen,
                       (unsigned long long)c->held, (unsigned long long)c->given_up);
}
