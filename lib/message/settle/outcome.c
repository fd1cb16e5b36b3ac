/* What ends an operation, or tells of it. */
#include "message/settle/outcome.h"

#include <string.h>

#include "message/ledger/awaited.h"
#include "message/ledger/holder.h"
#include "message/operation/retry.h"
#include "message/record/record.h"
#include "message/settle/answer.h"
#include "message/settle/heard.h"
#include "protocol/terms.h"

/* AOP's RESPONSE and its signs of life. Complete in parts is an end, too. */
static bool aop_answer_read(const struct amp_view *v, struct amp_message_answer *a)
{
    a->stage = AMP_STAGE_READ;
    if (v->kind == AMP_KIND_HEARTBEAT || v->kind == AMP_KIND_PROGRESS)
        return true;
    a->stage = AMP_STAGE_FULFILLED;
    if (v->kind == AMP_KIND_RESULT && v->body.result.completion == AMP_COMPLETION_FAILED) {
        a->code = v->body.result.failure.n > 0 ? v->body.result.failure : AMP_SPAN("E_UNKNOWN");
        a->failure = amp_retry_class(a->code);
        a->stage = amp_span_is(a->code, "E_PERMISSION_DENIED") ||
                           amp_span_is(a->code, "E_CONTEXT_OVERFLOW")
                       ? AMP_STAGE_REJECTED
                       : AMP_STAGE_FAILED;
    }
    return v->kind == AMP_KIND_RESULT;
}

/* AOF's answers to a handoff.request: taken, refused, at work, reported. */
static bool aof_answer_read(const struct amp_view *v, struct amp_message_answer *a)
{
    a->stage = v->kind == AMP_KIND_NACK     ? AMP_STAGE_REJECTED
               : v->kind == AMP_KIND_RESULT ? AMP_STAGE_FULFILLED
                                            : AMP_STAGE_READ;
    a->takes_up = v->kind == AMP_KIND_ACK;
    if (v->kind == AMP_KIND_NACK)
        a->code = AMP_SPAN("handoff_rejected");
    if (v->kind == AMP_KIND_RESULT && v->body.result.completion == AMP_COMPLETION_FAILED) {
        a->stage = AMP_STAGE_FAILED;
        a->code = AMP_SPAN("blocked");
    }
    return v->kind == AMP_KIND_NACK || v->kind == AMP_KIND_ACK || v->kind == AMP_KIND_RESULT ||
           v->kind == AMP_KIND_PROGRESS;
}

/* What the message says of the operation: false where it is no end and no beginning of the work. */
static bool answer_read(const struct amp_view *v, struct amp_message_answer *a)
{
    if (v->protocol == AMP_PROTO_AMP)
        return false; /* amp_heard_apply */
    if (v->protocol == AMP_PROTO_AOP)
        return aop_answer_read(v, a);
    if (v->protocol == AMP_PROTO_AOF)
        return aof_answer_read(v, a);
    if (v->kind == AMP_KIND_TOOL_RESULT) {
        if (v->body.tool_result.has_frame && !v->body.tool_result.final)
            return false;
        a->code = v->body.tool_result.code;
        if (a->code.n > 0 || amp_span_is(v->type, "TOOL_ERROR")) {
            a->stage = AMP_STAGE_FAILED;
            a->failure = amp_retry_class(a->code);
        }
    } else if (amp_span_is(v->type, "task_failed")) {
        a->stage = AMP_STAGE_FAILED; /* an end like another: the work was done and told */
        a->code = v->body.result.failure;
    } else if (amp_span_is(v->type, "task_accept")) {
        a->stage = AMP_STAGE_RECEIVED;
        a->holds = a->takes_up = true; /* only the assignee may */
        a->eta_ms = v->body.progress.eta_ms;
    } else if (v->kind != AMP_KIND_RESULT && !amp_span_is(v->type, "reply")) {
        return false;
    }
    if (a->stage == AMP_STAGE_FULFILLED && v->payload != AMP_TOK_NONE)
        a->result = amp_tok_source(v->tape, v->payload);
    return true;
}

