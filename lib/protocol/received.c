/* Each protocol's word for "it is queued". */
#include "protocol/received.h"

#include <stdatomic.h>

#include <amp/base/id.h>
#include <amp/json/writer.h>

#include "protocol/rtp/rtp.h"
#include "protocol/sw4rm/answer.h"

static void text(struct amp_jw *w, const char *key, struct amp_span s)
{
    amp_jw_key(w, key);
    amp_jw_str(w, s);
}

/* The receiver's outbox is numbered by the clock's microseconds, and grows within a run. */
static int64_t next_number(int64_t now_ms)
{
    static atomic_int_least64_t last;
    int64_t was = atomic_load(&last), next;
    do {
        next = now_ms * 1000 > was ? now_ms * 1000 : was + 1;
    } while (!atomic_compare_exchange_weak(&last, &was, next));
    return next;
}

static int rtp_accepted(const struct amp_view *v, struct amp_span by, int64_t now_ms,
                        struct amp_buf *out, struct amp_error *err)
{
    char time[AMP_TIME_MAX], uuid[AMP_UUID_MAX];
    struct amp_jw w;
    amp_time_format(now_ms, time);
    amp_uuid4(uuid);
    amp_jw_init(&w, out);
    amp_jw_open(&w, '{');
    text(&w, "eventId", amp_span_str(uuid));
    amp_jw_key(&w, "seq");
    amp_jw_int(&w, next_number(now_ms));
    text(&w, "kind", AMP_SPAN("ack"));
    text(&w, "sourceNodeId", by);
    text(&w, "sourceAgentId", by);
    if (v->from.n > 0)
        text(&w, "toAgentId", v->from);
    text(&w, "corrId", v->correlation.n > 0 ? v->correlation : v->id);
    text(&w, "createdAt", amp_span_str(time));
    amp_jw_key(&w, "payload");
    amp_jw_open(&w, '{');
    text(&w, "refEventId", v->id);
    if (amp_rtp_kind_of(v) < AMP_RTP_CATALOG)
        text(&w, "refKind", v->type);
    text(&w, "ackType", AMP_SPAN("accepted"));
    text(&w, "ackedByNodeId", by);
    text(&w, "ackedByAgentId", by);
    text(&w, "ackedAt", amp_span_str(time));
    amp_jw_close(&w, '}');
    amp_jw_key(&w, "trace");
    amp_jw_open(&w, '{');
    amp_jw_key(&w, "attempt");
    amp_jw_int(&w, 1);
    amp_jw_close(&w, '}');
    amp_jw_close(&w, '}');
    return amp_jw_end(&w, err);
}

static int sw4rm_received(const struct amp_view *v, struct amp_span by, int64_t now_ms,
                          struct amp_buf *out, struct amp_error *err)
{
    struct amp_answered of = {.id = v->id, .producer = v->from, .correlation = v->correlation};
    AMP_FREE char *name = amp_span_dup(by);
    if (!name)
        return amp_fail(err, AMP_TEMPFAIL, "no_memory", "no memory for an answer");
    if (amp_sw4rm_ack(&of, AMP_STAGE_RECEIVED, (struct amp_span){"", 0}, (struct amp_span){"", 0},
                      name, now_ms, out, err) < 0)
        return -1;
    out->len--; /* its LF */
    return 0;
}

int amp_answer_received(const struct amp_view *v, struct amp_span by, int64_t now_ms,
                        struct amp_buf *out, struct amp_error *err)
{
    if (v->id.n == 0 || v->kind == AMP_KIND_ACK || v->kind == AMP_KIND_NACK)
        return 0;
    if (v->protocol == AMP_PROTO_SW4RM)
        return sw4rm_received(v, by, now_ms, out, err);
    if (v->protocol == AMP_PROTO_RTP)
        return rtp_accepted(v, by, now_ms, out, err);
    return 0;
}
