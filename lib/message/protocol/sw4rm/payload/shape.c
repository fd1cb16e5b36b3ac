/*
 * SW4RM: the shape of a message. Some shapes follow from the message type alone, others from an
 * acknowledgement's stage, a negotiation's event or a worktree's operation. The payloads of DATA,
 * CONTROL and NOTIFICATION are free: their shapes are recognised by members that no other shape
 * has, or by the name in protobuf's JSON ("@type").
 */
#include <string.h>

#include "message/protocol/sw4rm/sw4rm.h"

/* The members by which shapes are recognised, by the length of their names. */
/* clang-format off */
#define KEYS_2(X) X(TS, "ts")
#define KEYS_4(X) X(CORR, "corr") X(DATA, "data") X(KIND, "kind")
#define KEYS_5(X) X(TYPE, "@type") X(AGENT, "agent") X(FINAL, "final") X(LEVEL, "level") \
    X(NODES, "nodes") X(SCOPE, "scope") X(SCORE, "score") X(STATE, "state") X(TOOLS, "tools") \
    X(TOPIC, "topic")
#define KEYS_6(X) X(ACTION, "action") X(BRANCH, "branch") X(PARAMS, "params") X(PASSED, "passed") \
    X(POLICY, "policy") X(REASON, "reason") X(REPORT, "report") X(STATUS, "status")
#define KEYS_7(X) X(COMMAND, "command") X(ENTRIES, "entries") X(OUTCOME, "outcome") \
    X(PAYLOAD, "payload") X(REPO_ID, "repo_id") X(STD_DEV, "std_dev") X(SUMMARY, "summary") \
    X(TASK_ID, "task_id")
#define KEYS_8(X) X(ACCEPTED, "accepted") X(AGENT_ID, "agent_id") X(ARTIFACT, "artifact") \
    X(DECISION, "decision") X(FRAME_NO, "frame_no") X(PRIORITY, "priority") X(PROFILES, "profiles") \
    X(TO_AGENT, "to_agent")
#define KEYS_9(X) X(CACHED_AT, "cached_at") X(EFFECTIVE, "effective") X(OPERATION, "operation") \
    X(TIMESTAMP, "timestamp") X(TOOL_NAME, "tool_name")
#define KEYS_10(X) X(CONFIDENCE, "confidence") X(DECIDED_BY, "decided_by") \
    X(EVENT_TYPE, "event_type") X(FROM_AGENT, "from_agent") X(REQUEST_ID, "request_id")
#define KEYS_11(X) X(DESCRIPTION, "description") X(FINAL_SCORE, "final_score") \
    X(NODE_STATES, "node_states") X(PROVIDER_ID, "provider_id") X(REASON_TYPE, "reason_type") \
    X(STOP_REASON, "stop_reason") X(WORKFLOW_ID, "workflow_id") X(WORKTREE_ID, "worktree_id")
#define KEYS_12(X) X(CAPABILITIES, "capabilities") X(CONTENT_TYPE, "content_type") \
    X(DETAILS_JSON, "details_json") X(INPUT_SCHEMA, "input_schema") \
    X(PARTICIPANTS, "participants")
#define KEYS_13(X) X(ARTIFACT_TYPE, "artifact_type") X(INVOCATION_ID, "invocation_id") \
    X(OUTPUT_SCHEMA, "output_schema") X(WEIGHTED_MEAN, "weighted_mean")
#define KEYS_14(X) X(NEGOTIATION_ID, "negotiation_id") X(POLICY_VERSION, "policy_version")
#define KEYS_15(X) X(ACCEPTING_AGENT, "accepting_agent") X(ORIGINAL_STATUS, "original_status")
#define KEYS_16(X) X(AGGREGATED_SCORE, "aggregated_score") \
    X(CONFIDENCE_SCORE, "confidence_score") X(CONTEXT_SNAPSHOT, "context_snapshot") \
    X(REJECTION_REASON, "rejection_reason")
#define KEYS_17(X) X(REQUESTED_CRITICS, "requested_critics")
#define KEYS_19(X) X(COMMUNICATION_CLASS, "communication_class") \
    X(MIN_SCORE_THRESHOLD, "min_score_threshold") X(ORIGINAL_MESSAGE_ID, "original_message_id")
