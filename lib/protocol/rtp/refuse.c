/* Runtime Protocol v1 answers a bad event with an ack of type failed_terminal. An ack itself is not
 * answered, nor what has no id to refer to. */
#include <stdio.h>

#include <amp/base/clock.h>
#include <amp/base/id.h>
#include <amp/json/writer.h>

#include "protocol/rtp/rtp.h"
#include "protocol/spec.h"

#define WHO "amp-validate"

static void text(struct amp_jw *w, const char *key, struct amp_span s)
{
    amp_jw_key(w, key);
    amp_jw_str(w, s);
}

static void payload(struct amp_jw *w, const struct amp_view *v, const struct amp_finding *first,
                    const char *node, struct amp_span time)
{
    amp_jw_key(w, "payload");
    amp_jw_open(w, '{');
    text(w, "refEventId", v->id);
    if (amp_rtp_kind_of(v) < AMP_RTP_CATALOG)
        text(w, "refKind", v->type);
    text(w, "ackType", AMP_SPAN("failed_terminal"));
    text(w, "ackedByNodeId", amp_span_str(node));
    text(w, "ackedByAgentId", AMP_SPAN(WHO));
    text(w, "ackedAt", time);
    text(w, "code",
         amp_span_str(first->seed_code && first->seed_code[0] ? first->seed_code : first->code));
    AMP_BUF struct amp_buf why;
    amp_buf_init(&why, 4096);
    if (amp_buf_fmt(&why, NULL, "%s%s%s", first->field, first->field[0] ? " " : "",
                    first->message) == 0)
        text(w, "reason", amp_buf_span(&why));
    amp_jw_close(w, '}');
}

int amp_rtp_refuse(const struct amp_view *v, const struct amp_finding *first, int64_t now_ms,
                   struct amp_buf *out, struct amp_error *err)
{
    if (v->id.n == 0 || v->kind == AMP_KIND_ACK || v->kind == AMP_KIND_NACK ||
        amp_span_is(v->type, "ack"))
        return 1;
    char time[AMP_TIME_MAX], uuid[AMP_UUID_MAX], node[AMP_REFUSER_MAX];
    size_t before = out->len;
    struct amp_jw w;
    amp_time_format(now_ms, time);
    amp_uuid4(uuid);
    amp_jw_init(&w, out);
    amp_jw_open(&w, '{');
    text(&w, "eventId", amp_span_str(uuid));
    amp_jw_key(&w, "seq");
    amp_jw_int(&w, amp_refuse_number(now_ms, node));
    text(&w, "kind", AMP_SPAN("ack"));
    text(&w, "sourceNodeId", amp_span_str(node));
    text(&w, "sourceAgentId", AMP_SPAN(WHO));
    if (v->from.n > 0)
        text(&w, "toAgentId", v->from);
    text(&w, "corrId", v->correlation.n > 0 ? v->correlation : v->id);
    text(&w, "createdAt", amp_span_str(time));
    payload(&w, v, first, node, amp_span_str(time));
    amp_jw_key(&w, "trace");
    amp_jw_open(&w, '{');
    amp_jw_key(&w, "attempt");
    amp_jw_int(&w, 1);
    amp_jw_close(&w, '}');
    amp_jw_close(&w, '}');
    if (amp_jw_end(&w, err) < 0 || amp_buf_str(out, "\n", err) < 0) {
        out->len = before;
        return -1;
    }
    return 0;
}
