/*
 * The loop: reads lines, carries out their messages, writes answers, and lets calls that wait look
 * again when the state directory or the attempt changed. One thread; no call blocks it for longer
 * than a write to the state or a run of amp-route takes.
 */
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/clock.h>

#include "base/codes.h"
#include "base/loop.h"
#include "base/words.h"
#include "mcp.h"
#include "message/delivery/sender/head.h"
#include "message/protocol/compose/json.h"
#include "people/facts.h"
#include "people/keep.h"

#define CALM_OUT  ((size_t)8 << 20) /* pending bytes past which no more input is read */
#define FINISH_MS 2000              /* for the client to read the rest after its input ended */

void mcp_break(struct mcp *m, const struct amp_error *err)
{
    if (m->broken)
        return;
    m->broken = true;
    m->why = *err;
}

/* ---- output ---- */

static void text_send(struct mcp *m)
{
    struct amp_error err;

    if (amp_buf_str(&m->line, "\n", &err) < 0 ||
        amp_outq_add(&m->out, amp_buf_span(&m->line), &err) < 0)
        mcp_break(m, &err);
}

static void batch_end(struct mcp *m, struct mcp_batch *b)
{
    struct amp_error err;

    if (b->waits > 0)
        return;
    amp_buf_reset(&m->line);
    if (b->out.len && (amp_buf_str(&m->line, "[", &err) < 0 ||
                       amp_buf_add(&m->line, b->out.data, b->out.len, &err) < 0 ||
                       amp_buf_str(&m->line, "]", &err) < 0))
        mcp_break(m, &err);
    else if (b->out.len)
        text_send(m);
    amp_buf_release(&b->out);
    b->used = false;
}

void mcp_answer_none(struct mcp *m, const struct mcp_to *to)
{
    if (to->batch < 0)
        return;
    m->batches[to->batch].waits--;
    batch_end(m, &m->batches[to->batch]);
}

/* Sends m->line as the answer to a request. */
static void answer_send(struct mcp *m, const struct mcp_to *to)
{
    struct mcp_batch *b = to->batch >= 0 ? &m->batches[to->batch] : NULL;
    struct amp_error err;

    if (!b) {
        text_send(m);
        return;
    }
    if ((b->out.len && amp_buf_str(&b->out, ",", &err) < 0) ||
        amp_buf_add(&b->out, m->line.data, m->line.len, &err) < 0)
        mcp_break(m, &err);
    b->waits--;
    batch_end(m, b);
}

/* The members that each result of the modern revisions has. */
static int result_mark(json_t *result)
{
    json_t *meta = json_object_get(result, "_meta");

    if (!meta) {
        meta = json_object();
        if (json_object_set_new(result, "_meta", meta) < 0)
            return -1;
    }
    if (!json_object_get(result, "resultType") &&
        json_object_set_new(result, "resultType", json_string("complete")) < 0)
        return -1;
    return json_object_set_new(meta, "io.modelcontextprotocol/serverInfo",
                               json_pack("{s:s, s:s, s:s}", "name", "amp-mcp", "title", "amp-tools",
                                         "version", AMP_VERSION));
}

void mcp_result(struct mcp *m, const struct mcp_to *to, json_t *result)
{
    AMP_BUF struct amp_buf text = {0};
    json_auto_t *owned = result;
    struct amp_error err;

    amp_buf_init(&text, MCP_OUT_MAX / 2);
    if (!owned || (to->modern && result_mark(owned) < 0)) {
        amp_fail_memory(&err);
        mcp_break(m, &err);
        return;
    }
    amp_buf_reset(&m->line);
    if (amp_json_dump(owned, &text, &err) < 0 ||
        amp_rpc_result(&m->line, amp_span_str(to->id), amp_buf_span(&text), &err) < 0) {
        mcp_error(m, to, AMP_RPC_INTERNAL, NULL, "%s", err.what);
        return;
    }
    answer_send(m, to);
}

void mcp_error(struct mcp *m, const struct mcp_to *to, enum amp_rpc_code code, json_t *data,
               const char *fmt, ...)
{
    AMP_BUF struct amp_buf text = {0};
    json_auto_t *owned = data;
    struct amp_error err;
    char why[600];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(why, sizeof why, fmt, ap);
    va_end(ap);
    amp_buf_init(&text, MCP_TEXT_MAX);
    amp_buf_reset(&m->line);
    if ((owned && amp_json_dump(owned, &text, &err) < 0) ||
        amp_rpc_error(&m->line, amp_span_str(to->id), code, why, amp_buf_span(&text), &err) < 0)
        mcp_break(m, &err);
    else
        answer_send(m, to);
}

