/*
 * AOF/1: handoffs (Protocol 4). A handoff is known by its child task. dueBy says when the work has
 * to be ready; there is no limit for the answer.
 */
#include "message/protocol/handoff.h"

static bool handoff_read(const struct amp_view *v, struct amp_handoff_said *out)
{
    *out = (struct amp_handoff_said){.id = v->task, .by = v->from, .elsewhere = true};
    if (amp_span_is(v->type, "handoff.request")) {
        out->act = AMP_HANDOFF_OFFERS;
        out->from = v->body.handoff.from;
        out->to = v->body.handoff.to;
        out->task = v->task;
        out->parent = v->body.handoff.parent;
    } else if (amp_span_is(v->type, "handoff.accepted")) {
        out->act = AMP_HANDOFF_TAKES;
    } else if (amp_span_is(v->type, "handoff.rejected")) {
        out->act = AMP_HANDOFF_DECLINES;
        out->why = v->body.ack.note;
    } else if (amp_span_is(v->type, "completion.report") &&
               v->body.result.completion != AMP_COMPLETION_FAILED) {
        out->act = AMP_HANDOFF_FINISHES; /* a blocked task is still the child's */
    }
    return out->act != AMP_HANDOFF_NONE;
}

/* "If depth > 1, reject delegation": a child does not delegate. */
const struct amp_handoff_terms amp_handoffs_aof = {.read = handoff_read, .depth = 1};