#define KEYS_20(X) X(REASONING_CONNECTORS, "reasoning_connectors") \
    X(MODALITIES_SUPPORTED, "modalities_supported")
#define KEYS_21(X) X(CAPABILITIES_REQUIRED, "capabilities_required")
#define KEYS_24(X) X(MIN_CONFIDENCE_THRESHOLD, "min_confidence_threshold")
#define LENGTHS(Y) Y(2) Y(4) Y(5) Y(6) Y(7) Y(8) Y(9) Y(10) Y(11) Y(12) Y(13) Y(14) \
    Y(15) Y(16) Y(17) Y(19) Y(20) Y(21) Y(24)
/* clang-format on */

enum key {
#define X(id, name) K_##id,
#define KEYS(n)     KEYS_##n(X)
    LENGTHS(KEYS)
#undef KEYS
#undef X
        K_NONE /* any other */
};

/* A set of keys; there are more than 64. */
typedef unsigned __int128 key_set;
#define K(key) ((key_set)1 << K_##key)

/* The length leaves a few candidates. */
static enum key key_of(const char *p, size_t n)
{
#define X(id, name)                                                                                \
    if (memcmp(p, name, sizeof(name) - 1) == 0)                                                    \
        return K_##id;
#define CASE(n)                                                                                    \
    case n:                                                                                        \
        KEYS_##n(X) break;
    switch (n) {
        LENGTHS(CASE)
    default:
        break;
    }
#undef CASE
#undef X
    return K_NONE;
}

/* The keys of an object. */
static key_set keys_of(const struct amp_tape *t, uint32_t object)
{
    key_set found = 0;
    uint32_t k = object + 1;
    for (uint32_t i = 0; i < t->tok[object].count; i++, k = t->tok[k + 1].next) {
        const struct amp_tok *tok = &t->tok[k];
        enum key key = key_of(t->text + tok->off, tok->len);
        if (tok->flags & AMP_TOK_ESCAPED) {
            /* Decoding never makes a name longer, and no key above is this long. */
            char room[256];
            struct amp_buf over = {.data = room, .cap = sizeof room - 1, .max = sizeof room - 1};
            struct amp_span name;
            if (tok->len > 200 || amp_tok_text(t, k, &over, &name, NULL) < 0)
                continue;
            key = key_of(name.p, name.n);
        }
        found |= (key_set)1 << key;
    }
    return found;
}

enum amp_sw4rm_type amp_sw4rm_type(struct amp_span word)
{
    static const struct amp_span words[] = {
#define X(id, word, most, kind, shape) {word, sizeof(word) - 1},
        AMP_SW4RM_TYPE_LIST(X)
#undef X
    };
    for (unsigned i = 0; i < AMP_SPEC_COUNT(words); i++)
        if (words[i].n == word.n && memcmp(words[i].p, word.p, word.n) == 0)
            return (enum amp_sw4rm_type)i;
    return AMP_SW4RM_TYPE_COUNT;
}

#define T(type) (1u << AMP_SW4RM_##type)
#define FREE    (T(DATA) | T(CONTROL) | T(NOTIFICATION))
#define ROOM    (T(NEGOTIATION) | FREE)
#define HITL    (T(HITL_DECISION) | T(HITL_INVOCATION))

