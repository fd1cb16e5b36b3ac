/* Runtime Protocol v1 answers a bad event with an ack of type failed_terminal. An ack itself is not
 * answered, nor what has no id to refer to. */
#include <stdio.h>

#include <amp/base/clock.h>
#include <amp/base/id.h>
#include <amp/json/writer.h>

#include "protocol/rtp/rtp.h"
#include "protocol/spec.h"

#define WHO "amp-validate"

static void payload(struct amp_jw *w, const struct amp_view *v, const struct amp_finding *first,
                    const char *node, struct amp_span time)
{
    amp_jw_key(w, "payload");
    amp_jw_open(w, '{');
    amp_jw_member_str(w, "refEventId", v->id);
    if (amp_rtp_kind_of(v) < AMP_RTP_CATALOG)
        amp_jw_member_str(w, "refKind", v->type);
    amp_jw_member_str(w, "ackType", AMP_SPAN("failed_terminal"));
    amp_jw_member_str(w, "ackedByNodeId", amp_span_str(node));
    amp_jw_member_str(w, "ackedByAgentId", AMP_SPAN(WHO));
    amp_jw_member_str(w, "ackedAt", time);
    amp_jw_member_str(
        w, "code",
        amp_span_str(first->seed_code && first->seed_code[0] ? first->seed_code : first->code));
    AMP_BUF struct amp_buf why = {0};
    amp_buf_init(&why, 4096);
    if (amp_buf_fmt(&why, NULL, "%s%s%s", first->field, first->field[0] ? " " : "",
                    first->message) == 0)
        amp_jw_member_str(w, "reason", amp_buf_span(&why));
    amp_jw_close(w, '}');
}

int amp_rtp_refuse(const struct amp_view *v, const struct amp_finding *first, int64_t now_ms,
                   struct amp_buf *out, struct amp_error *err)
{
    if (v->id.n == 0 || v->kind == AMP_KIND_ACK || v->kind == AMP_KIND_NACK ||
        amp_span_is(v->type, "ack"))
        return 1;
    char time[AMP_TIME_MAX], uuid[AMP_UUID_MAX], node[AMP_REFUSER_MAX];
    struct amp_jw w;
    amp_time_format(now_ms, time);
    amp_uuid4(uuid);
    amp_jw_init(&w, out);
    amp_jw_open(&w, '{');
    amp_jw_member_str(&w, "eventId", amp_span_str(uuid));
    amp_jw_member_int(&w, "seq", amp_refuse_number(now_ms, node));
    amp_jw_member_str(&w, "kind", AMP_SPAN("ack"));
    amp_jw_member_str(&w, "sourceNodeId", amp_span_str(node));
    amp_jw_member_str(&w, "sourceAgentId", AMP_SPAN(WHO));
    if (v->from.n > 0)
        amp_jw_member_str(&w, "toAgentId", v->from);
    amp_jw_member_str(&w, "corrId", v->correlation.n > 0 ? v->correlation : v->id);
    amp_jw_member_str(&w, "createdAt", amp_span_str(time));
    payload(&w, v, first, node, amp_span_str(time));
    amp_jw_key(&w, "trace");
    amp_jw_open(&w, '{');
    amp_jw_member_int(&w, "attempt", 1);
    amp_jw_close(&w, '}');
    amp_jw_close(&w, '}');
    return amp_jw_end_line(&w, err);
}
