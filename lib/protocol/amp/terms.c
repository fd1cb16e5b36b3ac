/* AMP/1.0: a message says whether it wants its one acknowledgement; its type has the time. */
#include <stdio.h>

#include <amp/base/id.h>

#include "protocol/terms.h"

int amp_terms_record(const struct amp_view *of, const struct amp_answer *a, struct amp_buf *out,
                     struct amp_error *err)
{
    const char *code = a->code && *a->code ? a->code : "rejected";
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

static const char *const watched[] = {"task_dispatch", "review_request", NULL};

const struct amp_terms amp_terms_amp = {
    .acknowledges = true,
    .waits_for = AMP_STAGE_READ,
    .not_holder = "permission_denied",
    .watched = watched,
    .retries = {.base_ms = 1000, .cap_ms = 300000},
    .again_id = next_id,
    .again = attempt_edit,
    .answer = amp_terms_record,
};
