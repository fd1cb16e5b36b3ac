/* Runtime Protocol v1 §4: a message, words for other agents. */
#include "message/protocol/compose/say.h"

#include "message/protocol/rtp/rtp.h"

int amp_say_line(const struct amp_say *s, struct amp_buf *out, char id[AMP_UUID_MAX],
                 struct amp_error *err)
{
    const struct amp_rtp_event e = {.kind = "message",
                                    .by = s->from,
                                    .node = s->node,
                                    .id = id,
                                    .to = amp_span_str(s->to),
                                    .correlation = {id, AMP_UUID_MAX - 1},
                                    .policies = {amp_span_str(s->routing)},
                                    .sequence = s->sequence,
                                    .now_ms = s->now_ms};
    struct amp_jw w;

    amp_uuid4(id);
    amp_rtp_open(&w, &e, out);
    amp_jw_open(&w, '{');
    amp_jw_member_open(&w, "toAgents", '[');
    amp_jw_str(&w, e.to);
    amp_jw_close(&w, ']');
    amp_jw_some_str(&w, "subject", amp_span_str(s->subject));
    amp_jw_member_text(&w, "body", s->text);
    if (s->expects_reply)
        amp_jw_member_bool(&w, "expectsReply", true);
    amp_jw_close(&w, '}');
    return amp_rtp_close(&w, &e, err);
}