/* The signs of a shape. The first row that fits decides. */
static const struct sign {
    unsigned types; /* bits of the message types */
    enum amp_sw4rm_shape shape;
    key_set all, any,
        none; /* has all members of `all`, one of `any` (unless empty), none of `none` */
} signs[] = {
    {T(ACKNOWLEDGEMENT) | FREE, AMP_SHAPE_DUPLICATE, K(ORIGINAL_MESSAGE_ID),
     K(STATUS) | K(ORIGINAL_STATUS) | K(CACHED_AT), 0},

    {HITL | FREE, AMP_SHAPE_HITL_DECISION, K(INVOCATION_ID) | K(DECISION), 0, 0},
    {HITL, AMP_SHAPE_HITL_DECISION, K(DECISION), 0, K(REASON_TYPE)},
    {HITL, AMP_SHAPE_HITL_ACTION, K(ACTION), 0, K(REASON_TYPE)},
    {FREE, AMP_SHAPE_HITL_ACTION, K(INVOCATION_ID) | K(ACTION), 0, 0},

    {T(NEGOTIATION), AMP_SHAPE_NEGOTIATION_START, 0, K(TOPIC) | K(PARTICIPANTS), K(TS) | K(CORR)},
    {T(NEGOTIATION), AMP_SHAPE_NEGOTIATION_DECISION, K(NEGOTIATION_ID) | K(DECIDED_BY), 0, 0},
    {T(NEGOTIATION), AMP_SHAPE_NEGOTIATION_EVALUATION, K(NEGOTIATION_ID) | K(CONFIDENCE_SCORE), 0,
     0},
    {T(NEGOTIATION), AMP_SHAPE_NEGOTIATION_PROPOSAL, K(NEGOTIATION_ID) | K(FROM_AGENT),
     K(PAYLOAD) | K(CONTENT_TYPE), 0},
    {ROOM, AMP_SHAPE_EVALUATION_REPORT, K(NEGOTIATION_ID) | K(REPORT), 0, 0},
    {T(NEGOTIATION), AMP_SHAPE_NEGOTIATION_ABORT_REQUEST, K(NEGOTIATION_ID) | K(REASON), 0, 0},
    {ROOM, AMP_SHAPE_ROOM_PROPOSAL, K(ARTIFACT_TYPE), K(ARTIFACT) | K(REQUESTED_CRITICS), 0},
    {T(NEGOTIATION), AMP_SHAPE_ROOM_PROPOSAL, 0, K(ARTIFACT_TYPE) | K(REQUESTED_CRITICS), 0},
    {T(NEGOTIATION), AMP_SHAPE_ROOM_DECISION, K(OUTCOME), 0, 0},
    {FREE, AMP_SHAPE_ROOM_DECISION, K(OUTCOME), K(AGGREGATED_SCORE) | K(POLICY_VERSION), 0},
    {T(NEGOTIATION), AMP_SHAPE_ROOM_VOTE, K(SCORE), 0, K(TS)},
    {T(NEGOTIATION), AMP_SHAPE_ROOM_VOTE, K(CONFIDENCE) | K(PASSED), 0, 0},
    {FREE, AMP_SHAPE_ROOM_VOTE, K(SCORE) | K(CONFIDENCE) | K(PASSED), 0, 0},
    {ROOM, AMP_SHAPE_ROOM_SCORE, K(STD_DEV) | K(WEIGHTED_MEAN), 0, 0},
    {ROOM, AMP_SHAPE_ROOM_POLICY, K(MIN_SCORE_THRESHOLD), 0, 0},
    {ROOM, AMP_SHAPE_DECISION_REPORT, K(FINAL_SCORE) | K(STOP_REASON), 0, 0},
    {T(NEGOTIATION), AMP_SHAPE_ARTIFACT, K(ARTIFACT), 0, 0},

    {FREE, AMP_SHAPE_HANDOFF_STATUS, K(REQUEST_ID) | K(STATUS),
     K(FROM_AGENT) | K(TO_AGENT) | K(ACCEPTING_AGENT) | K(REJECTION_REASON), K(CONTEXT_SNAPSHOT)},
    {FREE, AMP_SHAPE_HANDOFF_REQUEST, K(REQUEST_ID) | K(FROM_AGENT), 0, 0},
    {FREE, AMP_SHAPE_HANDOFF_REQUEST, K(CAPABILITIES_REQUIRED) | K(CONTEXT_SNAPSHOT), 0, 0},
    {FREE, AMP_SHAPE_HANDOFF_ACCEPT, K(REQUEST_ID) | K(ACCEPTED), 0, 0},

    {FREE, AMP_SHAPE_WORKFLOW_STATE, K(WORKFLOW_ID) | K(NODE_STATES), 0, 0},
    {FREE, AMP_SHAPE_WORKFLOW_DEFINITION, K(WORKFLOW_ID) | K(NODES), 0, 0},

    {T(TOOL_RESULT), AMP_SHAPE_TOOL_FRAME, 0, K(FRAME_NO) | K(FINAL) | K(DATA) | K(SUMMARY),
     K(STATUS)},
    {FREE, AMP_SHAPE_TOOL_PROVIDER, K(PROVIDER_ID) | K(TOOLS), 0, 0},
    {FREE, AMP_SHAPE_TOOL_DESCRIPTOR, K(TOOL_NAME), K(INPUT_SCHEMA) | K(OUTPUT_SCHEMA), 0},

    {FREE, AMP_SHAPE_AGENT_REGISTRATION, K(AGENT), 0, 0},
    {FREE, AMP_SHAPE_AGENT_DESCRIPTOR, K(AGENT_ID) | K(CAPABILITIES),
     K(COMMUNICATION_CLASS) | K(MODALITIES_SUPPORTED) | K(REASONING_CONNECTORS), 0},
    {FREE, AMP_SHAPE_POLICY_SET, K(POLICY), 0, 0},
    {FREE, AMP_SHAPE_POLICY_PROFILES, K(PROFILES), 0, 0},
    {FREE, AMP_SHAPE_POLICY_EFFECTIVE, K(EFFECTIVE), 0, 0},
    {T(CONTROL), AMP_SHAPE_TASK_SUBMISSION, K(TASK_ID) | K(PARAMS), 0, K(COMMAND)},
    {FREE, AMP_SHAPE_TASK_SUBMISSION, K(TASK_ID) | K(PARAMS) | K(SCOPE), 0, 0},
    {FREE, AMP_SHAPE_TASK_SUBMISSION, K(TASK_ID) | K(PARAMS), K(AGENT_ID) | K(PRIORITY),
     K(COMMAND)},
    {FREE, AMP_SHAPE_ACTIVITY_ENTRY, K(TASK_ID) | K(REPO_ID) | K(WORKTREE_ID) | K(BRANCH),
     K(DESCRIPTION) | K(TIMESTAMP), 0},
    {FREE, AMP_SHAPE_ACTIVITY_ENTRIES, K(ENTRIES), 0, 0},
    {FREE, AMP_SHAPE_INFERENCE, K(CONFIDENCE_SCORE), 0, K(NEGOTIATION_ID)},
    {FREE, AMP_SHAPE_LOG_EVENT, K(EVENT_TYPE) | K(LEVEL) | K(DETAILS_JSON), 0, 0},

    {T(WORKTREE_CONTROL), AMP_SHAPE_WORKTREE_STATE, K(STATE), 0, K(OPERATION)},
};

