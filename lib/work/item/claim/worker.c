/*
 * Workers of the queue: the lock of a name, claims, heartbeats, and the release of the claims of
 * workers that are gone. Also the row "queue" of the deadlines.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/clock.h>
#include <amp/base/file.h>
#include <amp/base/id.h>

#include "base/codes.h"
#include "message/delivery/outbox.h"
#include "work/agent/contract/contract.h"
#include "work/item/claim/queue.h"
#include "json/record.h"

#define KIND       "queue_worker"
#define BEATS      3    /* without that many heartbeats a worker is lost */
#define SWEEP_MOST 64   /* jobs of a worker that are lost at a time, and workers */
#define LOCK_MS    3000 /* the lock of a name, while another worker releases its claims */

struct amp_queue_worker {
    struct amp_store *store;
    struct amp_queue_settings set;
    char name[AMP_QUEUE_WORKER_MAX];
    int lock;
    int64_t claims, beaten_ms; /* beaten_ms: monotonic */
};

/*
 * ---- its record: its time in the index is one of the monotonic clock, which is the same in all
 * processes of a machine. So a lease neither ends early nor lasts longer when the wall's clock is
 * set, and the time in which the machine sleeps does not count. A restart of the machine sets this
 * clock back, but also frees all locks: the first worker that opens releases these claims.
 */

struct beat {
    int64_t pid, at_ms;
};
static const struct amp_rec_field fields[] = {
    AMP_REC_EVER(INT, struct beat, "pid", pid),
    AMP_REC_EVER(TIME, struct beat, "at", at_ms),
};
AMP_REC_TABLE(beat_rec, "the heartbeat of a worker", struct beat, fields);

struct writing {
    const struct amp_queue_worker *w; /* NULL: the record is removed, */
    int64_t due_ms;                   /* if it was due then */
    struct amp_buf json;
};

static int on_write(void *ctx, const struct amp_store_rec *now, struct amp_store_change *c,
                    struct amp_error *err)
{
    struct writing *x = ctx;

    if (!x->w) {
        if (!now->found || now->due_ms > x->due_ms)
            return 1;
        c->event = "gone";
        c->to = "GONE";
        c->remove = true;
        c->json = now->json;
        return 0;
    }
    const struct beat b = {getpid(), amp_now_ms()};
    int rc = amp_rec_write(&beat_rec, &b, &x->json, err);
    c->event = "working";
    c->to = "WORKING";
    c->json = amp_buf_span(&x->json);
    c->due_ms = amp_mono_ms() + BEATS * x->w->set.heartbeat_ms;
    c->actor = x->w->name;
    return rc;
}

static int record_update(struct amp_store *s, const char *name, struct writing *x,
                         struct amp_error *err)
{
    amp_buf_init(&x->json, 4096);
    int rc = amp_store_update(s, AMP_KEY(KIND, amp_span_str(name)), NULL, on_write, x, NULL, err);
    amp_buf_release(&x->json);
    return rc;
}

static int record_write(const struct amp_queue_worker *w, struct amp_error *err)
{
    return record_update(w->store, w->name, &(struct writing){.w = w}, err);
}

static int record_remove(struct amp_store *s, const char *name, int64_t due_ms,
                         struct amp_error *err)
{
    return record_update(s, name, &(struct writing){.due_ms = due_ms}, err);
}

/* ---- the loss of claims ---- */

struct lost {
    char id[AMP_QUEUE_ID_MAX], task[256];
    int64_t seq, attempt;
};

struct losing {
    struct amp_store *store;
    const char *worker, *actor;
    int64_t due_ms; /* the worker is lost if its record was due then */
    struct lost job[SWEEP_MOST];
    uint32_t n;
};

static int on_held(void *ctx, const void *rec, struct amp_error *err)
{
    const struct amp_queue_job *job = rec;
    struct losing *l = ctx;
    struct lost *x = &l->job[l->n];

    (void)err;
    if (!amp_queue_held(job->state) || !amp_span_is(job->worker, l->worker) ||
        !amp_span_copy(job->id, x->id, sizeof x->id))
        return 0;
    amp_span_copy(amp_id_is_safe(job->task) ? job->task : job->id, x->task, sizeof x->task);
    x->seq = job->seq;
    x->attempt = job->attempts;
    return ++l->n == SWEEP_MOST;
}

