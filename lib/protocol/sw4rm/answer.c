/*
 * SW4RM: answers about a delivery (§13, §21). They repeat the correlation id, and bear an
 * idempotency token over what they say, so that the same answer again is told as the same.
 */
#include <stdio.h>

#include <amp/base/clock.h>
#include <amp/base/id.h>
#include <amp/json/writer.h>

#include "protocol/sw4rm/answer.h"
#include "protocol/terms.h"

/* What a payload of the type ACKNOWLEDGEMENT should not pass. */
#define ACK_MOST ((size_t)4 * 1024)

static void add_code(struct amp_jw *w, struct amp_span code)
{
    char up[64];
    amp_sw4rm_capitals(code, up, sizeof up);
    amp_jw_member_text(w, "error_code", up);
}

static void add_json(struct amp_jw *w, const char *key, struct amp_span json)
{
    if (json.n == 0)
        return;
    amp_jw_key(w, key);
    amp_jw_raw(w, json);
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

/* Ends the payload and wraps it. type NULL: an acknowledgement, unless a cached result makes it
 * larger than one should be. */
static int finish(const struct amp_answered *of, const char *type, const char *from,
                  struct amp_jw *payload, int64_t now_ms, struct amp_buf *out,
                  struct amp_error *err)
{
    char key[128];
    struct amp_jw w;
    amp_jw_close(payload, '}');
    if (amp_jw_end(payload, err) < 0)
        return -1;
    struct amp_span text = amp_buf_span(payload->out);
    if (token(of, from, text, key, err) < 0)
        return -1;
    if (!type)
        type = text.n <= ACK_MOST ? "ACKNOWLEDGEMENT" : "DATA";
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
    amp_sw4rm_envelope(&w, &said, text);
    amp_jw_close(&w, '}');
    return amp_jw_end_line(&w, err);
}

static void begin(struct amp_jw *w, struct amp_buf *payload, size_t most)
{
    amp_buf_init(payload, most);
    amp_jw_init(w, payload);
    amp_jw_open(w, '{');
}

int amp_sw4rm_nack(const struct amp_answered *of, enum amp_ack_stage stage, struct amp_span code,
                   struct amp_span note, const char *from, int64_t now_ms, struct amp_buf *out,
                   struct amp_error *err)
{
    AMP_BUF struct amp_buf payload = {0};
    struct amp_jw w;
    begin(&w, &payload, 1 << 20);
    amp_jw_member_str(&w, "ack_for_message_id", of->id);
    amp_jw_member_text(&w, "ack_stage", amp_ack_stage_name(stage));
    add_code(&w, code);
    amp_jw_member_str(&w, "note", note);
    return finish(of, NULL, from, &w, now_ms, out, err);
}

int amp_sw4rm_ack(const struct amp_answered *of, enum amp_ack_stage stage, struct amp_span note,
                  struct amp_span result, const char *from, int64_t now_ms, struct amp_buf *out,
                  struct amp_error *err)
{
    AMP_BUF struct amp_buf payload = {0};
    struct amp_jw w;
    begin(&w, &payload, out->max);
    amp_jw_member_str(&w, "ack_for_message_id", of->id);
    amp_jw_member_text(&w, "ack_stage", amp_ack_stage_name(stage));
    amp_jw_some_str(&w, "note", note);
    add_json(&w, "result", result);
    return finish(of, NULL, from, &w, now_ms, out, err);
}

int amp_sw4rm_duplicate(const struct amp_answered *of, const struct amp_first_attempt *first,
                        const char *from, int64_t now_ms, struct amp_buf *out,
                        struct amp_error *err)
{
    char at[AMP_TIME_MAX];
    AMP_BUF struct amp_buf payload = {0};
    struct amp_jw w;
    begin(&w, &payload, out->max);
    amp_time_format(first->at_ms, at);
    amp_jw_member_str(&w, "status", AMP_SPAN("DUPLICATE_DETECTED"));
    amp_jw_member_str(&w, "ack_for_message_id", of->id);
    amp_jw_member_str(&w, "original_message_id", first->id);
    amp_jw_member_text(&w, "original_status", first->status);
    amp_jw_member_text(&w, "cached_at", at);
    add_json(&w, "cached_result", first->result);
    if (first->code.n > 0)
        add_code(&w, first->code);
    return finish(of, NULL, from, &w, now_ms, out, err);
}

int amp_sw4rm_decision(const struct amp_answered *of, const struct amp_sw4rm_decided *what,
                       const char *from, int64_t now_ms, struct amp_buf *out, struct amp_error *err)
{
    char at[AMP_TIME_MAX];
    AMP_BUF struct amp_buf payload = {0};
    struct amp_jw w;
    begin(&w, &payload, out->max);
    amp_time_format(now_ms, at);
    amp_jw_member_text(&w, "invocation_id", what->invocation);
    amp_jw_member_text(&w, "decision", what->action);
    amp_jw_member_text(&w, "rationale", what->rationale);
    amp_jw_key(&w, "patch_b64");
    if (what->patch)
        amp_jw_str(&w, amp_span_str(what->patch));
    else
        amp_jw_raw(&w, AMP_SPAN("null"));
    amp_jw_member_text(&w, "operator", what->op);
    amp_jw_member_text(&w, "decided_at", at);
    return finish(of, "HITL_DECISION", from, &w, now_ms, out, err);
}