void mcp_notify(struct mcp *m, const char *method, json_t *params)
{
    AMP_BUF struct amp_buf text = {0};
    json_auto_t *owned = params;
    struct amp_error err;

    amp_buf_init(&text, MCP_TEXT_MAX);
    amp_buf_reset(&m->line);
    if ((owned && amp_json_dump(owned, &text, &err) < 0) ||
        amp_rpc_notification(&m->line, method, amp_buf_span(&text), &err) < 0)
        mcp_break(m, &err);
    else
        text_send(m);
}

void mcp_log(struct mcp *m, const struct mcp_to *to, enum mcp_level level, const char *fmt, ...)
{
    AMP_BUF struct amp_buf safe = {0};
    char text[600];
    va_list ap;
    bool modern = to && to->modern;
    int from = modern ? to->level : m->level;

    if ((!modern && !m->initialized) || from < 0 || (int)level < from)
        return;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    amp_buf_init(&safe, sizeof text * 8);
    if (amp_text_safe(amp_span_str(text), 0, &safe, NULL) < 0)
        return;
    mcp_notify(m, "notifications/message",
               json_pack("{s:s, s:s, s:s%}", "level", mcp_levels[level], "logger", "amp-mcp",
                         "data", safe.data, safe.len));
}

/* ---- the state directory, the control FIFO ---- */

int mcp_store(struct mcp *m, struct amp_error *err)
{
    const struct amp_store_options opt = {.lock_timeout_ms = m->lock_timeout_ms,
                                          .facts = &amp_facts_all,
                                          .keep = amp_keep_all,
                                          .sign_head = amp_head_sign,
                                          .actor = m->box};

    if (m->store)
        return 0;
    if (!m->state)
        return amp_fail(err, AMP_NOPERM, permission_denied,
                        "not possible inside of an attempt, which has no state directory");
    if (access(m->state, F_OK) != 0)
        return amp_fail(err, AMP_UNAVAILABLE, state_missing, "there is no state directory %s",
                        m->state);
    if (amp_store_open(m->state, &opt, &m->store, err) < 0)
        return -1;
    if (!m->wakes && amp_wake_open(&m->wake, m->state, err) < 0)
        return -1;
    m->wakes = true;
    return 0;
}

int mcp_control(struct mcp *m, struct amp_error *err)
{
    if (m->asks)
        return 0;
    if (amp_ask_open(&m->ask, m->control, err) < 0)
        return -1;
    m->asks = true;
    return 0;
}

/* ---- calls that wait ---- */

struct mcp_call *mcp_call_new(struct mcp *m, const struct mcp_to *to, struct amp_error *err)
{
    for (size_t i = 0; i < MCP_CALLS_MAX; i++)
        if (!m->calls[i]) {
            m->calls[i] = calloc(1, sizeof *m->calls[i]);
            if (!m->calls[i]) {
                amp_fail_memory(err);
                return NULL;
            }
            *m->calls[i] = (struct mcp_call){
                .m = m, .to = *to, .began_ms = amp_mono_ms(), .number = ++m->n_calls};
            return m->calls[i];
        }
    amp_fail(err, AMP_TEMPFAIL, too_many_calls, "%d calls are under way (the limit)",
             MCP_CALLS_MAX);
    return NULL;
}

void mcp_call_free(struct mcp *m, struct mcp_call *call)
{
    for (size_t i = 0; i < MCP_CALLS_MAX; i++)
        if (m->calls[i] == call)
            m->calls[i] = NULL;
    json_decref(call->args);
    json_decref(call->result);
    free(call);
}

void mcp_progress(struct mcp_call *call)
{
    char text[300];
    json_t *token;

    call->beat_ms = amp_mono_ms() + MCP_BEAT_MS;
    if (!call->token[0])
        return;
    token = json_loads(call->token, JSON_DECODE_ANY, NULL);
    snprintf(text, sizeof text, "%s (%lld s)", call->state[0] ? call->state : "waiting",
             (long long)(amp_mono_ms() - call->began_ms) / 1000);
    mcp_notify(call->m, "notifications/progress",
               json_pack("{s:o, s:I, s:s}", "progressToken", token, "progress",
                         (json_int_t)++call->beats, "message", text));
}

