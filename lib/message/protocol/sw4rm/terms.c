/* SW4RM: the terms of delivery (§11, §18, §20, §21). */
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/codes.h"
#include "message/protocol/answers.h"
#include "message/protocol/delivery.h"
#include "message/protocol/handoff.h"
#include "message/protocol/question.h"
#include "message/protocol/reply.h"
#include "message/protocol/routing.h"
#include "message/protocol/sw4rm/answer.h"
#include "message/protocol/sw4rm/sw4rm.h"
#include "message/protocol/work.h"

#define YEAR_MS INT64_C(31536000000)

/* The note repeats a replaced code. SW4RM derives from the code whether another attempt may help.
 */
static const char *refusal_code(const struct amp_answer *a)
{
    const char *code = a->code && *a->code ? a->code : AMP_CODE(rejected);
    for (const char *c = code; *c; c++)
        if (!isalpha((unsigned char)*c) && *c != '_')
            return code; /* an application's own code, which the list allows */
    const char *said = amp_sw4rm_code(code);
    bool vague = amp_code_is(said, internal_error) || amp_code_is(said, validation_error);
    return a->retryable && vague && strcasecmp(said, code) != 0 ? AMP_CODE(agent_unavailable)
                                                                : said;
}

static bool is_answerable(const struct amp_view *of)
{
    return of->from.n > 0;
}

static int refusal_write(const struct amp_view *of, const struct amp_answer *a, struct amp_buf *out,
                         struct amp_error *err)
{
    struct amp_answer said = *a;
    AMP_BUF struct amp_buf note = {0};
    amp_buf_init(&note, 1 << 16);
    said.code = refusal_code(a);
    if (a->code && strcasecmp(said.code, a->code) != 0 &&
        amp_buf_fmt(&note, err, "%s: ", a->code) < 0)
        return -1;
    if (amp_buf_str(&note, a->note ? a->note : "", err) < 0)
        return -1;
    said.note = note.data;
    return amp_sw4rm_ack(of, &said, out, err);
}

static int answer_write(const struct amp_view *of, const struct amp_answer *a, struct amp_buf *out,
                        struct amp_error *err)
{
    if (!is_answerable(of))
        return amp_terms_record(of, a, out, err);
    return amp_stage_refuses(a->stage) ? refusal_write(of, a, out, err)
                                       : amp_sw4rm_ack(of, a, out, err);
}

static int duplicate_write(const struct amp_view *of, const struct amp_answer *a,
                           const struct amp_first_attempt *first, struct amp_buf *out,
                           struct amp_error *err)
{
    struct amp_answer said = *a;
    char note[300];
    if (first->done)
        return amp_sw4rm_duplicate(of, a, first, out, err);
    snprintf(note, sizeof(note), "The work of %.*s continues; it is %s",
             (int)(first->id.n < 200 ? first->id.n : 200), first->id.p, first->status);
    said.stage = AMP_STAGE_REJECTED;
    said.code = AMP_CODE(already_in_progress);
    said.note = note;
    return amp_sw4rm_ack(of, &said, out, err);
}

/* The time limit of a TOOL_CALL (§18.2, §18.5.1). */
static int64_t call_ms(const struct amp_view *v)
{
    if (v->kind != AMP_KIND_TOOL_CALL)
        return 0;
    int64_t most = v->body.tool_call.timeout_ms, wall = v->body.tool_call.wall_ms;
    if (most <= 0 || (wall > 0 && wall < most))
        most = wall;
    return most > 0 && most <= YEAR_MS ? most : 0;
}

static void call_retries(const struct amp_view *of, struct amp_again_terms *out)
{
    if (of->kind != AMP_KIND_TOOL_CALL)
        return;
    static const char *const places[] = {"/execution_policy/retries",
                                         "/execution_policy/max_retries", "/policy/retries",
                                         "/policy/max_retries"};
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        int64_t n;
        uint32_t tok = amp_tape_pointer(of->tape, of->payload, amp_span_str(places[i]));
        if (tok != AMP_TOK_NONE && amp_tok_int(of->tape, tok, &n) && n >= 0)
            out->most = n;
    }
}

/* §18.2: the scheduler assigns the call_id. Later attempts keep that of the first. */
static int call_assign(struct amp_edit *e)
{
    const struct amp_view *v = e->v;
    if (v->kind != AMP_KIND_TOOL_CALL || v->id.n == 0 ||
        amp_tape_get(v->tape, v->payload, AMP_SPAN("call_id")) != AMP_TOK_NONE)
        return 0;
    if (amp_edit_text(e, v->payload, "call_id", v->body.tool_call.call) < 0)
        return -1;
    int64_t longer = (int64_t)e->place[e->n - 1].text.len;
    return amp_tape_get(v->tape, 0, AMP_SPAN("content_length")) == AMP_TOK_NONE ||
                   amp_edit_int(e, 0, "content_length", (int64_t)v->size + longer) == 0
               ? 1
               : -1;
}

static int attempt_edit(struct amp_edit *e, const struct amp_again *a)
{
    return call_assign(e) < 0 || amp_edit_text(e, 0, "message_id", amp_span_str(a->id)) < 0
               ? -1
               : amp_edit_int(e, 0, "retry_count", amp_attempt_after(e->v->attempt, UINT32_MAX));
}

/* The JSON of "result", or else of "note". */
static struct amp_span ack_result(const struct amp_view *v)
{
    static const char *const keys[] = {"result", "note"};
    for (size_t i = 0; v->payload != AMP_TOK_NONE && i < sizeof(keys) / sizeof(keys[0]); i++) {
        uint32_t tok = amp_tape_get(v->tape, v->payload, amp_span_str(keys[i]));
        if (tok != AMP_TOK_NONE)
            return amp_tok_source(v->tape, tok);
    }
    return (struct amp_span){"", 0};
}

