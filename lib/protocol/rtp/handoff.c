/*
 * Runtime Protocol v1: a task_create for one agent is an offer, which task_accept takes,
 * task_failed before it declines, and task_complete finishes. deadlineAt limits the time.
 */
#include "protocol/handoff.h"

#include <amp/base/clock.h>

#include "protocol/view/object.h"

static void create_read(const struct amp_view *v, struct amp_handoff_said *out)
{
    uint32_t deadline = amp_object_get(v->tape, v->payload, "deadlineAt", AMP_JSON_STRING);

    out->act = AMP_HANDOFF_OFFERS;
    out->from = v->from;
    out->to = v->to[0];
    out->task = v->task;
    out->reason = v->body.dispatch.description;
    if (deadline != AMP_TOK_NONE)
        amp_time_parse(amp_tok_raw(v->tape, deadline), &out->due_ms);
}

static bool handoff_read(const struct amp_view *v, struct amp_handoff_said *out)
{
    *out = (struct amp_handoff_said){.id = v->task, .by = v->from, .elsewhere = true};
    if (v->task.n == 0)
        return false;
    if (amp_span_is(v->type, "task_create") && v->n_to == 1 && !amp_span_is(v->to[0], "all") &&
        !amp_object_is(v->tape, v->payload, "taskType", "skill_distribution")) {
        create_read(v, out);
    } else if (amp_span_is(v->type, "task_accept")) {
        out->act = AMP_HANDOFF_TAKES;
    } else if (amp_span_is(v->type, "task_failed")) {
        out->act = AMP_HANDOFF_DECLINES;
        out->why =
            v->body.result.blockers.n > 0 ? v->body.result.blockers.v[0] : v->body.result.failure;
    } else if (amp_span_is(v->type, "task_complete")) {
        out->act = AMP_HANDOFF_FINISHES;
    }
    return out->act != AMP_HANDOFF_NONE;
}

const struct amp_handoff_terms amp_handoffs_rtp = {.read = handoff_read, .depth = INT64_MAX};
