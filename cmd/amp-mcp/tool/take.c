/*
 * inbox: hands the agent its next message. As with amp-route inbox, a message is OFFERED before it
 * is written, and READ once the client has read the answer from its pipe; until then it is handed
 * over again after a crash, marked as redelivered.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <linux/sockios.h>

#include <amp/base/clock.h>

#include "../mcp.h"
#include "message/delivery/inbox/bell.h"
#include "message/delivery/record/record.h"
#include "message/protocol/compose/json.h"
#include "message/route/handover/held.h"

#define UNREAD_MS 10 /* how often to look whether the client has read; no event says it */

struct mcp_inbox {
    int lock;
    struct amp_lanes lanes;
    struct amp_inbox_held held;
    struct amp_buf mem;
};

static int inbox_open(struct mcp *m, struct amp_error *err)
{
    struct amp_span agent = amp_span_str(m->agent);

    if (m->inbox)
        return 0;
    if (mcp_store(m, err) < 0)
        return -1;
    m->inbox = calloc(1, sizeof *m->inbox);
    if (!m->inbox)
        return amp_fail_memory(err);
    *m->inbox = (struct mcp_inbox){.lock = -1};
    amp_buf_init(&m->inbox->mem, AMP_RECORD_MAX);
    amp_lanes_init(&m->inbox->lanes, &amp_lane_rules_default, amp_now_ms());
    if (amp_held_open(&m->inbox->held, m->store, m->agent, err) == 0 &&
        amp_inbox_lock(m->state, agent, 0, &m->inbox->lock, err) == 0)
        return 0;
    mcp_inbox_close(m);
    return -1;
}

void mcp_inbox_close(struct mcp *m)
{
    if (!m->inbox)
        return;
    if (m->inbox->lock >= 0)
        close(m->inbox->lock);
    amp_held_close(&m->inbox->held);
    amp_buf_release(&m->inbox->mem);
    free(m->inbox);
    m->inbox = NULL;
}

/* ---- the message for the agent ---- */

/* Returns the text of a message that people would read. */
static const char *text_of(const json_t *message)
{
    static const char *const names[] = {"body",   "text", "description", "summary",
                                        "reason", "note", "title"};
    const json_t *payload = json_object_get(message, "payload");

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (*amp_json_str(payload, names[i]))
            return amp_json_str(payload, names[i]);
    return amp_json_str(message, "text");
}

static void member_put(json_t *o, const char *name, struct amp_span text)
{
    if (text.n)
        json_object_set_new(o, name, json_stringn(text.p, text.n));
}

static json_t *message_describe(struct mcp *m, const struct amp_inbox_msg *msg, bool taken,
                                struct amp_error *err)
{
    const struct amp_check_options any = {0};
    struct amp_view v = {0};
    struct amp_span bare;
    AMP_BUF struct amp_buf mem = {0};
    struct amp_inbox_info info = {0};

    amp_buf_init(&mem, AMP_RECORD_MAX);
    if (amp_line_message(msg->line, &bare, err) < 0 ||
        amp_inbox_info(m->store, amp_span_str(m->agent), &mem, &info, err) < 0)
        return NULL;
    json_auto_t *message = amp_json_load(bare, err);
    struct amp_reader *reader = message ? amp_reader_new(NULL, err) : NULL;
    int rc = reader ? amp_reader_line(reader, msg->line, &any, &v, NULL, NULL, err) : -1;
    json_t *o = rc < 0 ? NULL
                       : json_pack("{s:b, s:s%, s:b, s:b, s:I, s:I, s:O}", "found", 1, "id",
                                   msg->id.p, msg->id.n, "taken", taken, "redelivered",
                                   msg->redelivered, "attempt", (json_int_t)msg->attempt, "waiting",
                                   (json_int_t)(info.waiting - (taken && info.waiting > 0)),
                                   "message", message);
    if (o && rc > 0) {
        json_object_set_new(o, "protocol", json_string(amp_protocol_name(v.protocol)));
        json_object_set_new(o, "kind", json_string(amp_kind_name(v.kind)));
        member_put(o, "type", v.type);
        member_put(o, "from", v.from);
        member_put(o, "task_id", v.task);
        member_put(o, "in_reply_to",
                   v.correlation.n && !amp_span_eq(v.correlation, v.id) ? v.correlation
                                                                        : (struct amp_span){0});
        if (v.wants_outcome)
            json_object_set_new(o, "wants_outcome", json_true());
    }
    if (o) {
        amp_json_put(o, "subject", amp_json_str(json_object_get(message, "payload"), "subject"));
        amp_json_put(o, "text", text_of(message));
    }
    amp_reader_free(reader);
    return o;
}

/* ---- the tool ---- */

static enum mcp_step message_give(struct mcp_call *call, const struct amp_inbox_msg *msg,
                                  struct amp_error *err)
{
    struct mcp *m = call->m;

    call->result = message_describe(m, msg, true, err);
    /* OFFERED is on disk before the line leaves. */
    if (!call->result || !amp_span_copy(msg->id, m->handed.id, sizeof m->handed.id) ||
        amp_store_sync(m->store, err) < 0)
        return MCP_FAILED;
    m->handed.any = true;
    m->handed.at = UINT64_MAX;
    call->hands_over = true;
    return MCP_DONE;
}

