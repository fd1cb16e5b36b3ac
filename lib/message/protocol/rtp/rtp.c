/* Runtime Protocol v1: the envelope of events, and the detection of events and records. */
#include <stddef.h>

#include "base/codes.h"
#include "message/protocol/rtp/rtp.h"
#include "message/protocol/spec.h"

#define V(field) offsetof(struct amp_view, field)

enum { VIEW_ROWS = 7 }; /* the last rows, which the rules do not read */
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
    {AMP_AT("/sessionId"), AMP_AS_TEXT, V(session), 0, NULL},
    {AMP_AT("/auth/token"), AMP_AS_TEXT, V(proof.token), 0, NULL},
    {AMP_AT("/auth/nonce"), AMP_AS_TEXT, V(proof.nonce), 0, NULL},
};

/* Members of the view from the payload. */
static const struct amp_fill_row addressed_rows[] = {
    {AMP_AT("/taskId"), AMP_AS_TEXT, V(task), 0, NULL},
    {AMP_AT("/toAgents"), AMP_AS_NAMES, V(to), V(n_to), NULL},
};
static const struct amp_fill_table addressed = AMP_FILL_TABLE(struct amp_view, addressed_rows);

#define TIME "RFC 3339 with an offset or Z, such as 2026-02-25T16:22:10.123Z"
static const struct amp_code_row codes[] = {
    {"kind", "*", AMP_CODE(unknown_kind), NULL},
    {"corrId", "*", AMP_CODE(corr_id_required), "the id of the conversation"},
    {"payload.status", "*", AMP_CODE(bad_status), "in_progress or failed"},
    {"payload.etaSeconds", "*", AMP_CODE(eta_range), "1 to 1209600 seconds"},
    {"defaultEtaSeconds", "*", AMP_CODE(eta_range), "between 30 and 86400"},
    {"payload.toAgents", "*", AMP_CODE(invalid_targets), "a list of agents"},
    {"payload.toAgents[]", "*", AMP_CODE(invalid_targets), "the id of an agent"},
    {"payload.errorSummary", "required", AMP_CODE(diagnostics_required), "what went wrong"},
    {"payload.errorSummary", "minLength", AMP_CODE(diagnostics_required), "what went wrong"},
    {"*", "enum", AMP_CODE(bad_enum), NULL},
    {"capabilityId", "pattern", "bad_value", "such as cap.fs.diff-apply"},
    {"payload.capabilityId", "pattern", "bad_value", "such as cap.fs.diff-apply"},
    {"*", "pattern", "bad_value", "a semantic version, such as 1.3.0"},
    {"*", "format", "bad_value", TIME},
    {"*", "*", "bad_value", NULL},
    {NULL, NULL, NULL, NULL},
};

static const struct amp_mark marks[] = {
    {"eventId", "", false, true},      {"kind", "", false, false},
    {"sourceNodeId", "", false, true}, {"sourceAgentId", "", false, false},
    {NULL, NULL, false, false},
};

static enum amp_detected object_detect(const struct amp_tape *t, uint32_t object)
{
    uint32_t id = amp_tape_get(t, object, AMP_SPAN("eventId"));
    if (amp_object_has(t, object, "kind") &&
        (id != AMP_TOK_NONE || amp_object_has(t, object, "sourceNodeId") ||
         amp_object_has(t, object, "sourceAgentId")))
        return AMP_DETECT_ALWAYS;
    if (id == AMP_TOK_NONE)
        return AMP_DETECT_NEVER;
    return t->tok[id].type == AMP_JSON_STRING ? AMP_DETECT_YES : AMP_DETECT_NO;
}

static bool detect_record(const struct amp_tape *t)
{
    return amp_rtp_record(t) != AMP_RTP_UNKNOWN;
}

