/* AOP 2.0.2-C: detection and the view. Checked so far: the header and the parts that the message
 * type demands. */
#include <stddef.h>

#include "protocol/spec.h"

#define V(field) offsetof(struct amp_view, field)

static const struct amp_fill_row envelope[] = {
    {AMP_AT("/message_type"), AMP_AS_TEXT, V(type), 0, NULL},
    {AMP_AT("/task_id"), AMP_AS_TEXT, V(task), 0, NULL},
    {AMP_AT("/task/task_id"), AMP_AS_TEXT, V(task), 0, NULL},
    {AMP_AT("/session_id"), AMP_AS_TEXT, V(correlation), 0, NULL},
    {AMP_AT("/session/session_id"), AMP_AS_TEXT, V(correlation), 0, NULL},
    {AMP_AT("/session/orchestrator"), AMP_AS_TEXT, V(from), 0, NULL},
    {AMP_AT("/session/created_at"), AMP_AS_TIME, V(created_ms), 0, NULL},
    {AMP_AT("/timestamp"), AMP_AS_TIME, V(created_ms), 0, NULL},
    {AMP_AT("/agent"), AMP_AS_TEXT, V(from), 0, NULL},
    {AMP_AT("/agent/name"), AMP_AS_TEXT, V(from), 0, NULL},
    {AMP_AT("/target/agent_name"), AMP_AS_NAMES, V(to), V(n_to), NULL},
    {AMP_AT("/task/attempt"), AMP_AS_INT, V(attempt), V(has_attempt), NULL},
    {AMP_AT("/task"), AMP_AS_TOKEN, V(payload), 0, NULL},
};

static const struct amp_kind_row kinds[] = {
    {"TASK", AMP_KIND_DISPATCH, NULL, false, NULL, false, 0},
    {"RESPONSE", AMP_KIND_RESULT, NULL, false, NULL, false, 0},
    {"EVENT", AMP_KIND_OTHER, NULL, false, NULL, false, 0},
};

static const struct amp_code_row codes[] = {
    {"*", "*", "E_SCHEMA_VALIDATION", NULL},
    {NULL, NULL, NULL, NULL},
};

static bool detect(const struct amp_tape *t, uint32_t object)
{
    return amp_spec_has(t, object, "aop_version") ||
           amp_spec_is(t, object, "protocol_family", "AOP");
}

static int finish(struct amp_view *v, struct amp_pool *arena, struct amp_error *err)
{
    if (amp_spec_is(v->tape, 0, "event", "HEARTBEAT"))
        v->kind = AMP_KIND_HEARTBEAT;
    if (amp_spec_is(v->tape, 0, "event", "PROGRESS_UPDATE"))
        v->kind = AMP_KIND_PROGRESS;
    return 0;
}

const struct amp_spec amp_spec_aop = {
    .protocol = AMP_PROTO_AOP,
    .detect = detect,
    .envelope = AMP_FILL_TABLE(struct amp_view, envelope),
    .kinds = kinds,
    .n_kinds = AMP_SPEC_COUNT(kinds),
    .schema = "aop/envelope.json",
    .codes = codes,
    .finish = finish,
};
