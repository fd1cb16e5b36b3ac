/* Runtime Protocol v1 §5: answers about the delivery of an event, and the refusal of a line. */
#include <string.h>

#include "base/codes.h"
#include "message/protocol/answers.h"
#include "message/protocol/compose/refuse.h"
#include "message/protocol/delivery.h"
#include "message/protocol/rtp/rtp.h"
#include "json/record.h"

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

void amp_rtp_id(char out[AMP_RTP_ID_MAX])
{
    memcpy(out, "evt_", 4);
    amp_uuid4(out + 4);
}

void amp_rtp_open(struct amp_jw *w, const struct amp_rtp_event *e, struct amp_buf *out)
{
    char id[AMP_RTP_ID_MAX];
    amp_rtp_id(id);
    amp_jw_init(w, out);
    amp_jw_open(w, '{');
    amp_jw_member_text(w, "eventId", e->id ? e->id : id);
    amp_jw_member_int(w, "seq", e->sequence > 0 ? e->sequence : amp_id_number(e->now_ms));
    amp_jw_member_text(w, "kind", e->kind);
    amp_jw_member_text(w, "sourceNodeId", e->node ? e->node : e->by);
    amp_jw_member_text(w, "sourceAgentId", e->by);
    amp_jw_some_str(w, "toAgentId", e->to);
    amp_jw_some_str(w, "corrId", e->correlation);
    amp_rec_time(w, "createdAt", e->now_ms);
    amp_jw_key(w, "payload");
}

int amp_rtp_close(struct amp_jw *w, const struct amp_rtp_event *e, struct amp_error *err)
{
    amp_jw_member_open(w, "trace", '{');
    amp_jw_member_int(w, "attempt", 1);
    for (unsigned i = 0; i < AMP_RTP_POLICIES; i++)
        amp_jw_some_str(w, amp_rtp_policy_keys[i], e->policies[i]);
    amp_jw_close(w, '}');
    amp_jw_close(w, '}');
    return amp_jw_end_line(w, err);
}

static void ack_write(struct amp_jw *w, const struct amp_view *of, const struct amp_answer *a,
                      const char *word)
{
    amp_jw_member_str(w, "refEventId", of->id);
    if (amp_rtp_kind_of(of) < AMP_RTP_CATALOG)
        amp_jw_some_str(w, "refKind", of->type);
    amp_jw_member_text(w, "ackType", word);
    amp_jw_member_text(w, "ackedByNodeId", a->node ? a->node : a->by);
    amp_jw_member_text(w, "ackedByAgentId", a->by);
    amp_rec_time(w, "ackedAt", a->now_ms);
    amp_jw_some_str(w, "code", amp_span_str(a->code));
    amp_jw_some_str(w, "reason", amp_span_str(a->note));
    if (a->retryable && amp_stage_refuses(a->stage))
        amp_jw_member_bool(w, "retryable", true);
}

int amp_rtp_answer(const struct amp_view *of, const struct amp_answer *a, struct amp_buf *out,
                   struct amp_error *err)
{
    const char *word = stage_word(a->stage);
    struct amp_jw w;
    if (!word && !a->is_dead)
        return amp_fail(
            err, AMP_NO, unsupported_stage,
            "an ack of the Runtime Protocol is accepted, processed or failed_terminal, not %s",
            amp_ack_stage_name(a->stage));
    /* The policies are those by which the event was routed that it answers. */
    struct amp_rtp_event e = {.kind = a->is_dead ? "dead_letter" : "ack",
                              .by = a->by,
                              .node = a->node,
                              .to = of->from,
                              .correlation = of->correlation.n > 0 ? of->correlation : of->id,
                              .sequence = a->sequence,
                              .now_ms = a->now_ms};
    if (a->repeats)
        memcpy(e.policies, a->repeats, sizeof e.policies);
    else
        amp_rtp_policies(of, e.policies);
    amp_rtp_open(&w, &e, out);
    amp_jw_open(&w, '{');
    if (a->is_dead) {
        amp_jw_member_str(&w, "refEventId", of->id);
        amp_jw_member_str(&w, "code", amp_span_str(a->code));
        amp_jw_member_str(&w, "reason", amp_span_str(a->note));
    } else {
        ack_write(&w, of, a, word);
    }
    amp_jw_close(&w, '}');
    return amp_rtp_close(&w, &e, err);
}

enum amp_refuse_result amp_rtp_refuse(const struct amp_view *v, const struct amp_finding *first,
                                      int64_t now_ms, struct amp_buf *out, struct amp_error *err)
{
    if (v->id.n == 0 || v->kind == AMP_KIND_ACK || v->kind == AMP_KIND_NACK ||
        amp_span_is(v->type, "ack"))
        return AMP_REFUSE_NONE;
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
    return amp_rtp_answer(v, &a, out, err) < 0 ? AMP_REFUSE_FAILED : AMP_REFUSE_WRITTEN;
}
