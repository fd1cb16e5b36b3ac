/* Which protocol's answer. */
#include "protocol/answer.h"

#include "protocol/compose.h"
#include "protocol/rtp/answer.h"
#include "protocol/sw4rm/answer.h"

static bool is_refusal(enum amp_ack_stage stage)
{
    return stage == AMP_STAGE_REJECTED || stage == AMP_STAGE_FAILED || stage == AMP_STAGE_TIMED_OUT;
}

int amp_answer_check(enum amp_protocol p, enum amp_ack_stage stage, struct amp_error *err)
{
    if (p != AMP_PROTO_RTP || (stage != AMP_STAGE_READ && stage != AMP_STAGE_TIMED_OUT))
        return 0;
    return amp_fail(err, AMP_NO, "unsupported_stage",
                    "an ack of the Runtime Protocol says accepted, processed or failed_terminal, "
                    "not %s",
                    amp_ack_stage_name(stage));
}

static int of_sw4rm(const struct amp_view *of, const struct amp_answer *a, struct amp_buf *out,
                    struct amp_error *err)
{
    struct amp_answered to = {.id = of->id, .producer = of->from, .correlation = of->correlation};
    struct amp_span note = amp_span_str(a->note);
    if (is_refusal(a->stage))
        return amp_sw4rm_nack(&to, a->stage, amp_span_str(a->code), note, a->by, a->now_ms, out,
                              err);
    return amp_sw4rm_ack(&to, a->stage, note, a->result, a->by, a->now_ms, out, err);
}

static int of_rtp(const struct amp_view *of, const struct amp_answer *a, struct amp_buf *out,
                  struct amp_error *err)
{
    struct amp_rtp_answer to = {.id = of->id,
                                .type = of->type,
                                .source = of->from,
                                .correlation = of->correlation,
                                .node = a->node ? a->node : a->by,
                                .by = a->by,
                                .sequence = a->sequence,
                                .retryable = a->retryable,
                                .now_ms = a->now_ms};
    return amp_rtp_ack(&to, a->stage, amp_span_str(a->code), amp_span_str(a->note), out, err);
}

int amp_answer_line(const struct amp_view *of, const struct amp_answer *a, struct amp_buf *out,
                    struct amp_error *err)
{
    const char *code = a->code && *a->code ? a->code : "rejected";
    if (of->protocol == AMP_PROTO_SW4RM && of->from.n > 0)
        return of_sw4rm(of, a, out, err);
    if (of->protocol == AMP_PROTO_RTP && of->id.n > 0)
        return of_rtp(of, a, out, err);
    if (is_refusal(a->stage))
        return amp_compose_nack(of, a->stage, a->by, code, a->note ? a->note : "", a->rule,
                                a->retryable, a->now_ms, out, err);
    return amp_compose_ack(of, a->stage, a->by, a->note, a->now_ms, out, err);
}
