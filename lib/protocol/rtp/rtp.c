/*
 * Runtime Protocol v1: the ten kinds of events, and the records of the control plane (capabilities,
 * cursors, review items), which have no kind and are told by their members.
 */
#include "protocol/rtp/rtp.h"

#include <stddef.h>
#include <string.h>

#include "protocol/spec.h"

#define V(field) offsetof(struct amp_view, field)
#define B(field) offsetof(struct amp_body, field)

/* The last rows are of no interest to the rules. */
enum { VIEW_ROWS = 4 };
static const struct amp_fill_row envelope[] = {
    {AMP_AT("/eventId"), AMP_AS_TEXT, V(id), 0, NULL},
    {AMP_AT("/kind"), AMP_AS_TEXT, V(type), 0, NULL},
    {AMP_AT("/sourceAgentId"), AMP_AS_TEXT, V(from), 0, NULL},
    {AMP_AT("/toAgentId"), AMP_AS_NAMES, V(to), V(n_to), NULL},
    {AMP_AT("/corrId"), AMP_AS_TEXT, V(correlation), 0, NULL},
    {AMP_AT("/createdAt"), AMP_AS_TIME, V(created_ms), 0, NULL},
    {AMP_AT("/expiresAt"), AMP_AS_TIME, V(expires_ms), 0, NULL},
    {AMP_AT("/payload"), AMP_AS_TOKEN, V(payload), 0, NULL},
    {AMP_AT("/sourceNodeId"), AMP_AS_TEXT, V(node), 0, NULL},
    {AMP_AT("/seq"), AMP_AS_INT, V(sequence), V(has_sequence), NULL},
    {AMP_AT("/trace/attempt"), AMP_AS_INT, V(attempt), V(has_attempt), NULL},
    {AMP_AT("/trace/idempotencyKey"), AMP_AS_TEXT, V(token), 0, NULL},
};

/* What the view takes from the payload. */
static const struct amp_fill_row addressed_rows[] = {
    {AMP_AT("/taskId"), AMP_AS_TEXT, V(task), 0, NULL},
    {AMP_AT("/toAgents"), AMP_AS_NAMES, V(to), V(n_to), NULL},
};
static const struct amp_fill_table addressed = AMP_FILL_TABLE(struct amp_view, addressed_rows);

/* The title stands for the description where there is none. */
static const struct amp_fill_row create_rows[] = {
    {AMP_AT("/title"), AMP_AS_TEXT, B(dispatch.description), 0, NULL},
    {AMP_AT("/description"), AMP_AS_TEXT, B(dispatch.description), 0, NULL},
    {AMP_AT("/requiredCapabilities"), AMP_AS_TEXTS, B(dispatch.wanted), 0, NULL},
};
static const struct amp_fill_table create = AMP_FILL_TABLE(struct amp_body, create_rows);

static const struct amp_fill_row ack_rows[] = {
    {AMP_AT("/refEventId"), AMP_AS_TEXT, B(ack.ref), 0, NULL},
    {AMP_AT("/code"), AMP_AS_TEXT, B(ack.code), 0, NULL},
    {AMP_AT("/reason"), AMP_AS_TEXT, B(ack.note), 0, NULL},
    {AMP_AT("/etaAt"), AMP_AS_TIME, B(ack.eta_ms), 0, NULL},
    {AMP_AT("/retryable"), AMP_AS_BOOL, B(ack.retryable), 0, NULL},
};
static const struct amp_fill_table ack = AMP_FILL_TABLE(struct amp_body, ack_rows);

static const struct amp_fill_row accept_rows[] = {
    {AMP_AT("/acceptedByAgentId"), AMP_AS_TEXT, B(progress.agent), 0, NULL},
    {AMP_AT("/etaAt"), AMP_AS_TIME, B(progress.eta_ms), 0, NULL},
    {AMP_AT("/planSummary"), AMP_AS_TEXT, B(progress.note), 0, NULL},
};
static const struct amp_fill_table accept = AMP_FILL_TABLE(struct amp_body, accept_rows);

static const struct amp_fill_row update_rows[] = {
    {AMP_AT("/status"), AMP_AS_TEXT, B(progress.status), 0, NULL},
    {AMP_AT("/progress"), AMP_AS_REAL, B(progress.percent), B(progress.has_percent), NULL},
    {AMP_AT("/note"), AMP_AS_TEXT, B(progress.note), 0, NULL},
    {AMP_AT("/revisedEtaAt"), AMP_AS_TIME, B(progress.eta_ms), 0, NULL},
};
static const struct amp_fill_table update = AMP_FILL_TABLE(struct amp_body, update_rows);

