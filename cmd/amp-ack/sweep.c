/*
 * amp-ack sweep and watch: overdue messages and silent agents become escalations, each once. The
 * commit that creates an escalation puts it into the outbox. The outbox is emitted under a lock, so
 * a second sweeper finds the entry closed, and one that starts after a crash finds it open and
 * emits it.
 *
 * sweep does everything that is due now. watch sleeps until the earliest deadline, or until a
 * program writes to the log, which may set an earlier one. If several watch, a process that finds
 * the lock taken tries again later.
 */
#include "pass.h"

#include <string.h>

#include <amp/base/clock.h>
#include <amp/base/id.h>
#include <amp/base/num.h>

#include "base/backoff.h"
#include "base/codes.h"
#include "base/words.h"
#include "cli/config.h"
#include "message/delivery/cursor/cursors.h"
#include "message/delivery/operation/idempotency.h"
#include "message/store/wake.h"
#include "work/git/prepare.h"
#include "work/task/activity/notice/activity.h"

#define LOOK_MS    100 /* the shortest interval between two reads of a busy log */
#define AGAIN_MS   1000
#define ROWS_MAX   32
#define MOST       1000  /* messages that one run over the rows makes */
#define PREPARE_MS 60000 /* of the command in a worktree: other deadlines wait for it */

static const struct amp_backoff still_due = {AGAIN_MS, 60000}; /* due again right after a run */
static const struct amp_backoff lock_busy = {LOOK_MS / 2, AGAIN_MS};

static const char *severity = "warning", *now_text;
static bool follow, until_idle;
static int64_t most = MOST;
static struct amp_retry_rules retry_rules;
static struct amp_prepare prepare = {AMP_PREPARE_DEFAULTS, .stop = &amp_stop, .note = amp_note};
static struct amp_deadline_ctx deadlines = {.from = "system",
                                            .severity = AMP_LEVEL_WARNING,
                                            .silence_ms = AMP_SILENCE_MS,
                                            .window_ms = AMP_IDEM_WINDOW_MS,
                                            .retry = &retry_rules,
                                            .prepare = &prepare};

static const char *const severities[] = {"info", "warning", "critical", NULL};

#define DEADLINE_OPTS                                                                              \
    AMP_OPT_ROW(0, "severity", AMP_OPT_CHOICE, &severity, "LEVEL", "severity of escalations",      \
                .choices = severities, .config = "ack.severity"),                                  \
        AMP_OPT_ROW(0, "silence", AMP_OPT_DURATION, &deadlines.silence_ms, "TIME",                 \
                    "how long a working agent may be silent; 0 for no limit",                      \
                    .config = "ack.silence"),                                                      \
        AMP_OPT_ROW(0, "window", AMP_OPT_DURATION, &deadlines.window_ms, "TIME",                   \
                    "how long the outcome of an operation is remembered", .config = "ack.window"), \
        ACK_RETRY_OPTS,                                                                            \
        AMP_OPT_ROW(0, "dead-max-age", AMP_OPT_DURATION, &deadlines.dead.max_age_ms, "TIME",       \
                    "remove dead letters this long after their last failure",                      \
                    .config = "dead.max_age"),                                                     \
        AMP_OPT_ROW(0, "dead-max-count", AMP_OPT_INT, &deadlines.dead.max_count, "N",              \
                    "keep at most N dead letters", .config = "dead.max_count"),                    \
        AMP_OPT_ROW(0, "from", AMP_OPT_STRING, &deadlines.from, "ROLE",                            \
                    "sender of escalations and notices, whose key signs them"),                    \
        AMP_OPT_ROW(                                                                               \
            0, "most", AMP_OPT_INT, &most, "N",                                                    \
            "messages about overdue messages that one sweep may make; the rest is left to "        \
            "the next one, with watch a second later",                                             \
            .min = 1, .max = 1000000, .config = "ack.most"),                                       \
        AMP_OPT_PREPARE(prepare), PASS_OUT_OPT, PASS_OPEN_OPT

