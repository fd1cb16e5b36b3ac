/*
 * SW4RM: answers of an agent. The outcome of a TOOL_CALL is a TOOL_RESULT or TOOL_ERROR (§18.2),
 * that of a handoff its acceptance, rejection or status (§17.6), that of any other message an
 * ACKNOWLEDGEMENT (§11). A reply is DATA with the correlation id of the message (§11.3).
 */
#include "message/protocol/reply.h"

#include <string.h>

#include <amp/base/id.h>

#include "base/codes.h"
#include "message/protocol/compose/json.h"
#include "message/protocol/sw4rm/answer.h"
#include "message/protocol/sw4rm/sw4rm.h"
#include "json/text.h"

static struct amp_answer answer_of(const struct amp_reply_said *said, enum amp_ack_stage stage)
{
    return (struct amp_answer){.stage = stage,
                               .by = said->by,
                               .code = said->code,
                               .note = said->text,
                               .retryable = said->retryable,
                               .sequence = said->sequence,
                               .now_ms = said->now_ms};
}

static int payload_say(const struct amp_view *of, const struct amp_reply_said *said,
                       const char *type, const json_t *payload, struct amp_buf *out,
                       struct amp_error *err)
{
    AMP_BUF struct amp_buf text = {0};
    const struct amp_answer a = answer_of(said, AMP_STAGE_FULFILLED);
    amp_buf_init(&text, out->max);
    if (!payload)
        return amp_fail_memory(err);
    return amp_json_dump(payload, &text, err) < 0
               ? -1
               : amp_sw4rm_say(of, &a, type, amp_buf_span(&text), out, err);
}

/* The data, the text and the files as one JSON value; NULL: there is nothing to say. */
static json_t *contents(const struct amp_reply_said *said)
{
    json_t *files = amp_reply_files(said);
    if (said->data && !*amp_reply_text(said) && !files)
        return json_deep_copy(said->data);
    if (!said->data && !*amp_reply_text(said) && !files)
        return NULL;
    json_t *p = amp_reply_payload(said);
    if (*amp_reply_text(said))
        amp_reply_default(p, "text", json_string(said->text));
    if (files)
        amp_reply_default(p, "files", files);
    return p;
}

/* The frame of a streaming call: progress, or with `final` its end. */
static int frame_say(const struct amp_view *of, const struct amp_reply_said *said, bool final,
                     struct amp_buf *out, struct amp_error *err)
{
    json_auto_t *p = json_pack(
        "{s:o, s:I, s:b, s:s}", "call_id", amp_reply_span(of->body.tool_call.call), "frame_no",
        (json_int_t)said->frame, "final", final, "content_type", "application/json");
    json_t *data = contents(said);
    if (said->has_percent) {
        data = data ? data : json_object();
        json_object_set_new(data, "percent", json_real(said->percent));
    }
    if (data)
        json_object_set_new(p, final ? "summary" : "data", data);
    return payload_say(of, said, "TOOL_RESULT", p, out, err);
}

/* The contents of a single file, without text and data, are the result. */
static int result_say(const struct amp_view *of, const struct amp_reply_said *said,
                      struct amp_buf *out, struct amp_error *err)
{
    const struct amp_reply_file *f = said->files;
    json_auto_t *p =
        json_pack("{s:o, s:s}", "call_id", amp_reply_span(of->body.tool_call.call), "status", "OK");
    if (said->n_files == 1 && f->text.p && !said->data && !*amp_reply_text(said)) {
        AMP_BUF struct amp_buf b64 = {0};
        amp_buf_init(&b64, f->text.n * 2 + 8);
        if (amp_base64_add(&b64, f->text, err) < 0)
            return -1;
        json_object_set_new(p, "result_b64", amp_reply_span(amp_buf_span(&b64)));
        json_object_set_new(p, "content_type", json_string("application/octet-stream"));
    } else {
        json_t *value = contents(said);
        json_object_set_new(p, "result", value ? value : json_null());
        json_object_set_new(p, "content_type", json_string("application/json"));
    }
    return payload_say(of, said, "TOOL_RESULT", p, out, err);
}

static int error_say(const struct amp_view *of, const struct amp_reply_said *said,
                     struct amp_buf *out, struct amp_error *err)
{
    char code[64];
    amp_sw4rm_capitals(amp_span_str(said->code ? said->code : AMP_CODE(internal_error)), code,
                       sizeof code);
    json_auto_t *p =
        json_pack("{s:o, s:s, s:s}", "call_id", amp_reply_span(of->body.tool_call.call),
                  "error_code", code, "note", amp_reply_text(said));
    return payload_say(of, said, "TOOL_ERROR", p, out, err);
}

