/*
 * AOP: answers of an executor. A TASK is answered by its RESPONSE (§5); PROGRESS_UPDATE (§6.2) is
 * the only report before that. The contract has no acknowledgement of a TASK.
 */
#include "message/protocol/reply.h"

#include <string.h>

#include "base/codes.h"
#include "message/protocol/aop/aop.h"
#include "message/protocol/aop/event.h"
#include "message/protocol/compose/json.h"
#include "message/protocol/delivery.h"

static int progress_compose(const struct amp_view *of, const struct amp_reply_said *said,
                            struct amp_buf *out, struct amp_error *err)
{
    const struct amp_aop_about about = {of->correlation, of->task, said->now_ms};
    json_auto_t *progress = amp_reply_payload(said);
    struct amp_jw w;
    if (said->has_percent)
        json_object_set_new(progress, "percentage", json_real(said->percent));
    if (*amp_reply_text(said))
        amp_reply_default(progress, "message", json_string(said->text));
    if (said->eta_ms > said->now_ms)
        amp_reply_default(progress, "estimated_time_remaining_seconds",
                          json_integer((said->eta_ms - said->now_ms) / 1000));
    if (!json_object_get(progress, "percentage"))
        return amp_reply_missing("a percentage", "give it with --percent", err);
    amp_aop_event_open(&w, "PROGRESS_UPDATE", &about, out);
    amp_jw_member_text(&w, "agent", said->by);
    amp_jw_key(&w, "progress");
    amp_jw_json(&w, progress);
    return amp_aop_event_close(&w, err);
}

/* The status of a file since the work began. */
static const char *file_status(const struct amp_reply_said *said, const struct amp_reply_file *f)
{
    if (f->born_ms > 0 && f->born_ms >= said->began_ms)
        return "CREATED";
    return f->changed_ms >= said->began_ms ? "UPDATED" : "UNCHANGED";
}

static json_t *artifacts(const struct amp_reply_said *said)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < said->n_files; i++) {
        const struct amp_reply_file *f = &said->files[i];
        json_array_append_new(
            list, json_pack("{s:s, s:s, s:o, s:s, s:I}", "type", "FILE", "path", f->real, "hash",
                            json_sprintf("%s:%s", "sha256", f->sha256), "status",
                            file_status(said, f), "size_bytes", (json_int_t)f->bytes));
    }
    return list;
}

static json_t *summary_make(const struct amp_reply_said *said)
{
    const char *text = amp_reply_text(said);
    json_t *s = json_object();
    if (*text) {
        json_object_set_new(s, "summary", json_string(text));
        json_object_set_new(s, "actions", json_pack("[s]", text));
    }
    if (said->n_files > 0)
        json_object_set_new(s, "output_artifacts", artifacts(said));
    return s;
}

static json_t *agent_make(const struct amp_view *of, const struct amp_reply_said *said)
{
    struct amp_span target[AMP_AOP_TARGET];
    amp_aop_target(of, target);
    json_t *model =
        target[AMP_AOP_MODEL].n > 0
            ? json_loadb(target[AMP_AOP_MODEL].p, target[AMP_AOP_MODEL].n, JSON_DECODE_ANY, NULL)
            : NULL;
    return json_pack("{s:s, s:o, s:o}", "name", said->by, "provider",
                     amp_reply_span(target[AMP_AOP_PROVIDER]), "model",
                     model ? model : json_string("UNKNOWN"));
}

static json_t *timing_make(const struct amp_view *of, const struct amp_reply_said *said)
{
    int64_t began =
        said->began_ms > 0 && said->began_ms < said->now_ms ? said->began_ms : said->now_ms;
    return json_pack("{s:o, s:o, s:f, s:I}", "started_at", amp_reply_time(began), "completed_at",
                     amp_reply_time(said->now_ms), "duration_seconds",
                     (double)(said->now_ms - began) / 1000, "retries_attempted",
                     (json_int_t)(amp_attempt_of(of) - 1));
}

/* The data has members of the RESPONSE; those that identify it cannot be changed. */
static int data_merge(const struct amp_reply_said *said, json_t *j, struct amp_error *err)
{
    static const char *const fixed[] = {"aop_version",  "schema_version", "protocol_family",
                                        "message_type", "session_id",     "task_id"};
    for (size_t i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++)
        if (json_object_get(said->data, fixed[i]))
            return amp_fail(err, AMP_NO, bad_value, "%s follows from the task", fixed[i]);
    json_auto_t *own = amp_reply_payload(said);
    if (json_object_update_recursive(j, own) < 0)
        return amp_fail_memory(err);
    json_object_set_new(json_object_get(j, "agent"), "name", json_string(said->by));
    bool failed =
        strcmp(amp_json_str(json_object_get(j, "task_status"), "state"), "COMPLETED") != 0;
    if (failed != (said->act == AMP_REPLY_FAIL))
        return amp_fail(err, AMP_NO, bad_value, "task_status.state is not what '%s' says",
                        amp_reply_act_name(said->act));
    return 0;
}

static int response_compose(const struct amp_view *of, const struct amp_reply_said *said,
                            struct amp_buf *out, struct amp_error *err)
{
    bool fails = said->act == AMP_REPLY_FAIL;
    const char *code = amp_aop_code(said->code ? said->code : "");
    json_auto_t *why = fails && said->code && strcmp(said->code, code) != 0
                           ? amp_reply_why(said)
                           : json_string(amp_reply_text(said));
    json_auto_t *j =
        json_pack("{s:s, s:s, s:s, s:s}", "aop_version", AMP_AOP_VERSION, "schema_version", "2.0.2",
                  "protocol_family", "AOP", "message_type", "RESPONSE");
    json_object_set_new(j, "session_id", amp_reply_span(of->correlation));
    json_object_set_new(j, "task_id", amp_reply_span(of->task));
    json_object_set_new(j, "agent", agent_make(of, said));
    json_object_set_new(j, "task_status",
                        json_pack("{s:s, s:s, s:O}", "state", fails ? "FAILED" : "COMPLETED",
                                  "final_signal", fails ? "FAILURE" : "SUCCESS", "message", why));
    json_object_set_new(j, "execution_summary", summary_make(said));
    if (fails)
        json_object_set_new(j, "error_details",
                            json_pack("{s:s, s:O}", "error_code", code, "message", why));
    json_object_set_new(j, "timing", timing_make(of, said));
    if (data_merge(said, j, err) < 0)
        return -1;
    if (!json_object_get(json_object_get(j, "execution_summary"), "summary"))
        return amp_reply_missing("a summary", "give it with --text", err);
    return amp_json_line(j, out, err);
}

static int reply_compose(const struct amp_view *of, const struct amp_reply_said *said,
                         struct amp_buf *out, struct amp_error *err)
{
    if (of->kind != AMP_KIND_DISPATCH)
        return amp_reply_unsupported(of, said, "only a TASK is answered", err);
    switch (said->act) {
    case AMP_REPLY_PROGRESS:
        return progress_compose(of, said, out, err);
    case AMP_REPLY_COMPLETE:
    case AMP_REPLY_FAIL:
        return response_compose(of, said, out, err);
    default:
        return amp_reply_unsupported(of, said, "'progress' and 'complete' answer it", err);
    }
}

const struct amp_reply_terms amp_replies_aop = {.compose = reply_compose};
