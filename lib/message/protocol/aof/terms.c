/* AOF/1: the terms of delivery. A message that cannot be delivered becomes a line of the event log.
 */
#include <stdio.h>
#include <string.h>

#include "base/codes.h"
#include "message/protocol/answers.h"
#include "message/protocol/aof/aof.h"
#include "message/protocol/delivery.h"
#include "message/protocol/handoff.h"
#include "message/protocol/question.h"
#include "message/protocol/reply.h"
#include "message/protocol/routing.h"
#include "message/protocol/work.h"

/* One of the five messages; files and lines of the log are not answered. */
static bool is_message(const struct amp_view *v)
{
    return amp_span_starts(v->type, "handoff.") || amp_span_is(v->type, "status.update") ||
           amp_span_is(v->type, "completion.report");
}

static int answer_write(const struct amp_view *of, const struct amp_answer *a, struct amp_buf *out,
                        struct amp_error *err)
{
    if (!amp_stage_refuses(a->stage))
        return amp_terms_record(of, a, out, err);
    if (!is_message(of))
        return 0;
    const char *code = a->code && *a->code ? a->code : AMP_CODE(rejected);
    const struct amp_aof_event e = {.type = amp_code_is(code, no_route) ? "dispatch.no-match"
                                                                        : "dispatch.error",
                                    .actor = a->by,
                                    .reason = code,
                                    .what = a->note,
                                    .to = of->n_to > 0 ? of->to[0] : (struct amp_span){"", 0}};
    return amp_aof_event(&e, of, a->now_ms, out, err);
}

static bool is_request(const struct amp_view *v)
{
    return amp_span_is(v->type, "handoff.request");
}

static int request_name(const struct amp_view *v, char out[AMP_MSG_ID_MAX])
{
    return is_request(v) ? snprintf(out, AMP_MSG_ID_MAX, "handoff.request/%.*s/%lld",
                                    (int)v->task.n, v->task.p, (long long)v->created_ms)
                         : 0;
}

static bool work_name(const struct amp_view *v, struct amp_work *out)
{
    *out = (struct amp_work){AMP_SPAN("task"), v->task, is_request(v)};
    return is_message(v);
}

/* The answers to a handoff.request: accepted, rejected, in progress, done. */
static bool outcome_read(const struct amp_view *v, struct amp_outcome *out)
{
    switch (v->kind) {
    case AMP_KIND_NACK:
        out->stage = AMP_STAGE_REJECTED;
        out->code = AMP_CODE_SPAN(handoff_rejected);
        return true;
    case AMP_KIND_ACK:
        out->takes_up = true;
        out->stage = AMP_STAGE_READ;
        return true;
    case AMP_KIND_PROGRESS:
        out->stage = AMP_STAGE_READ;
        return true;
    case AMP_KIND_RESULT:
        if (v->body.result.completion == AMP_COMPLETION_FAILED) {
            out->stage = AMP_STAGE_FAILED;
            out->code = AMP_CODE_SPAN(blocked);
        }
        return true;
    default:
        return false;
    }
}

/* dueBy is advisory: nothing happens when it passes. */
const struct amp_delivery_terms amp_delivery_aof = {
    .expiry_is_advisory = true,
    .acks_name_work = true,
    .retries = {.base_ms = 1000, .cap_ms = 300000, .steady = true},
};

const struct amp_routing_terms amp_routing_aof = {0};

const struct amp_work_terms amp_work_aof = {
    .name = request_name,
    .work = work_name,
    .sender_at = "/fromAgent",
    .outcome = outcome_read,
    .to_holds = true,
    .denied = {[AMP_WORK_NOT_HOLDER] = AMP_CODE(unauthorized_agent)},
};

const struct amp_answer_terms amp_answers_aof = {
    .answer = answer_write,
    .replies = &amp_replies_aof,
    .handoffs = &amp_handoffs_aof,
};
