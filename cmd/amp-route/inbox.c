/*
 * amp-route inbox AGENT: gives an agent its messages, one at a time. The READ of a message is on
 * disk before the next one leaves; between its own turns the agent gets nothing when asked for that
 * (--between-turns). Waiting is for the bell that routers ring, for the end of a lease, for a
 * signal, or for the output's reader to go.
 */
#include "inbox.h"
#include "wiring.h"

#include <limits.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/child.h>
#include <amp/base/clock.h>
#include <amp/base/id.h>
#include <amp/json/writer.h>

#include "agent/registry.h"
#include "base/backoff.h"
#include "message/ledger/ledger.h"
#include "message/record/record.h"
#include "metrics/metrics.h"
#include "route/admission/admission.h"
#include "route/handover/handover.h"
#include "task/task.h"

#define SWEEPER  "amp-ack.sweep" /* its outbox gets the answers to who sent what did not come */
#define TOLD_MAX (1u << 20)

/* Half of a pause is always waited, so that what failed has some time to heal. */
static const struct amp_backoff pauses = {.first_ms = 500, .most_ms = 16000};

static const char *state, *config, *out_path = "-", *format = "line", *return_id, *acks_port;
static int64_t lock_timeout_ms = AMP_LOCK_TIMEOUT_MS, max_messages, lease_ms = 1800000,
               attempts = 5, attempt_timeout_ms, open_timeout_ms = AMP_OPEN_TIMEOUT_MS;
static bool follow, one, between, busy, idle, list, json, wait_turn, fulfill;
static struct amp_list command;
static struct amp_metrics_options metrics = {.tool = "amp-route",
                                             .interval_ms = AMP_METRICS_INTERVAL_MS};

static const char *const formats[] = {"line", "text", "wrap", NULL};

const struct amp_opt inbox_opts[] = {
    {'f', "follow", AMP_OPT_FLAG, &follow, NULL, .doc = "wait for more; a signal ends it"},
    {'1', "one", AMP_OPT_FLAG, &one, NULL, .doc = "hand over one message at most"},
    {0, "max", AMP_OPT_INT, &max_messages, "N", .doc = "hand over N messages at most", .min = 1,
     .max = 1000000},
    {0, "between-turns", AMP_OPT_FLAG, &between, NULL,
     .doc = "nothing while the agent is busy; what is handed over makes it busy"},
    {0, "busy", AMP_OPT_FLAG, &busy, NULL, .doc = "the agent begins a turn"},
    {0, "idle", AMP_OPT_FLAG, &idle, NULL, .doc = "the agent ended its turn"},
    {0, "lease", AMP_OPT_DURATION, &lease_ms, "TIME", .doc = "how long a turn lasts at most",
     .min = 1, .max = 7ll * 86400000, .config = "inbox.busy_lease"},
    {0, "format", AMP_OPT_CHOICE, &format, "FORMAT", .doc = "how a message is written",
     .choices = formats},
    {'o', "out", AMP_OPT_PATH, &out_path, "PATH", .doc = "write to PATH"},
    AMP_OPT_OPEN_TIMEOUT(open_timeout_ms),
    {0, "attempts", AMP_OPT_INT, &attempts, "N",
     .doc = "how often a message is handed over until its command may fail no more", .min = 1,
     .max = 100},
    {0, "attempt-timeout", AMP_OPT_DURATION, &attempt_timeout_ms, "TIME",
     .doc = "limit of one such attempt", .min = 10, .max = 86400000},
    {0, "fulfill", AMP_OPT_FLAG, &fulfill, NULL, .doc = "the command's success is FULFILLED"},
    {0, "acks", AMP_OPT_STRING, &acks_port, "PORT",
     .doc = "acknowledge what was handed over, in its protocol, to PORT"},
    {0, "wait", AMP_OPT_FLAG, &wait_turn, NULL,
     .doc = "wait until no other process hands over to this agent"},
    {'l', "list", AMP_OPT_FLAG, &list, NULL, .doc = "show what waits, hand over nothing"},
    {0, "json", AMP_OPT_FLAG, &json, NULL, .doc = "with --list: one record a line"},
    {0, "return", AMP_OPT_STRING, &return_id, "ID",
     .doc = "put a message back that was read and not done"},
    AMP_OPT_STATE(state),
    AMP_OPT_CONFIG(config),
    AMP_OPT_LOCK_TIMEOUT(lock_timeout_ms),
    AMP_METRICS_OPTS(metrics),
    {'x', "exec", AMP_OPT_REST, &command, "COMMAND…",
     .doc = "run COMMAND with each message as its standard input"},
    AMP_OPT_END,
};