/* 1: lost; 0: the claim has changed meanwhile. */
static int job_lose(struct losing *l, const struct lost *x, struct amp_error *err)
{
    const struct amp_queue_step st = {.id = amp_span_str(x->id),
                                      .event = AMP_QUEUE_EV_LOSE,
                                      .worker = l->worker,
                                      .seq = x->seq,
                                      .attempt = x->attempt,
                                      .why = "the worker is gone",
                                      .actor = l->actor,
                                      .now_ms = amp_now_ms()};

    if (amp_queue_step(l->store, &st, NULL, NULL, err) == 0)
        return 1;
    return amp_code_is(err->code, claim_lost) || amp_code_is(err->code, unknown_job) ? 0 : -1;
}

/* The agents of a worker that was stopped still work, and those of a killed one may have left
 * processes: they end before another job may have their scopes. */
static void attempts_end(const struct losing *l)
{
    AMP_FREE char *dir = l->n ? realpath(amp_store_dir(l->store), NULL) : NULL;

    for (uint32_t i = 0; dir && i < l->n; i++)
        amp_attempt_end_processes(
            &(struct amp_attempt_processes){.state_dir = dir, .task = l->job[i].task});
}

/* Loses them in one turn, so that a worker that wakes up meanwhile keeps all or loses all. */
static int jobs_lose(struct losing *l, struct amp_error *err)
{
    struct amp_store_rec rec;
    int lost = 0;

    if (amp_store_begin(l->store, err) < 0)
        return -1;
    int rc = amp_store_get(l->store, AMP_KEY(KIND, amp_span_str(l->worker)), &rec, err);
    bool beats = rc == 0 && rec.found && rec.due_ms > l->due_ms;
    for (uint32_t i = 0; rc >= 0 && !beats && i < l->n; i++) {
        rc = job_lose(l, &l->job[i], err);
        lost += rc > 0;
    }
    amp_store_end(l->store);
    return rc < 0 ? -1 : lost;
}

/* Loses what a worker holds, if its record was due at due_ms of the monotonic clock (INT64_MAX: its
 * lock is free) and removes its record. The number of jobs, or -1. */
static int worker_lose(struct amp_store *s, const char *worker, int64_t due_ms, const char *actor,
                       struct amp_error *err)
{
    static const uint8_t held[] = {AMP_QUEUE_CLAIMED, AMP_QUEUE_RUNNING, AMP_QUEUE_PREEMPTING};
    AMP_FREE struct losing *l = calloc(1, sizeof *l);
    int lost = 0, n;

    if (!l)
        return amp_fail_memory(err);
    *l = (struct losing){.store = s, .worker = worker, .actor = actor, .due_ms = due_ms};
    do {
        l->n = 0;
        for (size_t i = 0; i < sizeof held / sizeof *held && l->n < SWEEP_MOST; i++)
            if (amp_queue_each(s, amp_queue_fsm.states[held[i]].name, on_held, l, err) < 0)
                return -1;
        attempts_end(l);
        if ((n = l->n ? jobs_lose(l, err) : 0) < 0)
            return -1;
        lost += n;
    } while (n > 0 && l->n == SWEEP_MOST);
    return record_remove(s, worker, due_ms, err) < 0 ? -1 : lost;
}

/* ---- other workers ---- */

struct others {
    char name[SWEEP_MOST][AMP_QUEUE_WORKER_MAX];
    uint32_t n;
};

static int on_worker(void *ctx, struct amp_span id, const struct amp_store_rec *rec,
                     struct amp_error *err)
{
    struct others *o = ctx;

    (void)rec;
    (void)err;
    o->n += amp_span_copy(id, o->name[o->n], sizeof o->name[0]);
    return o->n == SWEEP_MOST;
}

static int lock_take(struct amp_store *s, const char *name, int64_t wait_ms, int *fd,
                     struct amp_error *err)
{
    char file[AMP_QUEUE_WORKER_MAX + 16];

    snprintf(file, sizeof file, "worker.%s", name);
    return amp_outbox_lock(s, file, wait_ms, fd, err);
}

int amp_queue_lost_release(struct amp_store *s, const char *self, const char *actor, uint32_t *done,
                           struct amp_error *err)
{
    AMP_FREE struct others *o = calloc(1, sizeof *o);

    if (!o)
        return amp_fail_memory(err);
    int rc = amp_store_each(s, KIND, NULL, on_worker, o, err);
    for (uint32_t i = 0; rc >= 0 && i < o->n; i++) {
        AMP_CLOSE int lock = -1;
        struct amp_error e;
        if (self && strcmp(o->name[i], self) == 0)
            continue;
        if (lock_take(s, o->name[i], 0, &lock, &e) < 0)
            continue;
        rc = worker_lose(s, o->name[i], INT64_MAX, actor, err);
        *done += rc < 0 ? 0 : (uint32_t)rc + 1;
    }
    return rc < 0 ? -1 : 0;
}

/* ---- for workers ---- */

