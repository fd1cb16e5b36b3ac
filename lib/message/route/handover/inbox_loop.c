/*
 * Gives an agent its messages, one at a time. The READ of a message is on disk before the next one
 * is handed over; with --between-turns a busy agent gets nothing. The loop waits for the bell that
 * routers ring, the end of a lease, a signal, or the loss of the output's reader.
 */
#include "message/route/handover/handover.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/clock.h>
#include <amp/base/id.h>

#include "base/backoff.h"
#include "base/codes.h"
#include "message/delivery/ledger/ledger.h"
#include "message/delivery/record/record.h"
#include "message/route/count.h"
#include "message/route/handover/held.h"

/* At least half of a pause is waited, so that the command has time to recover. */
static const struct amp_backoff pauses = {.first_ms = 500, .most_ms = 16000};

struct inbox_loop {
    const struct amp_handover_options *o;
    struct amp_store *store;
    struct amp_inbox_end *end;
    struct amp_handover hand;
    struct amp_acks acks;
    int bell;
    struct amp_buf mem;
    struct amp_lanes lanes;
    int64_t this_turn;
    struct amp_metrics *metrics; /* NULL: there are none */
    struct amp_inbox_held held;
    int64_t spared;                   /* attempts of the message that a suspension ended, */
    char spared_of[AMP_KEY_NAME_MAX]; /* by its digest */
};

/* Counts the message, its wait (once), and the time of its command. */
static void message_count(struct inbox_loop *in, const struct amp_inbox_msg *m, int64_t began_ms,
                          enum amp_run_verdict how)
{
    struct amp_metric_labels l = {.agent = in->o->agent};
    if (m->attempt == 1)
        amp_metrics_observe(in->metrics, AMP_METRIC_DEQUEUE_LATENCY, &l,
                            (double)(began_ms - m->at_ms) / 1e3);
    else
        amp_metrics_add(in->metrics, AMP_METRIC_REDELIVERED, &l, 1);
    if (in->o->argv)
        amp_metrics_observe(in->metrics, AMP_METRIC_PROCESS_TIME, &l,
                            (double)(amp_now_ms() - began_ms) / 1e3);
    if (how == AMP_RUN_DONE)
        amp_metrics_add(in->metrics, AMP_METRIC_SENT, &l, 1);
}

static void metrics_write(struct inbox_loop *in)
{
    struct amp_error err;
    if (amp_metrics_timeout(in->metrics) == 0 &&
        amp_route_count_inbox(in->metrics, in->o->name, in->store, in->o->agent, &err) < 0)
        in->o->voice->warn("%s", err.what);
    if (amp_metrics_tick(in->metrics, &err) < 0)
        in->o->voice->warn("%s", err.what);
}

static bool is_spared(const struct inbox_loop *in, const struct amp_inbox_msg *m)
{
    char id[AMP_KEY_NAME_MAX];
    struct amp_error e;
    return amp_key_digest(&m->id, 1, id, &e) == 0 && strcmp(id, in->spared_of) == 0;
}

/* A suspension ended the command: the message is handed over again, and the attempt does not count.
 */
static int attempt_spare(struct inbox_loop *in, const struct amp_inbox_msg *m)
{
    struct amp_error e;
    if (!is_spared(in, m)) {
        in->spared = 0;
        if (amp_key_digest(&m->id, 1, in->spared_of, &e) < 0)
            in->spared_of[0] = '\0';
    }
    in->spared++;
    in->o->voice->note("%.*s: stopped, because a person suspended it; handed over again later",
                       AMP_CLIP(m->id, 200));
    return 0;
}

/* 1: the command answered the message; 0: it left no answer, or one that is refused, which is
 * reported: then *how is REFUSED. */
static int outcome_settle(struct inbox_loop *in, const struct amp_inbox_msg *m,
                          enum amp_run_verdict *how, struct amp_error *err)
{
    bool answered;
    struct amp_error e = {0};
    if (*how == AMP_RUN_AGAIN || in->hand.paused)
        return 0;
    if (amp_outcome_answer(&in->acks, m, &in->hand.outcome, *how == AMP_RUN_REFUSED, &answered,
                           &e) == 0) {
        in->end->handed += answered;
        in->this_turn += answered;
        return answered;
    }
    if (e.status != AMP_NO && e.status != AMP_DATAERR) {
        *err = e;
        return -1;
    }
    in->hand.why = e;
    *how = AMP_RUN_REFUSED;
    return 0;
}

