/*
 * AMP/1.0: answers of an executor or reviewer. A task_dispatch is answered by its task_result, a
 * review_request by its review_verdict; the acknowledgement and the refusal are control records.
 */
#include "message/protocol/reply.h"

#include <string.h>

#include "base/codes.h"
#include "message/protocol/amp/compose.h"

#define CONFIDENCE 1.0 /* of a verdict that gives none */

/* The role that the result goes to. */
static void envelope_init(struct amp_envelope *env, const struct amp_view *of,
                          const struct amp_reply_said *said, char task[32], char to[32])
{
    amp_span_copy(of->task, task, 32);
    amp_span_copy(of->from, to, 32);
    *env = (struct amp_envelope){
        .from = said->role, .to = to, .task_id = task, .now_ms = said->now_ms};
}

static int subtask_set(const struct amp_view *of, json_t *p, struct amp_error *err)
{
    uint32_t n = of->body.dispatch.n_subtasks;
    const struct amp_subtask *all = of->body.dispatch.subtasks;
    const char *own = json_string_value(json_object_get(p, "subtask_id"));
    if (!own && n > 1)
        return amp_reply_missing("subtask_id",
                                 "the dispatch has several subtasks; name one with --data", err);
    if (!own) {
        json_object_set_new(p, "subtask_id",
                            n == 1 ? amp_reply_span(all[0].id)
                                   : json_sprintf("%.*s-S1", AMP_CLIP(of->task, 64)));
        return 0;
    }
    for (uint32_t i = 0; i < n; i++)
        if (amp_span_is(all[i].id, own))
            return 0;
    return n == 0 ? 0
                  : amp_fail(err, AMP_NO, unknown_ref, "the dispatch has no subtask %.100s", own);
}

static int completion_set(const struct amp_reply_said *said, json_t *p, struct amp_error *err)
{
    bool fails = said->act == AMP_REPLY_FAIL;
    const char *own = amp_json_str(p, "completion_status");
    if (*own && fails == (strcmp(own, "failed") != 0))
        return amp_fail(err, AMP_NO, bad_value,
                        "completion_status is \"%.20s\", which is not what '%s' says", own,
                        amp_reply_act_name(said->act));
    amp_reply_default(
        p, "completion_status",
        json_string(amp_completion_name(fails ? AMP_COMPLETION_FAILED : AMP_COMPLETION_COMPLETE)));
    if (strcmp(amp_json_str(p, "completion_status"), "complete") == 0)
        return 0;
    const char *text = amp_reply_text(said);
    if (!json_object_get(p, "blockers") && !*text && !said->code)
        return amp_reply_missing("blockers", "give the reason with --text", err);
    amp_reply_default(p, "blockers", json_pack("[o]", amp_reply_why(said)));
    return 0;
}

static json_t *entry_make(const struct amp_reply_said *said, const char *action, const char *file,
                          json_t *detail)
{
    return json_pack("{s:o, s:s, s:s, s:o}", "timestamp", amp_reply_time(said->now_ms), "action",
                     action, "file", file, "detail", detail);
}

static json_t *work_log(const struct amp_reply_said *said)
{
    json_t *log = json_array();
    json_array_append_new(log,
                          entry_make(said, amp_reply_act_name(said->act), "", amp_reply_why(said)));
    for (uint32_t i = 0; i < said->n_files; i++)
        json_array_append_new(
            log, entry_make(said, "attach", said->files[i].path,
                            json_sprintf("SHA-256 %s, %lld bytes", said->files[i].sha256,
                                         (long long)said->files[i].bytes)));
    return log;
}

/* null: a criterion that the agent did not judge. */
static json_t *assessment(const struct amp_view *of, const struct amp_reply_said *said)
{
    json_t *met = json_array(), *notes = json_array();
    for (uint32_t i = 0; i < of->body.dispatch.criteria.n; i++)
        json_array_append_new(met, json_null());
    if (*amp_reply_text(said))
        json_array_append_new(notes, json_string(said->text));
    return json_pack("{s:o, s:o}", "criteria_met", met, "notes", notes);
}

