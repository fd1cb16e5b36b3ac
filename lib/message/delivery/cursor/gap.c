/* Composing incidents and tombstones. */
#include "message/delivery/cursor/gap.h"

#include "base/words.h"
#include "message/delivery/record/sequence.h"
#include "message/protocol/rtp/rtp.h"

static const char *on_gap_word(enum amp_on_gap w)
{
    AMP_WORDS(words, AMP_CURSOR_GAP_WORDS);
    return words[w];
}

int amp_cursor_gap_line(struct amp_store *s, const struct amp_cursor_gap *gap, int64_t now_ms,
                        struct amp_buf *mem, struct amp_span *id, struct amp_span *line,
                        struct amp_error *err)
{
    char event[AMP_RTP_ID_MAX];
    struct amp_rtp_event e = {.kind = "signal", .by = gap->consumer, .id = event, .now_ms = now_ms};
    struct amp_span node = amp_span_str(gap->consumer);
    struct amp_jw w;
    if (amp_sequence_next(s, node, 1, gap->consumer, &e.sequence, err) < 0 ||
        amp_buf_reserve(mem, 16384, err) < 0)
        return -1;
    size_t from = mem->len;
    amp_rtp_id(event);
    amp_rtp_open(&w, &e, mem);
    amp_jw_open(&w, '{');
    amp_jw_member_text(&w, "signal", gap->tombstone ? "tombstone" : "incident");
    amp_jw_member_text(&w, "code", "gap_timeout");
    amp_jw_member_str(&w, "consumerNodeId", node);
    amp_jw_member_str(&w, "sourceNodeId", gap->source);
    amp_jw_member_int(&w, "fromSeq", gap->from);
    amp_jw_member_int(&w, "toSeq", gap->to);
    if (!gap->tombstone)
        amp_jw_member_text(&w, "policy", on_gap_word(gap->on_gap));
    amp_jw_close(&w, '}');
    if (amp_rtp_close(&w, &e, err) < 0)
        return -1;
    mem->len--; /* LF */
    size_t end = mem->len;
    if (amp_buf_str(mem, event, err) < 0)
        return -1;
    *line = (struct amp_span){mem->data + from, end - from};
    *id = (struct amp_span){mem->data + end, mem->len - end};
    return 0;
}