static bool has_any(const struct amp_tape *t, uint32_t object, const char *const *names)
{
    for (; *names; names++)
        if (amp_object_has(t, object, *names))
            return true;
    return false;
}

static bool is_any(const struct amp_tape *t, uint32_t tok, const char *const *words)
{
    for (; tok != AMP_TOK_NONE && *words; words++)
        if (amp_tok_is(t, tok, amp_span_str(*words)))
            return true;
    return false;
}

static bool is_type(const struct amp_tape *t, uint32_t tok, enum amp_json_type type)
{
    return tok != AMP_TOK_NONE && t->tok[tok].type == type;
}

static uint32_t first_of(const struct amp_tape *t, uint32_t list)
{
    return is_type(t, list, AMP_JSON_ARRAY) && t->tok[list].count ? list + 1 : AMP_TOK_NONE;
}

/* A list of names or a number is not a graph, and a list of names has no descriptions. */
static bool holds_parts(const struct amp_tape *t, uint32_t tok, bool keyed)
{
    if (is_type(t, tok, AMP_JSON_OBJECT))
        return !keyed || !t->tok[tok].count || t->tok[tok + 2].type == AMP_JSON_OBJECT ||
               t->tok[tok + 2].type == AMP_JSON_ARRAY;
    return is_type(t, tok, AMP_JSON_ARRAY) &&
           (!t->tok[tok].count || t->tok[tok + 1].type == AMP_JSON_OBJECT);
}

/* The members that a free payload of a shape has, beside members with everyday names such as
 * "score" or "status". A payload without them has no shape: it only mentions such things. */