/* Lets each waiting call look, and tells clients what changed. */
static void calls_step(struct mcp *m)
{
    for (size_t i = 0; i < MCP_CALLS_MAX && !m->broken; i++) {
        struct mcp_call *call = m->calls[i];
        struct amp_error err = {0};
        if (!call || !call->tool)
            continue;
        enum mcp_step how = call->tool->step(call, &err);
        if (how != MCP_WAITS) {
            mcp_call_end(call, how, &err);
            m->stale = true; /* another one may have waited for it */
        } else if (amp_mono_ms() >= call->beat_ms)
            mcp_progress(call);
    }
}

static bool is_emitter(const struct mcp_call *c)
{
    return c && c->tool && c->tool->start == c->tool->step;
}

bool mcp_may_emit(const struct mcp_call *call)
{
    const struct mcp *m = call->m;

    for (size_t i = 0; i < MCP_CALLS_MAX; i++) {
        const struct mcp_call *c = m->calls[i];
        if (is_emitter(c) && c->number < call->number)
            return false;
    }
    return !m->emitting;
}

static void calls_stop(struct mcp *m, const char *why)
{
    for (size_t i = 0; i < MCP_CALLS_MAX; i++) {
        struct mcp_call *call = m->calls[i];
        if (!call)
            continue;
        if (!call->tool) {
            mcp_result(m, &call->to,
                       json_pack("{s:{s:o}}", "_meta", "io.modelcontextprotocol/subscriptionId",
                                 json_loads(call->to.id, JSON_DECODE_ANY, NULL)));
            mcp_listen_free(call);
        } else if (call->tool->stop) {
            call->tool->stop(call, why);
        }
        mcp_call_free(m, call);
    }
}

/* ---- input ---- */

static int batch_new(struct mcp *m, uint32_t n)
{
    for (int i = 0; i < MCP_BATCHES_MAX; i++)
        if (!m->batches[i].used) {
            m->batches[i] = (struct mcp_batch){.used = true, .waits = n};
            amp_buf_init(&m->batches[i].out, MCP_OUT_MAX / 2);
            return i;
        }
    return -1;
}

/* Keeps the messages of a batch. They are taken one by one, as those of lines are, because a call
 * may let the session read on. */
static void batch_queue(struct mcp *m, int in, struct amp_error *err)
{
    const struct amp_tape *t = &m->tape;

    for (uint32_t e = 1; e < t->tok[0].next; e = t->tok[e].next) {
        char *text = amp_span_dup(amp_tok_source(t, e));
        if (!text) {
            amp_fail_memory(err);
            mcp_break(m, err);
            return;
        }
        m->queue[(m->queue_at + m->n_queue++) % MCP_QUEUE_MAX] = (struct mcp_queued){text, in};
    }
}

static void queued_take(struct mcp *m)
{
    struct mcp_queued q = m->queue[m->queue_at];
    const struct mcp_to to = {.id = "null", .batch = q.batch};
    struct amp_rpc_message msg;
    struct amp_error err;
    bool batch;
    uint32_t n;

    m->queue_at = (m->queue_at + 1) % MCP_QUEUE_MAX;
    m->n_queue--;
    int rc = amp_rpc_scan(&m->tape, amp_span_str(q.text), &batch, &n, &msg, &err);
    if (rc < 0) {
        mcp_break(m, &err);
    } else if (rc == AMP_RPC_REFUSED || batch) {
        mcp_error(m, &to, AMP_RPC_INVALID, NULL, "not an object");
    } else {
        amp_rpc_read(&m->tape, false, 0, &msg);
        mcp_message(m, &msg, q.batch);
        if (msg.kind == AMP_RPC_NOTIFICATION || msg.kind == AMP_RPC_RESPONSE)
            mcp_answer_none(m, &to);
    }
    free(q.text);
}

static void line_take(struct mcp *m, struct amp_span line)
{
    struct amp_rpc_message msg;
    struct amp_error err;
    struct mcp_to none = {.id = "null", .batch = -1};
    bool batch;
    uint32_t n;
    int in = -1, rc = amp_rpc_scan(&m->tape, line, &batch, &n, &msg, &err);

    if (rc < 0) {
        mcp_break(m, &err);
        return;
    }
    if (rc == AMP_RPC_REFUSED) {
        mcp_error(m, &none, msg.code, NULL, "%s", msg.why);
        return;
    }
    if (batch && (!m->initialized || !mcp_revisions[m->revision].batch)) {
        mcp_error(m, &none, AMP_RPC_INVALID, NULL,
                  "a batch: only the revisions 2024-11-05 and 2025-03-26 have them");
        return;
    }
    if (batch && (in = batch_new(m, n)) < 0) {
        mcp_error(m, &none, AMP_RPC_INVALID, NULL, "%d batches are under way (the limit)",
                  MCP_BATCHES_MAX);
        return;
    }
    if (batch) {
        batch_queue(m, in, &err);
        return;
    }
    amp_rpc_read(&m->tape, false, 0, &msg);
    mcp_message(m, &msg, -1);
}

