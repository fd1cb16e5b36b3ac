/* Runtime Protocol v1 §4: a message, words for other agents. */
#include "protocol/compose/say.h"

#include <string.h>

#include <amp/base/clock.h>
#include <amp/json/writer.h>

int amp_say_line(const struct amp_say *s, struct amp_buf *out, char id[AMP_UUID_MAX],
                 struct amp_error *err)
{
    char time[AMP_TIME_MAX], uuid[AMP_UUID_MAX];
    struct amp_jw w;

    amp_uuid4(uuid);
    amp_time_format(s->now_ms, time);
    amp_jw_init(&w, out);
    amp_jw_open(&w, '{');
    amp_jw_member_text(&w, "eventId", uuid);
    amp_jw_member_int(&w, "seq", s->sequence);
    amp_jw_member_text(&w, "kind", "message");
    amp_jw_member_text(&w, "sourceNodeId", s->node);
    amp_jw_member_text(&w, "sourceAgentId", s->from);
    amp_jw_member_text(&w, "toAgentId", s->to);
    amp_jw_member_text(&w, "corrId", uuid);
    amp_jw_member_text(&w, "createdAt", time);
    amp_jw_member_open(&w, "payload", '{');
    amp_jw_member_open(&w, "toAgents", '[');
    amp_jw_str(&w, amp_span_str(s->to));
    amp_jw_close(&w, ']');
    amp_jw_some_str(&w, "subject", amp_span_str(s->subject));
    amp_jw_member_text(&w, "body", s->text);
    if (s->expects_reply)
        amp_jw_member_bool(&w, "expectsReply", true);
    amp_jw_close(&w, '}');
    amp_jw_member_open(&w, "trace", '{');
    amp_jw_member_int(&w, "attempt", 1);
    amp_jw_some_str(&w, "routingPolicyVersion", amp_span_str(s->routing));
    amp_jw_close(&w, '}');
    amp_jw_close(&w, '}');
    if (amp_jw_end_line(&w, err) < 0)
        return -1;
    memcpy(id, uuid, sizeof uuid);
    return 0;
}
