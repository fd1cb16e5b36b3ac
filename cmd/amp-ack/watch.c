/*
 * amp-ack watch: one process that owns the deadlines. It sleeps until the earliest of them, or
 * until somebody writes to the log: then it looks whether there is an earlier one. What is due is
 * done under the lock of the outbox, so that several may watch: who finds it taken looks again a
 * little later, and finishes what the other did not live to write.
 */
#include <string.h>

#include <amp/base/clock.h>
#include <amp/base/id.h>

#include "base/backoff.h"
#include "base/heap.h"
#include "due.h"
#include "flow/wake.h"
#include "message/cursor/cursors.h"
#include "pass.h"

#define LOOK_MS  100 /* between two looks at a log that others write without a pause */
#define AGAIN_MS 1000
#define ROWS_MAX 32

static const struct amp_backoff still_due = {AGAIN_MS, 60000}; /* due although it was done */
static const struct amp_backoff lock_busy = {LOOK_MS / 2, AGAIN_MS};

static bool until_idle;

const struct amp_opt watch_opts[] = {
    {0, "until-idle", AMP_OPT_FLAG, &until_idle, NULL, .doc = "end when nothing is waited for"},
    DUE_OPTS,
    AMP_METRICS_OPTS(ack_metrics),
    AMP_OPT_END,
};

struct row {
    struct amp_heap_node node;
    int64_t ran_ms; /* when it was due and run last */
    int64_t again_ms;
};

struct watch {
    struct amp_store *store;
    struct amp_outq *q;
    struct amp_deadline_ctx ctx;
    struct amp_wake wake;
    struct amp_heap heap;
    struct row row[ROWS_MAX];
    struct amp_heap_node outbox; /* in the heap while lines of it are open */
    int64_t looked_ms;           /* monotonic */
    int64_t busy_ms;             /* how long to leave the lock to who has it */
    bool idle, told;
};

/* A row that stays due although it was run (its owner's fault, or a time limit of nothing) is tried
 * again in longer and longer steps, not in a circle. */
static int64_t settle(struct row *r, int64_t due)
{
    if (due == 0 || due > r->ran_ms) {
        r->again_ms = 0;
        return due;
    }
    return r->ran_ms + r->again_ms;
}

/* Asks every row for its next moment. What was written after this wakes us again. */
static int look(struct watch *w, struct amp_error *err)
{
    int64_t now = amp_now_ms();
    bool open;
    w->looked_ms = amp_mono_ms();
    if (amp_wake_drain(&w->wake, err) < 0)
        return -1;
    if (amp_outbox_any(w->store, w->ctx.actor, &open, err) < 0)
        return -1;
    w->idle = !open;
    for (unsigned i = 0; amp_deadlines[i].name; i++) {
        struct row *r = &w->row[i];
        int64_t due = 0;
        if (amp_deadlines[i].next_due(w->store, &w->ctx, &due, err) < 0)
            return -1;
        due = settle(r, due);
        if (due == 0)
            amp_heap_drop(&w->heap, &r->node);
        else if (amp_heap_set(&w->heap, &r->node, due, err) < 0)
            return -1;
        w->idle &= due == 0 || amp_deadlines[i].upkeep;
    }
    if (open)
        return amp_heap_set(&w->heap, &w->outbox, now, err);
    amp_heap_drop(&w->heap, &w->outbox);
    return 0;
}

/* Does what is due, and writes the outbox. 1: somebody else is at it. */
static int act(struct watch *w, struct amp_error *err)
{
    AMP_CLOSE int lock = -1;
    struct amp_error why;
    int64_t now = amp_now_ms();
    if (amp_outbox_lock(w->store, w->ctx.actor, 0, &lock, &why) < 0) {
        if (strcmp(why.code, "lock_timeout") == 0)
            return 1;
        *err = why;
        return -1;
    }
    for (unsigned i = 0; amp_deadlines[i].name; i++) {
        struct row *r = &w->row[i];
        if (r->node.place == 0 || r->node.due > now)
            continue;
        r->again_ms = amp_backoff_next(&still_due, r->again_ms);
        r->ran_ms = now;
    }
    if (amp_deadlines_run(w->store, now, &w->ctx, NULL, err) < 0)
        return -1;
    return ack_outbox_emit(w->store, w->ctx.actor, w->q, err);
}