/* While a message leaves, only so many calls are taken that none is refused for their number. */
static bool takes_input(const struct mcp *m)
{
    size_t n = 0;

    for (size_t i = 0; i < MCP_CALLS_MAX; i++)
        n += m->calls[i] != NULL;
    return amp_outq_pending(&m->out) < CALM_OUT && (!m->emitting || n < MCP_CALLS_MAX / 2);
}

/* Takes the lines that were read. False: the input has ended. */
static bool lines_take(struct mcp *m)
{
    const struct mcp_to none = {.id = "null", .batch = -1};
    struct amp_line line;

    while (!m->broken && takes_input(m)) {
        if (m->n_queue) {
            queued_take(m);
            continue;
        }
        switch (amp_lines_next(&m->in, &line)) {
        case AMP_LINE:
            line_take(m, line.bytes);
            break;
        case AMP_LINE_TOO_LONG:
            mcp_error(m, &none, AMP_RPC_INVALID, NULL, "the line is longer than %zu bytes",
                      MCP_LINE_MAX);
            break;
        case AMP_LINE_MORE:
            return true;
        case AMP_LINE_END:
            return false;
        }
    }
    m->stale = !m->emitting; /* lines are left */
    return true;
}

/* ---- the loop ---- */

static bool any_waits(const struct mcp *m)
{
    for (size_t i = 0; i < MCP_CALLS_MAX; i++)
        if (m->calls[i] && m->calls[i]->tool)
            return true;
    return false;
}

/* Waits for whatever comes first, also for fd (-1: none). *read: standard input can be read. */
static int turn_wait(struct mcp *m, int fd, int64_t within_ms, bool *read, struct amp_error *err)
{
    struct pollfd fds[6];
    struct amp_loop turn = amp_loop_turn(fds, 6, &amp_stop, NULL);
    bool waits = any_waits(m), watched = mcp_resources_watched(m);
    bool listens = !m->in_ended && takes_input(m);
    int64_t settle = mcp_inbox_settle(m);

    amp_loop_add(&turn, listens ? STDIN_FILENO : -1, POLLIN);
    /* An output without a pending byte is watched for the loss of its reader. */
    amp_loop_add(&turn, m->out.fd, amp_outq_events(&m->out));
    amp_loop_add(&turn, (waits || watched) && m->wakes ? m->wake.log : -1, POLLIN);
    amp_loop_add(&turn, (waits || watched) && m->asks ? m->ask.changes : -1, POLLIN);
    amp_loop_add(&turn, fd, POLLIN);
    amp_loop_within(&turn, within_ms);
    amp_loop_within(&turn, amp_outq_timeout(&m->out));
    amp_loop_within(&turn, settle);
    for (size_t i = 0; i < MCP_CALLS_MAX; i++) {
        const struct mcp_call *c = m->calls[i];
        if (!c || !c->tool)
            continue;
        int64_t beat = c->beat_ms - amp_mono_ms(), left = c->until_ms - amp_now_ms();
        amp_loop_within(&turn, beat > 0 ? beat : 0);
        if (c->until_ms)
            amp_loop_within(&turn, left > 0 ? left + 1 : 0);
    }
    if (m->stale)
        amp_loop_within(&turn, 0);
    m->stale = false;
    if (amp_loop_wait(&turn, err) < 0)
        return -1;
    *read = listens && (fds[0].revents & (POLLIN | POLLHUP | POLLERR));
    if (fds[1].revents & (POLLERR | POLLNVAL))
        return amp_fail(err, AMP_IOERR, closed_pipe, "the reader of the output is gone");
    if (m->wakes && (waits || watched) && amp_wake_drain(&m->wake, err) < 0)
        return -1;
    if (m->asks)
        amp_ask_drain(&m->ask);
    return 0;
}

static int input_read(struct mcp *m, struct amp_error *err)
{
    enum amp_read got = amp_lines_fill(&m->in, STDIN_FILENO, err);

    return got == AMP_READ_FAILED ? -1 : 0;
}

