/* Composing incidents and tombstones. */
#include "message/cursor/gap.h"

#include <stdio.h>

#include <amp/base/clock.h>
#include <amp/base/id.h>
#include <amp/json/writer.h>

#include "message/record/sequence.h"

static const char *on_gap_word(enum amp_on_gap w)
{
    static const char *const words[] = {
#define X(id, word) word,
        AMP_CURSOR_GAP_WORDS(X)
#undef X
    };
    return words[w];
}

int amp_cursor_gap_line(struct amp_store *s, const struct amp_cursor_gap *gap, int64_t now_ms,
                        struct amp_buf *mem, struct amp_span *id, struct amp_span *line,
                        struct amp_error *err)
{
    char uuid[AMP_UUID_MAX], event[AMP_UUID_MAX + 8], time[AMP_TIME_MAX];
    struct amp_span node = amp_span_str(gap->consumer);
    struct amp_jw w;
    int64_t seq;
    if (amp_sequence_next(s, node, 1, gap->consumer, &seq, err) < 0 ||
        amp_buf_reserve(mem, 16384, err) < 0)
        return -1;
    amp_uuid4(uuid);
    snprintf(event, sizeof event, "evt_%s", uuid);
    amp_time_format(now_ms, time);
    size_t from = mem->len;
    amp_jw_init(&w, mem);
    amp_jw_open(&w, '{');
    amp_jw_member_str(&w, "eventId", amp_span_str(event));
    amp_jw_member_int(&w, "seq", seq);
    amp_jw_member_str(&w, "kind", AMP_SPAN("signal"));
    amp_jw_member_str(&w, "sourceNodeId", node);
    amp_jw_member_str(&w, "sourceAgentId", node);
    amp_jw_member_str(&w, "createdAt", amp_span_str(time));
    amp_jw_member_open(&w, "payload", '{');
    amp_jw_member_str(&w, "signal", gap->tombstone ? AMP_SPAN("tombstone") : AMP_SPAN("incident"));
    amp_jw_member_str(&w, "code", AMP_SPAN("gap_timeout"));
    amp_jw_member_str(&w, "consumerNodeId", node);
    amp_jw_member_str(&w, "sourceNodeId", gap->source);
    amp_jw_member_int(&w, "fromSeq", gap->from);
    amp_jw_member_int(&w, "toSeq", gap->to);
    if (!gap->tombstone)
        amp_jw_member_str(&w, "policy", amp_span_str(on_gap_word(gap->on_gap)));
    amp_jw_close(&w, '}');
    amp_jw_member_open(&w, "trace", '{');
    amp_jw_member_int(&w, "attempt", 1);
    amp_jw_close(&w, '}');
    amp_jw_close(&w, '}');
    if (amp_jw_end(&w, err) < 0)
        return -1;
    size_t end = mem->len;
    if (amp_buf_str(mem, event, err) < 0)
        return -1;
    *line = (struct amp_span){mem->data + from, end - from};
    *id = (struct amp_span){mem->data + end, mem->len - end};
    return 0;
}