bool amp_outcome_is(const struct amp_view *v)
{
    struct amp_message_answer a = {0};
    return amp_heard_is(v) || (answer_read(v, &a) && amp_awaited_is_named(v));
}

/* One answer to all attempts at an operation. */
struct telling {
    struct amp_store *store;
    const struct amp_view *v;
    const struct amp_message_answer *answer;
    int64_t now_ms;
    bool check; /* only whether the sender may */
    bool taken; /* at least one attempt took it */
    struct amp_error denied;
};

/* Whether the message ends the work that this attempt asked for. */
static int attempt_ends(const struct telling *t, struct amp_span id, bool *ends,
                        struct amp_error *err)
{
    const struct amp_terms *terms = amp_terms_of(t->v->protocol);
    struct amp_message_rec r;
    AMP_BUF struct amp_buf mem = {0};
    *ends = true;
    if (!terms->ends || t->answer->stage != AMP_STAGE_FULFILLED)
        return 0;
    amp_buf_init(&mem, AMP_RECORD_MAX);
    if (amp_message_find(t->store, id, &mem, &r, err) < 0)
        return -1;
    *ends = !r.found || terms->ends(r.line, t->v);
    return 0;
}

/* Of several attempts, or hand-overs, the answer is to those whose holder gives it. */
static int attempt_answer(void *ctx, struct amp_span id, struct amp_error *err)
{
    struct telling *t = ctx;
    struct amp_error e = {0};
    bool ends;
    if (attempt_ends(t, id, &ends, err) < 0)
        return -1;
    if (!ends)
        return 0;
    int rc = t->check ? amp_message_may_answer(t->store, id, NULL, t->answer, &e)
                      : amp_settle_answer(t->store, id, t->answer, t->now_ms, NULL, &e);
    if (rc == 0) {
        t->taken = true;
    } else if (e.status != AMP_NO) {
        *err = e;
        return -1;
    } else if (amp_holder_denied(&e)) {
        t->denied = e; /* else unknown, or out of turn: nothing to settle */
    }
    return 0;
}

/* Settles the attempts that the message answers with `a`, or only checks whether its sender may. */
static int attempts_answer(struct amp_store *s, const struct amp_view *v,
                           struct amp_message_answer a, int64_t now_ms, bool check,
                           struct amp_error *err)
{
    char by[256];
    struct telling t = {.store = s, .v = v, .answer = &a, .now_ms = now_ms, .check = check};
    amp_span_copy(v->from, by, sizeof(by));
    a.by = by;
    if (amp_awaited_each(s, v, attempt_answer, &t, err) < 0)
        return -1;
    if (t.taken || t.denied.status != AMP_NO)
        return 0;
    *err = t.denied;
    return -1;
}

int amp_outcome_check(struct amp_store *s, const struct amp_view *v, struct amp_error *err)
{
    struct amp_message_answer a = {.stage = AMP_STAGE_FULFILLED, .worded = true};
    return answer_read(v, &a) ? attempts_answer(s, v, a, 0, true, err) : 0;
}

int amp_outcome_apply(struct amp_store *s, const struct amp_view *v, int64_t now_ms,
                      struct amp_error *err)
{
    struct amp_message_answer a = {.stage = AMP_STAGE_FULFILLED, .worded = true};
    if (amp_heard_is(v))
        return amp_heard_apply(s, v, now_ms, err);
    return answer_read(v, &a) ? attempts_answer(s, v, a, now_ms, false, err) : 0;
}

int amp_outcome_fail(struct amp_store *s, const struct amp_view *v, const char *code,
                     int64_t now_ms, struct amp_error *err)
{
    struct amp_message_answer a = {.stage = AMP_STAGE_FAILED,
                                   .worded = true,
                                   .code = amp_span_str(code),
                                   .failure = AMP_FAILURE_TERMINAL};
    return attempts_answer(s, v, a, now_ms, false, err);
}

bool amp_outcome_known(const struct amp_message_rec *r)
{
    return !r->wants_outcome || amp_record_has_stage(r, "FULFILLED") ||
           amp_record_has_stage(r, "FAILED");
}
