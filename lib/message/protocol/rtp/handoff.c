/*
 * Runtime Protocol v1: a task_create for one agent is an offer, and so is one for the agents that
 * have its capabilities, who are asked one after the other. task_accept, or an ack "accepted" with
 * the task, takes it; task_failed before it, or an ack "failed_terminal", declines it;
 * task_complete finishes it. deadlineAt limits the time for all of them.
 */
#include "message/protocol/handoff.h"

#include <stdio.h>
#include <string.h>

#include <amp/base/clock.h>

#include "base/codes.h"
#include "message/protocol/compose/json.h"
#include "message/protocol/rtp/rtp.h"
#include "message/protocol/view/object.h"
#include "json/record.h"

#define ACCEPT_MS 120000 /* for an agent's answer */
#define NODE_MAX  320

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

/* The outbox of a handoff is its own, so that the numbers of no other outbox have a gap. */
static void node_name(const struct amp_handoff_says *s, char out[NODE_MAX])
{
    snprintf(out, NODE_MAX, "%.*s.%.*s", AMP_CLIP(s->by, 100), AMP_CLIP(s->id, 200));
}

/* The request for another agent: a further attempt at the same operation (§1 rule 4). */
static int request_repeat(const struct amp_handoff_says *s, struct amp_buf *out,
                          struct amp_error *err)
{
    char at[AMP_TIME_MAX], node[NODE_MAX];
    json_auto_t *j = amp_json_load(s->request, err);

    if (!j)
        return -1;
    json_t *trace = json_object_get(j, "trace");
    json_int_t first = json_integer_value(json_object_get(trace, "attempt"));
    amp_time_format(s->now_ms, at);
    node_name(s, node);
    json_auto_t *event =
        json_pack("{s:s, s:I, s:s, s:s%, s:s%, s:s}", "eventId", s->message, "seq",
                  (json_int_t)s->attempt, "sourceNodeId", node, "toAgentId", s->to.p, s->to.n,
                  "sourceAgentId", s->by.p, s->by.n, "createdAt", at);
    json_auto_t *payload = json_pack("{s:s%, s:[s%]}", "requesterAgentId", s->from.p, s->from.n,
                                     "toAgents", s->to.p, s->to.n);
    if (!event || !payload || json_object_update(j, event) < 0 ||
        json_object_update(json_object_get(j, "payload"), payload) < 0 ||
        (json_is_object(trace) &&
         json_object_set_new(trace, "attempt", json_integer(first + s->attempt - 1)) < 0))
        return amp_fail_memory(err);
    return amp_json_line(j, out, err);
}

/* To the origin: its task_create came to nothing. The protocol has no other report. */
static int end_report(const struct amp_handoff_says *s, struct amp_buf *out, struct amp_error *err)
{
    char node[NODE_MAX], by[NODE_MAX];
    struct amp_jw w;

    if (strcmp(s->status, "EXPIRED") != 0)
        return 1;
    json_auto_t *of = amp_json_load(s->request, err);
    if (!of)
        return -1;
    node_name(s, node);
    amp_span_copy(s->by, by, sizeof by);
    struct amp_rtp_event e = {.kind = "ack",
                              .by = by,
                              .node = node,
                              .to = s->to,
                              .correlation = amp_span_str(amp_json_str(of, "corrId")),
                              .sequence = s->attempt,
                              .now_ms = s->now_ms};
    for (unsigned i = 0; i < AMP_RTP_POLICIES; i++)
        e.policies[i] =
            amp_span_str(amp_json_str(json_object_get(of, "trace"), amp_rtp_policy_keys[i]));
    amp_rtp_open(&w, &e, out);
    amp_jw_open(&w, '{');
    amp_jw_some_str(&w, "refEventId", amp_span_str(amp_json_str(of, "eventId")));
    amp_jw_member_text(&w, "refKind", "task_create");
    amp_jw_member_text(&w, "ackType", "failed_terminal");
    amp_jw_member_text(&w, "ackedByNodeId", node);
    amp_jw_member_text(&w, "ackedByAgentId", by);
    amp_rec_time(&w, "ackedAt", s->now_ms);
    amp_jw_member_text(&w, "code", AMP_CODE(handoff_expired));
    amp_jw_member_str(&w, "reason", s->reason);
    amp_jw_close(&w, '}');
    return amp_rtp_close(&w, &e, err);
}

const struct amp_handoff_terms amp_handoffs_rtp = {
    .read = handoff_read,
    .depth = INT64_MAX,
    .offer = request_repeat,
    .report = end_report,
    .by_message = true,
};