static int message_settle(struct inbox_loop *in, const struct amp_inbox_msg *m,
                          enum amp_run_verdict how, struct amp_error *err)
{
    int64_t now = amp_now_ms();
    int settled = outcome_settle(in, m, &how, err);
    if (settled != 0)
        return settled < 0 ? -1 : 0;
    if (how == AMP_RUN_DONE) {
        in->end->handed++;
        in->this_turn++;
        if (amp_acks_read(&in->acks, m, now, err) < 0)
            return -1;
        struct amp_error e = {0};
        if (!in->o->fulfill || !in->o->argv || amp_acks_fulfilled(&in->acks, m, now, &e) == 0)
            return 0;
        if (e.status != AMP_NO) {
            *err = e;
            return -1;
        }
        in->o->voice->warn("%.*s: %s", (int)(m->id.n < 200 ? m->id.n : 200), m->id.p, e.what);
        return 0;
    }
    if (in->hand.paused)
        return attempt_spare(in, m);
    in->o->voice->warn("%.*s: %s", (int)(m->id.n < 200 ? m->id.n : 200), m->id.p,
                       in->hand.why.what);
    int64_t spared = is_spared(in, m) ? in->spared : 0;
    if (how == AMP_RUN_AGAIN && m->attempt - spared < in->o->attempts) {
        int64_t half = amp_backoff_nth(&pauses, m->attempt - 1) / 2;
        uint64_t random;
        amp_random(&random, sizeof(random));
        return amp_handover_pause(&in->hand, half + amp_backoff_jitter(half, random), err);
    }
    in->end->refused++;
    in->o->voice->status(AMP_NO);
    return amp_inbox_give_up(in->store, in->o->agent, m->id, in->hand.why.code, in->hand.why.what,
                             in->acks.actor, now, err);
}

/* *any: a message was handled; else none can be handed over now. */
static int message_step(struct inbox_loop *in, bool *any, int64_t *wake_ms, struct amp_error *err)
{
    struct amp_inbox_msg m;
    enum amp_run_verdict how;
    /* Without --follow all waiting messages belong to one turn. */
    struct amp_inbox_turn turn = {.between_turns =
                                      in->o->between && (in->o->follow || in->this_turn == 0),
                                  .lease_ms = in->o->lease_ms,
                                  .lanes = &in->lanes,
                                  .held = amp_held_check,
                                  .ctx = &in->held,
                                  .actor = in->acks.actor};
    in->held.holds = false;
    int rc =
        amp_inbox_offer(in->store, in->o->agent, &turn, amp_now_ms(), &in->mem, &m, wake_ms, err);
    amp_held_report(&in->held, in->o->voice->note);
    /* Before the next message leaves, the READ of the last one must be on disk. */
    if (rc < 0 || amp_store_sync(in->store, err) < 0 || amp_acks_turn(&in->acks, err) < 0)
        return -1;
    *any = rc > 0;
    if (rc == 0)
        return 0;
    if (m.redelivered && !in->o->argv)
        in->o->voice->note("%.*s again: it may have been handed over before",
                           (int)(m.id.n < 200 ? m.id.n : 200), m.id.p);
    int64_t began = amp_now_ms();
    if (amp_handover(&in->hand, &m, &how, err) < 0)
        return -1;
    message_count(in, &m, began, how);
    if (message_settle(in, &m, how, err) < 0)
        return -1;
    /* The answer must be on disk before the file goes. */
    if (in->hand.outcome.used && amp_store_sync(in->store, err) < 0)
        return -1;
    amp_outcome_drop(&in->hand.outcome);
    metrics_write(in);
    return 0;
}

