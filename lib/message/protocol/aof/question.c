/* AOF/1: tasks in review and blocked tasks, which a person moves on. The answer is a status.update
 * with the next status of the task (the table of transitions: review to done, in-progress or
 * blocked; blocked to ready). */
#include <stdio.h>
#include <string.h>

#include <amp/base/clock.h>

#include "base/codes.h"
#include "message/protocol/aof/aof.h"
#include "message/protocol/compose/json.h"
#include "message/protocol/question.h"
#include "message/protocol/view/object.h"

#define NOTES_MAX 10000 /* bytes of payload.notes */

/* The status that a message gives its task, as far as it needs a person. */
enum waits { NOTHING, REVIEW, BLOCKED };

static enum waits waits_of(const struct amp_view *v)
{
    const struct amp_tape *t = v->tape;

    if (!v->json || v->text.p != v->message.p || v->payload == AMP_TOK_NONE)
        return NOTHING;
    if (amp_span_is(v->type, "completion.report")) {
        if (amp_object_is(t, v->payload, "outcome", "blocked"))
            return BLOCKED;
        return amp_object_is(t, v->payload, "outcome", "needs_review") ? REVIEW : NOTHING;
    }
    if (!amp_span_is(v->type, "status.update"))
        return NOTHING;
    if (amp_object_is(t, v->payload, "status", "blocked"))
        return BLOCKED;
    return amp_object_is(t, v->payload, "status", "review") ? REVIEW : NOTHING;
}

static bool question_asks(const struct amp_view *v)
{
    return waits_of(v) != NOTHING;
}

/* The answers of hitl-prompt are from operator/NAME. */
static bool question_reviewed(const struct amp_view *v, struct amp_span *op)
{
    const struct amp_span role = AMP_SPAN("operator/");
    if (!amp_span_is(v->type, "status.update") || !amp_span_starts(v->from, "operator/") ||
        v->from.n == role.n)
        return false;
    *op = (struct amp_span){v->from.p + role.n, v->from.n - role.n};
    return true;
}

static int question_id(const struct amp_view *v, char out[AMP_MSG_ID_MAX])
{
    return snprintf(out, AMP_MSG_ID_MAX, "%.*s/%.*s/%lld", (int)v->type.n, v->type.p,
                    (int)v->task.n, v->task.p, (long long)v->created_ms);
}

static enum amp_about_kind question_about(const struct amp_view *v)
{
    return AMP_ABOUT_UNKNOWN;
}

static enum amp_reason question_reason(const struct amp_view *v)
{
    return AMP_REASON_TASK_ESCALATION;
}

/* The task has another status. */
static bool question_settled(const struct amp_view *later)
{
    if (waits_of(later) != NOTHING)
        return false;
    return amp_span_is(later->type, "completion.report") ||
           (amp_span_is(later->type, "status.update") && later->payload != AMP_TOK_NONE &&
            amp_object_has(later->tape, later->payload, "status"));
}

static bool is_blocked(const json_t *message)
{
    const json_t *p = json_object_get(message, "payload");
    return strcmp(amp_json_str(p, "outcome"), "blocked") == 0 ||
           strcmp(amp_json_str(p, "status"), "blocked") == 0;
}

static int question_title(const json_t *message, const char *why, bool suspended,
                          struct amp_buf *out, struct amp_error *err)
{
    /* A task's id has a fixed form. */
    return amp_buf_fmt(out, err, "%s in AOF: task %s", is_blocked(message) ? "blocked" : "review",
                       amp_json_str(message, "taskId"));
}

static const struct amp_question_field fields[] = {
    {"notes", "payload.notes", false},       {"blockers", "payload.blockers", true},
    {"progress", "payload.progress", false}, {"agent", "fromAgent", false},
    {"parent", "parentTaskId", false},       {"summary at", "payload.summaryRef", false},
    {"made", "payload.deliverables", true},  {0}};

static const struct amp_action of_review[] = {
    {"done", AMP_ACTION_PLAIN, AMP_ACTION_APPROVES, "move the task from review to done"},
    {"in-progress", AMP_ACTION_PLAIN, AMP_ACTION_DENIES | AMP_ACTION_REDOES,
     "move the task back to in-progress; the note says what is missing"},
    {"blocked", AMP_ACTION_PLAIN, AMP_ACTION_DENIES, "move the task from review to blocked"},
    {0}};
static const struct amp_action of_blocked[] = {
    {"ready", AMP_ACTION_PLAIN, AMP_ACTION_APPROVES, "move the task from blocked to ready"}, {0}};

static const struct amp_action *question_actions(const json_t *message, unsigned *variant)
{
    *variant = is_blocked(message);
    return *variant ? of_blocked : of_review;
}

static int question_decide(const struct amp_asked *q, const struct amp_operator_answer *a,
                           struct amp_buf *out, struct amp_error *err)
{
    const json_t *m = q->message, *p = json_object_get(m, "payload");
    const char *agent = amp_json_str(p, "agentId"), *task = amp_json_str(m, "taskId");
    char at[AMP_TIME_MAX], note[NOTES_MAX];

    amp_time_format(q->now_ms, at);
    int n = snprintf(note, sizeof note, "%s by %s%s%s", a->action, a->op,
                     a->note && *a->note ? ": " : "", a->note ? a->note : "");
    if (n < 0 || n >= (int)sizeof note)
        return amp_fail(err, AMP_DATAERR, buffer_full, "notes of AOF have at most %d bytes",
                        NOTES_MAX);
    json_auto_t *j = json_pack(
        "{s:s, s:i, s:s, s:s, s:s, s:s, s:s, s:{s:s, s:s, s:s, s:s}}", "protocol", "aof", "version",
        1, "type", "status.update", "taskId", task, "fromAgent", q->by, "toAgent",
        amp_json_str(m, "fromAgent"), "sentAt", at, "payload", "taskId", task, "agentId",
        *agent ? agent : amp_json_str(m, "fromAgent"), "status", a->action, "notes", note);
    if (!j)
        return amp_fail_memory(err);
    amp_json_put(j, "parentTaskId", amp_json_str(m, "parentTaskId"));
    amp_json_put(j, "projectId", amp_json_str(m, "projectId"));
    amp_json_put(j, "project_id", amp_json_str(m, "project_id"));
    return amp_json_line(j, out, err);
}

/* A review is not denied by default: the task is safe where it is. */
const struct amp_question_terms amp_questions_aof = {
    .asks = question_asks,
    .reviewed = question_reviewed,
    .settles = question_settled,
    .id = question_id,
    .about = question_about,
    .reason = question_reason,
    .title = question_title,
    .fields = fields,
    .actions = of_review,
    .actions_of = question_actions,
    .words = {"done, in-progress or blocked", "ready"},
    .form = {"done [NOTE] | in-progress [NOTE] | blocked [NOTE]", "ready [NOTE]"},
    .decide = question_decide,
};