static int step(struct watch *w, struct amp_error *err)
{
    const struct amp_heap_node *first;
    for (;;) {
        if (look(w, err) < 0)
            return -1;
        first = amp_heap_first(&w->heap);
        if (!first || first->due > amp_now_ms())
            return amp_wake_at(&w->wake, first ? first->due : 0, err);
        if (amp_stop)
            return 0;
        int rc = act(w, err);
        if (rc < 0)
            return -1;
        if (rc == 1) {
            w->idle = false;
            w->busy_ms = amp_backoff_next(&lock_busy, w->busy_ms);
            return amp_wake_at(&w->wake, amp_now_ms() + w->busy_ms, err);
        }
        w->busy_ms = 0;
    }
}

static void tick(struct watch *w)
{
    struct amp_error err;
    if (amp_metrics_timeout(w->ctx.metrics) == 0 &&
        amp_cursors_measure(w->store, amp_now_ms(), w->ctx.metrics, &err) < 0)
        amp_warn("%s", err.what);
    if (amp_metrics_tick(w->ctx.metrics, &err) < 0)
        amp_warn("%s", err.what);
}

/* Until there is a reason to look. */
static int sleep_well(struct watch *w, struct amp_error *err)
{
    for (bool log = true;;) {
        unsigned why;
        int64_t rest = w->looked_ms + LOOK_MS - amp_mono_ms(), count;
        struct amp_wake_for f = {.log = log, .out_fd = w->q->fd, .stop = &amp_stop};
        f.timeout_ms = count = amp_metrics_timeout(w->ctx.metrics);
        if (!log && (count < 0 || rest < count))
            f.timeout_ms = rest > 0 ? rest : 0;
        if (amp_wake_wait(&w->wake, &f, &why, err) < 0)
            return -1;
        tick(w);
        if (amp_stop)
            return amp_fail(err, AMP_INTERRUPTED, "interrupted", "interrupted");
        if (why & AMP_WAKE_OUT)
            return amp_fail(err, AMP_IOERR, "closed_pipe", "the output's reader is gone");
        if (why & AMP_WAKE_TIME)
            return 0;
        if (why & AMP_WAKE_LOG)
            log = false;
        if (!log && amp_mono_ms() >= w->looked_ms + LOOK_MS)
            return 0;
    }
}

/* A state that is busy for longer than --lock-timeout is told, and looked at again. */
static int step_or_wait(struct watch *w, struct amp_error *err)
{
    if (step(w, err) == 0) {
        w->told = false;
        return 0;
    }
    if (strcmp(err->code, "lock_timeout") != 0)
        return -1;
    if (!w->told)
        amp_warn("%s; it is tried again", err->what);
    w->told = true;
    w->idle = false;
    return amp_wake_at(&w->wake, amp_now_ms() + AGAIN_MS, err);
}

int watch_loop(struct amp_store *s, struct amp_outq *q, bool until, struct amp_error *err)
{
    struct watch w = {.store = s, .q = q};
    struct amp_metrics *metrics = NULL;
    if (amp_deadlines_count() > ROWS_MAX)
        return amp_fail(err, AMP_INTERNAL, "too_many_rows", "more deadlines than places for them");
    if (amp_wake_open(&w.wake, amp_store_dir(s), err) < 0)
        return -1;
    int rc = amp_metrics_open(&ack_metrics, &metrics, err);
    due_ctx(metrics, &w.ctx);
    while (rc == 0 && (rc = step_or_wait(&w, err)) == 0) {
        if (until && w.idle)
            break;
        rc = sleep_well(&w, err);
    }
    struct amp_error late;
    if (rc == 0 && amp_cursors_measure(s, amp_now_ms(), metrics, &late) < 0)
        amp_warn("%s", late.what);
    rc = ack_metrics_end(metrics, rc, err);
    amp_heap_release(&w.heap);
    amp_wake_close(&w.wake);
    return rc;
}

int ack_watch(int argc, char **argv)
{
    int status;
    struct amp_error err = {0};
    struct amp_outq q = {.fd = -1};
    if (ack_as && !amp_id_is_safe(amp_span_str(ack_as)))
        amp_die_usage("--as takes letters, digits, '.', '_' and '-'");
    if (ack_retry_rules(&ack_due.rules, &err) < 0)
        amp_die_usage("%s", err.what);
    amp_signals_install();
    ack_metrics.tool = "amp-ack.watch";
    struct amp_store *s = ack_open_state(ACK_MAKE, &status);
    if (!s)
        return status;
    if (ack_open_output(ack_due.out_path, ack_due.open_timeout_ms, &q, &err) < 0 ||
        watch_loop(s, &q, until_idle, &err) < 0)
        status = amp_complain(&err);
    if (q.fd >= 0)
        amp_outq_close(&q);
    amp_store_close(s);
    return status;
}
