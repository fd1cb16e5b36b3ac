/*
 * AOP: a RESPONSE that waits for a person. It asks if it or its TASK has the extension
 * x_human_review_required, or if it reports a failure that no further attempt repairs. The contract
 * has no message for reviews, so an answer is the RESPONSE itself (reviewed, terminate) or the next
 * attempt of its TASK (retry), with the review in the extension x_human_review.
 */
#include <stdio.h>
#include <string.h>

#include <amp/base/clock.h>

#include "base/codes.h"
#include "message/protocol/aop/aop.h"
#include "message/protocol/compose/json.h"
#include "message/protocol/delivery.h"
#include "message/protocol/question.h"

#define REQUIRED "x_human_review_required"
#define REVIEW   "x_human_review"

static bool extension_is(const struct amp_view *v, const char *pointer)
{
    uint32_t tok = amp_tape_pointer(v->tape, 0, amp_span_str(pointer));
    return tok != AMP_TOK_NONE && v->tape->tok[tok].type == AMP_JSON_TRUE;
}

/* A RESPONSE as it came, that was not reviewed yet. */
static bool is_unreviewed(const struct amp_view *v)
{
    return v->kind == AMP_KIND_RESULT && v->json && v->text.p == v->message.p && v->task.n > 0 &&
           amp_tape_pointer(v->tape, 0, AMP_SPAN("/extensions/" REVIEW)) == AMP_TOK_NONE;
}

static bool question_reviewed(const struct amp_view *v, struct amp_span *op)
{
    uint32_t review = AMP_TOK_NONE;

    if (v->json && v->text.p == v->message.p)
        review = amp_tape_pointer(v->tape, 0, AMP_SPAN("/extensions/" REVIEW));
    if (review == AMP_TOK_NONE)
        return false;
    uint32_t name = v->tape->tok[review].type == AMP_JSON_OBJECT
                        ? amp_tape_get(v->tape, review, AMP_SPAN("operator"))
                        : AMP_TOK_NONE;
    *op = AMP_SPAN("");
    if (name != AMP_TOK_NONE && v->tape->tok[name].type == AMP_JSON_STRING)
        *op = amp_tok_raw(v->tape, name);
    return true;
}

/* A person can raise a budget or grant a permission; the orchestrator repeats other failures. */
static bool needs_person(const struct amp_view *v)
{
    static const char *const codes[] = {
        AMP_CODE(E_PERMISSION_DENIED), AMP_CODE(E_COST_LIMIT_EXCEEDED),
        AMP_CODE(E_MAX_DEPTH_EXCEEDED), AMP_CODE(E_CONTEXT_OVERFLOW), NULL};
    uint32_t tok = amp_tape_pointer(v->tape, 0, AMP_SPAN("/error_details/error_code"));

    for (size_t i = 0; tok != AMP_TOK_NONE && codes[i]; i++)
        if (amp_tok_is(v->tape, tok, amp_span_str(codes[i])))
            return true;
    return false;
}

static bool question_asks(const struct amp_view *v)
{
    return is_unreviewed(v) && (extension_is(v, "/extensions/" REQUIRED) || needs_person(v));
}

static bool result_asks(const struct amp_view *v)
{
    return is_unreviewed(v);
}

/* The contract's example has it in the guard rails. */
static bool request_asks(const struct amp_view *task)
{
    return extension_is(task, "/guard_rails/extensions/" REQUIRED) ||
           extension_is(task, "/task/extensions/" REQUIRED) ||
           extension_is(task, "/extensions/" REQUIRED);
}

/* A RESPONSE has no id: its session, task, agent and time name it. */
static int question_id(const struct amp_view *v, char out[AMP_MSG_ID_MAX])
{
    return snprintf(out, AMP_MSG_ID_MAX, "RESPONSE/%.*s/%.*s/%.*s/%lld", (int)v->correlation.n,
                    v->correlation.p, (int)v->task.n, v->task.p, (int)v->from.n, v->from.p,
                    (long long)v->created_ms);
}

static enum amp_about_kind question_about(const struct amp_view *v)
{
    return AMP_ABOUT_UNKNOWN;
}

static enum amp_reason question_reason(const struct amp_view *v)
{
    return AMP_REASON_TASK_ESCALATION;
}

/* The next attempt ends the wait for a review of this one. */
static bool question_settled(const struct amp_view *later)
{
    return later->kind == AMP_KIND_DISPATCH;
}