struct inbox {
    struct amp_store *store;
    struct amp_span agent;
    const char *name;
    struct amp_handover hand;
    struct amp_acks acks;
    int lock, bell;
    struct amp_buf mem;
    struct amp_lane_rules rules;
    struct amp_lanes lanes;
    int64_t handed, refused, this_turn;
    struct amp_metrics *metrics; /* NULL: none are kept */
    struct amp_reader *reader;   /* of what might be held */
    struct amp_buf told, notes;  /* ids that were reported as held; what is to be said now */
};

/* ---- looking ---- */

static int list_fn(void *ctx, const struct amp_inbox_msg *m)
{
    int *rc = ctx;
    char at[AMP_TIME_MAX];
    struct amp_error err;
    AMP_BUF struct amp_buf b = {0};
    amp_buf_init(&b, (size_t)256 << 20);
    amp_time_format(m->at_ms, at);
    if (json) {
        struct amp_jw w;
        amp_jw_init(&w, &b);
        amp_jw_open(&w, '{');
        amp_jw_member_str(&w, "id", m->id);
        amp_jw_member_str(&w, "state", amp_span_str(amp_inbox_fsm.states[m->state].name));
        amp_jw_member_str(&w, "since", amp_span_str(at));
        amp_jw_member_int(&w, "attempts", m->attempt);
        if (m->expires_ms > 0) {
            char expires[AMP_TIME_MAX];
            amp_time_format(m->expires_ms, expires);
            amp_jw_member_str(&w, "expires", amp_span_str(expires));
        }
        amp_rec_line(&w, m->line);
        amp_jw_close(&w, '}');
        *rc = amp_jw_end(&w, &err);
    } else {
        *rc = amp_buf_fmt(&b, &err, "%s  %-8s  ", at, amp_inbox_fsm.states[m->state].name);
        if (*rc == 0)
            *rc = amp_text_safe(m->id, 0, &b, &err);
    }
    if (*rc == 0)
        *rc = amp_buf_str(&b, "\n", &err) < 0 ? -1 : amp_out(amp_buf_span(&b), &err);
    if (*rc < 0)
        amp_status_note(amp_complain(&err));
    return *rc < 0;
}

static int show(struct inbox *in)
{
    struct amp_error err;
    struct amp_inbox_info info;
    int rc = 0;
    if (amp_inbox_info(in->store, in->agent, &in->mem, &info, &err) < 0 ||
        amp_inbox_each(in->store, in->agent, list_fn, &rc, &err) < 0 || amp_out_flush(&err) < 0)
        return amp_complain(&err);
    if (info.busy_ms > 0 && info.until_ms > amp_now_ms()) {
        char since[AMP_TIME_MAX], until[AMP_TIME_MAX];
        amp_time_format(info.busy_ms, since);
        amp_time_format(info.until_ms, until);
        amp_note("%s is busy since %s, until %s at most", in->name, since, until);
    }
    if (info.waiting > 0)
        return 0;
    amp_note("no message waits for %s", in->name);
    return AMP_NO;
}

/* ---- handing over ---- */

/* How long it waited, told once; how long the command was at work; what the agent has now. */
static void count(struct inbox *in, const struct amp_inbox_msg *m, int64_t began_ms,
                  enum amp_run_verdict how)
{
    struct amp_metric_labels l = {.agent = in->agent};
    if (m->attempt == 1)
        amp_metrics_observe(in->metrics, AMP_METRIC_DEQUEUE_LATENCY, &l,
                            (double)(began_ms - m->at_ms) / 1e3);
    else
        amp_metrics_add(in->metrics, AMP_METRIC_REDELIVERED, &l, 1);
    if (in->hand.argv)
        amp_metrics_observe(in->metrics, AMP_METRIC_PROCESS_TIME, &l,
                            (double)(amp_now_ms() - began_ms) / 1e3);
    if (how == AMP_RUN_DONE)
        amp_metrics_add(in->metrics, AMP_METRIC_SENT, &l, 1);
}

