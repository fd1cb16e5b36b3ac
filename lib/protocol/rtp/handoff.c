/*
 * Runtime Protocol v1: a task_create for one agent is an offer, and so is one for the agents that
 * have its capabilities, who are asked one after the other. task_accept, or an ack "accepted" with
 * the task, takes it; task_failed before it, or an ack "failed_terminal", declines it;
 * task_complete finishes it. deadlineAt limits the time for all of them.
 */
#include "protocol/handoff.h"

#include <stdio.h>
#include <string.h>

#include <amp/base/clock.h>
#include <amp/base/id.h>

#include "protocol/compose/json.h"
#include "protocol/rtp/rtp.h"
#include "protocol/view/object.h"

#define ACCEPT_MS 120000 /* for an agent's answer */

static bool create_read(const struct amp_view *v, struct amp_handoff_said *out)
{
    uint32_t deadline = amp_object_get(v->tape, v->payload, "deadlineAt", AMP_JSON_STRING);
    uint32_t asks = amp_object_get(v->tape, v->payload, "requesterAgentId", AMP_JSON_STRING);

    bool named = v->body.dispatch.wanted.n == 0; /* in toAgents, or else in toAgentId */

    if (named && (v->n_to != 1 || amp_span_is(v->to[0], "all")))
        return false;
    out->act = AMP_HANDOFF_OFFERS;
    out->from = asks != AMP_TOK_NONE ? amp_tok_raw(v->tape, asks) : v->from;
    out->task = v->task;
    out->reason = v->body.dispatch.description;
    out->priority = v->priority;
    if (named) {
        out->to = v->to[0];
    } else {
        out->wanted = v->body.dispatch.wanted;
        out->timed = true;
        out->timeout_ms = ACCEPT_MS;
    }
    if (deadline != AMP_TOK_NONE)
        amp_time_parse(amp_tok_raw(v->tape, deadline), &out->due_ms);
    return true;
}

/* An ack that names an event is about its delivery, unless it refuses it. */
static bool ack_read(const struct amp_view *v, struct amp_handoff_said *out)
{
    if (v->kind != AMP_KIND_NACK || v->body.ack.ref.n == 0)
        return false;
    out->act = AMP_HANDOFF_DECLINES;
    out->ref = v->body.ack.ref;
    out->why = v->body.ack.note.n > 0 ? v->body.ack.note : v->body.ack.code;
    return true;
}

static struct amp_span either(struct amp_span a, struct amp_span b)
{
    return a.n > 0 ? a : b;
}

static bool handoff_read(const struct amp_view *v, struct amp_handoff_said *out)
{
    enum amp_rtp_kind kind = amp_rtp_kind_of(v);

    *out = (struct amp_handoff_said){.id = v->task, .by = v->from, .elsewhere = true};
    if (kind == AMP_RTP_ACK)
        return ack_read(v, out);
    if (v->task.n == 0)
        return false;
    switch (kind) {
    case AMP_RTP_CREATE:
        return create_read(v, out);
    case AMP_RTP_ACCEPT:
    case AMP_RTP_ACK_ACCEPT:
        out->act = AMP_HANDOFF_TAKES;
        out->by = either(v->body.progress.agent, v->from);
        return true;
    case AMP_RTP_FAILED:
        out->act = AMP_HANDOFF_DECLINES;
        out->by = either(v->body.result.agent, v->from);
        out->why =
            v->body.result.blockers.n > 0 ? v->body.result.blockers.v[0] : v->body.result.failure;
        return true;
    case AMP_RTP_COMPLETE:
        out->act = AMP_HANDOFF_FINISHES;
        out->by = either(v->body.result.agent, v->from);
        return true;
    default:
        return false;
    }
}

/* The request for another agent: a further attempt at the same operation (§1 rule 4), in an outbox
 * of its own, so that the numbers of no other outbox have a gap. */
static int request_repeat(const struct amp_handoff_says *s, struct amp_buf *out,
                          struct amp_error *err)
{
    char at[AMP_TIME_MAX];
    size_t before = out->len;
    json_auto_t *j = amp_json_load(s->request, err);