static void ack_finish(struct amp_view *v)
{
    v->body.ack.stage = AMP_STAGE_RECEIVED;
    if (amp_object_is(v->tape, v->payload, "ackType", "processed"))
        v->body.ack.stage = AMP_STAGE_FULFILLED;
    if (amp_object_is(v->tape, v->payload, "ackType", "failed_terminal")) {
        v->body.ack.stage = AMP_STAGE_FAILED;
        v->kind = AMP_KIND_NACK;
    }
}

/* -20 is the most urgent. */
static int64_t priority_of(const struct amp_view *v)
{
    enum { HIGH = -5, LOW = 10 };
    if (amp_object_is(v->tape, v->payload, "priority", "high"))
        return HIGH;
    return amp_object_is(v->tape, v->payload, "priority", "low") ? LOW : 0;
}

static bool is_true(const struct amp_view *v, const char *key, bool otherwise)
{
    uint32_t tok = amp_tape_get(v->tape, v->payload, amp_span_str(key));
    return tok == AMP_TOK_NONE ? otherwise : v->tape->tok[tok].type == AMP_JSON_TRUE;
}

/* A task wants an answer by default, a message only on request. */
static bool wants_outcome(const struct amp_view *v)
{
    if (v->kind == AMP_KIND_DISPATCH)
        return is_true(v, "responseRequired", true);
    return amp_span_is(v->type, "message") && is_true(v, "expectsReply", false);
}

/* Records have no kind; their type is the name of their place in the control plane. */
static void record_finish(struct amp_view *v)
{
    enum amp_rtp_kind k = amp_rtp_kind_of(v);
    if (k != AMP_RTP_UNKNOWN)
        v->type = amp_span_str(amp_rtp_rows[k].type);
}

/* The class is needed only with a body. */
static void failure_finish(struct amp_body *b)
{
    struct amp_span none = {"", 0};
    b->result.completion = AMP_COMPLETION_FAILED;
    if (b->result.failure.n > 0)
        b->result.failure = amp_span_str(amp_rtp_failure(
            b->result.failure, b->result.blockers.n > 0 ? b->result.blockers.v[0] : none));
}

static int view_finish(struct amp_view *v, struct amp_arena *arena, struct amp_error *err)
{
    if (v->type.n == 0)
        record_finish(v);
    if (v->payload == AMP_TOK_NONE)
        return 0;
    struct amp_span *to = v->to;
    uint32_t n_to = v->n_to;
    v->n_to = 0;
    if (amp_fill(v->tape, v->payload, &addressed, v, arena, err) < 0)
        return -1;
    if (v->n_to > 0 && v->kind == AMP_KIND_DISPATCH)
        v->body.dispatch.wanted = (struct amp_spans){0}; /* named agents take precedence */
    if (v->n_to == 0) {                                  /* an empty list has no recipients */
        v->to = to;
        v->n_to = n_to;
    }
    v->priority = priority_of(v);
    v->wants_outcome = wants_outcome(v);
    if (v->kind == AMP_KIND_ACK)
        ack_finish(v);
    if (v->kind == AMP_KIND_RESULT && amp_span_is(v->type, amp_rtp_rows[AMP_RTP_FAILED].type))
        failure_finish(&v->body);
    return 0;
}

const struct amp_spec amp_spec_rtp = {
    .protocol = AMP_PROTO_RTP,
    .detect = object_detect,
    .detect_record = detect_record,
    .envelope = AMP_FILL_TABLE(struct amp_view, envelope),
    .bare = AMP_FILL_TABLE_BUT(struct amp_view, envelope, VIEW_ROWS),
    .kinds = amp_rtp_rows,
    .n_kinds = AMP_RTP_UNKNOWN,
    .schema = "rtp/envelope.json",
    .codes = codes,
    .kind_of = amp_rtp_kind_row,
    .id = "eventId",
    .beside = {"kind", "seq", "sourceNodeId", "sourceAgentId", "createdAt"},
    .marks = marks,
    .refuse = amp_rtp_refuse,
    .finish = view_finish,
    .rules = amp_rtp_rules,
    .history = ~0u,
};