static void write_metrics(struct inbox *in)
{
    struct amp_error err;
    if (amp_metrics_timeout(in->metrics) == 0 &&
        amp_route_count_inbox(in->metrics, in->name, in->store, in->agent, &err) < 0)
        amp_warn("%s", err.what);
    if (amp_metrics_tick(in->metrics, &err) < 0)
        amp_warn("%s", err.what);
}

static int settle(struct inbox *in, const struct amp_inbox_msg *m, enum amp_run_verdict how,
                  struct amp_error *err)
{
    int64_t now = amp_now_ms();
    if (how == AMP_RUN_DONE) {
        in->handed++;
        in->this_turn++;
        if (amp_acks_read(&in->acks, m, now, err) < 0)
            return -1;
        struct amp_error e = {0};
        if (!fulfill || !in->hand.argv || amp_acks_fulfilled(&in->acks, m, now, &e) == 0)
            return 0;
        if (e.status != AMP_NO) {
            *err = e;
            return -1;
        }
        amp_warn("%.*s: %s", (int)(m->id.n < 200 ? m->id.n : 200), m->id.p, e.what);
        return 0;
    }
    amp_warn("%.*s: %s", (int)(m->id.n < 200 ? m->id.n : 200), m->id.p, in->hand.why.what);
    if (how == AMP_RUN_AGAIN && m->attempt < attempts) {
        int64_t half = amp_backoff_nth(&pauses, m->attempt - 1) / 2;
        uint64_t random;
        amp_random(&random, sizeof(random));
        return amp_handover_pause(&in->hand, half + amp_backoff_jitter(half, random), err);
    }
    in->refused++;
    amp_status_note(AMP_NO);
    return amp_inbox_give_up(in->store, in->agent, m->id, in->hand.why.code, in->hand.why.what,
                             amp_acks_actor(&in->acks, SWEEPER), now, err);
}

/* Noted once a message; written after the turn, in which nothing may block. */
static int note_held(struct inbox *in, struct amp_span id, const char *why, struct amp_error *err)
{
    AMP_BUF struct amp_buf line = {0};
    amp_buf_init(&line, TOLD_MAX);
    if (amp_buf_fmt(&line, err, "\n%.*s\n", (int)id.n, id.p) < 0)
        return -1;
    if (in->told.len > 0 && memmem(in->told.data, in->told.len, line.data, line.len))
        return 0;
    if (in->told.len + line.len > TOLD_MAX)
        amp_buf_reset(&in->told);
    return amp_buf_add(&in->told, line.data, line.len, err) < 0
               ? -1
               : amp_buf_fmt(&in->notes, err, "%.*s stays in the inbox: %s\n",
                             (int)(id.n < 200 ? id.n : 200), id.p, why);
}

static void tell_held(struct inbox *in)
{
    for (size_t at = 0; at < in->notes.len;) {
        const char *text = in->notes.data + at, *end = memchr(text, '\n', in->notes.len - at);
        size_t n = end ? (size_t)(end - text) : in->notes.len - at;
        amp_note("%.*s", (int)n, text);
        at += n + 1;
    }
    amp_buf_reset(&in->notes);
}

/* New work waits while its task, or the agent, is suspended. */
static int is_held(void *ctx, struct amp_span text, struct amp_error *err)
{
    struct inbox *in = ctx;
    struct amp_view v;
    struct amp_agent_status st;
    struct amp_task_status task;
    struct amp_check_options any = {0};
    char why[700];
    int rc = amp_reader_line(in->reader, text, &any, &v, NULL, NULL, err);
    if (rc <= 0 || !amp_admission_is_work(&v))
        return rc < 0 ? -1 : 0;
    if (amp_task_status(in->store, v.task, &task, err) < 0 ||
        amp_agent_status(in->store, in->name, &st, err) < 0)
        return -1;
    if (task.suspended)
        snprintf(why, sizeof(why), "task %.*s is suspended until the admin decides %s",
                 (int)(v.task.n < 200 ? v.task.n : 200), v.task.p, task.ref);
    else if (st.suspended)
        snprintf(why, sizeof(why), "task %s suspends agent %s until the admin decides %s", st.cause,
                 in->name, st.ref);
    else
        return 0;
    return note_held(in, v.id, why, err) < 0 ? -1 : 1;
}