static const struct amp_fill_row complete_rows[] = {
    {AMP_AT("/taskId"), AMP_AS_TEXT, B(result.subtask), 0, NULL},
    {AMP_AT("/resultSummary"), AMP_AS_NAMES, B(result.notes.v), B(result.notes.n), NULL},
    {AMP_AT("/resultRef"), AMP_AS_TEXT, B(result.ref), 0, NULL},
};
static const struct amp_fill_table complete = AMP_FILL_TABLE(struct amp_body, complete_rows);

static const struct amp_fill_row failed_rows[] = {
    {AMP_AT("/taskId"), AMP_AS_TEXT, B(result.subtask), 0, NULL},
    {AMP_AT("/failureClass"), AMP_AS_TEXT, B(result.failure), 0, NULL},
    {AMP_AT("/errorSummary"), AMP_AS_NAMES, B(result.blockers.v), B(result.blockers.n), NULL},
};
static const struct amp_fill_table failed = AMP_FILL_TABLE(struct amp_body, failed_rows);

#define TIME "RFC 3339 with an offset or Z, such as 2026-02-25T16:22:10.123Z"
static const struct amp_code_row codes[] = {
    {"kind", "*", "unknown_kind", NULL},
    {"corrId", "*", "corr_id_required", "the id of the conversation"},
    {"payload.status", "*", "bad_status", "in_progress or failed"},
    {"payload.etaSeconds", "*", "eta_range", "1 to 1209600 seconds"},
    {"defaultEtaSeconds", "*", "eta_range", "between 30 and 86400"},
    {"payload.toAgents", "*", "invalid_targets", "a list of agents"},
    {"payload.toAgents[]", "*", "invalid_targets", "the id of an agent"},
    {"payload.errorSummary", "required", "diagnostics_required", "what went wrong"},
    {"payload.errorSummary", "minLength", "diagnostics_required", "what went wrong"},
    {"*", "enum", "bad_enum", NULL},
    {"capabilityId", "pattern", "bad_value", "such as cap.fs.diff-apply"},
    {"payload.capabilityId", "pattern", "bad_value", "such as cap.fs.diff-apply"},
    {"*", "pattern", "bad_value", "a semantic version, such as 1.3.0"},
    {"*", "format", "bad_value", TIME},
    {"*", "*", "bad_value", NULL},
    {NULL, NULL, NULL, NULL},
};
/* Of events that need no conversation: messages, signals, dead letters. */
static const struct amp_code_row lone_codes[] = {
    {"payload.toAgents", "required", "missing_route_fields", "at least one agent"},
    {"payload.toAgents", "minItems", "missing_route_fields", "at least one agent"},
    {"payload.toAgents", "*", "invalid_targets", "a list of agents"},
    {"payload.toAgents[]", "*", "invalid_targets", "the id of an agent"},
    {"*", "enum", "bad_enum", NULL},
    {"*", "format", "bad_value", TIME},
    {"*", "*", "bad_value", NULL},
    {NULL, NULL, NULL, NULL},
};

#define ROW_OF(word, kind, body, schema, codes)                                                    \
    {                                                                                              \
        word, AMP_KIND_##kind, body, true, "rtp/" schema ".json", false, 0, &amp_fill_nothing,     \
            codes                                                                                  \
    }
#define ROW(word, kind, body, schema) ROW_OF(word, kind, body, schema, NULL)
static const struct amp_kind_row kinds[] = {
    [AMP_RTP_MESSAGE] = ROW_OF("message", OTHER, NULL, "message", lone_codes),
    [AMP_RTP_REPLY] = ROW("reply", OTHER, NULL, "reply"),
    [AMP_RTP_ACK] = ROW("ack", ACK, &ack, "ack"),
    [AMP_RTP_ACK_ACCEPT] = ROW("ack", PROGRESS, &accept, "ack_accept"),
    [AMP_RTP_CREATE] = ROW("task_create", DISPATCH, &create, "task_create"),
    [AMP_RTP_SKILL] = ROW("task_create", DISPATCH, &create, "skill_distribution"),
    [AMP_RTP_ACCEPT] = ROW("task_accept", PROGRESS, &accept, "task_accept"),
    [AMP_RTP_UPDATE] = ROW("task_update", PROGRESS, &update, "task_update"),
    [AMP_RTP_COMPLETE] = ROW("task_complete", RESULT, &complete, "task_complete"),
    [AMP_RTP_FAILED] = ROW("task_failed", RESULT, &failed, "task_failed"),
    [AMP_RTP_SIGNAL] = ROW_OF("signal", OTHER, NULL, "signal", lone_codes),
    [AMP_RTP_DEAD_LETTER] = ROW_OF("dead_letter", OTHER, NULL, "dead_letter", lone_codes),
    [AMP_RTP_CATALOG] = ROW("capabilities.catalog", OTHER, NULL, "capability_catalog"),
    [AMP_RTP_INDEX] = ROW("capabilities.index", OTHER, NULL, "capability_index"),
    [AMP_RTP_CURSOR] = ROW("delivery.cursors", OTHER, NULL, "cursor"),
    [AMP_RTP_REVIEW] = ROW("review_item", OTHER, NULL, "review_item"),
    [AMP_RTP_SKILL_ALONE] = ROW("skill_distribution", OTHER, NULL, "skill_distribution_payload"),
};

