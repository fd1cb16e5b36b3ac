/*
 * SW4RM 0.5.0: the envelope, acknowledgements and tool calls as far as the view needs them. Checked
 * so far: the envelope. Its recipient stands outside: {"to":…,"msg":…} is taken apart by the
 * reader.
 */
#include <stddef.h>
#include <string.h>

#include "protocol/names.h"
#include "protocol/sw4rm.h"

#define V(field) offsetof(struct amp_view, field)
#define B(field) offsetof(struct amp_body, field)

static const struct amp_fill_row envelope[] = {
    {AMP_AT("/message_type"), AMP_AS_TEXT, V(type), 0, NULL},
    {AMP_AT("/message_id"), AMP_AS_TEXT, V(id), 0, NULL},
    {AMP_AT("/producer_id"), AMP_AS_TEXT, V(from), 0, NULL},
    {AMP_AT("/correlation_id"), AMP_AS_TEXT, V(correlation), 0, NULL},
    {AMP_AT("/idempotency_token"), AMP_AS_TEXT, V(token), 0, NULL},
    {AMP_AT("/content_type"), AMP_AS_TEXT, V(content_type), 0, NULL},
    {AMP_AT("/content_length"), AMP_AS_SIZE, V(size), 0, NULL},
    {AMP_AT("/sequence_number"), AMP_AS_INT, V(sequence), V(has_sequence), NULL},
    {AMP_AT("/retry_count"), AMP_AS_INT, V(attempt), V(has_attempt), NULL},
    {AMP_AT("/timestamp"), AMP_AS_TIME, V(created_ms), 0, NULL},
    {AMP_AT("/payload/task_id"), AMP_AS_TEXT, V(task), 0, NULL},
    {AMP_AT("/payload"), AMP_AS_TOKEN, V(payload), 0, NULL},
};

static const struct amp_fill_row ack_rows[] = {
    {AMP_AT("/ack_for_message_id"), AMP_AS_TEXT, B(ack.ref), 0, NULL},
    {AMP_AT("/ack_stage"), AMP_AS_WORD, B(ack.stage), 0, &amp_words_stage},
    {AMP_AT("/error_code"), AMP_AS_TEXT, B(ack.code), 0, NULL},
    {AMP_AT("/note"), AMP_AS_TEXT, B(ack.note), 0, NULL},
};
static const struct amp_fill_table ack = AMP_FILL_TABLE(struct amp_body, ack_rows);

static const struct amp_kind_row kinds[] = {
    {"CONTROL", AMP_KIND_OTHER, NULL, true, NULL, false, 0},
    {"DATA", AMP_KIND_OTHER, NULL, true, NULL, false, 0},
    {"HEARTBEAT", AMP_KIND_HEARTBEAT, NULL, true, NULL, false, 0},
    {"NOTIFICATION", AMP_KIND_OTHER, NULL, true, NULL, false, 0},
    {"ACKNOWLEDGEMENT", AMP_KIND_ACK, &ack, true, NULL, false, 0},
    {"HITL_INVOCATION", AMP_KIND_ESCALATION, NULL, true, NULL, false, 0},
    {"HITL_DECISION", AMP_KIND_OTHER, NULL, true, NULL, false, 0},
    {"WORKTREE_CONTROL", AMP_KIND_OTHER, NULL, true, NULL, false, 0},
    {"NEGOTIATION", AMP_KIND_OTHER, NULL, true, NULL, false, 0},
    {"TOOL_CALL", AMP_KIND_TOOL_CALL, NULL, true, NULL, false, 0},
    {"TOOL_RESULT", AMP_KIND_TOOL_RESULT, NULL, true, NULL, false, 0},
    {"TOOL_ERROR", AMP_KIND_TOOL_RESULT, NULL, true, NULL, false, 0},
};

static const struct amp_code_row codes[] = {
    {"message_type", "enum", "unsupported_message_type", NULL},
    {"*", "*", "validation_error", NULL},
    {NULL, NULL, NULL, NULL},
};

enum amp_sw4rm_type amp_sw4rm_type(struct amp_span word)
{
    static const struct amp_span words[] = {
#define X(id, word, most) {word, sizeof(word) - 1},
        AMP_SW4RM_TYPE_LIST(X)
#undef X
    };
    for (unsigned i = 0; i < AMP_SPEC_COUNT(words); i++)
        if (words[i].n == word.n && memcmp(words[i].p, word.p, word.n) == 0)
            return (enum amp_sw4rm_type)i;
    return AMP_SW4RM_TYPE_COUNT;
}

static bool detect(const struct amp_tape *t, uint32_t object)
{
    if (amp_spec_has(t, object, "message_id"))
        return true;
    return amp_spec_has(t, object, "message_type") &&
           (amp_spec_has(t, object, "correlation_id") || amp_spec_has(t, object, "producer_id"));
}

static int finish(struct amp_view *v, struct amp_pool *arena, struct amp_error *err)
{
    if (v->kind == AMP_KIND_ACK && v->body.ack.stage >= AMP_STAGE_REJECTED)
        v->kind = AMP_KIND_NACK;
    uint32_t ttl = amp_tape_get(v->tape, 0, AMP_SPAN("ttl_ms"));
    int64_t ms;
    if (ttl != AMP_TOK_NONE && v->tape->tok[ttl].type == AMP_JSON_NUMBER && v->created_ms > 0 &&
        amp_tok_int(v->tape, ttl, &ms) && ms >= 0 && ms < INT64_MAX - v->created_ms)
        v->expires_ms = v->created_ms + ms;
    return 0;
}

const struct amp_spec amp_spec_sw4rm = {
    .protocol = AMP_PROTO_SW4RM,
    .detect = detect,
    .envelope = AMP_FILL_TABLE(struct amp_view, envelope),
    .kinds = kinds,
    .n_kinds = AMP_SPEC_COUNT(kinds),
    .schema = "sw4rm/envelope.json",
    .codes = codes,
    .finish = finish,
    .rules = amp_sw4rm_rules,
};