static const struct proof {
    const char *in;          /* the object with these members; NULL: the payload */
    const char *names[7];    /* at least one of these members */
    const char *statuses[6]; /* or "status" has one of these values */
} proofs[AMP_SHAPE_NONE] = {
    [AMP_SHAPE_DUPLICATE] = {NULL, {"original_status", "cached_at"}, {"DUPLICATE_DETECTED"}},
    [AMP_SHAPE_HITL_ACTION] = {NULL, {"rationale", "decision_payload"}},
    [AMP_SHAPE_ROOM_PROPOSAL] = {NULL,
                                 {"requested_critics", "artifact_content_type",
                                  "negotiation_room_id"}},
    [AMP_SHAPE_ROOM_DECISION] = {NULL, {"votes", "aggregated_score"}},
    [AMP_SHAPE_ROOM_VOTE] = {NULL,
                             {"artifact_id", "critic_id", "negotiation_room_id", "strengths",
                              "weaknesses", "recommendations"}},
    [AMP_SHAPE_ROOM_SCORE] = {NULL, {"min_score", "max_score", "vote_count"}},
    [AMP_SHAPE_ROOM_POLICY] = {NULL, {"min_confidence_threshold", "min_pass_ratio", "max_std_dev"}},
    [AMP_SHAPE_DECISION_REPORT] = {NULL, {"decided_by", "rationale"}},
    [AMP_SHAPE_HANDOFF_STATUS] = {NULL,
                                  {"accepting_agent", "rejection_reason"},
                                  {"PENDING", "ACCEPTED", "REJECTED", "COMPLETED", "EXPIRED"}},
    [AMP_SHAPE_HANDOFF_REQUEST] = {NULL, {"capabilities_required", "context_snapshot"}},
    [AMP_SHAPE_HANDOFF_ACCEPT] = {NULL, {"accepting_agent", "rejection_reason"}},
    [AMP_SHAPE_AGENT_REGISTRATION] = {"agent",
                                      {"communication_class", "modalities_supported",
                                       "reasoning_connectors"}},
    [AMP_SHAPE_POLICY_SET] = {"policy",
                              {"score_threshold", "diff_tolerance", "round_timeout_ms",
                               "oscillation_limit", "token_budget_per_round"}},
};

static bool is_proved(const struct amp_view *v, enum amp_sw4rm_shape shape)
{
    static const char *const activity[] = {"worktree_id", "branch", NULL};
    const struct proof *proof = &proofs[shape];
    const struct amp_tape *t = v->tape;
    uint32_t p = v->payload, at;
#define AT(key) amp_tape_get(t, p, AMP_SPAN(key))
    if (proof->names[0] &&
        (has_any(t, proof->in ? amp_tape_get(t, p, amp_span_str(proof->in)) : p, proof->names) ||
         is_any(t, AT("status"), proof->statuses)))
        return true;
    switch (shape) {
    case AMP_SHAPE_EVALUATION_REPORT:
        return is_type(t, AT("report"), AMP_JSON_OBJECT);
    case AMP_SHAPE_HANDOFF_ACCEPT:
        at = AT("accepted");
        return is_type(t, at, AMP_JSON_TRUE) ||
               (is_type(t, at, AMP_JSON_FALSE) && AT("reason") == AMP_TOK_NONE);
    case AMP_SHAPE_WORKFLOW_DEFINITION:
        return holds_parts(t, AT("nodes"), true);
    case AMP_SHAPE_TOOL_PROVIDER:
        return holds_parts(t, AT("tools"), false);
    case AMP_SHAPE_POLICY_EFFECTIVE:
        return amp_object_get(t, AT("effective"), "policy", AMP_JSON_OBJECT) != AMP_TOK_NONE;
    case AMP_SHAPE_POLICY_PROFILES:
        at = first_of(t, AT("profiles"));
        return amp_object_get(t, at, "policy", AMP_JSON_OBJECT) != AMP_TOK_NONE;
    case AMP_SHAPE_ACTIVITY_ENTRIES:
        return has_any(t, first_of(t, AT("entries")), activity);
    case AMP_SHAPE_INFERENCE: /* nothing but the score and its notes */
        return t->tok[p].count == 1u + (AT("notes") != AMP_TOK_NONE);
    default:
        return !proof->names[0];
    }
#undef AT
}