static int more_wait(struct inbox_loop *in, int64_t wake_ms, struct amp_error *err)
{
    struct pollfd fds[3] = {{.fd = in->bell, .events = POLLIN},
                            {.fd = in->hand.out.fd, .events = 0},
                            {.fd = -1, .events = POLLIN}};
    int64_t wait = -1;
    if (wake_ms > 0) {
        wait = wake_ms - amp_now_ms();
        wait = wait < 0 ? 0 : wait + 1;
    }
    int64_t tick = amp_metrics_timeout(in->metrics);
    if (tick >= 0 && (wait < 0 || tick < wait))
        wait = tick;
    if (in->held.holds) { /* the end of a suspension is a write to the log */
        fds[2].fd = amp_pause_watch_fd(&in->held.pauses);
        tick = amp_pause_watch_wait(&in->held.pauses);
        if (tick >= 0 && (wait < 0 || tick < wait))
            wait = tick;
    }
    if (amp_handover_wait(&in->hand, fds, 3, wait, err) < 0)
        return -1;
    metrics_write(in);
    if (fds[1].revents & (POLLERR | POLLNVAL))
        return amp_fail(err, AMP_IOERR, closed_pipe, "the reader of the output is gone");
    return 0;
}

static int loop_run(struct inbox_loop *in, struct amp_error *err)
{
    for (;;) {
        int64_t wake_ms = 0;
        bool any = false;
        if (in->o->follow)
            amp_inbox_bell_empty(in->bell);
        if (*in->o->stop)
            return amp_fail(err, AMP_INTERRUPTED, interrupted, "interrupted");
        if (message_step(in, &any, &wake_ms, err) < 0)
            return -1;
        if (!any && !in->o->follow)
            return 0;
        if (in->o->max_messages > 0 &&
            (int64_t)(in->end->handed + in->end->refused) >= in->o->max_messages)
            return amp_store_sync(in->store, err);
        if (!any && more_wait(in, wake_ms, err) < 0)
            return -1;
    }
}

static int loop_open(struct inbox_loop *in, struct amp_error *err)
{
    const struct amp_handover_options *o = in->o;
    const char *dir = amp_store_dir(in->store);
    if (amp_held_open(&in->held, in->store, o->name, err) < 0 ||
        amp_metrics_open(&o->metrics, &in->metrics, err) < 0 || amp_acks_open(&in->acks, err) < 0 ||
        (o->follow && amp_inbox_bell_open(dir, o->agent, &in->bell, err) < 0))
        return -1;
    in->hand.pauses = &in->held.pauses;
    in->hand.reader = in->held.reader;
    return amp_handover_open(&in->hand, err);
}

static void failure_note(const struct inbox_loop *in, const struct amp_error *err)
{
    in->o->voice->status(in->o->voice->complain(err));
}

int amp_inbox_loop(struct amp_store *store, const struct amp_handover_options *o,
                   struct amp_inbox_end *end, struct amp_error *err)
{
    struct inbox_loop in = {
        .o = o,
        .store = store,
        .end = end,
        .bell = -1,
        .acks = {.o = o, .store = store},
        .hand = {.o = o, .acks = o->acks_port ? &in.acks : NULL, .out = {.fd = -1}}};
    struct amp_error late;
    *end = (struct amp_inbox_end){0};
    amp_lanes_init(&in.lanes, o->lanes, amp_now_ms());
    amp_buf_init(&in.mem, AMP_RECORD_MAX);
    int rc = loop_open(&in, err);
    if (rc == 0) {
        rc = loop_run(&in, err);
        /* Every READ is synced, also after a failure. */
        if ((rc < 0 && amp_store_sync(store, &late) < 0) || amp_acks_finish(&in.acks, &late) < 0)
            failure_note(&in, &late);
    }
    if (in.metrics && (amp_route_count_inbox(in.metrics, o->name, store, o->agent, &late) < 0 ||
                       amp_metrics_close(in.metrics, &late) < 0))
        failure_note(&in, &late);
    amp_handover_close(&in.hand);
    amp_acks_close(&in.acks);
    amp_held_close(&in.held);
    amp_buf_release(&in.mem);
    if (in.bell >= 0)
        close(in.bell);
    return rc;
}
