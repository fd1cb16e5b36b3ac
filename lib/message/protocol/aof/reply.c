/*
 * AOF/1: answers to a handoff.request: handoff.accepted or handoff.rejected, then status.update
 * while the work goes on, and completion.report at its end. The protocol has no other answers.
 */
#include "message/protocol/reply.h"

#include <string.h>

#include <amp/base/id.h>

#include "base/codes.h"
#include "message/protocol/compose/json.h"
#include "message/protocol/view/object.h"
#include "json/record.h"

/* Takes the payload's reference. */
static int line_write(const struct amp_view *of, const struct amp_reply_said *said,
                      const char *type, json_t *payload, struct amp_buf *out, struct amp_error *err)
{
    static const char *const kept[] = {"projectId", "project_id"};
    char id[AMP_UUID_MAX];
    struct amp_jw w;
    amp_uuid4(id);
    amp_jw_init(&w, out);
    amp_jw_open(&w, '{');
    amp_jw_member_text(&w, "protocol", "aof");
    amp_jw_member_int(&w, "version", 1);
    amp_jw_member_text(&w, "type", type);
    amp_jw_member_str(&w, "taskId", of->task);
    amp_jw_member_text(&w, "fromAgent", said->by);
    amp_jw_member_str(&w, "toAgent", of->from);
    amp_rec_time(&w, "sentAt", said->now_ms);
    amp_jw_member_text(&w, "messageId", id);
    for (unsigned i = 0; i < sizeof(kept) / sizeof(kept[0]); i++) {
        uint32_t tok = amp_object_get(of->tape, 0, kept[i], AMP_JSON_STRING);
        if (tok != AMP_TOK_NONE)
            amp_jw_member_raw(&w, kept[i], amp_tok_source(of->tape, tok));
    }
    amp_jw_key(&w, "payload");
    amp_jw_json(&w, payload);
    json_decref(payload);
    amp_jw_close(&w, '}');
    return amp_jw_end_line(&w, err);
}

static int handoff_compose(const struct amp_view *of, const struct amp_reply_said *said,
                           struct amp_buf *out, struct amp_error *err)
{
    bool accepted = said->act == AMP_REPLY_ACCEPT;
    json_t *p = json_pack("{s:o, s:b}", "taskId", amp_reply_span(of->task), "accepted", accepted);
    if (*amp_reply_text(said) || said->code)
        json_object_set_new(p, "reason", amp_reply_why(said));
    return line_write(of, said, accepted ? "handoff.accepted" : "handoff.rejected", p, out, err);
}

static int progress_compose(const struct amp_view *of, const struct amp_reply_said *said,
                            struct amp_buf *out, struct amp_error *err)
{
    const char *text = amp_reply_text(said);
    json_auto_t *p = amp_reply_payload(said);
    if (said->has_percent)
        amp_reply_default(p, "progress",
                          json_sprintf("%g %%%s%s", said->percent, *text ? ": " : "", text));
    else if (*text)
        amp_reply_default(p, "progress", json_string(text));
    json_object_set_new(p, "taskId", amp_reply_span(of->task));
    json_object_set_new(p, "agentId", json_string(said->by));
    if (json_object_size(p) == 2)
        return amp_reply_missing("a progress", "give --text or --percent", err);
    return line_write(of, said, "status.update", json_incref(p), out, err);
}

/* The first file is the summary, unless the data names one. */
static int report_compose(const struct amp_view *of, const struct amp_reply_said *said,
                          struct amp_buf *out, struct amp_error *err)
{
    bool fails = said->act == AMP_REPLY_FAIL;
    json_auto_t *p = amp_reply_payload(said);
    json_t *files = json_array();
    for (uint32_t i = 0; i < said->n_files; i++)
        json_array_append_new(files, json_string(said->files[i].path));
    if (said->n_files > 0)
        amp_reply_default(p, "summaryRef", json_string(said->files[0].path));
    amp_reply_default(p, "deliverables", files);
    amp_reply_default(p, "outcome", json_string(fails ? "blocked" : "done"));
    if (fails != (strcmp(amp_json_str(p, "outcome"), "blocked") == 0))
        return amp_fail(err, AMP_NO, bad_value, "the outcome is not what '%s' says",
                        amp_reply_act_name(said->act));
    if (fails && (*amp_reply_text(said) || said->code))
        amp_reply_default(p, "blockers", json_pack("[o]", amp_reply_why(said)));
    amp_reply_default(p, "notes", json_string(amp_reply_text(said)));
    json_object_set_new(p, "taskId", amp_reply_span(of->task));
    json_object_set_new(p, "agentId", json_string(said->by));
    amp_reply_default(p, "completedAt", amp_reply_time(said->now_ms));
    if (!json_object_get(p, "summaryRef"))
        return amp_reply_missing("summaryRef", "name the summary with --file, or in --data", err);
    if (!json_object_get(p, "tests"))
        return amp_reply_missing(
            "tests", "--data '{\"tests\":{\"total\":3,\"passed\":3,\"failed\":0}}'", err);
    return line_write(of, said, "completion.report", json_incref(p), out, err);
}

static int reply_compose(const struct amp_view *of, const struct amp_reply_said *said,
                         struct amp_buf *out, struct amp_error *err)
{
    if (!amp_span_is(of->type, "handoff.request"))
        return amp_reply_unsupported(of, said, "only a handoff.request is answered", err);
    switch (said->act) {
    case AMP_REPLY_ACCEPT:
        return handoff_compose(of, said, out, err);
    case AMP_REPLY_FAIL:
        return said->taken ? report_compose(of, said, out, err)
                           : handoff_compose(of, said, out, err);
    case AMP_REPLY_PROGRESS:
        return progress_compose(of, said, out, err);
    case AMP_REPLY_COMPLETE:
        return report_compose(of, said, out, err);
    default:
        return amp_reply_unsupported(of, said, "'progress' and 'complete' answer it", err);
    }
}

const struct amp_reply_terms amp_replies_aof = {.compose = reply_compose};
