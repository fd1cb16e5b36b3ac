/*
 * Streams in order. The next event of a source is recorded by the commit that moves its cursor. An
 * event beyond it waits in the store until the gap is filled or given up. An event below it is a
 * repetition, or is refused. Messages without a number do not come here.
 *
 * A requeued dead letter (amp-ack dead requeue) has a number that its stream has passed. It is
 * recorded beside the cursor, once for each requeue: the input of the commit names the requeue by
 * its count and its time. The present state of the letter does not matter, because the message may
 * have failed again in the meantime.
 */
#include "message/route/admission/streams.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/clock.h>
#include <amp/base/id.h>

#include "base/codes.h"
#include "message/delivery/cursor/cursors.h"
#include "message/delivery/dead/dead.h"
#include "message/delivery/dead/record.h"
#include "message/delivery/outbox.h"
#include "message/delivery/sequences.h"
#include "message/protocol/answers.h"
#include "message/protocol/routing.h"
#include "message/route/record.h"

#define BUCKETS     1024
#define STREAMS_MAX 4096
#define NAME_ROOM   ((size_t)128 << 20) /* as for a line */

struct stream {
    struct stream *next; /* in its bucket */
    struct stream *also; /* the next of all */
    char *source;
    size_t source_n; /* the source may have a NUL */
    struct amp_cursor *cursor;
    int64_t gap_to; /* of the gap that was counted; 0: none */
    bool fresh;     /* just opened: events may wait that can go now */
};

