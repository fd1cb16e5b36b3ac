/*
 * Runtime Protocol v1: answers of an agent. A task_create is taken by task_accept and ends with
 * task_complete or task_failed (§4); a message that expects a reply gets one (§3); an ack of the
 * type processed or failed_terminal ends any other event (§5).
 */
#include "message/protocol/reply.h"

#include "base/codes.h"
#include "message/protocol/compose/json.h"
#include "message/protocol/delivery.h"
#include "message/protocol/rtp/rtp.h"
#include "message/protocol/view/object.h"

static int event_write(const struct amp_view *of, const struct amp_reply_said *said,
                       const char *kind, const json_t *payload, struct amp_buf *out,
                       struct amp_error *err)
{
    struct amp_rtp_event e = {.kind = kind,
                              .by = said->by,
                              .to = of->from,
                              .correlation = of->correlation.n > 0 ? of->correlation : of->id,
                              .sequence = said->sequence,
                              .now_ms = said->now_ms};
    struct amp_jw w;
    amp_rtp_policies(of, e.policies);
    amp_rtp_open(&w, &e, out);
    amp_jw_json(&w, payload);
    return amp_rtp_close(&w, &e, err);
}

static int ack_compose(const struct amp_view *of, const struct amp_reply_said *said,
                       enum amp_ack_stage stage, struct amp_buf *out, struct amp_error *err)
{
    const struct amp_answer a = {
        .stage = stage,
        .by = said->by,
        .code = stage == AMP_STAGE_REJECTED && !said->code ? AMP_CODE(rejected) : said->code,
        .note = said->text,
        .retryable = said->retryable,
        .node = said->by,
        .sequence = said->sequence,
        .now_ms = said->now_ms};
    return amp_rtp_answer(of, &a, out, err);
}

/* The estimate, else the task's deadline: one of them is required. */
static int accept_compose(const struct amp_view *of, const struct amp_reply_said *said,
                          struct amp_buf *out, struct amp_error *err)
{
    json_auto_t *p = amp_reply_payload(said);
    uint32_t deadline = amp_object_get(of->tape, of->payload, "deadlineAt", AMP_JSON_STRING);
    if (said->eta_ms > 0)
        json_object_set_new(p, "etaAt", amp_reply_time(said->eta_ms));
    else if (!json_object_get(p, "etaAt") && !json_object_get(p, "etaSeconds") &&
             deadline != AMP_TOK_NONE)
        json_object_set_new(p, "etaAt", amp_json_of(of->tape, deadline, err));
    if (!json_object_get(p, "etaAt") && !json_object_get(p, "etaSeconds"))
        return amp_fail(err, AMP_NO, eta_required,
                        "an acceptance says when the work will be done: give an ETA (--eta)");
    json_object_set_new(p, "taskId", amp_reply_span(of->task));
    json_object_set_new(p, "acceptedByAgentId", json_string(said->by));
    if (*amp_reply_text(said))
        amp_reply_default(p, "planSummary", json_string(said->text));
    return event_write(of, said, "task_accept", p, out, err);
}

static int update_compose(const struct amp_view *of, const struct amp_reply_said *said,
                          struct amp_buf *out, struct amp_error *err)
{
    json_auto_t *p = amp_reply_payload(said);
    json_object_set_new(p, "taskId", amp_reply_span(of->task));
    amp_reply_default(p, "status", json_string("in_progress"));
    if (said->has_percent)
        amp_reply_default(p, "progress", json_real(said->percent));
    if (*amp_reply_text(said))
        amp_reply_default(p, "note", json_string(said->text));
    if (said->eta_ms > 0)
        amp_reply_default(p, "revisedEtaAt", amp_reply_time(said->eta_ms));
    return event_write(of, said, "task_update", p, out, err);
}

