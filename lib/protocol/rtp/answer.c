/* Runtime Protocol v1 §5: answers about the delivery of an event, and the refusal of a line. */
#include <amp/base/clock.h>
#include <amp/base/id.h>
#include <amp/json/writer.h>

#include "protocol/compose/refuse.h"
#include "protocol/rtp/rtp.h"
#include "protocol/terms.h"

static const char *stage_word(enum amp_ack_stage stage)
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

const char *const amp_rtp_policy_keys[AMP_RTP_POLICIES] = {"routingPolicyVersion",
                                                           "capabilityPolicyVersion"};

void amp_rtp_policies(const struct amp_view *of, struct amp_span out[AMP_RTP_POLICIES])
{
    bool read = of->tape && of->tape->n > 0;
    uint32_t trace = read ? amp_object_get(of->tape, 0, "trace", AMP_JSON_OBJECT) : AMP_TOK_NONE;
    for (unsigned i = 0; i < AMP_RTP_POLICIES; i++) {
        uint32_t tok =
            trace == AMP_TOK_NONE
                ? AMP_TOK_NONE
                : amp_object_get(of->tape, trace, amp_rtp_policy_keys[i], AMP_JSON_STRING);
        out[i] = tok != AMP_TOK_NONE ? amp_tok_raw(of->tape, tok) : AMP_SPAN("");
    }
}

/* The versions are those by which the event was routed that it answers. */
static void trace_write(struct amp_jw *w, const struct amp_view *of, const struct amp_answer *a)
{
    struct amp_span read[AMP_RTP_POLICIES];
    const struct amp_span *version = a->repeats ? a->repeats : read;
    amp_rtp_policies(of, read);
    amp_jw_member_open(w, "trace", '{');
    amp_jw_member_int(w, "attempt", 1);
    for (unsigned i = 0; i < AMP_RTP_POLICIES; i++)
        amp_jw_some_str(w, amp_rtp_policy_keys[i], version[i]);
    amp_jw_close(w, '}');
}

/* Opens the event, up to the value of its payload. */
static void event_open(struct amp_jw *w, const struct amp_view *of, const struct amp_answer *a,
                       const char *kind, const char *time)
{
    char uuid[AMP_UUID_MAX];
    amp_uuid4(uuid);
    amp_jw_open(w, '{');
    amp_jw_member_text(w, "eventId", uuid);
    amp_jw_member_int(w, "seq", a->sequence > 0 ? a->sequence : amp_id_number(a->now_ms));
    amp_jw_member_text(w, "kind", kind);
    amp_jw_member_text(w, "sourceNodeId", a->node ? a->node : a->by);
    amp_jw_member_text(w, "sourceAgentId", a->by);
    amp_jw_some_str(w, "toAgentId", of->from);
    amp_jw_member_str(w, "corrId", of->correlation.n > 0 ? of->correlation : of->id);
    amp_jw_member_text(w, "createdAt", time);
    amp_jw_key(w, "payload");
}

static void ack_write(struct amp_jw *w, const struct amp_view *of, const struct amp_answer *a,
                      const char *word, const char *time)
{
    amp_jw_member_str(w, "refEventId", of->id);
    if (amp_rtp_kind_of(of) < AMP_RTP_CATALOG)
        amp_jw_some_str(w, "refKind", of->type);
    amp_jw_member_text(w, "ackType", word);
    amp_jw_member_text(w, "ackedByNodeId", a->node ? a->node : a->by);
    amp_jw_member_text(w, "ackedByAgentId", a->by);
    amp_jw_member_text(w, "ackedAt", time);
    amp_jw_some_str(w, "code", amp_span_str(a->code));
    amp_jw_some_str(w, "reason", amp_span_str(a->note));
    if (a->retryable && amp_stage_refuses(a->stage))
        amp_jw_member_bool(w, "retryable", true);
}

int amp_rtp_answer(const struct amp_view *of, const struct amp_answer *a, struct amp_buf *out,
                   struct amp_error *err)
{
    const char *word = stage_word(a->stage);
    char time[AMP_TIME_MAX];
    struct amp_jw w;
    if (!word && !a->is_dead)
        return amp_fail(
            err, AMP_NO, "unsupported_stage",
            "an ack of the Runtime Protocol is accepted, processed or failed_terminal, not %s",
            amp_ack_stage_name(a->stage));
    amp_time_format(a->now_ms, time);
    amp_jw_init(&w, out);
    event_open(&w, of, a, a->is_dead ? "dead_letter" : "ack", time);
    amp_jw_open(&w, '{');
    if (a->is_dead) {
        amp_jw_member_str(&w, "refEventId", of->id);
        amp_jw_member_str(&w, "code", amp_span_str(a->code));
        amp_jw_member_str(&w, "reason", amp_span_str(a->note));
    } else {
        ack_write(&w, of, a, word, time);
    }
    amp_jw_close(&w, '}');
    trace_write(&w, of, a);
    amp_jw_close(&w, '}');
    return amp_jw_end_line(&w, err);
}

int amp_rtp_refuse(const struct amp_view *v, const struct amp_finding *first, int64_t now_ms,
                   struct amp_buf *out, struct amp_error *err)
{
    if (v->id.n == 0 || v->kind == AMP_KIND_ACK || v->kind == AMP_KIND_NACK ||
        amp_span_is(v->type, "ack"))
        return 1;
    char node[AMP_REFUSER_MAX];
    bool has_seed_code = first->seed_code && first->seed_code[0];
    AMP_BUF struct amp_buf why = {0};
    amp_buf_init(&why, 4096);
    if (amp_buf_fmt(&why, NULL, "%s%s%s", first->field, first->field[0] ? " " : "",
                    first->message) < 0)
        amp_buf_reset(&why);
    const struct amp_answer a = {.stage = AMP_STAGE_REJECTED,
                                 .by = AMP_REFUSER,
                                 .code = has_seed_code ? first->seed_code : first->code,
                                 .note = why.data,
                                 .node = node,
                                 .sequence = amp_refuse_number(now_ms, node),
                                 .now_ms = now_ms};
    return amp_rtp_answer(v, &a, out, err);
}