    if (!j)
        return -1;
    json_t *trace = json_object_get(j, "trace"), *payload = json_object_get(j, "payload");
    json_int_t first = json_integer_value(json_object_get(trace, "attempt"));
    json_auto_t *node = json_sprintf("%.*s.%.*s", AMP_CLIP(s->by, 100), AMP_CLIP(s->id, 200));
    json_auto_t *to = json_stringn(s->to.p, s->to.n), *by = json_stringn(s->by.p, s->by.n);
    json_auto_t *origin = json_stringn(s->from.p, s->from.n);
    amp_time_format(s->now_ms, at);
    if (!json_is_object(payload) || !node || !to || !by || !origin ||
        json_object_set_new(j, "eventId", json_string(s->message)) < 0 ||
        json_object_set_new(j, "seq", json_integer(s->attempt)) < 0 ||
        json_object_set(j, "sourceNodeId", node) < 0 || json_object_set(j, "toAgentId", to) < 0 ||
        json_object_set(j, "sourceAgentId", by) < 0 ||
        json_object_set(payload, "requesterAgentId", origin) < 0 ||
        json_object_set_new(j, "createdAt", json_string(at)) < 0 ||
        json_object_set_new(payload, "toAgents", json_pack("[O]", to)) < 0 ||
        (json_is_object(trace) &&
         json_object_set_new(trace, "attempt", json_integer(first + s->attempt - 1)) < 0))
        return amp_fail_memory(err);
    if (amp_json_dump(j, out, err) == 0 && amp_buf_add(out, "\n", 1, err) == 0)
        return 0;
    out->len = before;
    return -1;
}

/* To the origin: its task_create came to nothing. The protocol has no other report. */
static int end_report(const struct amp_handoff_says *s, struct amp_buf *out, struct amp_error *err)
{
    char id[AMP_UUID_MAX + 4] = "evt_", at[AMP_TIME_MAX];
    size_t before = out->len;
    json_auto_t *of = strcmp(s->status, "EXPIRED") == 0 ? amp_json_load(s->request, err) : NULL;

    if (strcmp(s->status, "EXPIRED") != 0)
        return 1;
    if (!of)
        return -1;
    amp_uuid4(id + 4);
    amp_time_format(s->now_ms, at);
    json_auto_t *node = json_sprintf("%.*s.%.*s", AMP_CLIP(s->by, 100), AMP_CLIP(s->id, 200));
    json_auto_t *by = json_stringn(s->by.p, s->by.n);
    json_auto_t *j = json_pack(
        "{s:s, s:I, s:s, s:O, s:O, s:s%, s:O?, s:s, s:{s:O?, s:s, s:s, s:O, s:O, s:s, s:s, s:s%}, "
        "s:{s:i}}",
        "eventId", id, "seq", (json_int_t)s->attempt, "kind", "ack", "sourceNodeId", node,
        "sourceAgentId", by, "toAgentId", s->to.p, s->to.n, "corrId", json_object_get(of, "corrId"),
        "createdAt", at, "payload", "refEventId", json_object_get(of, "eventId"), "refKind",
        "task_create", "ackType", "failed_terminal", "ackedByNodeId", node, "ackedByAgentId", by,
        "ackedAt", at, "code", "handoff_expired", "reason", s->reason.p, s->reason.n, "trace",
        "attempt", 1);
    if (!j)
        return amp_fail_memory(err);
    for (unsigned i = 0; i < AMP_RTP_POLICIES; i++) {
        const char *key = amp_rtp_policy_keys[i];
        amp_json_put(json_object_get(j, "trace"), key,
                     amp_json_str(json_object_get(of, "trace"), key));
    }
    if (amp_json_dump(j, out, err) == 0 && amp_buf_add(out, "\n", 1, err) == 0)
        return 0;
    out->len = before;
    return -1;
}

const struct amp_handoff_terms amp_handoffs_rtp = {
    .read = handoff_read,
    .depth = INT64_MAX,
    .offer = request_repeat,
    .report = end_report,
    .by_message = true,
};
