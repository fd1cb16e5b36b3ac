/* SW4RM 0.5.0: types, shapes, rules and refusals. */
#ifndef AMP_MESSAGE_PROTOCOL_SW4RM_SW4RM_H
#define AMP_MESSAGE_PROTOCOL_SW4RM_SW4RM_H

#include "message/protocol/check/check.h"
#include "message/protocol/spec.h"

/* The eleven types of §11 and HITL_DECISION, which §15 requires as a message: X(id, word,
 * recommended largest payload in bytes, kind, usual shape of a JSON object). A type without a
 * recommended size has that of DATA. */
#define AMP_SW4RM_TYPE_LIST(X)                                                                     \
    X(CONTROL, "CONTROL", 64 * 1024, OTHER, CONTROL)                                               \
    X(DATA, "DATA", 16 * 1024 * 1024, OTHER, NONE)                                                 \
    X(HEARTBEAT, "HEARTBEAT", 16 * 1024 * 1024, HEARTBEAT, HEARTBEAT)                              \
    X(NOTIFICATION, "NOTIFICATION", 32 * 1024, OTHER, NONE)                                        \
    X(ACKNOWLEDGEMENT, "ACKNOWLEDGEMENT", 4 * 1024, ACK, ACK)                                      \
    X(HITL_INVOCATION, "HITL_INVOCATION", 256 * 1024, ESCALATION, HITL_INVOCATION)                 \
    X(HITL_DECISION, "HITL_DECISION", 256 * 1024, DECISION, HITL_DECISION)                         \
    X(WORKTREE_CONTROL, "WORKTREE_CONTROL", 16 * 1024 * 1024, WORKTREE, WORKTREE_CONTROL)          \
    X(NEGOTIATION, "NEGOTIATION", 16 * 1024 * 1024, NEGOTIATION, NEGOTIATION_EVENT)                \
    X(TOOL_CALL, "TOOL_CALL", 1024 * 1024, TOOL_CALL, TOOL_CALL)                                   \
    X(TOOL_RESULT, "TOOL_RESULT", 16 * 1024 * 1024, TOOL_RESULT, TOOL_RESULT)                      \
    X(TOOL_ERROR, "TOOL_ERROR", 16 * 1024 * 1024, TOOL_RESULT, TOOL_ERROR)

enum amp_sw4rm_type {
#define X(id, word, most, kind, shape) AMP_SW4RM_##id,
    AMP_SW4RM_TYPE_LIST(X)
#undef X
        AMP_SW4RM_TYPE_COUNT
};
/* AMP_SW4RM_TYPE_COUNT for any other word. */
enum amp_sw4rm_type amp_sw4rm_type(struct amp_span word);

