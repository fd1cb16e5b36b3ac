/* SW4RM: questions to a person (HITL_INVOCATION) and the decisions about them (§15). */
#include "message/protocol/question.h"

#include <stdio.h>
#include <string.h>

#include "base/codes.h"
#include "message/protocol/compose/json.h"
#include "message/protocol/sw4rm/answer.h"

/* Every invocation asks the person here, whether or not it names a recipient. */
static bool question_asks(const struct amp_view *v)
{
    return v->kind == AMP_KIND_ESCALATION;
}

static enum amp_about_kind question_about(const struct amp_view *v)
{
    return AMP_ABOUT_UNKNOWN;
}

static enum amp_reason question_reason(const struct amp_view *v)
{
    int reason = amp_reason_find(v->body.escalation.type);
    if (reason >= 0)
        return (enum amp_reason)reason;
    /* The name in the example of a negotiation room. */
    return amp_span_is(v->body.escalation.type, "NEGOTIATION_CONFLICT")
               ? AMP_REASON_CONFLICT
               : AMP_REASON_TASK_ESCALATION;
}

/* A list of proposals with scores is part of the facts; so is the confidence of an inference engine
 * (§9.3), which is about the suggested action. */
static bool question_score(const json_t *message, double *score, const char **action)
{
    const json_t *p = json_object_get(message, "payload"), *context = json_object_get(p, "context");
    const json_t *own = json_object_get(p, "confidence_score"), *item;
    const char *suggested = amp_json_str(p, "suggested_action");
    bool found = false;
    size_t i;

    if (!own)
        own = json_object_get(context, "confidence_score");
    if (json_is_number(own)) {
        *score = json_number_value(own);
        *action = *suggested ? suggested : "approve";
        found = true;
    }
    json_array_foreach (json_object_get(context, "proposals"), i, item) {
        const json_t *value = json_object_get(item, "score");
        const char *name = amp_json_str(item, "action");
        if (!json_is_number(value) || !*name || (found && json_number_value(value) <= *score))
            continue;
        *score = json_number_value(value);
        *action = name;
        found = true;
    }
    return found;
}

static const char *question_name(const json_t *message, const char *id)
{
    const char *own = amp_json_str(json_object_get(message, "payload"), "invocation_id");
    return *own ? own : id;
}

static int question_title(const json_t *message, const char *why, bool suspended,
                          struct amp_buf *out, struct amp_error *err)
{
    /* The reason is one of the protocol's list. */
    return amp_buf_fmt(out, err, "%s, asked in SW4RM",
                       amp_json_str(json_object_get(message, "payload"), "reason_type"));
}

static const struct amp_question_field fields[] = {
    {"question", "", false},
    {"asked by", "producer_id", false},
    {"task", "payload.subject.task_id", false},
    {"repository", "payload.subject.repo_id", false},
    {"worktree", "payload.subject.worktree_id", false},
    /* The fields of a tool call, people/question/hook/ask.h. */
    {"tool", "payload.context.tool", false},
    {"command", "payload.context.command", false},
    {"files", "payload.context.paths", true},
    {"directory", "payload.context.cwd", false},
    {"why", "payload.context.why", false},
    {"facts at", "payload.context_uri", false},
    {"facts", "payload.context", false},
    {"priority", "payload.priority", false},
    {"decide by", "payload.deadline_ts", false},
    {"suggested", "payload.suggested_action", false},
    {"proposed", "payload.proposed_actions", true},
    {0}};

static const struct amp_action actions[] = {
    {"approve", AMP_ACTION_PLAIN, AMP_ACTION_APPROVES, "allow what is asked"},
    {"deny", AMP_ACTION_PLAIN, AMP_ACTION_DENIES, "refuse it"},
    {"modify", AMP_ACTION_PLAIN, AMP_ACTION_EDITS, "allow it with your changes"},
    {"defer", AMP_ACTION_PLAIN, AMP_ACTION_DEFERS, "decide later"},
    {0}};

static const char *question_proposed(const json_t *message, size_t i)
{
    const json_t *p = json_object_get(message, "payload");
    const json_t *list = json_object_get(p, "proposed_actions");
    if (i == 0)
        return amp_json_str(p, "suggested_action");
    if (i > json_array_size(list))
        return NULL;
    const char *action = json_string_value(json_array_get(list, i - 1));
    return action ? action : "";
}

static struct amp_view message_view(const struct amp_asked *q)
{
    return (struct amp_view){.id = amp_span_str(q->id),
                             .from = amp_span_str(amp_json_str(q->message, "producer_id")),
                             .correlation =
                                 amp_span_str(amp_json_str(q->message, "correlation_id"))};
}

static int question_decide(const struct amp_asked *q, const struct amp_operator_answer *d,
                           struct amp_buf *out, struct amp_error *err)
{
    const struct amp_view of = message_view(q);
    const struct amp_answer a = {.by = q->by, .sequence = q->sequence, .now_ms = q->now_ms};
    return amp_sw4rm_decision(&of, &a, question_name(q->message, q->id), d, out, err);
}

static int question_refuse(const struct amp_asked *q, enum amp_ack_stage stage, const char *code,
                           const char *why, bool retryable, struct amp_buf *out,
                           struct amp_error *err)
{
    const struct amp_view of = message_view(q);
    /* FAILED is terminal, and this question stays open. */
    bool open = amp_code_is(code, hitl_unavailable);
    char note[600];
    snprintf(note, sizeof note, "%s: %.500s; the question stays open", code, why);
    const struct amp_answer a = {.stage = open ? AMP_STAGE_READ : AMP_STAGE_FAILED,
                                 .by = q->by,
                                 .code = open ? "" : code,
                                 .note = open ? note : why,
                                 .sequence = q->sequence,
                                 .now_ms = q->now_ms};
    return amp_sw4rm_ack(&of, &a, out, err);
}

const struct amp_question_terms amp_questions_sw4rm = {
    .asks = question_asks,
    .about = question_about,
    .reason = question_reason,
    .fallback = AMP_FALLBACK_DENY,
    .deadline_ms = INT64_C(86400000),
    .approve = "approve",
    .deny = "deny",
    .score = question_score,
    .name = question_name,
    .title = question_title,
    .fields = fields,
    .actions = actions,
    .proposed = question_proposed,
    .words = {"approve, deny, modify, defer or a proposed action"},
    .form = {"approve [WHY] | deny [WHY] | modify [WHY] | defer [WHY],\n"
             "          or one of the proposed actions"},
    .decide = question_decide,
    .refuse = question_refuse,
};