void amp_queue_agent(struct amp_span type, uint32_t n, char out[AMP_QUEUE_AGENT_MAX])
{
    snprintf(out, AMP_QUEUE_AGENT_MAX, "%.*s-%u", AMP_CLIP(type, 100), n);
}

void amp_queue_consumer(const char *agent, char out[AMP_QUEUE_CONSUMER_MAX])
{
    snprintf(out, AMP_QUEUE_CONSUMER_MAX, "task-queue.work.%s", agent);
}

int amp_queue_worker_open(struct amp_queue_worker **out, struct amp_store *s,
                          const struct amp_queue_settings *set, const char *name,
                          struct amp_error *err)
{
    struct amp_queue_worker *w = calloc(1, sizeof *w);

    if (!w)
        return amp_fail_memory(err);
    w->store = s;
    w->set = *set;
    w->lock = -1;
    snprintf(w->name, sizeof w->name, "%s", name);
    if (lock_take(s, name, LOCK_MS, &w->lock, err) < 0) {
        if (amp_code_is(err->code, lock_timeout))
            amp_fail(err, AMP_NO, name_taken,
                     "another process claims jobs as \"%s\": choose another --name", name);
        free(w);
        return -1;
    }
    uint32_t lost = 0;
    if (worker_lose(s, name, INT64_MAX, name, err) < 0 ||
        amp_queue_lost_release(s, name, name, &lost, err) < 0 || amp_store_sync(s, err) < 0) {
        amp_queue_worker_close(w);
        return -1;
    }
    *out = w;
    return 0;
}

void amp_queue_worker_close(struct amp_queue_worker *w)
{
    struct amp_error e;

    if (!w)
        return;
    /* The jobs that it still holds are marked as lost by the next worker that opens. */
    if (w->beaten_ms && !w->claims && record_remove(w->store, w->name, INT64_MAX, &e) == 0)
        amp_store_sync(w->store, &e);
    amp_auto_close(&w->lock);
    free(w);
}

int64_t amp_queue_worker_due(const struct amp_queue_worker *w)
{
    return w->claims > 0 ? w->beaten_ms + w->set.heartbeat_ms : 0;
}

int amp_queue_worker_beat(struct amp_queue_worker *w, struct amp_error *err)
{
    int64_t now = amp_mono_ms();

    if (w->claims == 0)
        return 0;
    if (record_write(w, err) < 0 || amp_store_sync(w->store, err) < 0)
        return -1;
    w->beaten_ms = now;
    return 0;
}

/* A claim is never without a record, by which others release it. */
static int beat_before(void *ctx, struct amp_error *err)
{
    struct amp_queue_worker *w = ctx;
    int64_t now = amp_mono_ms();

    if (record_write(w, err) < 0)
        return -1;
    w->beaten_ms = now;
    return 0;
}

int amp_queue_worker_claim(struct amp_queue_worker *w, struct amp_order *o,
                           const struct amp_span *types, uint32_t n_types, struct amp_buf *mem,
                           struct amp_queue_job *out, int64_t *wake_ms, struct amp_error *err)
{
    /* The heartbeat begins with the first claim. */
    bool old = !w->beaten_ms || amp_mono_ms() - w->beaten_ms >= w->set.heartbeat_ms;
    const struct amp_order_want want = {.worker = w->name,
                                        .types = types,
                                        .n_types = n_types,
                                        .actor = w->name,
                                        .now_ms = amp_now_ms(),
                                        .before = old ? beat_before : NULL,
                                        .before_ctx = w};

    int rc = amp_order_claim(o, &want, mem, out, wake_ms, err);
    w->claims += rc > 0;
    return rc;
}

int amp_queue_worker_step(struct amp_queue_worker *w, struct amp_queue_step *st,
                          struct amp_buf *mem, struct amp_queue_job *out, struct amp_error *err)
{
    struct amp_queue_job job;

    st->worker = w->name;
    if (amp_queue_step(w->store, st, mem, &job, err) < 0) {
        if (amp_code_is(err->code, claim_lost) && w->claims > 0)
            w->claims--;
        return -1;
    }
    if (!amp_queue_held(job.state) && w->claims > 0)
        w->claims--;
    if (out)
        *out = job;
    return 0;
}

/* ---- for lists ---- */

struct beats {
    amp_queue_beat_fn fn;
    void *ctx;
    int64_t mono_ms;
    struct amp_buf mem;
};

static int on_beat(void *ctx, struct amp_span id, const struct amp_store_rec *rec,
                   struct amp_error *err)
{
    struct beats *l = ctx;
    struct beat b = {0};