/* The last lines: until the client has read them, or a short time. */
static int session_finish(struct mcp *m, struct amp_error *err)
{
    int64_t until = amp_mono_ms() + FINISH_MS, left;

    if (amp_outq_drain(&m->out, -1, &amp_stop, err) < 0)
        return -1;
    while ((left = mcp_inbox_settle(m)) >= 0 && amp_mono_ms() < until && !amp_stop) {
        struct pollfd fd;
        struct amp_loop turn = amp_loop_turn(&fd, 1, &amp_stop, NULL);
        amp_loop_add(&turn, m->out.fd, 0);
        amp_loop_within(&turn, left);
        if (amp_loop_wait(&turn, err) < 0)
            return -1;
        if (fd.revents & (POLLERR | POLLHUP))
            break;
    }
    mcp_inbox_settle(m);
    return m->store ? amp_store_sync(m->store, err) : 0;
}

/* After the end of the input, a message that was asked for before is still handed over: it waits
 * only until the client has read the last one. */
static bool is_finished(const struct mcp *m, int64_t until)
{
    for (size_t i = 0; i < MCP_CALLS_MAX; i++)
        if (is_emitter(m->calls[i]) || (m->calls[i] && m->calls[i]->brief))
            return false;
    return !m->handed.any || !any_waits(m) || amp_mono_ms() >= until;
}

/* Takes what was read, lets calls go on, and writes. */
static int turn_work(struct mcp *m, bool read, struct amp_error *err)
{
    if (read && input_read(m, err) < 0)
        return -1;
    if (!m->in_ended)
        m->in_ended = !lines_take(m);
    if (!m->broken && m->flush && !m->emitting)
        mcp_outbox_flush(m);
    if (!m->broken) {
        calls_step(m);
        mcp_resources_look(m);
    }
    if (m->broken) {
        *err = m->why;
        return -1;
    }
    return amp_outq_flush(&m->out, err);
}

void mcp_serve_until(struct mcp *m, int fd, int64_t until_ms)
{
    struct pollfd ended = {.fd = fd, .events = POLLIN};
    struct amp_error err;
    bool read = false;

    while (!m->broken && !amp_stop && amp_mono_ms() < until_ms) {
        if (turn_work(m, read, &err) < 0 ||
            turn_wait(m, fd, until_ms - amp_mono_ms(), &read, &err) < 0) {
            if (!amp_stop && !m->broken)
                mcp_break(m, &err);
            return;
        }
        if (poll(&ended, 1, 0) > 0)
            return; /* standard input is still readable later */
    }
}

static int session_run(struct mcp *m, struct amp_error *err)
{
    bool read = false;
    int64_t until = 0;

    while (!amp_stop) {
        if (turn_work(m, read, err) < 0)
            return -1;
        if (m->in_ended && !until)
            until = amp_mono_ms() + FINISH_MS;
        if (m->in_ended && is_finished(m, until))
            return 0;
        if (turn_wait(m, -1, -1, &read, err) < 0)
            return -1;
    }
    return amp_fail(err, AMP_INTERRUPTED, interrupted, "interrupted");
}

int mcp_serve(struct mcp *m, struct amp_error *err)
{
    struct amp_error late;
    const struct amp_json_limits limits = {MCP_LINE_MAX, AMP_RPC_DEPTH_MAX, 1000000};

    amp_lines_init(&m->in, MCP_LINE_MAX);
    amp_tape_init(&m->tape, &limits);
    amp_buf_init(&m->line, MCP_OUT_MAX);
    m->out.fd = -1;
    m->tokens = MCP_BURST;
    m->filled_ms = amp_mono_ms();
    m->level = MCP_WARNING;
    m->revision = MCP_LEGACY_LATEST;
    int rc = amp_outq_open(&m->out, STDOUT_FILENO, false, MCP_OUT_MAX, err);
    if (rc == 0)
        rc = session_run(m, err);
    calls_stop(m, "the agent's session has ended");
    if (rc == 0)
        rc = session_finish(m, err);
    else if (m->store && amp_store_sync(m->store, &late) < 0)
        amp_complain(&late);
    mcp_inbox_close(m);
    mcp_resources_close(m);
    for (; m->n_queue; m->n_queue--, m->queue_at = (m->queue_at + 1) % MCP_QUEUE_MAX)
        free(m->queue[m->queue_at].text);
    for (int i = 0; i < MCP_BATCHES_MAX; i++)
        amp_buf_release(&m->batches[i].out);
    if (m->wakes)
        amp_wake_close(&m->wake);
    if (m->asks)
        amp_ask_close(&m->ask);
    amp_store_close(m->store);
    amp_outq_close(&m->out);
    amp_lines_release(&m->in);
    amp_tape_release(&m->tape);
    amp_buf_release(&m->line);
    return rc;
}