/* A file is the result's location; what is known about the files is beside it. */
static int complete_compose(const struct amp_view *of, const struct amp_reply_said *said,
                            struct amp_buf *out, struct amp_error *err)
{
    json_auto_t *p = amp_reply_payload(said);
    json_t *files = amp_reply_files(said);
    json_object_set_new(p, "taskId", amp_reply_span(of->task));
    json_object_set_new(p, "completedByAgentId", json_string(said->by));
    amp_reply_default(p, "completedAt", amp_reply_time(said->now_ms));
    if (*amp_reply_text(said))
        amp_reply_default(p, "resultSummary", json_string(said->text));
    if (files) {
        amp_reply_default(p, "resultRef", json_sprintf("file://%s", said->files[0].real));
        amp_reply_default(p, "artifacts", files);
    }
    if (!json_object_get(p, "resultSummary") && !json_object_get(p, "resultRef"))
        return amp_reply_missing("a result", "give --text or --file", err);
    return event_write(of, said, "task_complete", p, out, err);
}

static int failed_compose(const struct amp_view *of, const struct amp_reply_said *said,
                          struct amp_buf *out, struct amp_error *err)
{
    const char *text = amp_reply_text(said), *code = said->code ? said->code : "";
    json_auto_t *p = amp_reply_payload(said);
    if (!*text && !*code && !json_object_get(p, "errorSummary"))
        return amp_reply_missing("errorSummary", "give the reason with --text", err);
    json_object_set_new(p, "taskId", amp_reply_span(of->task));
    json_object_set_new(p, "failedByAgentId", json_string(said->by));
    amp_reply_default(p, "failedAt", amp_reply_time(said->now_ms));
    amp_reply_default(
        p, "failureClass",
        json_string(amp_rtp_failure(amp_span_str(code), amp_span_str(*text ? text : code))));
    amp_reply_default(p, "errorSummary", amp_reply_why(said));
    if (said->retryable)
        json_object_set_new(p, "retryable", json_true());
    return event_write(of, said, "task_failed", p, out, err);
}

static int task_compose(const struct amp_view *of, const struct amp_reply_said *said,
                        struct amp_buf *out, struct amp_error *err)
{
    switch (said->act) {
    case AMP_REPLY_ACCEPT:
        return accept_compose(of, said, out, err);
    case AMP_REPLY_PROGRESS:
        return update_compose(of, said, out, err);
    case AMP_REPLY_COMPLETE:
        return complete_compose(of, said, out, err);
    case AMP_REPLY_FAIL:
        return said->taken ? failed_compose(of, said, out, err)
                           : ack_compose(of, said, AMP_STAGE_REJECTED, out, err);
    default:
        return amp_reply_unsupported(of, said, "'complete' answers it", err);
    }
}

static int message_reply(const struct amp_view *of, const struct amp_reply_said *said,
                         struct amp_buf *out, struct amp_error *err)
{
    json_auto_t *p = amp_reply_payload(said);
    json_t *files = amp_reply_files(said);
    json_object_set_new(p, "refEventId", amp_reply_span(of->id));
    if (*amp_reply_text(said))
        amp_reply_default(p, "body", json_string(said->text));
    if (files)
        amp_reply_default(p, "files", files);
    if (json_object_size(p) == 1)
        return amp_reply_missing("a body", "give it with --text or --data", err);
    return event_write(of, said, "reply", p, out, err);
}

static int reply_compose(const struct amp_view *of, const struct amp_reply_said *said,
                         struct amp_buf *out, struct amp_error *err)
{
    enum amp_rtp_kind kind = amp_rtp_kind_of(of);
    if (kind == AMP_RTP_CREATE || kind == AMP_RTP_SKILL)
        return task_compose(of, said, out, err);
    bool silent = of->id.n == 0 || amp_terms_has(amp_delivery_rtp.silent, of->type);
    if (kind == AMP_RTP_MESSAGE && said->act == AMP_REPLY_REPLY)
        return message_reply(of, said, out, err);
    if (silent || said->act == AMP_REPLY_REPLY || said->act == AMP_REPLY_PROGRESS)
        return amp_reply_unsupported(of, said, silent ? "" : "'accept' acknowledges it", err);
    if (said->act == AMP_REPLY_COMPLETE && of->wants_outcome)
        return amp_reply_unsupported(of, said, "it expects a reply: use 'reply'", err);
    return ack_compose(of, said,
                       said->act == AMP_REPLY_ACCEPT     ? AMP_STAGE_RECEIVED
                       : said->act == AMP_REPLY_COMPLETE ? AMP_STAGE_FULFILLED
                                                         : AMP_STAGE_REJECTED,
                       out, err);
}

const struct amp_reply_terms amp_replies_rtp = {.compose = reply_compose};
