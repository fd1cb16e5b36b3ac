/*
 * AOF/1: detection, the view and a completion report's body. Checked so far: the envelope.
 * Envelopes that stand in a string, behind "AOF/1 " or under payload, message or content of an
 * event are unwrapped by the reader.
 */
#include <stddef.h>

#include "protocol/spec.h"

#define V(field) offsetof(struct amp_view, field)
#define B(field) offsetof(struct amp_body, field)

static const struct amp_fill_row envelope[] = {
    {AMP_AT("/type"), AMP_AS_TEXT, V(type), 0, NULL},
    {AMP_AT("/messageId"), AMP_AS_TEXT, V(id), 0, NULL},
    {AMP_AT("/taskId"), AMP_AS_TEXT, V(task), 0, NULL},
    {AMP_AT("/parentTaskId"), AMP_AS_TEXT, V(correlation), 0, NULL},
    {AMP_AT("/fromAgent"), AMP_AS_TEXT, V(from), 0, NULL},
    {AMP_AT("/toAgent"), AMP_AS_NAMES, V(to), V(n_to), NULL},
    {AMP_AT("/sentAt"), AMP_AS_TIME, V(created_ms), 0, NULL},
    {AMP_AT("/payload/dueBy"), AMP_AS_TIME, V(expires_ms), 0, NULL},
    {AMP_AT("/payload"), AMP_AS_TOKEN, V(payload), 0, NULL},
};

static const struct amp_fill_row report_rows[] = {
    {AMP_AT("/taskId"), AMP_AS_TEXT, B(result.subtask), 0, NULL},
    {AMP_AT("/deliverables"), AMP_AS_TEXTS, B(result.files_changed), 0, NULL},
    {AMP_AT("/blockers"), AMP_AS_TEXTS, B(result.blockers), 0, NULL},
};
static const struct amp_fill_table report = AMP_FILL_TABLE(struct amp_body, report_rows);

static const struct amp_kind_row kinds[] = {
    {"handoff.request", AMP_KIND_HANDOFF, NULL, true, NULL, false, 0},
    {"handoff.accepted", AMP_KIND_ACK, NULL, true, NULL, false, 0},
    {"handoff.rejected", AMP_KIND_NACK, NULL, true, NULL, false, 0},
    {"status.update", AMP_KIND_PROGRESS, NULL, true, NULL, false, 0},
    {"completion.report", AMP_KIND_RESULT, &report, true, NULL, false, 0},
};

static const struct amp_code_row codes[] = {
    {"*", "*", "invalid_envelope", NULL},
    {NULL, NULL, NULL, NULL},
};

static bool detect(const struct amp_tape *t, uint32_t object)
{
    return amp_spec_is(t, object, "protocol", "aof");
}

static int finish(struct amp_view *v, struct amp_pool *arena, struct amp_error *err)
{
    if (v->kind == AMP_KIND_ACK)
        v->body.ack.stage = AMP_STAGE_READ;
    if (v->kind == AMP_KIND_NACK)
        v->body.ack.stage = AMP_STAGE_REJECTED;
    if (v->kind != AMP_KIND_RESULT || v->payload == AMP_TOK_NONE)
        return 0;
    v->body.result.completion = AMP_COMPLETION_PARTIAL;
    if (amp_spec_is(v->tape, v->payload, "outcome", "done"))
        v->body.result.completion = AMP_COMPLETION_COMPLETE;
    if (amp_spec_is(v->tape, v->payload, "outcome", "blocked"))
        v->body.result.completion = AMP_COMPLETION_FAILED;
    return 0;
}

const struct amp_spec amp_spec_aof = {
    .protocol = AMP_PROTO_AOF,
    .detect = detect,
    .envelope = AMP_FILL_TABLE(struct amp_view, envelope),
    .kinds = kinds,
    .n_kinds = AMP_SPEC_COUNT(kinds),
    .schema = "aof/envelope.json",
    .codes = codes,
    .finish = finish,
};