/* The shapes of messages with a JSON payload: X(id, kind, body table, schema). */
#define AMP_SW4RM_SHAPE_LIST(X)                                                                    \
    X(ACK, ACK, &ack, "ack")                                                                       \
    X(NACK, NACK, &ack, "nack")                                                                    \
    X(DUPLICATE, OTHER, NULL, "duplicate")                                                         \
    X(HITL_INVOCATION, ESCALATION, &invocation, "hitl_invocation")                                 \
    X(HITL_DECISION, DECISION, &decision, "hitl_decision")                                         \
    X(HITL_ACTION, DECISION, &decision, "hitl_action")                                             \
    X(WORKTREE_BIND, WORKTREE, &worktree, "worktree_bind")                                         \
    X(WORKTREE_UNBIND, WORKTREE, &worktree, "worktree_unbind")                                     \
    X(WORKTREE_SWITCH_REQUEST, WORKTREE, &worktree, "worktree_switch_request")                     \
    X(WORKTREE_SWITCH_APPROVE, WORKTREE, &worktree, "worktree_switch_approve")                     \
    X(WORKTREE_SWITCH_REJECT, WORKTREE, &worktree, "worktree_switch_reject")                       \
    X(WORKTREE_SWITCH_REVOKE, WORKTREE, &worktree, "worktree_switch_revoke")                       \
    X(WORKTREE_STATUS, WORKTREE, &worktree, "worktree_status")                                     \
    X(WORKTREE_STATE, WORKTREE, &worktree, "worktree_state")                                       \
    X(WORKTREE_CONTROL, WORKTREE, &worktree, "worktree_control")                                   \
    X(NEGOTIATION_OPEN, NEGOTIATION, &negotiation, "negotiation_open")                             \
    X(NEGOTIATION_POLICY, NEGOTIATION, &negotiation, "negotiation_policy")                         \
    X(NEGOTIATION_EFFECTIVE, NEGOTIATION, &negotiation, "negotiation_effective")                   \
    X(NEGOTIATION_PROPOSE, NEGOTIATION, &negotiation, "negotiation_propose")                       \
    X(NEGOTIATION_COUNTER, NEGOTIATION, &negotiation, "negotiation_counter")                       \
    X(NEGOTIATION_EVALUATE, NEGOTIATION, &negotiation, "negotiation_evaluate")                     \
    X(NEGOTIATION_DECIDE, NEGOTIATION, &negotiation, "negotiation_decide")                         \
    X(NEGOTIATION_ABORT, NEGOTIATION, &negotiation, "negotiation_abort")                           \
    X(NEGOTIATION_EVENT, NEGOTIATION, &negotiation, "negotiation_event")                           \
    X(NEGOTIATION_START, NEGOTIATION, &negotiation, "negotiation_start")                           \
    X(NEGOTIATION_PROPOSAL, NEGOTIATION, &negotiation, "negotiation_proposal")                     \
    X(NEGOTIATION_EVALUATION, NEGOTIATION, &negotiation, "negotiation_evaluation")                 \
    X(NEGOTIATION_DECISION, NEGOTIATION, &negotiation, "negotiation_decision")                     \
    X(NEGOTIATION_ABORT_REQUEST, NEGOTIATION, &negotiation, "negotiation_abort_request")           \
    X(ROOM_PROPOSAL, NEGOTIATION, &negotiation, "room_proposal")                                   \
    X(ROOM_VOTE, VOTE, &vote, "room_vote")                                                         \
    X(ROOM_SCORE, NEGOTIATION, &negotiation, "room_score")                                         \
    X(ROOM_DECISION, NEGOTIATION, &negotiation, "room_decision")                                   \
    X(ROOM_POLICY, NEGOTIATION, &negotiation, "room_policy")                                       \
    X(EVALUATION_REPORT, NEGOTIATION, &negotiation, "evaluation_report")                           \
    X(DECISION_REPORT, NEGOTIATION, &negotiation, "decision_report")                               \
    X(ARTIFACT, NEGOTIATION, &negotiation, "artifact")                                             \
    X(POLICY_SET, NEGOTIATION, &negotiation, "policy_set")                                         \
    X(POLICY_PROFILES, NEGOTIATION, &negotiation, "policy_profiles")                               \
    X(POLICY_EFFECTIVE, NEGOTIATION, &negotiation, "policy_effective")                             \
    X(HANDOFF_REQUEST, HANDOFF, &handoff, "handoff_request")                                       \
    X(HANDOFF_ACCEPT, HANDOFF, &handoff, "handoff_accept")                                         \
    X(HANDOFF_REJECT, HANDOFF, &handoff, "handoff_reject")                                         \
    X(HANDOFF_STATUS, HANDOFF, &handoff, "handoff_status")                                         \
    X(WORKFLOW_DEFINITION, WORKFLOW, &workflow, "workflow_definition")                             \
    X(WORKFLOW_STATE, WORKFLOW, &workflow, "workflow_state")                                       \
    X(TOOL_CALL, TOOL_CALL, &tool_call, "tool_call")                                               \
    X(TOOL_RESULT, TOOL_RESULT, &tool_result, "tool_result")                                       \
    X(TOOL_FRAME, TOOL_RESULT, &tool_result, "tool_frame")                                         \
    X(TOOL_ERROR, TOOL_RESULT, &tool_result, "tool_error")                                         \
    X(TOOL_DESCRIPTOR, OTHER, NULL, "tool_descriptor")                                             \
    X(TOOL_PROVIDER, OTHER, NULL, "tool_provider")                                                 \
    X(AGENT_REGISTRATION, OTHER, NULL, "agent_registration")                                       \
    X(AGENT_DESCRIPTOR, OTHER, NULL, "agent_descriptor")                                           \
    X(HEARTBEAT, HEARTBEAT, NULL, "heartbeat")                                                     \
    X(TASK_SUBMISSION, OTHER, NULL, "task_submission")                                             \
    X(CONTROL, OTHER, NULL, "control")                                                             \
    X(ACTIVITY_ENTRY, OTHER, NULL, "activity_entry")                                               \
    X(ACTIVITY_ENTRIES, OTHER, NULL, "activity_entries")                                           \
    X(INFERENCE, OTHER, NULL, "inference")                                                         \
    X(LOG_EVENT, OTHER, NULL, "log_event")                                                         \
    X(CHUNK, CHUNK, &chunk, "chunk")                                                               \
    X(BATCH, BATCH, &batch, "batch")

