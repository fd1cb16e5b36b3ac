/* Runtime Protocol v1 answers a bad event with an ack of type failed_terminal. An ack itself is not
 * answered, nor what has no id to refer to. */
#include "protocol/compose/refuser.h"
#include "protocol/rtp/answer.h"
#include "protocol/rtp/rtp.h"

int amp_rtp_refuse(const struct amp_view *v, const struct amp_finding *first, int64_t now_ms,
                   struct amp_buf *out, struct amp_error *err)
{
    if (v->id.n == 0 || v->kind == AMP_KIND_ACK || v->kind == AMP_KIND_NACK ||
        amp_span_is(v->type, "ack"))
        return 1;
    char node[AMP_REFUSER_MAX];
    bool seed = first->seed_code && first->seed_code[0];
    AMP_BUF struct amp_buf why = {0};
    amp_buf_init(&why, 4096);
    struct amp_rtp_answer to = {.id = v->id,
                                .type =
                                    amp_rtp_kind_of(v) < AMP_RTP_CATALOG ? v->type : AMP_SPAN(""),
                                .source = v->from,
                                .correlation = v->correlation,
                                .node = node,
                                .by = AMP_REFUSER,
                                .sequence = amp_refuse_number(now_ms, node),
                                .now_ms = now_ms};
    if (amp_buf_fmt(&why, NULL, "%s%s%s", first->field, first->field[0] ? " " : "",
                    first->message) < 0)
        amp_buf_reset(&why);
    return amp_rtp_ack(&to, AMP_STAGE_REJECTED, amp_span_str(seed ? first->seed_code : first->code),
                       amp_buf_span(&why), out, err);
}
