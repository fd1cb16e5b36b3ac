/* Which protocol's answer. */
#include "protocol/compose/answer.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "protocol/codes/meanings.h"
#include "protocol/compose/compose.h"
#include "protocol/rtp/answer.h"
#include "protocol/rtp/rtp.h"
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

/* SW4RM's word for a code of ours: it has a list of them (§21). The note says what it stands for.
 */
static const char *sw4rm_code(const struct amp_answer *a)
{
    static const char *const forbidden[] = {"rejected", "unsigned", "suspended"};
    const char *code = a->code && *a->code ? a->code : "rejected";
    for (const char *c = code; *c; c++)
        if (!isalpha((unsigned char)*c) && *c != '_')
            return code; /* somebody's own, which the list leaves room for */
    for (const struct amp_meaning *m = amp_meanings_sw4rm; m->code; m++)
        if (strcasecmp(m->code, code) == 0)
            return code;
    for (size_t i = 0; i < sizeof(forbidden) / sizeof(*forbidden); i++)
        if (strcmp(forbidden[i], code) == 0)
            return "permission_denied";
    return a->retryable ? "agent_unavailable" : "validation_error";
}

static int refuse_sw4rm(const struct amp_answered *to, const struct amp_answer *a,
                        struct amp_buf *out, struct amp_error *err)
{
    const char *code = sw4rm_code(a), *said = a->note ? a->note : "";
    AMP_BUF struct amp_buf note = {0};
    amp_buf_init(&note, 1 << 16);
    if (a->code && strcasecmp(code, a->code) != 0 && amp_buf_fmt(&note, err, "%s: ", a->code) < 0)
        return -1;
    if (amp_buf_str(&note, said, err) < 0)
        return -1;
    return amp_sw4rm_nack(to, a->stage, amp_span_str(code), amp_buf_span(&note), a->by, a->now_ms,
                          out, err);
}

static int of_sw4rm(const struct amp_view *of, const struct amp_answer *a, struct amp_buf *out,
                    struct amp_error *err)
{
    struct amp_answered to = {.id = of->id,
                              .producer = of->from,
                              .correlation = of->correlation,
                              .sequence = a->sequence};
    struct amp_span note = amp_span_str(a->note);
    if (is_refusal(a->stage))
        return refuse_sw4rm(&to, a, out, err);
    return amp_sw4rm_ack(&to, a->stage, note, a->result, a->by, a->now_ms, out, err);
}

static int of_rtp(const struct amp_view *of, const struct amp_answer *a, struct amp_buf *out,
                  struct amp_error *err)
{
    bool known = amp_rtp_kind_of(of) < AMP_RTP_CATALOG;
    struct amp_rtp_answer to = {.id = of->id,
                                .type = known ? of->type : AMP_SPAN(""),
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