static enum amp_detected detect(const struct amp_tape *t, uint32_t object)
{
    uint32_t id = amp_tape_get(t, object, AMP_SPAN("eventId"));
    if (amp_spec_has(t, object, "kind") &&
        (id != AMP_TOK_NONE || amp_spec_has(t, object, "sourceNodeId") ||
         amp_spec_has(t, object, "sourceAgentId")))
        return AMP_DETECT_ALWAYS;
    if (id == AMP_TOK_NONE)
        return AMP_DETECT_NEVER;
    return t->tok[id].type == AMP_JSON_STRING ? AMP_DETECT_YES : AMP_DETECT_NO;
}

/* Which record an object without a kind is: each by members that no other has, so that it is told
 * also where its id is what it lacks. */
static enum amp_rtp_kind record_of(const struct amp_tape *t)
{
    bool consumer = amp_spec_has(t, 0, "consumerNodeId"),
         source = amp_spec_has(t, 0, "sourceNodeId");
    if ((consumer && source) || ((consumer || source) && amp_spec_has(t, 0, "lastSeq")))
        return AMP_RTP_CURSOR;
    if (amp_spec_has(t, 0, "reviewId") || amp_spec_has(t, 0, "sampleCorrIds"))
        return AMP_RTP_REVIEW;
    if (amp_spec_is(t, 0, "taskType", "skill_distribution"))
        return AMP_RTP_SKILL_ALONE;
    bool capability = amp_spec_has(t, 0, "capabilityId");
    if (amp_spec_has(t, 0, "eligibleAgentIds") &&
        (capability || amp_spec_has(t, 0, "policyVersion")))
        return AMP_RTP_INDEX;
    bool owner = amp_spec_has(t, 0, "ownerAgentId");
    return (owner && amp_spec_has(t, 0, "executorSkillRef")) ||
                   (capability && (owner || amp_spec_has(t, 0, "contractSchemaRef") ||
                                   amp_spec_has(t, 0, "defaultEtaSeconds")))
               ? AMP_RTP_CATALOG
               : AMP_RTP_UNKNOWN;
}

static bool detect_record(const struct amp_tape *t)
{
    return record_of(t) != AMP_RTP_UNKNOWN;
}

/* The kind that a word names: its length and one letter leave one candidate. */
static enum amp_rtp_kind kind_word(struct amp_span word)
{
    enum amp_rtp_kind k = AMP_RTP_UNKNOWN;
    switch (word.n) {
    case 3:
        k = AMP_RTP_ACK;
        break;
    case 5:
        k = AMP_RTP_REPLY;
        break;
    case 6:
        k = AMP_RTP_SIGNAL;
        break;
    case 7:
        k = AMP_RTP_MESSAGE;
        break;
    case 11:
        k = word.p[5] == 'c'   ? AMP_RTP_CREATE
            : word.p[5] == 'a' ? AMP_RTP_ACCEPT
            : word.p[5] == 'u' ? AMP_RTP_UPDATE
            : word.p[5] == 'f' ? AMP_RTP_FAILED
                               : AMP_RTP_DEAD_LETTER;
        break;
    case 13:
        k = AMP_RTP_COMPLETE;
        break;
    default:
        return k;
    }
    return memcmp(word.p, kinds[k].type, word.n) == 0 ? k : AMP_RTP_UNKNOWN;
}

enum amp_rtp_kind amp_rtp_kind_of(const struct amp_view *v)
{
    const struct amp_tape *t = v->tape;
    if (v->type.n == 0)
        return amp_spec_has(t, 0, "eventId") || amp_spec_has(t, 0, "kind") ? AMP_RTP_UNKNOWN
                                                                           : record_of(t);
    enum amp_rtp_kind k = kind_word(v->type);
    if (k == AMP_RTP_CREATE && v->payload != AMP_TOK_NONE &&
        amp_spec_is(t, v->payload, "taskType", "skill_distribution"))
        return AMP_RTP_SKILL;
    if (k == AMP_RTP_ACK && v->payload != AMP_TOK_NONE && amp_spec_has(t, v->payload, "taskId") &&
        !amp_spec_has(t, v->payload, "refEventId"))
        return AMP_RTP_ACK_ACCEPT;
    return k;
}