static int tool_compose(const struct amp_view *of, const struct amp_reply_said *said,
                        struct amp_buf *out, struct amp_error *err)
{
    bool stream = of->body.tool_call.stream;
    switch (said->act) {
    case AMP_REPLY_PROGRESS:
        return stream ? frame_say(of, said, false, out, err)
                      : amp_reply_unsupported(of, said, "the call does not stream its result", err);
    case AMP_REPLY_COMPLETE:
        return stream ? frame_say(of, said, true, out, err) : result_say(of, said, out, err);
    case AMP_REPLY_FAIL:
        return error_say(of, said, out, err);
    default:
        return amp_reply_unsupported(of, said, "'complete' returns its result", err);
    }
}

/* AcceptHandoff, RejectHandoff, and the status COMPLETED. */
static int handoff_compose(const struct amp_view *of, const struct amp_reply_said *said,
                           struct amp_buf *out, struct amp_error *err)
{
    char type[32];
    json_auto_t *p = json_pack("{s:o}", "request_id", amp_reply_span(of->body.handoff.ref));
    amp_span_copy(of->type, type, sizeof type);
    if (said->act == AMP_REPLY_ACCEPT) {
        json_object_set_new(p, "accepted", json_true());
        json_object_set_new(p, "accepting_agent", json_string(said->by));
    } else if (said->act == AMP_REPLY_FAIL && !said->taken) {
        if (!*amp_reply_text(said) && !said->code)
            return amp_reply_missing("rejection_reason", "give it with --text", err);
        json_object_set_new(p, "accepted", json_false());
        json_object_set_new(p, "rejection_reason", amp_reply_why(said));
    } else if (said->act == AMP_REPLY_COMPLETE && said->taken) {
        json_object_set_new(p, "from_agent", amp_reply_span(of->body.handoff.from));
        json_object_set_new(p, "status", json_string("COMPLETED"));
    } else {
        return amp_reply_unsupported(of, said, "a handoff is accepted or rejected, then completed",
                                     err);
    }
    return payload_say(of, said, type, p, out, err);
}

static int ack_compose(const struct amp_view *of, const struct amp_reply_said *said,
                       struct amp_buf *out, struct amp_error *err)
{
    AMP_BUF struct amp_buf result = {0};
    struct amp_answer a = answer_of(said, AMP_STAGE_READ);
    amp_buf_init(&result, out->max);
    if (said->act == AMP_REPLY_FAIL) {
        a.stage = said->taken ? AMP_STAGE_FAILED : AMP_STAGE_REJECTED;
        if (said->taken && !said->code)
            a.code = AMP_CODE(internal_error);
        return amp_answers_sw4rm.answer(of, &a, out, err);
    }
    if (said->act == AMP_REPLY_COMPLETE) {
        a.stage = AMP_STAGE_FULFILLED;
        json_auto_t *value = said->data || said->n_files > 0 ? contents(said) : NULL;
        if (value && amp_json_dump(value, &result, err) < 0)
            return -1;
        a.result = amp_buf_span(&result);
    }
    return amp_sw4rm_ack(of, &a, out, err);
}

static int data_compose(const struct amp_view *of, const struct amp_reply_said *said,
                        struct amp_buf *out, struct amp_error *err)
{
    json_auto_t *p = contents(said);
    return p ? payload_say(of, said, "DATA", p, out, err)
             : amp_reply_missing("a text", "give it with --text, --data or --file", err);
}

static int reply_compose(const struct amp_view *of, const struct amp_reply_said *said,
                         struct amp_buf *out, struct amp_error *err)
{
    enum amp_sw4rm_shape shape = amp_sw4rm_shape_of(amp_sw4rm_kind_of(of));
    bool answered = of->from.n > 0 && of->kind != AMP_KIND_ACK && of->kind != AMP_KIND_NACK &&
                    of->kind != AMP_KIND_HEARTBEAT && shape != AMP_SHAPE_DUPLICATE;
    if (!answered)
        return amp_reply_unsupported(of, said, "", err);
    if (said->act == AMP_REPLY_REPLY)
        return data_compose(of, said, out, err);
    if (of->kind == AMP_KIND_ESCALATION && said->act != AMP_REPLY_ACCEPT)
        return amp_reply_unsupported(of, said, "'hitl-prompt answer' decides it", err);
    if (shape == AMP_SHAPE_HANDOFF_REQUEST)
        return handoff_compose(of, said, out, err);
    if (of->kind == AMP_KIND_TOOL_CALL && said->act != AMP_REPLY_ACCEPT)
        return tool_compose(of, said, out, err);
    if (said->act == AMP_REPLY_PROGRESS)
        return amp_reply_unsupported(of, said, "only a streaming TOOL_CALL has frames", err);
    return ack_compose(of, said, out, err);
}

const struct amp_reply_terms amp_replies_sw4rm = {.compose = reply_compose};