static int result_compose(const struct amp_view *of, const struct amp_reply_said *said,
                          struct amp_buf *out, struct amp_error *err)
{
    char task[32], to[32], id[AMP_MSG_ID_MAX];
    const char *const refs[] = {id, NULL};
    struct amp_envelope env;
    json_auto_t *p = amp_reply_payload(said);
    if (subtask_set(of, p, err) < 0 || completion_set(said, p, err) < 0)
        return -1;
    if (!json_object_get(p, "diff_summary"))
        return amp_reply_missing("diff_summary",
                                 "the change of the branch could not be measured; give it with "
                                 "--data",
                                 err);
    amp_reply_default(p, "self_assessment", assessment(of, said));
    amp_reply_default(p, "work_log", work_log(said));
    envelope_init(&env, of, said, task, to);
    amp_span_copy(of->id, id, sizeof id);
    env.type = "task_result";
    env.context_ref = refs;
    return amp_compose_message(&env, json_incref(p), out, NULL, err);
}

/* The text of a rejection is its issue, unless the data has issues. */
static int verdict_compose(const struct amp_view *of, const struct amp_reply_said *said,
                           struct amp_buf *out, struct amp_error *err)
{
    char task[32], to[32], id[AMP_MSG_ID_MAX];
    const char *const refs[] = {id, NULL};
    const char *text = amp_reply_text(said);
    struct amp_envelope env;
    json_auto_t *p = amp_reply_payload(said);
    const char *decision = amp_json_str(p, "decision");
    if (!*decision)
        return amp_reply_missing("decision", "--data '{\"decision\":\"approved\"}' or \"rejected\"",
                                 err);
    if (strcmp(decision, "rejected") == 0 && *text)
        amp_reply_default(p, "issues",
                          json_pack("[{s:s, s:s, s:i, s:s, s:s}]", "severity", "major", "file", "",
                                    "line", 0, "description", text, "suggested_fix", ""));
    else if (*text)
        amp_reply_default(p, "architecture_notes", json_string(text));
    amp_reply_default(p, "criteria_results", json_array());
    amp_reply_default(p, "confidence", json_real(CONFIDENCE));
    envelope_init(&env, of, said, task, to);
    amp_span_copy(of->id, id, sizeof id);
    env.type = "review_verdict";
    env.context_ref = refs;
    return amp_compose_message(&env, json_incref(p), out, NULL, err);
}

static int refusal_compose(const struct amp_view *of, const struct amp_reply_said *said,
                           struct amp_buf *out, struct amp_error *err)
{
    return amp_compose_nack(of, said->taken ? AMP_STAGE_FAILED : AMP_STAGE_REJECTED, said->role,
                            said->code ? said->code : AMP_CODE(rejected), amp_reply_text(said),
                            "reply", said->retryable, said->now_ms, out, err);
}

static const char *hint_of(const struct amp_view *of, const struct amp_reply_said *said)
{
    if (of->kind == AMP_KIND_ESCALATION)
        return "'hitl-prompt answer' decides it";
    if (said->act == AMP_REPLY_PROGRESS)
        return "the work_log of the task_result has the steps";
    return of->kind == AMP_KIND_DISPATCH || of->kind == AMP_KIND_REVIEW
               ? "'complete' answers it"
               : "'accept' acknowledges it";
}

static int reply_compose(const struct amp_view *of, const struct amp_reply_said *said,
                         struct amp_buf *out, struct amp_error *err)
{
    bool is_message = of->id.n > 0 && of->kind != AMP_KIND_ACK && of->kind != AMP_KIND_NACK;
    if (is_message && said->act == AMP_REPLY_ACCEPT)
        return amp_compose_ack(of, AMP_STAGE_READ, said->role, said->text, said->now_ms, out, err);
    bool fails = said->act == AMP_REPLY_FAIL;
    if (of->kind == AMP_KIND_DISPATCH &&
        (said->act == AMP_REPLY_COMPLETE || (fails && said->taken)))
        return result_compose(of, said, out, err);
    if (of->kind == AMP_KIND_REVIEW && said->act == AMP_REPLY_COMPLETE)
        return verdict_compose(of, said, out, err);
    if (is_message && fails)
        return refusal_compose(of, said, out, err);
    return amp_reply_unsupported(of, said, hint_of(of, said), err);
}

static bool needs_diff(const struct amp_view *of, const struct amp_reply_said *said)
{
    return of->kind == AMP_KIND_DISPATCH && !json_object_get(said->data, "diff_summary") &&
           (said->act == AMP_REPLY_COMPLETE || (said->act == AMP_REPLY_FAIL && said->taken));
}

const struct amp_reply_terms amp_replies_amp = {
    .compose = reply_compose, .needs_diff = needs_diff, .by_role = true};
