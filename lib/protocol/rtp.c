/* Runtime Protocol v1: detection and the view. Checked so far: the event envelope. */
#include <stddef.h>

#include "protocol/spec.h"

#define V(field) offsetof(struct amp_view, field)
#define B(field) offsetof(struct amp_body, field)

static const struct amp_fill_row envelope[] = {
    {AMP_AT("/kind"), AMP_AS_TEXT, V(type), 0, NULL},
    {AMP_AT("/eventId"), AMP_AS_TEXT, V(id), 0, NULL},
    {AMP_AT("/corrId"), AMP_AS_TEXT, V(correlation), 0, NULL},
    {AMP_AT("/sourceAgentId"), AMP_AS_TEXT, V(from), 0, NULL},
    {AMP_AT("/toAgentId"), AMP_AS_NAMES, V(to), V(n_to), NULL},
    {AMP_AT("/payload/toAgents"), AMP_AS_NAMES, V(to), V(n_to), NULL},
    {AMP_AT("/payload/taskId"), AMP_AS_TEXT, V(task), 0, NULL},
    {AMP_AT("/seq"), AMP_AS_INT, V(sequence), V(has_sequence), NULL},
    {AMP_AT("/trace/attempt"), AMP_AS_INT, V(attempt), V(has_attempt), NULL},
    {AMP_AT("/createdAt"), AMP_AS_TIME, V(created_ms), 0, NULL},
    {AMP_AT("/expiresAt"), AMP_AS_TIME, V(expires_ms), 0, NULL},
    {AMP_AT("/payload"), AMP_AS_TOKEN, V(payload), 0, NULL},
};

static const struct amp_fill_row ack_rows[] = {
    {AMP_AT("/refEventId"), AMP_AS_TEXT, B(ack.ref), 0, NULL},
};
static const struct amp_fill_table ack = AMP_FILL_TABLE(struct amp_body, ack_rows);

static const struct amp_kind_row kinds[] = {
    {"message", AMP_KIND_OTHER, NULL, true, NULL, false, 0},
    {"reply", AMP_KIND_OTHER, NULL, true, NULL, false, 0},
    {"ack", AMP_KIND_ACK, &ack, true, NULL, false, 0},
    {"task_create", AMP_KIND_DISPATCH, NULL, true, NULL, false, 0},
    {"task_accept", AMP_KIND_PROGRESS, NULL, true, NULL, false, 0},
    {"task_update", AMP_KIND_PROGRESS, NULL, true, NULL, false, 0},
    {"task_complete", AMP_KIND_RESULT, NULL, true, NULL, false, 0},
    {"task_failed", AMP_KIND_RESULT, NULL, true, NULL, false, 0},
    {"signal", AMP_KIND_OTHER, NULL, true, NULL, false, 0},
    {"dead_letter", AMP_KIND_OTHER, NULL, true, NULL, false, 0},
};

static const struct amp_code_row codes[] = {
    {"kind", "enum", "unknown_kind", NULL},
    {"corrId", "required", "corr_id_required", NULL},
    {"*", "enum", "bad_enum", NULL},
    {"*", "*", "bad_value", NULL},
    {NULL, NULL, NULL, NULL},
};

static bool detect(const struct amp_tape *t, uint32_t object)
{
    if (amp_spec_has(t, object, "eventId"))
        return true;
    return amp_spec_has(t, object, "kind") &&
           (amp_spec_has(t, object, "sourceNodeId") || amp_spec_has(t, object, "sourceAgentId"));
}

static int finish(struct amp_view *v, struct amp_pool *arena, struct amp_error *err)
{
    if (v->kind == AMP_KIND_ACK && v->payload != AMP_TOK_NONE) {
        v->body.ack.stage = AMP_STAGE_RECEIVED;
        if (amp_spec_is(v->tape, v->payload, "ackType", "processed"))
            v->body.ack.stage = AMP_STAGE_FULFILLED;
        if (amp_spec_is(v->tape, v->payload, "ackType", "failed_terminal")) {
            v->body.ack.stage = AMP_STAGE_FAILED;
            v->kind = AMP_KIND_NACK;
        }
    }
    if (amp_span_is(v->type, "task_failed"))
        v->body.result.completion = AMP_COMPLETION_FAILED;
    return 0;
}

const struct amp_spec amp_spec_rtp = {
    .protocol = AMP_PROTO_RTP,
    .detect = detect,
    .envelope = AMP_FILL_TABLE(struct amp_view, envelope),
    .kinds = kinds,
    .n_kinds = AMP_SPEC_COUNT(kinds),
    .schema = "rtp/envelope.json",
    .codes = codes,
    .finish = finish,
};