enum amp_sw4rm_shape {
#define X(id, kind, body, schema) AMP_SHAPE_##id,
    AMP_SW4RM_SHAPE_LIST(X)
#undef X
        AMP_SHAPE_NONE /* no known shape */
};
/* The shape of a message whose payload is JSON or missing. */
enum amp_sw4rm_shape amp_sw4rm_shape(const struct amp_view *v, enum amp_sw4rm_type type);

/* The rows of all shapes, and the row of a message. */
extern const struct amp_kind_row amp_sw4rm_rows[];
const struct amp_kind_row *amp_sw4rm_kind_of(const struct amp_view *v);
/* The shape of a row; AMP_SHAPE_NONE for any other row and NULL. */
enum amp_sw4rm_shape amp_sw4rm_shape_of(const struct amp_kind_row *row);

/* Content types of chunks and batches (§5.4); both have the same length. */
#define AMP_SW4RM_CHUNK_TYPE "application/vnd.amp.chunk+json"
#define AMP_SW4RM_BATCH_TYPE "application/vnd.amp.batch+json"

/* The encoding of a payload in the line, by its content type. */
enum amp_sw4rm_content {
    AMP_SW4RM_JSON,  /* a JSON value */
    AMP_SW4RM_TEXT,  /* a string */
    AMP_SW4RM_BYTES, /* a string of base64 */
    AMP_SW4RM_OTHER, /* a string: text or base64 */
};
enum amp_sw4rm_content amp_sw4rm_content(struct amp_span content_type);

/* Whether the text is base64, in the alphabet of RFC 4648 §4 or §5, padded or not. If so, *bytes is
 * the number of decoded bytes. */
bool amp_sw4rm_base64(struct amp_span text, uint64_t *bytes);

/* The rules about content_type, content_length and the payload's size. */
void amp_sw4rm_content_rules(struct amp_check *c);

/* The rules about payloads, by shape, and those about the nodes of a workflow. */
void amp_sw4rm_payload_rules(struct amp_check *c);
void amp_sw4rm_workflow_rules(struct amp_check *c);

void amp_sw4rm_rules(struct amp_check *c);

/* The code of SW4RM's list (§21) for a code of these tools, in lower case: itself if it is there.
 */
const char *amp_sw4rm_code(const char *code);
/* Like amp_sw4rm_code, for conversions: see struct cv_row, infer. */
const char *amp_sw4rm_failure(struct amp_span code, struct amp_span summary);
/* The refusal of a line: see spec.h. */
enum amp_refuse_result amp_sw4rm_refuse(const struct amp_view *v, const struct amp_finding *first,
                                        int64_t now_ms, struct amp_buf *out, struct amp_error *err);

#endif
