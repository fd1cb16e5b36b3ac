/*
 * SW4RM 0.5.0: the envelope, and the detection of a message. The recipient is outside of it, in
 * {"to":…,"msg":…}, which the reader splits, or in the payload of some shapes.
 */
#include <stddef.h>
#include <string.h>

#include "base/codes.h"
#include "message/protocol/sw4rm/sw4rm.h"

#define V(field) offsetof(struct amp_view, field)

enum { VIEW_ROWS = 1 }; /* the last row, which the rules do not read */
static const struct amp_fill_row envelope[] = {
    {AMP_AT("/message_type"), AMP_AS_TEXT, V(type), 0, NULL},
    {AMP_AT("/message_id"), AMP_AS_TEXT, V(id), 0, NULL},
    {AMP_AT("/producer_id"), AMP_AS_TEXT, V(from), 0, NULL},
    {AMP_AT("/correlation_id"), AMP_AS_TEXT, V(correlation), 0, NULL},
    {AMP_AT("/idempotency_token"), AMP_AS_TEXT, V(token), 0, NULL},
    {AMP_AT("/content_type"), AMP_AS_TEXT, V(content_type), 0, NULL},
    {AMP_AT("/worktree_id"), AMP_AS_TEXT, V(worktree), 0, NULL},
    {AMP_AT("/content_length"), AMP_AS_SIZE, V(size), 0, NULL},
    {AMP_AT("/payload/task_id"), AMP_AS_TEXT, V(task), 0, NULL},
    {AMP_AT("/payload"), AMP_AS_TOKEN, V(payload), 0, NULL},
    {AMP_AT("/sequence_number"), AMP_AS_INT, V(sequence), V(has_sequence), NULL},
    {AMP_AT("/retry_count"), AMP_AS_INT, V(attempt), V(has_attempt), NULL},
    {AMP_AT("/timestamp"), AMP_AS_TIME, V(created_ms), 0, NULL},
};

static const struct amp_code_row codes[] = {
    {"message_type", "enum", AMP_CODE(unsupported_message_type), NULL},
    {"*", "*", AMP_CODE(validation_error), NULL},
    {NULL, NULL, NULL, NULL},
};

static const struct amp_mark marks[] = {
    {"message_id", "", false, true},   {"message_type", "", false, true},
    {"producer_id", "", false, false}, {"correlation_id", "", false, false},
    {NULL, NULL, false, false},
};

static enum amp_detected object_detect(const struct amp_tape *t, uint32_t object)
{
    return amp_object_has(t, object, "message_id") ||
                   (amp_object_has(t, object, "message_type") &&
                    (amp_object_has(t, object, "correlation_id") ||
                     amp_object_has(t, object, "producer_id")))
               ? AMP_DETECT_ALWAYS
               : AMP_DETECT_NEVER;
}

/* Sets the recipient that a payload names, unless the outer object has one. */
static int recipient_set(struct amp_view *v, struct amp_span to, struct amp_arena *arena,
                         struct amp_error *err)
{
    if (v->n_to > 0 || to.n == 0)
        return 0;
    v->to = amp_arena_get(arena, sizeof *v->to);
    if (!v->to)
        return amp_fail_memory(err);
    *v->to = to;
    v->n_to = 1;
    return 0;
}

/* The recipient and the priority of a scheduler's command. */
static int command_finish(struct amp_view *v, struct amp_arena *arena, struct amp_error *err)
{
    struct amp_span agent = {NULL, 0};
    uint32_t tok = amp_tape_get(v->tape, v->payload, AMP_SPAN("priority"));
    int64_t n;
    if (tok != AMP_TOK_NONE && amp_tok_int(v->tape, tok, &n))
        v->priority = n;
    tok = amp_object_get(v->tape, v->payload, "agent_id", AMP_JSON_STRING);
    if (tok != AMP_TOK_NONE && amp_fill_text(v->tape, tok, arena, &agent, err) < 0)
        return -1;
    return recipient_set(v, agent, arena, err);
}

/* The time to live counts from the timestamp, which a bare view lacks. */
static void bare_finish(struct amp_view *v)
{
    int64_t ms;
    if (v->ttl_ms <= 0)
        return;
    uint32_t sent = amp_object_get(v->tape, 0, "timestamp", AMP_JSON_STRING);
    if (sent != AMP_TOK_NONE && amp_time_parse(amp_tok_raw(v->tape, sent), &ms) && ms > 0 &&
        v->ttl_ms < INT64_MAX - ms) {
        v->expires_ms = ms + v->ttl_ms;
        v->ttl_ms = 0;
    }
}

/* The call_id of a call without one is the id of its message; amp_assigned_line writes it. */
static int view_finish(struct amp_view *v, struct amp_arena *arena, struct amp_error *err)
{
    uint32_t ttl = amp_tape_get(v->tape, 0, AMP_SPAN("ttl_ms"));
    int64_t ms;
    if (ttl != AMP_TOK_NONE && amp_tok_int(v->tape, ttl, &ms) && ms > 0) {
        if (v->created_ms > 0 && ms < INT64_MAX - v->created_ms)
            v->expires_ms = v->created_ms + ms;
        else if (v->created_ms <= 0)
            v->ttl_ms = ms;
    }
    switch (v->kind) {
    case AMP_KIND_ESCALATION:
        if (amp_span_is(v->body.escalation.type, "NEGOTIATION_CONFLICT"))
            v->body.escalation.type = AMP_SPAN("CONFLICT");
        if (v->task.n == 0)
            v->task = v->body.escalation.task;
        return 0;
    case AMP_KIND_TOOL_CALL:
        if (v->body.tool_call.call.n == 0)
            v->body.tool_call.call = v->id;
        return recipient_set(v, v->body.tool_call.provider, arena, err);
    case AMP_KIND_WORKTREE:
        return recipient_set(v, v->body.worktree.agent, arena, err);
    case AMP_KIND_HANDOFF:
        return v->body.handoff.answered ? 0 : recipient_set(v, v->body.handoff.to, arena, err);
    default:
        return amp_span_is(v->type, "CONTROL") ? command_finish(v, arena, err) : 0;
    }
}

const struct amp_spec amp_spec_sw4rm = {
    .protocol = AMP_PROTO_SW4RM,
    .history = 1u << AMP_KIND_ACK | 1u << AMP_KIND_NACK | 1u << AMP_KIND_TOOL_RESULT,
    .detect = object_detect,
    .detect_last = true,
    .outer_to = true,
    .rises = "sequence_number",
    .id = "message_id",
    .beside = {"message_type", "producer_id", "correlation_id", "sequence_number", "payload"},
    .marks = marks,
    .envelope = AMP_FILL_TABLE(struct amp_view, envelope),
    .bare = AMP_FILL_TABLE_BUT(struct amp_view, envelope, VIEW_ROWS),
    .kinds = amp_sw4rm_rows,
    .n_kinds = AMP_SHAPE_NONE,
    .kind_of = amp_sw4rm_kind_of,
    .schema = "sw4rm/envelope.json",
    .codes = codes,
    .refuse = amp_sw4rm_refuse,
    .finish = view_finish,
    .bare_finish = bare_finish,
    .rules = amp_sw4rm_rules,
};