static const struct amp_kind_row *kind_of(const struct amp_view *v)
{
    enum amp_rtp_kind k = amp_rtp_kind_of(v);
    return k == AMP_RTP_UNKNOWN ? NULL : &kinds[k];
}

enum amp_rtp_kind amp_rtp_row_kind(const struct amp_kind_row *row)
{
    return row ? (enum amp_rtp_kind)(row - kinds) : AMP_RTP_UNKNOWN;
}

static void finish_ack(struct amp_view *v)
{
    v->body.ack.stage = AMP_STAGE_RECEIVED;
    if (amp_spec_is(v->tape, v->payload, "ackType", "processed"))
        v->body.ack.stage = AMP_STAGE_FULFILLED;
    if (amp_spec_is(v->tape, v->payload, "ackType", "failed_terminal")) {
        v->body.ack.stage = AMP_STAGE_FAILED;
        v->kind = AMP_KIND_NACK;
    }
}

/* -20 is the most urgent. */
static int64_t priority_of(const struct amp_view *v)
{
    enum { HIGH = -5, LOW = 10 };
    uint32_t tok = amp_tape_get(v->tape, v->payload, AMP_SPAN("priority"));
    if (tok == AMP_TOK_NONE || v->tape->tok[tok].type != AMP_JSON_STRING)
        return 0;
    if (amp_tok_is(v->tape, tok, AMP_SPAN("high")))
        return HIGH;
    return amp_tok_is(v->tape, tok, AMP_SPAN("low")) ? LOW : 0;
}

static bool is_true(const struct amp_view *v, const char *key, bool otherwise)
{
    uint32_t tok = amp_tape_get(v->tape, v->payload, amp_span_str(key));
    return tok == AMP_TOK_NONE ? otherwise : v->tape->tok[tok].type == AMP_JSON_TRUE;
}

/* A task is answered unless it says otherwise, a message only where it asks. */
static bool wants_outcome(const struct amp_view *v)
{
    if (v->kind == AMP_KIND_DISPATCH)
        return is_true(v, "responseRequired", true);
    return amp_span_is(v->type, "message") && is_true(v, "expectsReply", false);
}

/* Records have no kind: they are called after their place in the control plane. */
static void finish_record(struct amp_view *v)
{
    enum amp_rtp_kind k = amp_rtp_kind_of(v);
    if (k != AMP_RTP_UNKNOWN)
        v->type = amp_span_str(kinds[k].type);
}

static int finish(struct amp_view *v, struct amp_pool *arena, struct amp_error *err)
{
    if (v->type.n == 0)
        finish_record(v);
    if (v->payload == AMP_TOK_NONE)
        return 0;
    struct amp_span *to = v->to;
    uint32_t n_to = v->n_to;
    v->n_to = 0;
    if (amp_fill(v->tape, v->payload, &addressed, v, arena, err) < 0)
        return -1;
    if (v->n_to > 0 && v->kind == AMP_KIND_DISPATCH)
        v->body.dispatch.wanted = (struct amp_spans){0}; /* agents that are named go first */
    if (v->n_to == 0) {                                  /* an empty list names nobody */
        v->to = to;
        v->n_to = n_to;
    }
    v->priority = priority_of(v);
    v->wants_outcome = wants_outcome(v);
    if (v->kind == AMP_KIND_ACK)
        finish_ack(v);
    if (v->kind == AMP_KIND_RESULT && amp_span_is(v->type, kinds[AMP_RTP_FAILED].type))
        v->body.result.completion = AMP_COMPLETION_FAILED;
    return 0;
}

const struct amp_spec amp_spec_rtp = {
    .protocol = AMP_PROTO_RTP,
    .detect = detect,
    .detect_record = detect_record,
    .envelope = AMP_FILL_TABLE(struct amp_view, envelope),
    .bare = AMP_FILL_TABLE_BUT(struct amp_view, envelope, VIEW_ROWS),
    .kinds = kinds,
    .n_kinds = AMP_SPEC_COUNT(kinds),
    .schema = "rtp/envelope.json",
    .codes = codes,
    .kind_of = kind_of,
    .refuse = amp_rtp_refuse,
    .finish = finish,
    .rules = amp_rtp_rules,
};
