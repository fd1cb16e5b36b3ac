/* AOP: the terms of delivery. A TASK waits for its RESPONSE (§11). */
#include <stdio.h>
#include <string.h>

#include <amp/protocol/aop_policy.h>

#include "base/codes.h"
#include "message/protocol/answers.h"
#include "message/protocol/aop/against.h"
#include "message/protocol/aop/aop.h"
#include "message/protocol/delivery.h"
#include "message/protocol/question.h"
#include "message/protocol/reply.h"
#include "message/protocol/routing.h"
#include "message/protocol/work.h"

#define YEAR_MS INT64_C(31536000000)

/* The timeout of a TASK. */
static int64_t task_ms(const struct amp_view *v)
{
    struct amp_aop_policy policy;
    if (v->kind != AMP_KIND_DISPATCH || v->id.n == 0)
        return 0;
    amp_aop_policy(v, &policy);
    int64_t s = policy.timeout_seconds.value;
    return s > 0 && s <= YEAR_MS / 1000 ? s * 1000 : 0;
}

/* execution_policy.heartbeat */
static bool task_beat(const struct amp_view *v, int64_t *beat_ms, bool *warns)
{
    struct amp_aop_policy p;
    if (v->kind != AMP_KIND_DISPATCH || !v->tape || v->tape->n == 0)
        return false;
    amp_aop_policy(v, &p);
    double ms = p.heartbeat_seconds * 1000 * (double)p.heartbeat_missed_most.value;
    if (!p.heartbeat.value || !(ms >= 1) || ms > (double)YEAR_MS ||
        p.on_heartbeat_failure.value == AMP_AOP_SILENCE_CONTINUE)
        return false;
    *beat_ms = (int64_t)ms;
    *warns = p.on_heartbeat_failure.value == AMP_AOP_SILENCE_WARN;
    return true;
}

/* on_failure decides where max_retries is missing: RETRY allows one. After ABORT_SESSION a further
 * attempt would only be skipped. */
static int64_t most_retries(const struct amp_aop_policy *p)
{
    if (p->on_failure.value == AMP_AOP_ABORT_SESSION)
        return 0;
    if (p->on_failure.value == AMP_AOP_RETRY && p->max_retries.source == AMP_AOP_FROM_DEFAULT)
        return 1;
    return p->max_retries.value;
}

static void task_retries(const struct amp_view *of, struct amp_again_terms *out)
{
    struct amp_aop_policy p;
    const struct amp_tape *t = of->tape;
    if (of->kind != AMP_KIND_DISPATCH)
        return;
    amp_aop_policy(of, &p);
    out->most = most_retries(&p);
    if (p.backoff == AMP_TOK_NONE || t->tok[p.backoff].type != AMP_JSON_ARRAY)
        return;
    for (uint32_t i = p.backoff + 1; i < t->tok[p.backoff].next; i = t->tok[i].next) {
        double s;
        if (out->n_waits < AMP_RETRY_WAITS_MAX && amp_tok_real(t, i, &s) && s >= 0 && s <= 604800)
            out->waits_ms[out->n_waits++] = (int64_t)(s * 1000);
    }
}

static int attempt_name(const struct amp_view *of, int64_t attempt, char out[AMP_MSG_ID_MAX])
{
    return snprintf(out, AMP_MSG_ID_MAX, "%.*s/%.*s/%lld", (int)of->correlation.n,
                    of->correlation.p, (int)of->task.n, of->task.p, (long long)attempt);
}

static int task_name(const struct amp_view *v, char out[AMP_MSG_ID_MAX])
{
    return v->kind == AMP_KIND_DISPATCH && v->correlation.n > 0
               ? attempt_name(v, amp_attempt_of(v), out)
               : 0;
}

static int next_id(const struct amp_view *of, int64_t now_ms, char out[AMP_MSG_ID_MAX])
{
    (void)now_ms;
    return attempt_name(of, amp_attempt_after(amp_attempt_of(of), INT64_MAX), out);
}

static int result_fault(const struct amp_view *task, const struct amp_view *response,
                        struct amp_result_fault *fault, struct amp_error *err)
{
    return amp_aop_against(task, response, false, fault, err);
}

static unsigned result_waives(const struct amp_view *task)
{
    struct amp_aop_policy p;
    amp_aop_policy(task, &p);
    return (p.minimal_report.value ? 0 : AMP_WAIVES_REPORT) |
           (p.final_signal.value ? 0 : AMP_WAIVES_SIGNAL);
}

static bool work_name(const struct amp_view *v, struct amp_work *out)
{
    *out = (struct amp_work){v->correlation, v->task, v->kind == AMP_KIND_DISPATCH};
    return v->correlation.n > 0 && v->kind != AMP_KIND_NACK;
}

static bool was_aborted(const struct amp_view *v)
{
    uint32_t state = amp_tape_pointer(v->tape, 0, AMP_SPAN("/task_status/state"));
    return state != AMP_TOK_NONE && amp_tok_is(v->tape, state, AMP_SPAN("ABORTED"));
}