struct amp_streams {
    const struct amp_source_env *env;
    struct amp_cursor_options numbered, rising; /* with gaps, and without */
    char answers[ANSWERS_NAME_MAX], holder[200];
    struct stream *bucket[BUCKETS], *all;
    uint32_t n;
    int lock;
    bool dirty;          /* a commit is not synced */
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

/* *out is NULL beyond STREAMS_MAX. */
static int stream_open(struct amp_streams *c, struct amp_span source, bool rising, int64_t start,
                       struct stream **out, struct amp_error *err)
{
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
    if (amp_cursor_open(c->env->run->store, source, rising ? &c->rising : &c->numbered, start,
                        amp_now_ms(), &s->cursor, err) < 0) {
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

static void parcel_refuse(struct parcel *j, enum amp_cursor_verdict verdict)
{
    const struct amp_routing_terms *terms = amp_routing_of(j->protocol);
    char why[160];
    if (verdict == AMP_CURSOR_FULL) {
        amp_parcel_refuse(j, terms->full_code ? terms->full_code : AMP_CODE(backpressure),
                          j->stream ? "too many events wait behind a gap of its source"
                                    : "too many sources are followed",
                          "cursor", true);
        return;
    }
    if (verdict == AMP_CURSOR_LATE)
        snprintf(why, sizeof why, "number %lld of its source arrived after it was given up",
                 (long long)j->seq);
    else
        snprintf(why, sizeof why, "number %lld is not above %lld and belongs to another event",
                 (long long)j->seq, (long long)amp_cursor_position(j->stream->cursor));
    amp_parcel_refuse(j, terms->sequence_code ? terms->sequence_code : AMP_CODE(seq_not_monotonic),
                      why, "cursor", false);
}

/* Whether a cursor refused the letter for its number, not because too many events waited. */
static bool is_by_number(const struct amp_dead_kept *l)
{
    return strcmp(l->first_route, "cursor") == 0 && !amp_code_is(l->first_code, buffer_full) &&
           !amp_code_is(l->first_code, backpressure);
}

/* Whether an event that its stream has passed was requeued. A letter that the cursor refused for
 * its number stays refused, because the number has not changed. */
static int requeue_look(const struct amp_route_run *run, struct parcel *j, struct amp_span id,
                        bool *requeued, struct amp_error *err)
{
    struct amp_store_rec rec;
    AMP_BUF struct amp_buf mem = {0};
    struct amp_dead_kept letter;
    char digest[AMP_KEY_NAME_MAX];
    amp_buf_init(&mem, (size_t)256 << 20);
    *requeued = false;
    if (id.n == 0)
        return 0;
    id = amp_key_message_name(id, (struct amp_span){j->line, j->n}, digest);
    if (amp_store_get(run->store, AMP_KEY_NAMED(AMP_DEAD_KIND, id), &rec, err) < 0)
        return -1;
    if (!rec.found)
        return 0;
    uint64_t rev = rec.rev;
    int64_t failed_ms = rec.due_ms;
    bool goes = amp_span_is(rec.state, "REQUEUED");
    if (amp_dead_read(rec.json, &mem, &letter, err) < 0)
        return -1;
    if (is_by_number(&letter) || (letter.requeues == 0 && !goes))
        return 0;
    /* A letter of an earlier version has no count. */
    j->requeued = letter.requeues > 0 ? (uint64_t)letter.requeues : rev;
    j->requeued_ms = letter.requeues > 0 ? letter.requeued_ms : failed_ms;
    *requeued = true;
    return 0;
}

int amp_streams_admit(struct amp_streams *c, struct parcel *j, const struct amp_view *v,
                      struct amp_error *err)
{
    struct amp_span source;
    bool rising = amp_answers_of(v->protocol)->numbering == AMP_NUMBERED_BY_PRODUCER;
    bool requeued = false;
    if (!c || v->sequence < 0 || (rising && v->attempt > 0))
        return 0;
    if (amp_sequence_stream(v, &c->name, &source, err) < 0)
        return -1;
    if (source.n == 0)
        return 0;
    if (stream_open(c, source, rising, v->sequence - 1, &j->stream, err) < 0)
        return -1;
    j->seq = v->sequence;
    if (!j->stream)
        parcel_refuse(j, AMP_CURSOR_FULL);
    else if (v->sequence <= amp_cursor_position(j->stream->cursor) &&
             requeue_look(c->env->run, j, v->id, &requeued, err) < 0)
        return -1;
    if (requeued)
        j->stream = NULL;
    return 0;
}

/* ---- recording ---- */

struct commit {
    struct parcel *parcel;
    struct amp_cursor *cursor;
    struct amp_cursor_item item;
    enum amp_cursor_verdict verdict;
    bool waited; /* the event that amp_cursor_peek returned */
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

/* Makes parcels of the waiting events that can go now, as a chain from *tail on. */
static int waiting_release(struct amp_streams *c, struct stream *s, struct parcel **tail,
                           struct amp_error *err)
{
    struct commit w = {.cursor = s->cursor, .waited = true, .verdict = AMP_CURSOR_TAKEN};
    int rc;
    while ((rc = amp_cursor_peek(s->cursor, &w.item, err)) > 0) {
        struct parcel *j = amp_parcel_new(c->env->parcels, w.item.line, NULL);
        if (!j)
            return amp_fail_memory(err);
        if (c->env->look(c->env->look_ctx, j, err) < 0 ||
            amp_keeper_commit(&j, 1, commit_fn, &w, err) < 0) {
            amp_parcel_free(j);
            return -1;
        }
        *tail = j;
        tail = &j->next;
        c->dirty = true;
    }
    return rc;
}

static void metric_count(const struct amp_streams *c, const struct stream *s, enum amp_metric which,
                         uint64_t n)
{
    struct amp_metric_labels l = {.agent = amp_span_str(c->env->consumer),
                                  .code = {s->source, s->source_n}};
    amp_metrics_add(c->env->run->metrics, which, &l, n);
}

/* Counts each gap once, for any number of events behind it. */
static void gap_count(const struct amp_streams *c, struct stream *s)
{
    int64_t from, to = 0;
    uint32_t n = c->env->run->metrics ? amp_cursor_waiting(s->cursor, &from, &to) : 0;
    if (n > 0 && to != s->gap_to)
        metric_count(c, s, AMP_METRIC_CURSOR_GAPS, 1);
    s->gap_to = n > 0 ? to : 0;
}

static int numbered_record(struct amp_streams *c, struct parcel *j,
                           enum amp_cursor_verdict *verdict, struct amp_error *err)
{
    struct commit w = {.parcel = j,
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
    if (w.verdict == AMP_CURSOR_TAKEN && waiting_release(c, j->stream, &j->next, err) < 0)
        return -1;
    gap_count(c, j->stream);
    return 0;
}

struct requeue {
    const struct amp_route_run *run;
    const struct parcel *parcel;
    enum amp_store_outcome how;
};

static int requeue_commit(void *ctx, const struct amp_store_emit *emits, uint32_t n,
                          struct amp_store_entry_id *at, struct amp_error *err)
{
    struct requeue *w = ctx;
    const struct parcel *j = w->parcel;
    char digest[AMP_KEY_NAME_MAX], number[24], at_ms[24], mem[AMP_KEY_MAX];
    struct amp_span line = {j->line, j->n},
                    id = amp_key_message_name(amp_span_str(j->id), line, digest);
    struct amp_store_input in = {.consumer = w->run->name, .bytes = line};
    snprintf(number, sizeof number, "%" PRIu64, (uint64_t)j->requeued);
    snprintf(at_ms, sizeof at_ms, "%" PRId64, (int64_t)j->requeued_ms);
    struct amp_key key = AMP_KEY_NAMED("resent", amp_span_str(number), amp_span_str(at_ms), id);
    if (amp_key_text(&key, mem, &in.id, err) < 0)
        return -1;
    const struct amp_route_commit c = {
        .event = "resent", .actor = w->run->name, .in = &in, .emits = emits, .n_emits = n};
    if (amp_route_record(w->run, &c, &w->how, err) < 0)
        return -1;
    if (w->how == AMP_STORE_COMMITTED)
        at->n = amp_store_last_frame(w->run->store);
    return 0;
}

static int requeued_record(const struct amp_streams *c, struct parcel *j,
                           enum amp_cursor_verdict *verdict, struct amp_error *err)
{
    struct requeue w = {.run = c->env->run, .parcel = j};
    struct amp_error e = {0};
    if (amp_keeper_commit(&j, 1, requeue_commit, &w, &e) == 0) {
        if (w.how == AMP_STORE_REDELIVERED)
            *verdict = AMP_CURSOR_SEEN;
        return 0;
    }
    if (e.status == AMP_NO) { /* another message under its id */
        amp_parcel_refuse(j, AMP_CODE(duplicate_msg_id), "another message of that id was requeued",
                          "", false);
        return 0;
    }
    *err = e;
    return -1;
}

int amp_streams_record(struct amp_streams *c, struct parcel **batch, uint32_t *n,
                       struct amp_error *err)
{
    uint32_t kept = 0;
    int rc = 0;
    bool any = false;
    for (uint32_t i = 0; c && i < *n && !any; i++)
        any = batch[i]->stream != NULL || batch[i]->requeued > 0;
    if (!any)
        return 0;
    /* One lock for all of them. */
    if (amp_store_begin(c->env->run->store, err) < 0)
        return -1;
    for (uint32_t i = 0; i < *n; i++) {
        enum amp_cursor_verdict verdict = AMP_CURSOR_TAKEN;
        struct parcel *j = batch[i];
        amp_store_unit(c->env->run->store);
        if (rc == 0 && j->stream) {
            rc = numbered_record(c, j, &verdict, err);
        } else if (rc == 0 && j->requeued > 0) {
            rc = requeued_record(c, j, &verdict, err);
            c->seen += verdict == AMP_CURSOR_SEEN;
        }
        if (verdict == AMP_CURSOR_HELD_UP || verdict == AMP_CURSOR_SEEN) {
            amp_parcel_free(j);
            continue;
        }
        if (verdict != AMP_CURSOR_TAKEN)
            parcel_refuse(j, verdict);
        batch[kept++] = j;
    }
    amp_store_end(c->env->run->store);
    *n = kept;
    return rc;
}

/* ---- leases and gaps ---- */

static int all_sync(struct amp_streams *c, struct amp_error *err)
{
    if (!c->dirty)
        return 0;
    if (amp_store_sync(c->env->run->store, err) < 0)
        return -1;
    c->dirty = false;
    return 0;
}

/* Adds a mark, which is in the outbox already. */
static int mark_add(const struct amp_streams *c, const struct amp_cursor_item *e,
                    struct parcel **tail, struct amp_error *err)
{
    struct parcel *j = amp_parcel_new(c->env->parcels, e->line, NULL);
    if (!j)
        return amp_fail_memory(err);
    j->entry = e->entry;
    *tail = j;
    return c->env->look(c->env->look_ctx, j, err);
}

/* One turn at the store, so that a sequence number is used by the incident that took it. */
static int cursor_turn(const struct amp_streams *c, struct stream *s, struct amp_cursor_turn *done,
                       struct amp_error *err)
{
    struct amp_store *store = c->env->run->store;
    if (amp_store_begin(store, err) < 0)
        return -1;
    int rc = amp_cursor_turn(s->cursor, amp_now_ms(), done, err);
    amp_store_end(store);
    return rc;
}

static int stream_turn(struct amp_streams *c, struct stream *s, struct amp_error *err)
{
    struct amp_cursor_turn done;
    struct parcel *first = NULL, **tail = &first;
    int rc;
    while ((rc = cursor_turn(c, s, &done, err)) > 0) {
        c->dirty = true;
        if (done.incident.entry.n) {
            c->env->run->voice->warn("%.200s: %lld to %lld did not arrive in time", s->source,
                                     (long long)done.from, (long long)done.to);
            amp_keeper_answer(c->env->keeper, done.incident.line, done.incident.entry);
        }
        if (done.to >= done.from && done.incident.entry.n)
            metric_count(c, s, AMP_METRIC_CURSOR_TIMEOUTS, 1);
        if (done.given_up) {
            uint64_t n = (uint64_t)(done.to - done.from) + 1;
            c->given_up += n;
            metric_count(c, s, AMP_METRIC_CURSOR_GIVEN_UP, n);
        }
        if (done.mark.entry.n && mark_add(c, &done.mark, tail, err) < 0)
            return -1;
        while (*tail)
            tail = &(*tail)->next;
        if (done.given_up && waiting_release(c, s, tail, err) < 0)
            return -1;
        while (*tail)
            tail = &(*tail)->next;
    }
    if (rc == 0 && s->fresh)
        rc = waiting_release(c, s, tail, err);
    s->fresh = false;
    gap_count(c, s);
    if (rc < 0 || all_sync(c, err) < 0)
        return -1;
    c->env->pass(c->env->pass_ctx, first);
    return 0;
}

int amp_streams_turn(struct amp_streams *c, struct amp_error *err)
{
    int64_t now = amp_now_ms();
    if (!c)
        return 0;
    for (struct stream *s = c->all; s; s = s->also)
        if ((s->fresh || amp_cursor_due(s->cursor) <= now) && stream_turn(c, s, err) < 0)
            return -1;
    return all_sync(c, err);
}

void amp_streams_watch(const struct amp_streams *c, int *timeout_ms)
{
    int64_t now = amp_now_ms(), first = INT64_MAX;
    for (const struct stream *s = c ? c->all : NULL; s; s = s->also)
        if (amp_cursor_due(s->cursor) < first)
            first = amp_cursor_due(s->cursor);
    /* At most 10 s, because the clock may be set in the meantime. */
    int64_t wait = first == INT64_MAX    ? -1
                   : first <= now        ? 0
                   : first - now < 10000 ? first - now
                                         : 10000;
    if (wait >= 0 && (*timeout_ms < 0 || wait < *timeout_ms))
        *timeout_ms = (int)wait;
}

/* ---- open and close ---- */

int amp_streams_alone(const struct amp_streams *c, const struct amp_source_env *env,
                      const char *consumer, int *fd, struct amp_error *err)
{
    char name[256];
    struct amp_error e;
    *fd = -1;
    if (c && strcmp(consumer, env->consumer) == 0)
        return c->numbered.alone;
    snprintf(name, sizeof name, "cursor.%s", consumer);
    if (amp_outbox_lock(env->run->store, name, 0, fd, &e) == 0)
        return 1;
    if (amp_code_is(e.code, lock_timeout))
        return 0;
    *err = e;
    return -1;
}

static int left_fn(void *ctx, const struct amp_cursor_rec *rec, uint8_t state,
                   struct amp_error *err)
{
    struct amp_streams *c = ctx;
    struct stream *s;
    if (!amp_span_is(rec->consumer, c->env->consumer) || rec->held == 0 ||
        state == AMP_CURSOR_RETIRED)
        return 0;
    return stream_open(c, rec->source, false, 0, &s, err);
}

int amp_streams_open(const struct amp_source_env *env, struct amp_streams **out,
                     struct amp_error *err)
{
    const struct amp_route_run *run = env->run;
    if (!env->consumer)
        return 0;
    if (!run->store)
        return amp_fail(err, AMP_USAGE, no_state, "--cursor needs --state");
    if (!amp_id_is_safe(amp_span_str(env->consumer)))
        return amp_fail(err, AMP_USAGE, bad_name,
                        "--cursor takes letters, digits, '.', '_' and '-'");
    struct amp_streams *c = calloc(1, sizeof *c);
    if (!c)
        return amp_fail_memory(err);
    c->env = env;
    c->lock = -1;
    amp_buf_init(&c->name, NAME_ROOM);
    *out = c;
    int alone = amp_streams_alone(NULL, env, env->consumer, &c->lock, err);
    if (alone < 0)
        return -1;
    amp_keeper_answers_name(run, c->answers);
    snprintf(c->holder, sizeof c->holder, "%.128s/%ld", run->name, (long)getpid());
    c->numbered = (struct amp_cursor_options){.consumer = env->consumer,
                                              .outbox = run->name,
                                              .answers = c->answers,
                                              .holder = c->holder,
                                              .lease_ms = env->lease_ms,
                                              .on_gap = env->on_gap,
                                              .gap_ms = env->gap_ms,
                                              .max_held = (uint32_t)env->waiting,
                                              .alone = alone};
    c->rising = c->numbered;
    c->rising.ordered = true;
    return amp_cursors_each(run->store, left_fn, c, err);
}

static void waiting_report(const struct amp_streams *c, const struct stream *s)
{
    int64_t from, to;
    uint32_t n = amp_cursor_waiting(s->cursor, &from, &to);
    if (n == 0)
        return;
    c->env->run->voice->note("%.200s: %u %s until %lld to %lld came", s->source, n,
                             n == 1 ? "event waits" : "events wait", (long long)from,
                             (long long)to);
    c->env->run->voice->status(AMP_TEMPFAIL);
}

void amp_streams_close(struct amp_streams *c)
{
    struct amp_error err;
    if (!c)
        return;
    const struct amp_route_run *run = c->env->run;
    for (struct stream *s = c->all, *next; s; s = next) {
        next = s->also;
        if (!run->broken)
            waiting_report(c, s);
        if (amp_cursor_close(s->cursor, run->broken ? 0 : amp_now_ms(), &err) < 0)
            run->voice->status(run->voice->complain(&err));
        free(s->source);
        free(s);
    }
    if (c->lock >= 0)
        close(c->lock);
    amp_buf_release(&c->name);
    free(c);
}

void amp_streams_measure(const struct amp_streams *c)
{
    const struct amp_route_run *run = c ? c->env->run : NULL;
    struct amp_error err;
    if (c && !run->broken && amp_cursors_measure(run->store, amp_now_ms(), run->metrics, &err) < 0)
        run->voice->warn("%s", err.what);
}

void amp_streams_say(const struct amp_streams *c)
{
    if (c)
        c->env->run->voice->note("%u %s, %llu events again, %llu waited, %llu given up", c->n,
                                 c->n == 1 ? "stream" : "streams", (unsigned long long)c->seen,
                                 (unsigned long long)c->held, (unsigned long long)c->given_up);
}
