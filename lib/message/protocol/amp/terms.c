/* AMP/1.0: the terms of delivery. A message may request one acknowledgement. */
#include <stdio.h>

#include <amp/base/id.h>

#include "base/codes.h"
#include "message/protocol/answers.h"
#include "message/protocol/delivery.h"
#include "message/protocol/question.h"
#include "message/protocol/reply.h"
#include "message/protocol/routing.h"
#include "message/protocol/work.h"

int amp_terms_record(const struct amp_view *of, const struct amp_answer *a, struct amp_buf *out,
                     struct amp_error *err)
{
    const char *code = a->code && *a->code ? a->code : AMP_CODE(rejected);
    if (amp_stage_refuses(a->stage))
        return amp_compose_nack(of, a->stage, a->by, code, a->note ? a->note : "", a->rule,
                                a->retryable, a->now_ms, out, err);
    return amp_compose_ack(of, a->stage, a->by, a->note, a->now_ms, out, err);
}

static int next_id(const struct amp_view *of, int64_t now_ms, char out[AMP_MSG_ID_MAX])
{
    char tail[AMP_ID_TAIL_MAX];
    amp_id_tail(now_ms, tail);
    return snprintf(out, AMP_MSG_ID_MAX, "%.*s-%.*s-%s", (int)of->type.n, of->type.p,
                    (int)of->task.n, of->task.p, tail);
}

static int attempt_edit(struct amp_edit *e, const struct amp_again *a)
{
    return amp_edit_text(e, 0, "msg_id", amp_span_str(a->id));
}

static bool work_name(const struct amp_view *v, struct amp_work *out)
{
    *out = (struct amp_work){AMP_SPAN("task"), v->task,
                             v->kind == AMP_KIND_DISPATCH || v->kind == AMP_KIND_REVIEW};
    return true;
}

static const struct amp_watched watched[] = {{"task_dispatch", AMP_KIND_RESULT},
                                             {"review_request", AMP_KIND_VERDICT},
                                             {NULL, AMP_KIND_OTHER}};

const struct amp_delivery_terms amp_delivery_amp = {
    .acknowledges = true,
    .waits_for = AMP_STAGE_READ,
    .acks_are_known = true,
    .acks_say_retryable = true,
    .handed_over = 1u << AMP_STAGE_READ,
    .acks_by_role = true,
    .retries = {.base_ms = 1000, .cap_ms = 300000},
    .again_id = next_id,
    .again = attempt_edit,
};

const struct amp_routing_terms amp_routing_amp = {
    .acks_update_ledger = true,
};

const struct amp_work_terms amp_work_amp = {
    .work = work_name,
    .keeps_tasks = true,
    .results_name_subtasks = true,
    .sender_at = "/from",
    .denied = {[AMP_WORK_NOT_HOLDER] = AMP_CODE(permission_denied)},
    .watched = watched,
};

const struct amp_answer_terms amp_answers_amp = {
    .replies = &amp_replies_amp,
    .answer = amp_terms_record,
};