/* A refusal of a TASK that has the name of another one, which goes on. */
static bool is_of_repetition(const struct amp_view *v)
{
    uint32_t rule = amp_tape_pointer(v->tape, 0, AMP_SPAN("/error_details/extensions/x_rule"));
    return rule != AMP_TOK_NONE && amp_tok_is(v->tape, rule, AMP_SPAN("duplicate_msg_id"));
}

/* Any other RESPONSE ends the work; heartbeats and progress are signs of life. */
static bool outcome_read(const struct amp_view *v, struct amp_outcome *out)
{
    if (v->kind == AMP_KIND_HEARTBEAT || v->kind == AMP_KIND_PROGRESS)
        out->stage = AMP_STAGE_READ;
    else if (v->kind != AMP_KIND_RESULT || is_of_repetition(v))
        return false;
    else if (v->body.result.completion == AMP_COMPLETION_FAILED) {
        struct amp_span code = v->body.result.failure;
        bool known = code.n > 0 && !amp_span_is(code, AMP_CODE(E_UNKNOWN));
        /* Work that was ended on purpose, not because of an error, needs no further attempt. */
        out->code = known            ? code
                    : was_aborted(v) ? AMP_CODE_SPAN(cancelled)
                                     : AMP_SPAN("E_UNKNOWN");
        out->classed = true;
        out->stage = amp_span_is(code, AMP_CODE(E_PERMISSION_DENIED)) ||
                             amp_span_is(code, AMP_CODE(E_CONTEXT_OVERFLOW))
                         ? AMP_STAGE_REJECTED
                         : AMP_STAGE_FAILED;
    }
    return true;
}

/* The actual cost counts, where it is given. */
static bool usage_read(const struct amp_view *v, struct amp_usage *out)
{
    static const char actual[] = "/cost_tracking/actual_cost_usd";
    if (v->kind != AMP_KIND_RESULT)
        return false;
    bool has = amp_tape_pointer(v->tape, 0, amp_span_str(actual)) != AMP_TOK_NONE;
    out->tokens_in = amp_usage_at(v->tape, "/cost_tracking/tokens_input", 1);
    out->tokens_out = amp_usage_at(v->tape, "/cost_tracking/tokens_output", 1);
    out->micros = amp_usage_at(v->tape, has ? actual : "/cost_tracking/estimated_cost_usd", 1e6);
    return out->tokens_in || out->tokens_out || out->micros;
}

static int attempt_edit(struct amp_edit *e, const struct amp_again *a)
{
    (void)a;
    if (e->v->payload == AMP_TOK_NONE)
        return amp_fail(e->err, AMP_NO, bad_value, "a message without a task");
    return amp_edit_int(e, e->v->payload, "attempt",
                        amp_attempt_after(amp_attempt_of(e->v), INT64_MAX));
}

/* A refused TASK is answered by its RESPONSE; other messages are not answered. */
static int answer_write(const struct amp_view *of, const struct amp_answer *a, struct amp_buf *out,
                        struct amp_error *err)
{
    AMP_BUF struct amp_buf what = {0};
    if (!amp_stage_refuses(a->stage))
        return amp_terms_record(of, a, out, err);
    amp_buf_init(&what, 1 << 16);
    const char *code = a->code && *a->code ? a->code : AMP_CODE(rejected),
               *note = a->note ? a->note : "";
    if (a->rule && strcmp(a->rule, "duplicate_msg_id") == 0)
        note = "the session has another TASK of this task_id and attempt; it goes on";
    if (amp_buf_fmt(&what, err, "%s%s%s", code, *note ? ": " : "", note) < 0)
        return -1;
    struct amp_aop_refusal refusal = {.code = amp_aop_code(code),
                                      .what = what.data,
                                      .rule = a->rule ? a->rule : "delivery",
                                      .late = a->stage == AMP_STAGE_TIMED_OUT};
    if (a->repeats)
        memcpy(refusal.target, a->repeats, sizeof(refusal.target));
    else
        amp_aop_target(of, refusal.target);
    return amp_aop_undelivered(of, &refusal, a->now_ms, out, err);
}

const struct amp_delivery_terms amp_delivery_aop = {
    .work_ms = task_ms,
    .work_is_ack = true,
    .timeout_code = AMP_CODE(E_TIMEOUT),
    .notifies = AMP_NOTIFIES_OUTCOME,
    .beat = task_beat,
    .retries = {.list_ms = {30000, 120000, 300000}, .n_list = 3},
    .again_id = next_id,
    .again = attempt_edit,
    .own_retries = task_retries,
    .repeats = amp_aop_target,
};

const struct amp_routing_terms amp_routing_aop = {
    .falls_back = true,
};

const struct amp_work_terms amp_work_aop = {
    .name = task_name,
    .work = work_name,
    .sender_at = "/agent/name",
    .outcome = outcome_read,
    .usage = usage_read,
    .result_fault = result_fault,
    .result_waives = result_waives,
    .in_sessions = true,
    .to_holds = true,
    .denied = {[AMP_WORK_NOT_HOLDER] = AMP_CODE(E_PERMISSION_DENIED)},
};

const struct amp_answer_terms amp_answers_aop = {
    .answer = answer_write,
    .replies = &amp_replies_aop,
    .progress_least_ms = AMP_AOP_PROGRESS_LEAST_MS,
};