static bool work_name(const struct amp_view *v, struct amp_work *out)
{
    bool call = v->kind == AMP_KIND_TOOL_CALL;
    *out = (struct amp_work){v->correlation,
                             call ? v->body.tool_call.call : v->body.tool_result.call, call};
    return call || v->kind == AMP_KIND_TOOL_RESULT;
}

/* A TOOL_RESULT or TOOL_ERROR; of several frames the last. */
static bool outcome_read(const struct amp_view *v, struct amp_outcome *out)
{
    if (v->kind != AMP_KIND_TOOL_RESULT ||
        (v->body.tool_result.has_frame && !v->body.tool_result.final))
        return false;
    out->code = v->body.tool_result.code;
    if (out->code.n > 0 || amp_span_is(v->type, "TOOL_ERROR")) {
        out->stage = AMP_STAGE_FAILED;
        out->classed = true;
    } else if (v->payload != AMP_TOK_NONE) {
        out->result = amp_tok_source(v->tape, v->payload);
    }
    return true;
}

static enum amp_operation_by operation_of(const struct amp_view *v)
{
    return amp_span_is(v->type, "ACKNOWLEDGEMENT") ? AMP_OPERATION_NONE : AMP_OPERATION_BY_TOKEN;
}

/* CONTROL with the command "deregister", or the request with its protobuf name. */
static bool is_deregistration(const struct amp_view *v)
{
    static const char request[] = "DeregisterAgentRequest";
    uint32_t command = amp_tape_get(v->tape, v->payload, AMP_SPAN("command")),
             type = amp_tape_get(v->tape, v->payload, AMP_SPAN("type"));
    struct amp_span word = {"", 0}, name = {"", 0};
    size_t n = sizeof request - 1;
    if (command != AMP_TOK_NONE && amp_span_is(v->type, "CONTROL"))
        word = amp_tok_raw(v->tape, command);
    if (type != AMP_TOK_NONE)
        name = amp_tok_raw(v->tape, type);
    return (word.n == 10 && strncasecmp(word.p, "deregister", 10) == 0) ||
           (name.n >= n && memcmp(name.p + name.n - n, request, n) == 0 &&
            (name.n == n || name.p[name.n - n - 1] == '.'));
}

static enum amp_registry_act registry_act(const struct amp_view *v)
{
    if (v->kind == AMP_KIND_ACK)
        return AMP_REGISTRY_ACK;
    if (v->payload == AMP_TOK_NONE || v->tape->tok[v->payload].type != AMP_JSON_OBJECT)
        return v->kind == AMP_KIND_HEARTBEAT ? AMP_REGISTRY_BEAT : AMP_REGISTRY_NONE;
    enum amp_sw4rm_shape shape = amp_sw4rm_shape(v, amp_sw4rm_type(v->type));
    if (shape == AMP_SHAPE_AGENT_REGISTRATION)
        return AMP_REGISTRY_REGISTER;
    if (shape == AMP_SHAPE_AGENT_DESCRIPTOR)
        return AMP_REGISTRY_DESCRIPTOR;
    if (is_deregistration(v))
        return AMP_REGISTRY_DEREGISTER;
    return shape == AMP_SHAPE_HEARTBEAT ? AMP_REGISTRY_BEAT : AMP_REGISTRY_NONE;
}

static const char *const silent[] = {"ACKNOWLEDGEMENT", "HEARTBEAT", NULL};

/* §11.2; heartbeats are repeated as they are. */
static bool is_routed_once(const struct amp_view *v)
{
    return v->id.n > 0 && !amp_span_is(v->type, "HEARTBEAT");
}

const struct amp_delivery_terms amp_delivery_sw4rm = {
    .acknowledges = true,
    .waits_for = AMP_STAGE_RECEIVED,
    .begins_read = true,
    .stages_follow = true,
    .expires_unread = true,
    .handed_over = 1u << AMP_STAGE_READ | 1u << AMP_STAGE_FULFILLED,
    .acks_to_sender = true,
    .overdue_code = AMP_CODE(tool_timeout),
    .notifies = AMP_NOTIFIES_NACK,
    .ack_timeout_ms = 10000,
    .silent = silent,
    .expiry_fails = true, /* §11 */
    .work_ms = call_ms,
    .ack_result = ack_result,
    .retries = {.base_ms = 1000, .cap_ms = 300000},
    .again = attempt_edit,
    .assign = call_assign,
    .own_retries = call_retries,
};

const struct amp_routing_terms amp_routing_sw4rm = {
    .refuses_malformed = true, /* §21 */
    .acks_update_ledger = true,
    .routes_once = is_routed_once,
    .signs = true,
    .delivers_content = true,
    .full_code = AMP_CODE(buffer_full),
    .sequence_code = AMP_CODE(validation_error),
    .tool_frame = "TOOL_RESULT",
    .registry = registry_act,
    .registry_answers = true,
};

const struct amp_work_terms amp_work_sw4rm = {
    .work = work_name,
    .sender_at = "/producer_id",
    .outcome = outcome_read,
    .operation = operation_of,
    .denied = {[AMP_WORK_NOT_HOLDER] = AMP_CODE(permission_denied)},
};

const struct amp_answer_terms amp_answers_sw4rm = {
    .replies = &amp_replies_sw4rm,
    .handoffs = &amp_handoffs_sw4rm,
    .numbering = AMP_NUMBERED_BY_PRODUCER,
    .answer = answer_write,
    .duplicate = duplicate_write,
    .answers = is_answerable,
};
