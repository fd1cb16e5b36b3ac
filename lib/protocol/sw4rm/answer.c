/*
 * SW4RM: answers about a delivery (§13, §21). They repeat the correlation id, and bear an
 * idempotency token over what they say, so that the same answer again is told as the same.
 */
#include <stdio.h>

#include <amp/base/clock.h>
#include <amp/base/id.h>
#include <amp/json/writer.h>

#include "protocol/sw4rm/answer.h"

/* What a payload of the type ACKNOWLEDGEMENT should not pass. */
#define ACK_MOST ((size_t)4 * 1024)

static void capitals(struct amp_jw *w, const char *key, struct amp_span code)
{
    char up[64];
    size_t i = 0;
    for (; i < code.n && i + 1 < sizeof(up); i++)
        up[i] = code.p[i] >= 'a' && code.p[i] <= 'z' ? (char)(code.p[i] - 'a' + 'A') : code.p[i];
    amp_jw_member_str(w, key, (struct amp_span){up, i});
}

static int token(const struct amp_answered *of, const char *from, struct amp_span payload,
                 char out[128], struct amp_error *err)
{
    char sum[AMP_SHA256_MAX];
    AMP_BUF struct amp_buf text = {0};
    amp_buf_init(&text, of->id.n + payload.n + 2);
    if (amp_buf_add(&text, of->id.p, of->id.n, err) < 0 || amp_buf_add(&text, "\n", 1, err) < 0 ||
        amp_buf_add(&text, payload.p, payload.n, err) < 0)
        return -1;
    amp_sha256_hex(amp_buf_span(&text), sum);
    snprintf(out, 128, "%.64s:answer:%.16s", from, sum);
    return 0;
}

static int envelope(const struct amp_answered *of, const char *type, const char *from,
                    struct amp_span payload, int64_t now_ms, struct amp_buf *out,
                    struct amp_error *err)
{
    char key[128];
    struct amp_jw w;
    if (token(of, from, payload, key, err) < 0)
        return -1;
    struct amp_sw4rm_said said = {.from = from,
                                  .type = type,
                                  .token = key,
                                  .correlation = of->correlation,
                                  .sequence =
                                      of->sequence > 0 ? of->sequence : amp_id_number(now_ms),
                                  .now_ms = now_ms};
    amp_jw_init(&w, out);
    amp_jw_open(&w, '{');
    amp_jw_member_str(&w, "to", of->producer);
    amp_jw_key(&w, "msg");
    amp_sw4rm_envelope(&w, &said, payload);
    amp_jw_close(&w, '}');
    return amp_jw_end_line(&w, err);
}

/* A cached result may be larger than an acknowledgement should be. */
static const char *ack_type(const struct amp_buf *payload)
{
    return payload->len <= ACK_MOST ? "ACKNOWLEDGEMENT" : "DATA";
}

int amp_sw4rm_nack(const struct amp_answered *of, enum amp_ack_stage stage, struct amp_span code,
                   struct amp_span note, const char *from, int64_t now_ms, struct amp_buf *out,
                   struct amp_error *err)
{
    AMP_BUF struct amp_buf payload = {0};
    struct amp_jw w;
    amp_buf_init(&payload, 1 << 20);
    amp_jw_init(&w, &payload);
    amp_jw_open(&w, '{');
    amp_jw_member_str(&w, "ack_for_message_id", of->id);
    amp_jw_member_str(&w, "ack_stage", amp_span_str(amp_ack_stage_name(stage)));
    capitals(&w, "error_code", code);
    amp_jw_member_str(&w, "note", note);
    amp_jw_close(&w, '}');
    if (amp_jw_end(&w, err) < 0)
        return -1;
    return envelope(of, ack_type(&payload), from, amp_buf_span(&payload), now_ms, out, err);
}

int amp_sw4rm_ack(const struct amp_answered *of, enum amp_ack_stage stage, struct amp_span note,
                  struct amp_span result, const char *from, int64_t now_ms, struct amp_buf *out,
                  struct amp_error *err)
{
    AMP_BUF struct amp_buf payload = {0};
    struct amp_jw w;
    amp_buf_init(&payload, out->max);
    amp_jw_init(&w, &payload);
    amp_jw_open(&w, '{');
    amp_jw_member_str(&w, "ack_for_message_id", of->id);
    amp_jw_member_str(&w, "ack_stage", amp_span_str(amp_ack_stage_name(stage)));
    if (note.n > 0)
        amp_jw_member_str(&w, "note", note);
    if (result.n > 0) {
        amp_jw_key(&w, "result");
        amp_jw_raw(&w, result);
    }
    amp_jw_close(&w, '}');
    if (amp_jw_end(&w, err) < 0)
        return -1;
    return envelope(of, ack_type(&payload), from, amp_buf_span(&payload), now_ms, out, err);
}

int amp_sw4rm_duplicate(const struct amp_answered *of, const struct amp_first_attempt *first,
                        const char *from, int64_t now_ms, struct amp_buf *out,
                        struct amp_error *err)
{
    char at[AMP_TIME_MAX];
    AMP_BUF struct amp_buf payload = {0};
    struct amp_jw w;
    amp_buf_init(&payload, out->max);
    amp_time_format(first->at_ms, at);
    amp_jw_init(&w, &payload);
    amp_jw_open(&w, '{');
    amp_jw_member_str(&w, "status", AMP_SPAN("DUPLICATE_DETECTED"));
    amp_jw_member_str(&w, "ack_for_message_id", of->id);
    amp_jw_member_str(&w, "original_message_id", first->id);
    amp_jw_member_str(&w, "original_status", amp_span_str(first->status));
    amp_jw_member_str(&w, "cached_at", amp_span_str(at));
    if (first->result.n > 0) {
        amp_jw_key(&w, "cached_result");
        amp_jw_raw(&w, first->result);
    }
    if (first->code.n > 0)
        capitals(&w, "error_code", first->code);
    amp_jw_close(&w, '}');
    if (amp_jw_end(&w, err) < 0)
        return -1;
    return envelope(of, ack_type(&payload), from, amp_buf_span(&payload), now_ms, out, err);
}

int amp_sw4rm_decision(const struct amp_answered *of, const struct amp_sw4rm_decided *what,
                       const char *from, int64_t now_ms, struct amp_buf *out, struct amp_error *err)
{
    char at[AMP_TIME_MAX];
    AMP_BUF struct amp_buf payload = {0};
    struct amp_jw w;
    amp_buf_init(&payload, out->max);
    amp_time_format(now_ms, at);
    amp_jw_init(&w, &payload);
    amp_jw_open(&w, '{');
    amp_jw_member_str(&w, "invocation_id", amp_span_str(what->invocation));
    amp_jw_member_str(&w, "decision", amp_span_str(what->action));
    amp_jw_member_str(&w, "rationale", amp_span_str(what->rationale));
    amp_jw_key(&w, "patch_b64");
    if (what->patch)
        amp_jw_str(&w, amp_span_str(what->patch));
    else
        amp_jw_raw(&w, AMP_SPAN("null"));
    amp_jw_member_str(&w, "operator", amp_span_str(what->op));
    amp_jw_member_str(&w, "decided_at", amp_span_str(at));
    amp_jw_close(&w, '}');
    if (amp_jw_end(&w, err) < 0)
        return -1;
    return envelope(of, "HITL_DECISION", from, amp_buf_span(&payload), now_ms, out, err);
}