/* 1: one was dealt with, 0: there is none now. */
static int step(struct inbox *in, int64_t *wake_ms, struct amp_error *err)
{
    struct amp_inbox_msg m;
    enum amp_run_verdict how;
    /* Without --follow all that waits is for one turn. */
    struct amp_inbox_turn turn = {.between_turns = between && (follow || in->this_turn == 0),
                                  .lease_ms = lease_ms,
                                  .lanes = &in->lanes,
                                  .held = is_held,
                                  .ctx = in,
                                  .actor = amp_acks_actor(&in->acks, SWEEPER)};
    int rc = amp_inbox_offer(in->store, in->agent, &turn, amp_now_ms(), &in->mem, &m, wake_ms, err);
    tell_held(in);
    /* Also the READ of the one before; nothing leaves while it might be lost. */
    if (rc < 0 || amp_store_sync(in->store, err) < 0 || amp_acks_turn(&in->acks, err) < 0)
        return -1;
    if (rc == 0)
        return 0;
    if (m.redelivered && !in->hand.argv)
        amp_note("%.*s again: it may have been handed over before",
                 (int)(m.id.n < 200 ? m.id.n : 200), m.id.p);
    int64_t began = amp_now_ms();
    if (amp_handover(&in->hand, &m, &how, err) < 0)
        return -1;
    count(in, &m, began, how);
    if (settle(in, &m, how, err) < 0)
        return -1;
    write_metrics(in);
    return 1;
}

static int wait_for_more(struct inbox *in, int64_t wake_ms, struct amp_error *err)
{
    struct pollfd fds[2] = {{.fd = in->bell, .events = POLLIN},
                            {.fd = amp_handover_reader(&in->hand), .events = 0}};
    int64_t wait = -1;
    if (wake_ms > 0) {
        wait = wake_ms - amp_now_ms();
        wait = wait < 0 ? 0 : wait + 1;
    }
    int64_t tick = amp_metrics_timeout(in->metrics);
    if (tick >= 0 && (wait < 0 || tick < wait))
        wait = tick;
    if (amp_handover_wait(&in->hand, fds, 2, wait, err) < 0)
        return -1;
    write_metrics(in);
    if (fds[1].revents & (POLLERR | POLLNVAL))
        return amp_fail(err, AMP_IOERR, "closed_pipe", "the output's reader is gone");
    return 0;
}

static int run(struct inbox *in, struct amp_error *err)
{
    for (;;) {
        int64_t wake_ms = 0;
        if (follow)
            amp_inbox_bell_empty(in->bell);
        int rc = amp_stop ? amp_fail(err, AMP_INTERRUPTED, "interrupted", "interrupted")
                          : step(in, &wake_ms, err);
        if (rc < 0)
            return -1;
        if (rc == 0 && !follow)
            return 0;
        if (max_messages > 0 && in->handed + in->refused >= max_messages)
            return amp_store_sync(in->store, err);
        if (rc == 0 && wait_for_more(in, wake_ms, err) < 0)
            return -1;
    }
}

/* Nothing is begun while the lock is waited for, so that a signal may simply end us: a flag could
 * be set just before the wait. */
static int take_turn(struct inbox *in, struct amp_error *err)
{
    if (wait_turn)
        amp_signals_default();
    int rc =
        amp_inbox_lock(amp_store_dir(in->store), in->agent, wait_turn ? -1 : 0, &in->lock, err);
    amp_signals_install();
    return rc;
}

static int hand_out(struct inbox *in, struct amp_error *err)
{
    const char *dir = amp_store_dir(in->store);
    if (take_turn(in, err) < 0 || amp_acks_open(&in->acks, acks_port, err) < 0 ||
        (follow && amp_inbox_bell_open(dir, in->agent, &in->bell, err) < 0) ||
        amp_handover_open(&in->hand, out_path, open_timeout_ms, err) < 0)
        return -1;
    int rc = run(in, err);
    struct amp_error late;
    /* What was taken is READ, however this ends. */
    if ((rc < 0 && amp_store_sync(in->store, &late) < 0) ||
        amp_acks_finish(&in->acks, open_timeout_ms, &late) < 0)
        amp_status_note(amp_complain(&late));
    return rc;
}