/* The words of a member, each with its shape. */
struct word {
    struct amp_span word;
    enum amp_sw4rm_shape shape;
};
#define WORD(text, shape)                                                                          \
    {                                                                                              \
        {text, sizeof(text) - 1}, AMP_SHAPE_##shape                                                \
    }

static enum amp_sw4rm_shape word_shape(const struct amp_view *v, struct amp_span key,
                                       const struct word *words, size_t n)
{
    uint32_t tok = amp_tape_get(v->tape, v->payload, key);
    for (size_t i = 0; tok != AMP_TOK_NONE && i < n; i++)
        if (amp_tok_is(v->tape, tok, words[i].word))
            return words[i].shape;
    return AMP_SHAPE_NONE;
}

static enum amp_sw4rm_shape stage_shape(const struct amp_view *v)
{
    static const struct word words[] = {WORD("REJECTED", NACK), WORD("FAILED", NACK),
                                        WORD("TIMED_OUT", NACK)};
    return word_shape(v, AMP_SPAN("ack_stage"), words, AMP_SPEC_COUNT(words));
}

static enum amp_sw4rm_shape operation_shape(const struct amp_view *v)
{
    static const struct word words[] = {WORD("BIND", WORKTREE_BIND),
                                        WORD("UNBIND", WORKTREE_UNBIND),
                                        WORD("SWITCH_REQUEST", WORKTREE_SWITCH_REQUEST),
                                        WORD("SWITCH_APPROVE", WORKTREE_SWITCH_APPROVE),
                                        WORD("SWITCH_REJECT", WORKTREE_SWITCH_REJECT),
                                        WORD("SWITCH_REVOKE", WORKTREE_SWITCH_REVOKE),
                                        WORD("STATUS", WORKTREE_STATUS)};
    return word_shape(v, AMP_SPAN("operation"), words, AMP_SPEC_COUNT(words));
}

static enum amp_sw4rm_shape event_shape(const struct amp_view *v)
{
    static const struct word words[] = {
        WORD("propose", NEGOTIATION_PROPOSE),   WORD("counter", NEGOTIATION_COUNTER),
        WORD("evaluate", NEGOTIATION_EVALUATE), WORD("open", NEGOTIATION_OPEN),
        WORD("policy", NEGOTIATION_POLICY),     WORD("decide", NEGOTIATION_DECIDE),
        WORD("abort", NEGOTIATION_ABORT)};
    enum amp_sw4rm_shape shape = word_shape(v, AMP_SPAN("kind"), words, AMP_SPEC_COUNT(words));
    if (shape == AMP_SHAPE_NEGOTIATION_POLICY &&
        amp_object_has(v->tape, amp_tape_get(v->tape, v->payload, AMP_SPAN("policy")), "policy"))
        return AMP_SHAPE_NEGOTIATION_EFFECTIVE;
    return shape;
}

/* "type.googleapis.com/sw4rm.activity.ActivityEntry": the message's name in the protobuf files. */
static enum amp_sw4rm_shape proto_shape(const struct amp_view *v)
{
    static const struct word words[] = {
        WORD("Ack", ACK),
        WORD("AgentDescriptor", AGENT_DESCRIPTOR),
        WORD("RegisterAgentRequest", AGENT_REGISTRATION),
        WORD("SubmitTaskRequest", TASK_SUBMISSION),
        WORD("ActivityEntry", ACTIVITY_ENTRY),
        WORD("PollActivityBufferResponse", ACTIVITY_ENTRIES),
        WORD("HitlInvocation", HITL_INVOCATION),
        WORD("HitlDecision", HITL_ACTION),
        WORD("ToolDescriptor", TOOL_DESCRIPTOR),
        WORD("ProviderRegisterRequest", TOOL_PROVIDER),
        WORD("DescribeToolsResponse", TOOL_PROVIDER),
        WORD("SetNegotiationPolicyRequest", POLICY_SET),
        WORD("SetPolicyProfilesRequest", POLICY_PROFILES),
        WORD("GetEffectivePolicyResponse", POLICY_EFFECTIVE),
        WORD("SubmitEvaluationRequest", EVALUATION_REPORT),
        WORD("DecisionReport", DECISION_REPORT),
        WORD("NegotiationProposal", ROOM_PROPOSAL),
        WORD("NegotiationVote", ROOM_VOTE),
        WORD("AggregatedScore", ROOM_SCORE),
        WORD("NegotiationDecision", ROOM_DECISION),
        WORD("AppendArtifactRequest", ARTIFACT),
        WORD("HandoffRequest", HANDOFF_REQUEST),
        WORD("HandoffResponse", HANDOFF_ACCEPT),
        WORD("WorkflowDefinition", WORKFLOW_DEFINITION),
        WORD("WorkflowState", WORKFLOW_STATE),
        WORD("ParallelismCheckResponse", INFERENCE),
        WORD("LogEvent", LOG_EVENT),
    };
    uint32_t tok = amp_object_get(v->tape, v->payload, "@type", AMP_JSON_STRING);
    if (tok == AMP_TOK_NONE)
        return AMP_SHAPE_NONE;
    struct amp_span name = amp_tok_raw(v->tape, tok);
    for (size_t i = name.n; i > 0; i--)
        if (name.p[i - 1] == '.' || name.p[i - 1] == '/') {
            name = (struct amp_span){name.p + i, name.n - i};
            break;
        }
    for (size_t i = 0; i < AMP_SPEC_COUNT(words); i++)
        if (amp_span_eq(words[i].word, name))
            return words[i].shape;
    return AMP_SHAPE_NONE;
}