static const struct amp_opt sweep_opts[] = {
    {'f', "follow", AMP_OPT_FLAG, &follow, NULL, .doc = "continue until a signal, as watch does"},
    {0, "now", AMP_OPT_STRING, &now_text, "TIME", .doc = "use TIME as the current time (RFC 3339)"},
    DEADLINE_OPTS,
    AMP_METRICS_OPTS(ack_metrics),
    AMP_OPT_END,
};
static const struct amp_opt watch_opts[] = {
    {0, "until-idle", AMP_OPT_FLAG, &until_idle, NULL, .doc = "end when no message waits"},
    DEADLINE_OPTS,
    AMP_METRICS_OPTS(ack_metrics),
    AMP_OPT_END,
};

static int system_identities(struct amp_identities **out, struct amp_error *err)
{
    return ack_identities("system", out, err);
}

struct amp_deadline_ctx sweep_deadlines(struct amp_metrics *metrics)
{
    struct amp_deadline_ctx c = deadlines;
    c.actor = ack_as ? ack_as : SWEEP_NAME;
    c.metrics = metrics;
    c.most = (uint32_t)most;
    c.identities = system_identities;
    c.note = amp_note;
    if (prepare.command_ms > PREPARE_MS)
        prepare.command_ms = PREPARE_MS;
    c.severity = (enum amp_level)amp_word_find(severities, amp_span_str(severity));
    return c;
}

/* ---- watch ---- */

struct row {
    int64_t due_ms; /* 0: nothing to do */
    int64_t ran_ms; /* when it was run last */
    int64_t again_ms;
};

struct watch {
    struct amp_store *store;
    struct amp_outq *q;
    struct amp_deadline_ctx ctx;
    struct amp_wake wake;
    struct row row[ROWS_MAX];
    int64_t first_ms;  /* the earliest deadline, or now if the outbox has lines; 0: none */
    int64_t looked_ms; /* monotonic */
    int64_t busy_ms;   /* how long to wait before trying the lock again */
    bool idle, warned;
};

/* A row that is still due after a run (a fault, or a time limit of 0) is run again after increasing
 * pauses, not in a busy loop. */
static int64_t row_next_due(struct row *r, int64_t due)
{
    if (due == 0 || due > r->ran_ms) {
        r->again_ms = 0;
        return due;
    }
    return r->ran_ms + r->again_ms;
}

/* Finds the next deadline of every row. Later writes to the log wake the process again. */
static int watch_look(struct watch *w, struct amp_error *err)
{
    int64_t now = amp_now_ms();
    bool open;
    w->looked_ms = amp_mono_ms();
    if (amp_wake_drain(&w->wake, err) < 0)
        return -1;
    if (amp_outbox_any(w->store, w->ctx.actor, &open, err) < 0)
        return -1;
    w->idle = !open;
    w->first_ms = open ? now : 0;
    for (unsigned i = 0; amp_deadlines[i].name; i++) {
        struct row *r = &w->row[i];
        int64_t due = 0;
        if (amp_deadline_next(&amp_deadlines[i], w->store, &w->ctx, &due, err) < 0)
            return -1;
        r->due_ms = row_next_due(r, due);
        if (r->due_ms != 0 && (w->first_ms == 0 || r->due_ms < w->first_ms))
            w->first_ms = r->due_ms;
        w->idle &= r->due_ms == 0 || amp_deadlines[i].upkeep;
    }
    return 0;
}

enum ran { RAN_ERROR = -1, RAN_ALL, RAN_BUSY };

