/* Runtime Protocol v1 §5: answers. */
#include "protocol/rtp/answer.h"

#include <amp/base/clock.h>
#include <amp/base/id.h>
#include <amp/json/writer.h>

#include "protocol/compose/refuse.h"
#include "protocol/rtp/rtp.h"

/* Up to the payload, which is left to the caller. */
static void head(struct amp_jw *w, const struct amp_rtp_answer *a, const char *kind,
                 struct amp_span time)
{
    char uuid[AMP_UUID_MAX];
    amp_uuid4(uuid);
    amp_jw_open(w, '{');
    amp_jw_member_text(w, "eventId", uuid);
    amp_jw_member_int(w, "seq", a->sequence > 0 ? a->sequence : amp_id_number(a->now_ms));
    amp_jw_member_text(w, "kind", kind);
    amp_jw_member_text(w, "sourceNodeId", a->node);
    amp_jw_member_text(w, "sourceAgentId", a->by);
    amp_jw_some_str(w, "toAgentId", a->source);
    amp_jw_member_str(w, "corrId", a->correlation.n > 0 ? a->correlation : a->id);
    amp_jw_member_str(w, "createdAt", time);
    amp_jw_key(w, "payload");
}

static int tail(struct amp_jw *w, struct amp_error *err)
{
    amp_jw_key(w, "trace");
    amp_jw_open(w, '{');
    amp_jw_member_int(w, "attempt", 1);
    amp_jw_close(w, '}');
    amp_jw_close(w, '}');
    return amp_jw_end_line(w, err);
}

static const char *word_of(enum amp_ack_stage stage)
{
    switch (stage) {
    case AMP_STAGE_RECEIVED:
        return "accepted";
    case AMP_STAGE_FULFILLED:
        return "processed";
    case AMP_STAGE_REJECTED:
    case AMP_STAGE_FAILED:
        return "failed_terminal";
    default:
        return NULL;
    }
}

int amp_rtp_ack(const struct amp_rtp_answer *a, enum amp_ack_stage stage, struct amp_span code,
                struct amp_span reason, struct amp_buf *out, struct amp_error *err)
{
    const char *word = word_of(stage);
    char time[AMP_TIME_MAX];
    struct amp_jw w;
    if (!word)
        return amp_fail(
            err, AMP_NO, "unsupported_stage",
            "an ack of the Runtime Protocol is accepted, processed or failed_terminal, not %s",
            amp_ack_stage_name(stage));
    amp_time_format(a->now_ms, time);
    amp_jw_init(&w, out);
    head(&w, a, "ack", amp_span_str(time));
    amp_jw_open(&w, '{');
    amp_jw_member_str(&w, "refEventId", a->id);
    amp_jw_some_str(&w, "refKind", a->type);
    amp_jw_member_str(&w, "ackType", amp_span_str(word));
    amp_jw_member_str(&w, "ackedByNodeId", amp_span_str(a->node));
    amp_jw_member_str(&w, "ackedByAgentId", amp_span_str(a->by));
    amp_jw_member_str(&w, "ackedAt", amp_span_str(time));
    amp_jw_some_str(&w, "code", code);
    amp_jw_some_str(&w, "reason", reason);
    if (a->retryable && (stage == AMP_STAGE_REJECTED || stage == AMP_STAGE_FAILED)) {
        amp_jw_key(&w, "retryable");
        amp_jw_bool(&w, true);
    }
    amp_jw_close(&w, '}');
    return tail(&w, err);
}

int amp_rtp_notice(const struct amp_rtp_answer *a, const char *kind, struct amp_span code,
                   struct amp_span reason, struct amp_buf *out, struct amp_error *err)
{
    char time[AMP_TIME_MAX];
    struct amp_jw w;
    amp_time_format(a->now_ms, time);
    amp_jw_init(&w, out);
    head(&w, a, kind, amp_span_str(time));
    amp_jw_open(&w, '{');
    amp_jw_member_str(&w, "refEventId", a->id);
    amp_jw_member_str(&w, "code", code);
    amp_jw_member_str(&w, "reason", reason);
    amp_jw_close(&w, '}');
    return tail(&w, err);
}

/* A bad event is answered with an ack of type failed_terminal. An ack itself is not answered, nor
 * what has no id to refer to. */
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
