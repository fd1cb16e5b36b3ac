/* Runtime Protocol v1 §5: answers. */
#include "protocol/rtp/answer.h"

#include <amp/base/clock.h>
#include <amp/base/id.h>
#include <amp/json/writer.h>

static void text(struct amp_jw *w, const char *key, struct amp_span s)
{
    amp_jw_key(w, key);
    amp_jw_str(w, s);
}

static void some(struct amp_jw *w, const char *key, struct amp_span s)
{
    if (s.n > 0)
        text(w, key, s);
}

/* Up to the payload, which is left to the caller. */
static void head(struct amp_jw *w, const struct amp_rtp_answer *a, const char *kind,
                 struct amp_span time)
{
    char uuid[AMP_UUID_MAX];
    amp_uuid4(uuid);
    amp_jw_open(w, '{');
    text(w, "eventId", amp_span_str(uuid));
    amp_jw_key(w, "seq");
    amp_jw_int(w, a->sequence > 0 ? a->sequence : amp_id_number(a->now_ms));
    text(w, "kind", amp_span_str(kind));
    text(w, "sourceNodeId", amp_span_str(a->node));
    text(w, "sourceAgentId", amp_span_str(a->by));
    some(w, "toAgentId", a->source);
    text(w, "corrId", a->correlation.n > 0 ? a->correlation : a->id);
    text(w, "createdAt", time);
    amp_jw_key(w, "payload");
}

static int tail(struct amp_jw *w, struct amp_buf *out, size_t before, struct amp_error *err)
{
    amp_jw_key(w, "trace");
    amp_jw_open(w, '{');
    amp_jw_key(w, "attempt");
    amp_jw_int(w, 1);
    amp_jw_close(w, '}');
    amp_jw_close(w, '}');
    if (amp_jw_end(w, err) == 0 && amp_buf_str(out, "\n", err) == 0)
        return 0;
    out->len = before;
    return -1;
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
    size_t before = out->len;
    if (!word)
        return amp_fail(err, AMP_NO, "unsupported_stage",
                        "an ack of the Runtime Protocol says accepted, processed or "
                        "failed_terminal, not %s",
                        amp_ack_stage_name(stage));
    amp_time_format(a->now_ms, time);
    amp_jw_init(&w, out);
    head(&w, a, "ack", amp_span_str(time));
    amp_jw_open(&w, '{');
    text(&w, "refEventId", a->id);
    some(&w, "refKind", a->type);
    text(&w, "ackType", amp_span_str(word));
    text(&w, "ackedByNodeId", amp_span_str(a->node));
    text(&w, "ackedByAgentId", amp_span_str(a->by));
    text(&w, "ackedAt", amp_span_str(time));
    some(&w, "code", code);
    some(&w, "reason", reason);
    if (a->retryable && (stage == AMP_STAGE_REJECTED || stage == AMP_STAGE_FAILED)) {
        amp_jw_key(&w, "retryable");
        amp_jw_bool(&w, true);
    }
    amp_jw_close(&w, '}');
    return tail(&w, out, before, err);
}

int amp_rtp_notice(const struct amp_rtp_answer *a, const char *kind, struct amp_span code,
                   struct amp_span reason, struct amp_buf *out, struct amp_error *err)
{
    char time[AMP_TIME_MAX];
    struct amp_jw w;
    size_t before = out->len;
    amp_time_format(a->now_ms, time);
    amp_jw_init(&w, out);
    head(&w, a, kind, amp_span_str(time));
    amp_jw_open(&w, '{');
    text(&w, "refEventId", a->id);
    text(&w, "code", code);
    text(&w, "reason", reason);
    amp_jw_close(&w, '}');
    return tail(&w, out, before, err);
}