static int question_title(const json_t *message, const char *why, bool suspended,
                          struct amp_buf *out, struct amp_error *err)
{
    /* The state is one of the contract's list. */
    return amp_buf_fmt(out, err, "review of a RESPONSE in AOP, state %s",
                       amp_json_str(json_object_get(message, "task_status"), "state"));
}

static const struct amp_question_field fields[] = {{"summary", "execution_summary.summary", false},
                                                   {"task", "task_id", false},
                                                   {"session", "session_id", false},
                                                   {"agent", "agent.name", false},
                                                   {"status", "task_status.message", false},
                                                   {"error", "error_details.error_code", false},
                                                   {"message", "error_details.message", false},
                                                   {"errors", "execution_summary.errors", true},
                                                   {"did", "execution_summary.actions", true},
                                                   {0}};

static const struct amp_action actions[] = {
    {"reviewed", AMP_ACTION_PLAIN, AMP_ACTION_APPROVES, "pass the RESPONSE on as reviewed"},
    {"retry", AMP_ACTION_PLAIN, AMP_ACTION_REDOES,
     "send the next attempt of the TASK; the note goes with it"},
    {"terminate", AMP_ACTION_PLAIN, AMP_ACTION_DENIES | AMP_ACTION_GRAVE,
     "pass the RESPONSE on as ABORTED"},
    {0}};

/* Writes the review into the extensions of a message. */
static int review_set(json_t *message, const struct amp_asked *q,
                      const struct amp_operator_answer *a, struct amp_error *err)
{
    char at[AMP_TIME_MAX];
    json_t *ext = json_object_get(message, "extensions");
    json_t *review = json_pack("{s:s, s:s, s:s}", "decision", a->action, "operator", a->op,
                               "decided_at", (amp_time_format(q->now_ms, at), at));

    if (review && a->note && *a->note)
        json_object_set_new(review, "note", json_string(a->note));
    if (review && a->policy)
        json_object_set_new(review, "policy", json_string(a->policy));
    if (!ext) {
        ext = json_object();
        if (json_object_set_new(message, "extensions", ext) < 0) {
            json_decref(review);
            return amp_fail_memory(err);
        }
    }
    if (json_object_get(ext, REQUIRED))
        json_object_set_new(ext, REQUIRED, json_false());
    return json_object_set_new(ext, REVIEW, review) < 0 ? amp_fail_memory(err) : 0;
}

static int attempt_write(const struct amp_asked *q, const struct amp_operator_answer *a,
                         struct amp_buf *out, struct amp_error *err)
{
    json_auto_t *task = q->request ? json_deep_copy(q->request) : NULL;
    json_t *inner = json_object_get(task, "task");
    const json_t *attempt = json_object_get(inner, "attempt");

    if (!inner)
        return amp_fail(err, AMP_DATAERR, no_request,
                        "the state directory does not have the TASK; send it again");
    int64_t n = attempt ? json_integer_value(attempt) : 1;
    if (json_object_set_new(inner, "attempt", json_integer(amp_attempt_after(n, INT64_MAX))) < 0)
        return amp_fail_memory(err);
    return review_set(task, q, a, err) < 0 ? -1 : amp_json_line(task, out, err);
}

static int question_decide(const struct amp_asked *q, const struct amp_operator_answer *a,
                           struct amp_buf *out, struct amp_error *err)
{
    if (strcmp(a->action, "retry") == 0)
        return attempt_write(q, a, out, err);
    json_auto_t *response = json_deep_copy(q->message);
    json_t *status = json_object_get(response, "task_status");
    if (!response)
        return amp_fail_memory(err);
    if (strcmp(a->action, "terminate") == 0 &&
        (json_object_set_new(status, "state", json_string("ABORTED")) < 0 ||
         json_object_set_new(status, "final_signal", json_string("ABORTED")) < 0))
        return amp_fail_memory(err);
    return review_set(response, q, a, err) < 0 ? -1 : amp_json_line(response, out, err);
}

const struct amp_question_terms amp_questions_aop = {
    .asks = question_asks,
    .reviewed = question_reviewed,
    .may_ask = result_asks,
    .request_asks = request_asks,
    .settles = question_settled,
    .id = question_id,
    .about = question_about,
    .reason = question_reason,
    .approve = "reviewed",
    .deny = "terminate",
    .title = question_title,
    .fields = fields,
    .actions = actions,
    .words = {"reviewed, retry or terminate"},
    .form = {"reviewed [NOTE] | retry [NOTE] | terminate [NOTE]"},
    .decide = question_decide,
};
