/*
 * SW4RM: answers about a delivery (§13, §21). They repeat the correlation id. Their idempotency
 * token is made from their contents, so that a repeated answer is recognised.
 */
#include "message/protocol/sw4rm/answer.h"

#include <stdio.h>

#include <amp/base/id.h>

#include "message/protocol/delivery.h"
#include "message/protocol/question.h"
#include "json/record.h"

/* The recommended size of an ACKNOWLEDGEMENT's payload. */
#define ACK_MOST ((size_t)4 * 1024)

static void code_write(struct amp_jw *w, struct amp_span code)
{
    char up[64];
    amp_sw4rm_capitals(code, up, sizeof up);
    amp_jw_member_text(w, "error_code", up);
}

static void json_write(struct amp_jw *w, const char *key, struct amp_span json)
{
    if (json.n > 0)
        amp_jw_member_raw(w, key, json);
}

static int token_make(const struct amp_view *of, const char *from, struct amp_span payload,
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

static void payload_open(struct amp_jw *w, struct amp_buf *payload, size_t most)
{
    amp_buf_init(payload, most);
    amp_jw_init(w, payload);
    amp_jw_open(w, '{');
}

int amp_sw4rm_say(const struct amp_view *of, const struct amp_answer *a, const char *type,
                  struct amp_span payload, struct amp_buf *out, struct amp_error *err)
{
    char key[128];
    if (token_make(of, a->by, payload, key, err) < 0)
        return -1;
    struct amp_sw4rm_said said = {.from = a->by,
                                  .type = type,
                                  .token = key,
                                  .correlation = of->correlation,
                                  .sequence = a->sequence,
                                  .now_ms = a->now_ms};
    return amp_sw4rm_line(of->from, &said, payload, out, err);
}

/* Closes the payload and writes the message. type NULL: ACKNOWLEDGEMENT, or DATA if the result
 * makes the payload larger than the recommended size. */
static int message_write(const struct amp_view *of, const struct amp_answer *a, const char *type,
                         struct amp_jw *payload, struct amp_buf *out, struct amp_error *err)
{
    amp_jw_close(payload, '}');
    if (amp_jw_end(payload, err) < 0)
        return -1;
    struct amp_span text = amp_buf_span(payload->out);
    if (!type)
        type = text.n <= ACK_MOST ? "ACKNOWLEDGEMENT" : "DATA";
    return amp_sw4rm_say(of, a, type, text, out, err);
}

int amp_sw4rm_ack(const struct amp_view *of, const struct amp_answer *a, struct amp_buf *out,
                  struct amp_error *err)
{
    AMP_BUF struct amp_buf payload = {0};
    struct amp_jw w;
    payload_open(&w, &payload, out->max);
    amp_jw_member_str(&w, "ack_for_message_id", of->id);
    amp_jw_member_text(&w, "ack_stage", amp_ack_stage_name(a->stage));
    if (amp_stage_refuses(a->stage)) {
        code_write(&w, amp_span_str(a->code));
        amp_jw_member_str(&w, "note", amp_span_str(a->note));
    } else {
        amp_jw_some_str(&w, "note", amp_span_str(a->note));
    }
    json_write(&w, "result", a->result);
    return message_write(of, a, NULL, &w, out, err);
}

int amp_sw4rm_duplicate(const struct amp_view *of, const struct amp_answer *a,
                        const struct amp_first_attempt *first, struct amp_buf *out,
                        struct amp_error *err)
{
    AMP_BUF struct amp_buf payload = {0};
    struct amp_jw w;
    payload_open(&w, &payload, out->max);
    amp_jw_member_text(&w, "status", "DUPLICATE_DETECTED");
    amp_jw_member_str(&w, "ack_for_message_id", of->id);
    amp_jw_member_str(&w, "original_message_id", first->id);
    amp_jw_member_text(&w, "original_status", first->status);
    amp_rec_time(&w, "cached_at", first->at_ms);
    json_write(&w, "cached_result", first->result);
    if (first->code.n > 0)
        code_write(&w, first->code);
    return message_write(of, a, NULL, &w, out, err);
}

int amp_sw4rm_decision(const struct amp_view *of, const struct amp_answer *a,
                       const char *invocation, const struct amp_operator_answer *d,
                       struct amp_buf *out, struct amp_error *err)
{
    AMP_BUF struct amp_buf payload = {0};
    struct amp_jw w;
    payload_open(&w, &payload, out->max);
    amp_jw_member_text(&w, "invocation_id", invocation);
    amp_jw_member_text(&w, "decision", d->action);
    amp_jw_member_str(&w, "rationale", amp_span_str(d->note));
    if (d->patch)
        amp_jw_member_text(&w, "patch_b64", d->patch);
    else
        amp_jw_member_raw(&w, "patch_b64", AMP_SPAN("null"));
    amp_jw_member_text(&w, "operator", d->op);
    amp_rec_time(&w, "decided_at", a->now_ms);
    if (d->policy) {
        amp_jw_member_text(&w, "policy", d->policy);
        amp_jw_member_text(&w, "error_code", d->because);
    }
    return message_write(of, a, "HITL_DECISION", &w, out, err);
}