/* --busy, --idle and --return: what is said beforehand. */
static int tell(struct inbox *in, struct amp_error *err)
{
    int64_t now = amp_now_ms();
    if (busy && amp_inbox_busy(in->store, in->agent, now, now + lease_ms, err) < 0)
        return -1;
    if (idle && amp_inbox_busy(in->store, in->agent, 0, 0, err) < 0)
        return -1;
    if (return_id && amp_inbox_return(in->store, in->agent, amp_span_str(return_id), now, err) < 0)
        return -1;
    if (amp_store_sync(in->store, err) < 0)
        return -1;
    if (idle || return_id)
        amp_inbox_ring(amp_store_dir(in->store), in->agent);
    return 0;
}

static int work(struct inbox *in)
{
    struct amp_error err = {0};
    struct amp_store_options opt = {
        .lock_timeout_ms = lock_timeout_ms, .look = list, .actor = "amp-route.inbox"};
    if (access(state, F_OK) != 0)
        amp_fail(&err, AMP_UNAVAILABLE, "state_missing", "there is no state directory %s", state);
    else
        amp_store_open(state, &opt, &in->store, &err);
    if (!in->store)
        return amp_complain(&err);
    if (list)
        return show(in);
    if ((busy || idle || return_id) && tell(in, &err) < 0)
        return amp_complain(&err);
    if ((busy || idle || return_id) && !between && !follow)
        return 0;
    if (lanes_set(config, state, NULL, 0, &in->rules, &err) < 0)
        return amp_complain(&err);
    if (!(in->reader = amp_reader_new(NULL, &err)))
        return amp_complain(&err);
    amp_lanes_init(&in->lanes, &in->rules, amp_now_ms());
    in->acks.voice = &voice;
    in->acks.stop = &amp_stop;
    in->acks.store = in->store;
    in->acks.agent = in->agent;
    if (amp_metrics_open(&metrics, &in->metrics, &err) < 0)
        return amp_complain(&err);
    int rc = hand_out(in, &err);
    struct amp_error late;
    if (in->metrics &&
        (amp_route_count_inbox(in->metrics, in->name, in->store, in->agent, &late) < 0 ||
         amp_metrics_close(in->metrics, &late) < 0))
        amp_status_note(amp_complain(&late));
    if (rc < 0)
        return amp_complain(&err);
    if (in->handed > 0)
        return 0;
    if (in->refused == 0)
        amp_note("no message was handed over to %s", in->name);
    return AMP_NO;
}

int route_inbox(int argc, char **argv)
{
    if (argc != 1)
        amp_die_usage("one agent is needed: amp-route inbox AGENT");
    if (!state)
        amp_die_usage("a state directory is needed: --state DIR or AMP_STATE");
    if (busy && (idle || between || follow))
        amp_die_usage("--busy stands alone");
    struct inbox in = {.agent = amp_span_str(argv[0]), .name = argv[0], .lock = -1, .bell = -1};
    struct amp_error err;
    if (amp_inbox_agent_check(in.agent, &err) < 0)
        amp_die_usage("%s", err.what);
    char program[PATH_MAX];
    if (command.n > 0 && amp_child_find(command.v[0], environ, program, sizeof(program), &err) < 0)
        amp_die_usage("--exec: %s", err.what);
    if (one)
        max_messages = 1;
    in.hand = (struct amp_handover){.stop = &amp_stop,
                                    .safe = amp_text_safe,
                                    .format = format,
                                    .agent = in.name,
                                    .argv = command.n > 0 ? command.v : NULL,
                                    .attempt_timeout_ms = attempt_timeout_ms,
                                    .acks = acks_port ? &in.acks : NULL,
                                    .out = {.fd = -1}};
    amp_signals_install();
    amp_buf_init(&in.mem, AMP_RECORD_MAX);
    amp_buf_init(&in.told, TOLD_MAX);
    amp_buf_init(&in.notes, 4 * TOLD_MAX);
    int status = work(&in);
    amp_handover_close(&in.hand);
    amp_acks_close(&in.acks);
    amp_buf_release(&in.mem);
    amp_buf_release(&in.told);
    amp_buf_release(&in.notes);
    amp_reader_free(in.reader);
    amp_store_close(in.store);
    if (in.bell >= 0)
        close(in.bell);
    if (in.lock >= 0)
        close(in.lock);
    return status;
}
