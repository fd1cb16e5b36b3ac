/* AMP/1.0: escalations to the admin and the decisions about them. */
#include <string.h>

#include "base/codes.h"
#include "message/protocol/amp/compose.h"
#include "message/protocol/question.h"

#define EDITABLE "acceptance_criteria" /* in the payload of a dispatch */

static bool question_asks(const struct amp_view *v)
{
    bool to_admin = false;
    for (uint32_t i = 0; i < v->n_to; i++)
        to_admin |= amp_span_is(v->to[i], "admin");
    return v->kind == AMP_KIND_ESCALATION && v->task.n && to_admin;
}

static enum amp_about_kind question_about(const struct amp_view *v)
{
    return amp_span_is(v->task, AMP_TASK_NONE) ? AMP_ABOUT_MESSAGE : AMP_ABOUT_TASK;
}

static enum amp_reason question_reason(const struct amp_view *v)
{
    struct amp_span type = v->body.escalation.type;
    if (amp_span_is(type, "conflict"))
        return AMP_REASON_CONFLICT;
    if (amp_span_is(type, "permission_denied"))
        return AMP_REASON_SECURITY_APPROVAL;
    return amp_span_is(type, "branch_violation") ? AMP_REASON_WORKTREE_OVERRIDE
                                                 : AMP_REASON_TASK_ESCALATION;
}

static int question_title(const json_t *message, const char *why, bool suspended,
                          struct amp_buf *out, struct amp_error *err)
{
    const json_t *p = json_object_get(message, "payload");
    const json_t *state = json_object_get(p, "system_state_snapshot");
    const char *id = amp_json_str(message, "task_id");
    bool none = strcmp(id, AMP_TASK_NONE) == 0;
    /* Only words of the protocol's lists and checked ids, which need no quoting. */
    return amp_buf_fmt(out, err, "%s: %s, %s%s%s,\n   triggered by the %s, %lld rejections",
                       amp_json_str(p, "severity"), *why ? why : amp_json_str(p, "escalation_type"),
                       none ? "about the work of another protocol" : "task ", none ? "" : id,
                       suspended ? " (suspended)" : "", amp_json_str(p, "triggered_by"),
                       (long long)json_integer_value(json_object_get(state, "reject_count")));
}

static const struct amp_question_field fields[] = {{"description", "payload.description", false},
                                                   {"asked by", "from", false},
                                                   {"concerns", "payload.affected_msgs", true},
                                                   {"advice", "payload.suggested_actions", true},
                                                   {0}};

static const struct amp_action actions[] = {
    [AMP_DO_RESUME] = {"resume", AMP_ACTION_PLAIN, AMP_ACTION_APPROVES,
                       "lift the suspension and continue, with the note"},
    [AMP_DO_TERMINATE] = {"terminate", AMP_ACTION_PLAIN, AMP_ACTION_DENIES | AMP_ACTION_GRAVE,
                          "end the task for good"},
    [AMP_DO_REDISPATCH] = {"redispatch", AMP_ACTION_REQUEUE, AMP_ACTION_EDITS | AMP_ACTION_REDOES,
                           "send the work again, with changed criteria"},
    [AMP_DO_ROLLBACK] = {"rollback", AMP_ACTION_ROLLBACK, AMP_ACTION_GRAVE,
                         "reset the branch to COMMIT, then continue"},
    {0}};

/* The criteria of an edited payload, as JSON with a NUL. */
static int criteria_text(const char *payload, struct amp_buf *out, struct amp_error *err)
{
    json_auto_t *j = amp_json_load(amp_span_str(payload), err);
    const json_t *list = json_object_get(j, EDITABLE);

    if (!j)
        return -1;
    if (!list)
        return amp_fail(err, AMP_DATAERR, bad_answer, "the payload has no " EDITABLE);
    return amp_json_dump(list, out, err) < 0 ? -1 : amp_buf_add(out, "", 1, err);
}

static int question_decide(const struct amp_asked *q, const struct amp_operator_answer *a,
                           struct amp_buf *out, struct amp_error *err)
{
    enum amp_operator_word word = AMP_DO_RESUME;
    AMP_BUF struct amp_buf criteria = {0};

    amp_buf_init(&criteria, 1 << 20);
    while (actions[word + 1].name && strcmp(actions[word].name, a->action) != 0)
        word++;
    if (word == AMP_DO_REDISPATCH && a->payload && criteria_text(a->payload, &criteria, err) < 0)
        return -1;
    const struct amp_decision_args args = {
        .ref_msg_id = q->id,
        .task_id = amp_json_str(q->message, "task_id"),
        .word = word,
        .note = a->note,
        .commit = a->does == AMP_ACTION_ROLLBACK ? a->commit : NULL,
        .criteria = criteria.len ? criteria.data : NULL,
        .op = a->op,
        .now_ms = q->now_ms,
    };
    return amp_compose_decision(&args, out, err);
}

static int question_refuse(const struct amp_asked *q, enum amp_ack_stage stage, const char *code,
                           const char *why, bool retryable, struct amp_buf *out,
                           struct amp_error *err)
{
    const struct amp_view of = {.id = amp_span_str(q->id),
                                .task = amp_span_str(amp_json_str(q->message, "task_id"))};
    return amp_compose_nack(&of, stage, q->by, code, why, "", retryable, q->now_ms, out, err);
}

const struct amp_question_terms amp_questions_amp = {
    .asks = question_asks,
    .about = question_about,
    .graded = true,
    .carried_out_by = "coordinator",
    .reason = question_reason,
    .approve = "resume",
    .deny = "terminate",
    .title = question_title,
    .fields = fields,
    .actions = actions,
    .words = {"resume, redispatch or terminate",
              "resume, redispatch, rollback COMMIT or terminate"},
    .editable = EDITABLE,
    .form = {"resume [NOTE] | redispatch [NOTE] | terminate [NOTE]",
             "resume [NOTE] | redispatch [NOTE] | rollback COMMIT [NOTE] |\n"
             "          terminate [NOTE]"},
    .decide = question_decide,
    .refuse = question_refuse,
};