/* Runs the rows that are due and writes the outbox; BUSY: another process has its lock. */
static enum ran watch_run_due(struct watch *w, struct amp_error *err)
{
    AMP_CLOSE int lock = -1;
    struct amp_error why;
    int64_t now = amp_now_ms();
    uint32_t done[ROWS_MAX] = {0};
    if (amp_outbox_lock(w->store, w->ctx.actor, 0, &lock, &why) < 0) {
        if (amp_code_is(why.code, lock_timeout))
            return RAN_BUSY;
        *err = why;
        return RAN_ERROR;
    }
    if (amp_deadlines_run(w->store, now, &w->ctx, done, err) < 0 ||
        ack_outbox_emit(w->store, w->ctx.actor, w->ctx.from, w->q, err) < 0)
        return RAN_ERROR;
    for (unsigned i = 0; amp_deadlines[i].name; i++) {
        struct row *r = &w->row[i];
        if (r->due_ms == 0 || r->due_ms > now)
            continue;
        /* With a limit a row that made something may have more. */
        r->again_ms = done[i] > 0 ? AGAIN_MS : amp_backoff_next(&still_due, r->again_ms);
        r->ran_ms = now;
    }
    return RAN_ALL;
}

static int watch_step(struct watch *w, struct amp_error *err)
{
    for (;;) {
        if (watch_look(w, err) < 0)
            return -1;
        if (w->first_ms == 0 || w->first_ms > amp_now_ms())
            return amp_wake_at(&w->wake, w->first_ms, err);
        if (amp_stop)
            return 0;
        enum ran ran = watch_run_due(w, err);
        if (ran == RAN_ERROR)
            return -1;
        if (ran == RAN_BUSY) {
            w->idle = false;
            w->busy_ms = amp_backoff_next(&lock_busy, w->busy_ms);
            return amp_wake_at(&w->wake, amp_now_ms() + w->busy_ms, err);
        }
        w->busy_ms = 0;
    }
}

static int entries_set(void *arg, const char *text, struct amp_error *err)
{
    return amp_num_parse(amp_span_str(text), 1, INT64_MAX, arg, err);
}

/* Measures what is not counted when it changes: cursors, and the activity buffer. */
static int all_measure(struct amp_store *s, int64_t now_ms, struct amp_metrics *metrics,
                       struct amp_error *err)
{
    static int64_t max = -1;
    if (metrics && max < 0) {
        max = 0;
        if (amp_config_values(ack_config, amp_store_dir(s), "activity.max", entries_set, &max,
                              err) < 0)
            return -1;
    }
    return amp_cursors_measure(s, now_ms, metrics, err) < 0
               ? -1
               : amp_notice_measure(s, max, metrics, err);
}

static void watch_count(struct watch *w)
{
    struct amp_error err;
    if (amp_metrics_timeout(w->ctx.metrics) == 0 &&
        all_measure(w->store, amp_now_ms(), w->ctx.metrics, &err) < 0)
        amp_warn("%s", err.what);
    if (amp_metrics_tick(w->ctx.metrics, &err) < 0)
        amp_warn("%s", err.what);
}

/* Sleeps until a deadline may have passed. */
static int watch_sleep(struct watch *w, struct amp_error *err)
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
        watch_count(w);
        if (amp_stop)
            return amp_fail(err, AMP_INTERRUPTED, interrupted, "interrupted");
        if (why & AMP_WAKE_OUT)
            return amp_fail(err, AMP_IOERR, closed_pipe, "the reader of the output is gone");
        if (why & AMP_WAKE_TIME)
            return 0;
        if (why & AMP_WAKE_LOG)
            log = false;
        if (!log && amp_mono_ms() >= w->looked_ms + LOOK_MS)
            return 0;
    }
}

/* A state that is locked for longer than --lock-timeout is reported once, then tried again. */
static int watch_step_or_wait(struct watch *w, struct amp_error *err)
{
    if (watch_step(w, err) == 0) {
        w->warned = false;
        return 0;
    }
    if (!amp_code_is(err->code, lock_timeout))
        return -1;
    if (!w->warned)
        amp_warn("%s; trying again", err->what);
    w->warned = true;
    w->idle = false;
    return amp_wake_at(&w->wake, amp_now_ms() + AGAIN_MS, err);
}

