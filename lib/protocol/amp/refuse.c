/* AMP's refusal of a line, a nack. It also answers lines of no known protocol. */
#include <string.h>

#include <amp/base/clock.h>
#include <amp/json/writer.h>

#include "base/codes.h"
#include "protocol/amp/amp.h"
#include "protocol/compose/refuse.h"

enum { SENTENCE_MOST = 2048 };

bool amp_is_task_id(struct amp_span s)
{
    static const char form[] = "T-dddd-ddd";
    bool good = s.n == sizeof form - 1;
    for (size_t i = 0; good && i < s.n; i++)
        good = form[i] == 'd' ? s.p[i] >= '0' && s.p[i] <= '9' : s.p[i] == form[i];
    return good;
}

int amp_amp_refuse(const struct amp_view *v, const struct amp_finding *first, int64_t now_ms,
                   struct amp_buf *out, struct amp_error *err)
{
    /* A refusal is not refused: two gates would answer each other forever. */
    if (v->protocol == AMP_PROTO_AMP && v->kind == AMP_KIND_NACK)
        return 1;
    const struct amp_span none = {"", 0};
    char time[AMP_TIME_MAX];
    AMP_BUF struct amp_buf said = {0};
    struct amp_jw w;
    amp_buf_init(&said, SENTENCE_MOST);
    amp_time_format(now_ms, time);
    amp_jw_init(&w, out);
    amp_jw_open(&w, '{');
    amp_jw_member_str(&w, "protocol_version", AMP_SPAN("AMP/1.0"));
    amp_jw_member_str(&w, "type", AMP_SPAN("nack"));
    amp_jw_member_str(&w, "ref_msg_id", v->id.n <= AMP_NACK_REF_MAX ? v->id : none);
    amp_jw_member_str(&w, "task_id", amp_is_task_id(v->task) ? v->task : none);
    amp_jw_member_str(&w, "from", AMP_SPAN("system"));
    amp_jw_member_str(&w, "failed_stage", amp_span_str(amp_ack_stage_name(AMP_STAGE_REJECTED)));
    amp_jw_member_str(&w, "code", amp_span_str(first->code));
    amp_jw_member_str(&w, "message", amp_refuse_sentence(first, " ", &said));
    amp_jw_member_str(&w, "rule", amp_span_str(first->rule));
    amp_jw_member_bool(&w, "retryable", amp_code_is(first->code, undecided));
    amp_jw_member_str(&w, "timestamp", amp_span_str(time));
    amp_jw_close(&w, '}');
    return amp_jw_end_line(&w, err);
}