/* The shape that the members show. */
static enum amp_sw4rm_shape members_shape(const struct amp_view *v, enum amp_sw4rm_type type)
{
    key_set found = keys_of(v->tape, v->payload);
    enum amp_sw4rm_shape shape = AMP_SHAPE_NONE;
    if (found & K(TYPE) && 1u << type & FREE)
        shape = proto_shape(v);
    if (found & K(KIND) && type == AMP_SW4RM_NEGOTIATION)
        return event_shape(v);
    if (found & K(OPERATION) && type == AMP_SW4RM_WORKTREE_CONTROL)
        return operation_shape(v);
    if (!(found & ~(K(NONE) | K(DESCRIPTION) | K(TIMESTAMP))))
        return shape; /* the usual payload of DATA, which has no shape */
    for (size_t i = 0; i < AMP_SPEC_COUNT(signs) && shape == AMP_SHAPE_NONE; i++) {
        const struct sign *s = &signs[i];
        if ((s->types >> type & 1) && (found & s->all) == s->all &&
            (s->any == 0 || found & s->any) && !(found & s->none) &&
            (!(1u << type & FREE) || is_proved(v, s->shape)))
            shape = s->shape;
    }
    if (shape == AMP_SHAPE_HANDOFF_ACCEPT &&
        amp_object_get(v->tape, v->payload, "accepted", AMP_JSON_FALSE) != AMP_TOK_NONE)
        return AMP_SHAPE_HANDOFF_REJECT;
    return shape;
}

enum amp_sw4rm_shape amp_sw4rm_shape(const struct amp_view *v, enum amp_sw4rm_type type)
{
    static const enum amp_sw4rm_shape usual[] = {
#define X(id, word, most, kind, shape) AMP_SHAPE_##shape,
        AMP_SW4RM_TYPE_LIST(X)
#undef X
            AMP_SHAPE_NONE};
    enum amp_sw4rm_shape shape = AMP_SHAPE_NONE;
    if (v->payload != AMP_TOK_NONE && v->tape->tok[v->payload].type == AMP_JSON_OBJECT)
        switch (type) {
        case AMP_SW4RM_TOOL_CALL:
        case AMP_SW4RM_TOOL_ERROR:
        case AMP_SW4RM_HEARTBEAT:
            break;
        case AMP_SW4RM_ACKNOWLEDGEMENT:
            shape = stage_shape(v);
            if (shape == AMP_SHAPE_NONE &&
                amp_tape_get(v->tape, v->payload, AMP_SPAN("ack_stage")) == AMP_TOK_NONE)
                shape = members_shape(v, type);
            break;
        default:
            shape = members_shape(v, type);
            break;
        }
    else if (type == AMP_SW4RM_CONTROL || type == AMP_SW4RM_HEARTBEAT)
        return AMP_SHAPE_NONE; /* these types may lack a payload */
    return shape == AMP_SHAPE_NONE ? usual[type] : shape;
}