static int watch_run(struct amp_store *s, struct amp_outq *q, struct amp_error *err)
{
    struct watch w = {.store = s, .q = q};
    struct amp_metrics *metrics = NULL;
    if (amp_deadlines_count() > ROWS_MAX)
        return amp_fail(err, AMP_INTERNAL, too_many_rows, "too many deadlines");
    if (amp_wake_open(&w.wake, amp_store_dir(s), err) < 0)
        return -1;
    int rc = amp_metrics_open(&ack_metrics, &metrics, err);
    w.ctx = sweep_deadlines(metrics);
    while (rc == 0 && (rc = watch_step_or_wait(&w, err)) == 0) {
        if (until_idle && w.idle)
            break;
        rc = watch_sleep(&w, err);
    }
    struct amp_error late;
    if (rc == 0 && all_measure(s, amp_now_ms(), metrics, &late) < 0)
        amp_warn("%s", late.what);
    rc = ack_metrics_end(metrics, rc, err);
    amp_wake_close(&w.wake);
    return rc;
}

/* ---- sweep ---- */

static int sweep_run(struct amp_store *s, struct amp_outq *q, struct amp_error *err)
{
    int64_t now = amp_now_ms();
    struct amp_metrics *metrics = NULL;
    AMP_CLOSE int lock = -1;
    if (now_text && !amp_time_parse(amp_span_str(now_text), &now))
        return amp_fail(err, AMP_USAGE, bad_time, "--now takes an RFC 3339 time with an offset");
    if (amp_metrics_open(&ack_metrics, &metrics, err) < 0)
        return -1;
    struct amp_deadline_ctx ctx = sweep_deadlines(metrics);
    int rc = amp_outbox_lock(s, ctx.actor, ack_lock_timeout_ms, &lock, err);
    if (rc == 0)
        rc = amp_deadlines_run(s, now, &ctx, NULL, err);
    if (rc == 0)
        rc = all_measure(s, now, metrics, err);
    if (rc == 0)
        rc = ack_outbox_emit(s, ctx.actor, ctx.from, q, err);
    return ack_metrics_end(metrics, rc, err);
}

static int sweep_check(struct amp_command *c, struct amp_error *err)
{
    (void)c;
    if (follow && now_text)
        amp_die_usage("--now and --follow exclude each other");
    if (ack_as && !amp_id_is_safe(amp_span_str(ack_as)))
        amp_die_usage("--as takes letters, digits, '.', '_' and '-'");
    if (ack_retry_rules(&retry_rules, err) < 0)
        amp_die_usage("%s", err->what);
    return 0;
}

static int verb_run(struct amp_command *c, const char *name,
                    int (*verb)(struct amp_store *s, struct amp_outq *q, struct amp_error *err),
                    struct amp_error *err)
{
    struct amp_outq q = {.fd = -1};
    ack_metrics.tool = name;
    int rc = ack_open_output(&q, err);
    if (rc == 0)
        rc = verb(c->store, &q, err);
    if (q.fd >= 0)
        amp_outq_close(&q);
    return rc;
}

static int ack_watch(struct amp_command *c, struct amp_error *err)
{
    return verb_run(c, "amp-ack.watch", watch_run, err);
}

static int ack_sweep(struct amp_command *c, struct amp_error *err)
{
    return verb_run(c, "amp-ack.sweep", follow ? watch_run : sweep_run, err);
}

const struct amp_verb sweep_verbs[] = {
    {"sweep", "", "escalate, retry and expire overdue messages", sweep_opts, ack_sweep,
     .check = sweep_check, .opens = AMP_OPENS_MADE, .act = "carry out deadlines", .signals = true,
     .group = "Deadlines", .who = AMP_WHO_PERSON},
    {"watch", "", "do the same at each deadline, until a signal", watch_opts, ack_watch,
     .check = sweep_check, .opens = AMP_OPENS_MADE, .act = "carry out deadlines", .signals = true,
     .who = AMP_WHO_PERSON},
    {0},
};