enum mcp_step mcp_inbox_step(struct mcp_call *call, struct amp_error *err)
{
    struct mcp *m = call->m;
    struct amp_inbox_msg msg;
    int64_t now = amp_now_ms(), wake_ms = 0;

    if (m->handed.any) { /* the client has not read the last one */
        call->until_ms = now + UNREAD_MS;
        return MCP_WAITS;
    }
    if (inbox_open(m, err) < 0)
        return MCP_FAILED;
    struct mcp_inbox *in = m->inbox;
    struct amp_inbox_turn turn = {
        .lanes = &in->lanes, .held = amp_held_check, .ctx = &in->held, .actor = m->box};
    in->held.holds = false;
    amp_pause_watch_renew(&in->held.pauses);
    int rc = amp_inbox_offer(m->store, amp_span_str(m->agent), &turn, now, &in->mem, &msg, &wake_ms,
                             err);
    amp_held_report(&in->held, amp_note);
    if (rc < 0)
        return MCP_FAILED;
    if (rc > 0)
        return message_give(call, &msg, err);
    if (now < call->limit_ms) {
        call->until_ms = wake_ms > 0 && wake_ms < call->limit_ms ? wake_ms : call->limit_ms;
        if (in->held.holds && call->until_ms > now + AMP_INBOX_HELD_MS)
            call->until_ms = now + AMP_INBOX_HELD_MS;
        return MCP_WAITS;
    }
    if (amp_store_sync(m->store, err) < 0) /* expired ones may have become dead letters */
        return MCP_FAILED;
    bool holds = in->held.holds;
    mcp_inbox_close(m);
    call->result = json_pack("{s:b}", "found", 0);
    snprintf(call->text, sizeof call->text, "%s",
             holds ? "Messages wait, but they are held back by a suspension."
                   : "No message waits.");
    return call->result ? MCP_DONE : MCP_FAILED;
}

enum mcp_step mcp_inbox_start(struct mcp_call *call, struct amp_error *err)
{
    int64_t wait = json_integer_value(json_object_get(call->args, "wait_seconds"));

    call->limit_ms = amp_now_ms() + wait * 1000;
    snprintf(call->state, sizeof call->state, "waiting for a message");
    return mcp_inbox_step(call, err);
}

void mcp_inbox_stop(struct mcp_call *call, const char *why)
{
    (void)why;
    if (!call->m->handed.any)
        mcp_inbox_close(call->m);
}

/* ---- READ ---- */

/* Whether bytes are in the pipe or socket of standard output that its reader has not read. */
static bool is_unread(const struct mcp *m)
{
    struct stat st;
    int n = 0;

    if (fstat(m->out.fd, &st) < 0)
        return false;
    if (S_ISFIFO(st.st_mode))
        return ioctl(m->out.fd, FIONREAD, &n) == 0 && n > 0;
    return S_ISSOCK(st.st_mode) && ioctl(m->out.fd, SIOCOUTQ, &n) == 0 && n > 0;
}

static int64_t read_record(struct mcp *m)
{
    struct amp_error err;

    m->handed.any = false;
    if (amp_inbox_read_and_say(m->store, amp_span_str(m->agent), amp_span_str(m->handed.id),
                               amp_now_ms(), NULL, m->box, &err) < 0 ||
        amp_store_sync(m->store, &err) < 0)
        mcp_break(m, &err);
    mcp_inbox_close(m);
    m->stale = true; /* a call may wait for this */
    return -1;
}

void mcp_inbox_seen(struct mcp *m, const char *id)
{
    if (m->handed.any && strcmp(m->handed.id, id) == 0)
        read_record(m);
}

int64_t mcp_inbox_settle(struct mcp *m)
{
    if (!m->handed.any)
        return -1;
    if (m->handed.at == UINT64_MAX && (m->handed.batch < 0 || !m->batches[m->handed.batch].used))
        m->handed.at = m->out.added;
    if (m->handed.at == UINT64_MAX) /* the batch waits for its other answers */
        return -1;
    if (m->out.written < m->handed.at || is_unread(m))
        return UNREAD_MS;
    return read_record(m);
}

/* ---- the resource ---- */

static int message_list(void *ctx, const struct amp_inbox_msg *msg)
{
    json_t *list = ctx;
    char at[AMP_TIME_MAX];

    amp_time_format(msg->at_ms, at);
    json_array_append_new(list, json_pack("{s:s%, s:s, s:I}", "id", msg->id.p, msg->id.n, "since",
                                          at, "attempts", (json_int_t)msg->attempt));
    return json_array_size(list) >= 1000;
}

json_t *mcp_inbox_list(struct mcp *m, struct amp_error *err)
{
    json_t *list = json_array();

    if (list && mcp_store(m, err) == 0 &&
        amp_inbox_each(m->store, amp_span_str(m->agent), message_list, list, err) == 0)
        return json_pack("{s:s, s:o}", "agent", m->agent, "waiting", list);
    json_decref(list);
    return NULL;
}