    if (amp_rec_parse(&beat_rec, rec->json, &l->mem, &b, err) < 0)
        return -1;
    const struct amp_queue_beat out = {id, b.pid, b.at_ms, rec->due_ms - l->mono_ms};
    return l->fn(l->ctx, &out, err);
}

int amp_queue_beats(struct amp_store *s, amp_queue_beat_fn fn, void *ctx, struct amp_error *err)
{
    struct beats l = {.fn = fn, .ctx = ctx, .mono_ms = amp_mono_ms(), .mem = {.max = AMP_REC_MAX}};
    int rc = amp_store_each(s, KIND, NULL, on_beat, &l, err);

    amp_buf_release(&l.mem);
    return rc;
}

bool amp_queue_worker_lives(struct amp_store *s, const char *name)
{
    char file[AMP_QUEUE_WORKER_MAX + 16];

    snprintf(file, sizeof file, "worker.%s", name);
    return amp_outbox_locked(s, file);
}

/* ---- the row of the deadlines ---- */

static void earlier(int64_t *ms, int64_t due)
{
    if (due > 0 && (*ms == 0 || due < *ms))
        *ms = due;
}

int amp_queue_worker_lost_due(struct amp_store *s, int64_t *mono_ms, struct amp_error *err)
{
    return amp_store_next_due(s, KIND, mono_ms, err);
}

int amp_queue_due(struct amp_store *s, int64_t *ms, struct amp_error *err)
{
    int64_t jobs, workers;

    *ms = 0;
    if (amp_store_next_due(s, AMP_QUEUE_KIND, &jobs, err) < 0 ||
        amp_queue_worker_lost_due(s, &workers, err) < 0)
        return -1;
    earlier(ms, jobs);
    if (workers > 0)
        earlier(ms, amp_now_ms() + (workers - amp_mono_ms()));
    return 0;
}

struct dues {
    char id[SWEEP_MOST][AMP_QUEUE_ID_MAX];
    uint8_t state[SWEEP_MOST];
    uint32_t n;
};

static int on_due(void *ctx, struct amp_span id, const struct amp_store_rec *rec,
                  struct amp_error *err)
{
    struct dues *d = ctx;
    int state = amp_fsm_state(&amp_queue_fsm, rec->state);

    (void)err;
    if (state >= 0 && amp_span_copy(id, d->id[d->n], sizeof d->id[0]))
        d->state[d->n++] = (uint8_t)state;
    return d->n == SWEEP_MOST;
}

/* Parked jobs wake, and jobs whose deadline passed expire. */
static int jobs_sweep(struct amp_store *s, int64_t now_ms, const char *actor, uint32_t *done,
                      struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {0};
    AMP_FREE struct dues *d = calloc(1, sizeof *d);

    if (!d)
        return amp_fail_memory(err);
    amp_buf_init(&mem, AMP_REC_MAX);
    if (amp_store_due(s, AMP_QUEUE_KIND, now_ms, on_due, d, err) < 0)
        return -1;
    for (uint32_t i = 0; i < d->n; i++) {
        struct amp_queue_job job;
        struct amp_queue_step st = {.id = amp_span_str(d->id[i]), .actor = actor, .now_ms = now_ms};
        if (amp_queue_ended(d->state[i])) {
            if (amp_queue_forget(s, st.id, actor, err) < 0)
                return -1;
            ++*done;
            continue;
        }
        int found = amp_queue_read(s, st.id, &mem, &job, err);
        if (found < 0)
            return -1;
        if (!found)
            continue;
        bool late = job.deadline_ms > 0 && job.deadline_ms <= now_ms;
        st.id = amp_span_str(d->id[i]);
        st.event = late ? AMP_QUEUE_EV_EXPIRE : AMP_QUEUE_EV_WAKE;
        if (amp_queue_step(s, &st, &mem, NULL, err) == 0)
            ++*done;
        else if (!amp_code_is(err->code, illegal_transition))
            return -1;
    }
    return 0;
}

int amp_queue_sweep(struct amp_store *s, int64_t now_ms, const char *actor, uint32_t *done,
                    struct amp_error *err)
{
    AMP_FREE struct others *o = calloc(1, sizeof *o);

    if (!o)
        return amp_fail_memory(err);
    int64_t mono = amp_mono_ms();
    int rc = amp_store_due(s, KIND, mono, on_worker, o, err);
    for (uint32_t i = 0; rc >= 0 && i < o->n; i++) {
        int lost = worker_lose(s, o->name[i], mono, actor, err);
        if (lost < 0)
            return -1;
        *done += (uint32_t)lost + 1;
    }
    return rc < 0 ? -1 : jobs_sweep(s, now_ms, actor, done, err);
}
