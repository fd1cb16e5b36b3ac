/* SW4RM 0.5.0 in neutral fields. SW4RM ignores unknown fields, so the origin is in the envelope. */
#include <stddef.h>

#include "message/protocol/convert/shape.h"
#include "message/protocol/sw4rm/sw4rm.h"

#define ENVELOPE(type)                                                                             \
    {"/message_id", CV_ID, AS_UUID},                                                               \
        {"/producer_id", CV_FROM, AS_TEXT, {CV_OPERATOR}, .literal = "\"unknown\""},               \
        {"/correlation_id", CV_CORR, AS_UUID, {CV_TASK, CV_REF, CV_ID}},                           \
        {"/sequence_number", CV_SEQ, AS_SEQUENCE},                                                 \
        {"/retry_count", CV_ATTEMPT, AS_RETRIES, .literal = "0"},                                  \
        CV_CONST("/message_type", "\"" type "\""),                                                 \
        CV_CONST("/content_type", "\"application/json\""), CV_ROW("/timestamp", CV_TIME, AS_TIME)

#define END {"/content_length", CV_NONE, AS_LENGTH}, CV_ROW("/x_amp_origin", CV_ORIGIN, AS_RAW)

/* A number up to the bound is read as the word. */
static const struct cv_word priorities[] = {
    {"critical", "-15"}, {"high", "-5"}, {"normal", "0"}, {"low", "10"}, {NULL, NULL}};

static const struct cv_row submission[] = {
    ENVELOPE("DATA"),
    {"/ttl_ms", CV_DUE, AS_TTL},
    {"/payload/agent_id", CV_TO, AS_TEXT},
    {"/payload/task_id", CV_TASK, AS_TEXT, {CV_CORR, CV_ID}},
    {"/payload/priority", CV_PRIORITY, AS_NUMBERED, .words = priorities},
    {"/payload/params/title", CV_TITLE, AS_TEXT},
    {"/payload/params/description", CV_TEXT, AS_TEXT},
    {"/payload/params/parent_task_id", CV_PARENT, AS_TEXT},
    {"/payload/params/repo", CV_REPO, AS_TEXT},
    {"/payload/params/branch", CV_BRANCH, AS_TEXT},
    {"/payload/params/acceptance_criteria", CV_CRITERIA, AS_TEXTS},
    {"/payload/params/constraints", CV_CONSTRAINTS, AS_TEXTS},
    {"/payload/params/context", CV_CONTEXT, AS_TEXTS},
    {"/payload/params/expected_outputs", CV_OUTPUTS, AS_TEXTS},
    {"/payload/params/required_capabilities", CV_CAPABILITIES, AS_TEXTS},
    {"/payload/params/risk_level", CV_RISK, AS_TEXT, .literal = "\"unknown\""},
    {"/payload/scope", CV_NONE, AS_TEXT, {CV_REPO, CV_TASK, CV_ID}},
    END,
};

/* Read only: a task as in the protocol's own example. */
static const struct cv_row task[] = {
    ENVELOPE("DATA"),
    {"/ttl_ms", CV_DUE, AS_TTL},
    {"/payload/agent_id", CV_TO, AS_TEXT},
    {"/payload/task_id", CV_TASK, AS_TEXT, {CV_CORR, CV_ID}},
    {"/payload/title", CV_TITLE, AS_TEXT},
    {"/payload/description", CV_TEXT, AS_TEXT},
    {"/payload/priority", CV_PRIORITY, AS_NUMBERED, .words = priorities},
    END,
};

static const struct cv_row handoff[] = {
    ENVELOPE("DATA"),
    {"/payload/request_id", CV_TASK, AS_TEXT, {CV_ID}},
    {"/payload/from_agent", CV_NONE, AS_TEXT, {CV_FROM}, .literal = "\"unknown\""},
    {"/payload/to_agent", CV_TO, AS_TEXT},
    {"/payload/reason", CV_TEXT, AS_TEXT, {CV_TITLE, CV_CRITERIA, CV_TASK}},
    {"/payload/context_snapshot/parent_task_id", CV_PARENT, AS_TEXT, {CV_TASK}},
    {"/payload/context_snapshot/acceptance_criteria", CV_CRITERIA, AS_TEXTS},
    {"/payload/context_snapshot/expected_outputs", CV_OUTPUTS, AS_TEXTS},
    {"/payload/context_snapshot/context_refs", CV_CONTEXT, AS_TEXTS},
    {"/payload/context_snapshot/constraints", CV_CONSTRAINTS, AS_TEXTS},
    {"/payload/capabilities_required", CV_CAPABILITIES, AS_TEXTS, .literal = "[]"},
    {"/payload/priority", CV_PRIORITY, AS_NUMBERED, .words = priorities},
    {"/payload/timeout_ms", CV_DUE, AS_TTL},
    END,
};

static const struct cv_word statuses[] = {
    {"complete", "FULFILLED"}, {"failed", "FAILED"},      {"partial", "FAILED"},
    {"blocked", "FAILED"},     {"review", "FULFILLED"},   {"aborted", "FAILED"},
    {"skipped", "FAILED"},     {"complete", "COMPLETED"}, {NULL, NULL}};

static const struct cv_row result[] = {
    ENVELOPE("NOTIFICATION"),
    {"/payload/status", CV_OUTCOME, AS_WORD, .words = statuses},
    {"/payload/task_id", CV_TASK, AS_TEXT, {CV_CORR}},
    {"/payload/agent_id", CV_NONE, AS_TEXT, {CV_FROM}},
    {"/payload/summary", CV_SUMMARY, AS_TEXT},
    {"/payload/result_ref", CV_ARTIFACT, AS_TEXT},
    {"/payload/files_changed", CV_FILES, AS_TEXTS},
    {"/payload/actions", CV_ACTIONS, AS_TEXTS},
    {"/payload/notes", CV_NOTES, AS_TEXTS},
    {"/payload/blockers", CV_BLOCKERS, AS_TEXTS},
    {"/payload/tests", CV_TESTS, AS_RAW},
    {"/payload/failure_class", CV_CODE, AS_TEXT},
    {"/payload/retryable", CV_RETRYABLE, AS_RAW},
    {"/payload/completed_at", CV_DONE_AT, AS_TIME},
    END,
};

static const struct cv_word states[] = {{"running", "RUNNING"},   {"blocked", "WAITING"},
                                        {"ready", "RUNNABLE"},    {"review", "WAITING"},
                                        {"done", "COMPLETED"},    {"failed", "FAILED"},
                                        {"backlog", "RUNNABLE"},  {"running", "RESUMED"},
                                        {"ready", "SCHEDULED"},   {"blocked", "WAITING_RESOURCES"},
                                        {"blocked", "SUSPENDED"}, {NULL, NULL}};

static const struct cv_row progress[] = {
    ENVELOPE("NOTIFICATION"),
    {"/payload/state", CV_STATE, AS_WORD, .words = states, .literal = "\"RUNNING\""},
    {"/payload/task_id", CV_TASK, AS_TEXT, {CV_CORR}},
    {"/payload/agent_id", CV_NONE, AS_TEXT, {CV_FROM}},
    {"/payload/progress", CV_PERCENT, AS_RAW},
    {"/payload/message", CV_TEXT, AS_TEXT},
    {"/payload/phase", CV_PHASE, AS_TEXT},
    {"/payload/checkpoint", CV_CHECKPOINT, AS_TEXT},
    {"/payload/blockers", CV_BLOCKERS, AS_TEXTS},
    {"/payload/notes", CV_NOTES, AS_TEXTS},
    END,
};

static const struct cv_row message[] = {
    ENVELOPE("NOTIFICATION"),
    {"/ttl_ms", CV_DUE, AS_TTL},
    {"/payload/subject", CV_SUBJECT, AS_TEXT},
    {"/payload/body", CV_BODY, AS_TEXT, .literal = "\"\""},
    {"/payload/agent_id", CV_TO, AS_TEXT},
    {"/payload/ref_message_id", CV_REF, AS_TEXT},
    {"/payload/priority", CV_PRIORITY, AS_NUMBERED, .words = priorities},
    END,
};

static const struct cv_row heartbeat[] = {
    ENVELOPE("HEARTBEAT"),
    {"/payload/agent_id", CV_NONE, AS_TEXT, {CV_FROM}, .literal = "\"unknown\""},
    {"/payload/state", CV_STATE, AS_WORD, .words = states, .literal = "\"RUNNING\""},
    {"/payload/health/task_id", CV_TASK, AS_TEXT},
    {"/payload/health/phase", CV_PHASE, AS_TEXT},
    {"/payload/health/checkpoint", CV_CHECKPOINT, AS_TEXT},
    {"/payload/progress", CV_PERCENT, AS_RAW},
    END,
};

#define ACKED                                                                                      \
    ENVELOPE("ACKNOWLEDGEMENT"),                                                                   \
        {"/payload/ack_for_message_id", CV_REF, AS_TEXT, {CV_TASK, CV_CORR}},                      \
        CV_ROW("/payload/task_id", CV_TASK, AS_TEXT)

static const struct cv_row ack[] = {
    ACKED,
    {"/payload/ack_stage", CV_STAGE, AS_TEXT, .literal = "\"READ\""},
    {"/payload/note", CV_NOTES, AS_JOINED},
    END,
};

#define BOTH(lower, upper)                                                                         \
    {lower, upper},                                                                                \
    {                                                                                              \
        lower, lower                                                                               \
    }
static const struct cv_word error_codes[] = {
    BOTH("validation_error", "VALIDATION_ERROR"),
    BOTH("buffer_full", "BUFFER_FULL"),
    BOTH("no_route", "NO_ROUTE"),
    BOTH("ack_timeout", "ACK_TIMEOUT"),
    BOTH("agent_unavailable", "AGENT_UNAVAILABLE"),
    BOTH("agent_shutdown", "AGENT_SHUTDOWN"),
    BOTH("permission_denied", "PERMISSION_DENIED"),
    BOTH("unsupported_message_type", "UNSUPPORTED_MESSAGE_TYPE"),
    BOTH("oversize_payload", "OVERSIZE_PAYLOAD"),
    BOTH("tool_timeout", "TOOL_TIMEOUT"),
    BOTH("forced_preemption", "FORCED_PREEMPTION"),
    BOTH("ttl_expired", "TTL_EXPIRED"),
    BOTH("internal_error", "INTERNAL_ERROR"),
    BOTH("duplicate_detected", "DUPLICATE_DETECTED"),
    BOTH("already_in_progress", "ALREADY_IN_PROGRESS"),
    BOTH("overloaded", "OVERLOADED"),
    BOTH("cancelled", "CANCELLED"),
    {"branch_violation", "PERMISSION_DENIED"},
    {"authz_denied", "PERMISSION_DENIED"},
    {"policy_blocked", "PERMISSION_DENIED"},
    {"timeout", "ACK_TIMEOUT"},
    {"execution_error", "INTERNAL_ERROR"},
    {"capability_unavailable", "NO_ROUTE"},
    {"invalid_target", "NO_ROUTE"},
    {"duplicate_msg_id", "DUPLICATE_DETECTED"},
    {"line_too_long", "OVERSIZE_PAYLOAD"},
    {NULL, NULL}};

static const struct cv_row nack[] = {
    ACKED,
    {"/payload/ack_stage", CV_STAGE, AS_TEXT, .literal = "\"REJECTED\""},
    {"/payload/error_code", CV_CODE, AS_WORD, .words = error_codes, .infer = amp_sw4rm_failure,
     .literal = "\"VALIDATION_ERROR\""},
    {"/payload/note", CV_NOTES, AS_JOINED},
    END,
};

/* The first row with a reason is read, so the first row has its plainest meaning. */
static const struct cv_word reasons[] = {{"unknown", "TASK_ESCALATION"},
                                         {"conflict", "CONFLICT"},
                                         {"permission_denied", "SECURITY_APPROVAL"},
                                         {"branch_violation", "WORKTREE_OVERRIDE"},
                                         {"hallucination_lock", "TASK_ESCALATION"},
                                         {"ack_timeout", "TASK_ESCALATION"},
                                         {"heartbeat_timeout", "TASK_ESCALATION"},
                                         {"ci_failure", "TASK_ESCALATION"},
                                         {"conflict", "DEBATE_DEADLOCK"},
                                         {"conflict", "NEGOTIATION_CONFLICT"},
                                         {"permission_denied", "TOOL_PRIVILEGE_ESCALATION"},
                                         {"permission_denied", "CONNECTOR_APPROVAL"},
                                         {"unknown", "MANUAL_OVERRIDE"},
                                         {NULL, NULL}};

static const struct cv_row invocation[] = {
    ENVELOPE("HITL_INVOCATION"),
    {"/payload/invocation_id", CV_NONE, AS_TEXT, {CV_ID}},
    {"/payload/reason_type", CV_REASON, AS_WORD, .words = reasons,
     .literal = "\"TASK_ESCALATION\""},
    {"/payload/subject/task_id", CV_TASK, AS_TEXT},
    {"/payload/context/description", CV_TEXT, AS_TEXT, {CV_NOTES}},
    {"/payload/context/severity", CV_SEVERITY, AS_TEXT},
    {"/payload/context/ref_message_id", CV_REF, AS_TEXT},
    {"/payload/proposed_actions", CV_SUGGESTED, AS_TEXTS},
    {"/payload/suggested_action", CV_SUGGESTED, AS_TEXT},
    {"/payload/deadline_ts", CV_DUE, AS_TIME},
    END,
};

static const struct cv_word decisions[] = {{"resume", "approve"},
                                           {"terminate", "deny"},
                                           {"redispatch", "modify"},
                                           {"rollback", "rollback"},
                                           {NULL, NULL}};

static const struct cv_row decision[] = {
    ENVELOPE("HITL_DECISION"),
    {"/payload/invocation_id", CV_REF, AS_TEXT, {CV_TASK, CV_CORR}},
    {"/payload/decision", CV_WORD, AS_WORD, .words = decisions},
    {"/payload/rationale", CV_NOTES, AS_JOINED, .literal = "\"\""},
    {"/payload/operator", CV_OPERATOR, AS_TEXT},
    {"/payload/decided_at", CV_NONE, AS_TIME, {CV_TIME}},
    {"/payload/task_id", CV_TASK, AS_TEXT},
    END,
};

static const struct cv_row proposal[] = {
    ENVELOPE("NEGOTIATION"),
    CV_CONST("/payload/artifact_type", "\"CODE\""),
    {"/payload/artifact_id", CV_REF, AS_TEXT},
    {"/payload/artifact", CV_ARTIFACT, AS_TEXT},
    CV_CONST("/payload/artifact_content_type", "\"text/uri-list\""),
    {"/payload/requested_critics", CV_TO, AS_LONE, .literal = "[]"},
    {"/payload/negotiation_room_id", CV_TASK, AS_TEXT, {CV_CORR}},
    {"/payload/dispatch_ref", CV_SUBJECT, AS_TEXT},
    {"/payload/notes", CV_NOTES, AS_JOINED},
    END,
};

static const struct cv_word passed[] = {
    {"approved", "10"}, {"approved_with_fix", "10"}, {"rejected", "0"}, {NULL, NULL}};

static const struct cv_row vote_for[] = {
    ENVELOPE("NEGOTIATION"),
    {"/payload/negotiation_room_id", CV_TASK, AS_TEXT, {CV_CORR}},
    {"/payload/critic_id", CV_NONE, AS_TEXT, {CV_FROM}},
    {"/payload/score", CV_NONE, AS_NUMBERED, {CV_WORD}, .words = passed},
    {"/payload/confidence", CV_CONFIDENCE, AS_RAW},
    CV_CONST("/payload/passed", "true"),
    CV_IMPLIES(CV_WORD, "approved"),
    {"/payload/recommendations", CV_NOTES, AS_JOINED},
    END,
};
static const struct cv_row vote_against[] = {
    ENVELOPE("NEGOTIATION"),
    {"/payload/negotiation_room_id", CV_TASK, AS_TEXT, {CV_CORR}},
    {"/payload/critic_id", CV_NONE, AS_TEXT, {CV_FROM}},
    {"/payload/score", CV_NONE, AS_NUMBERED, {CV_WORD}, .words = passed},
    {"/payload/confidence", CV_CONFIDENCE, AS_RAW},
    CV_CONST("/payload/passed", "false"),
    CV_IMPLIES(CV_WORD, "rejected"),
    {"/payload/weaknesses", CV_CRITIQUE, AS_TEXTS, .literal = "[]"},
    {"/payload/recommendations", CV_NOTES, AS_JOINED},
    END,
};

/* Read only: the answers to a handoff. */
static const struct cv_row accepted[] = {
    ENVELOPE("DATA"),
    {"/payload/request_id", CV_TASK, AS_TEXT},
    CV_CONST("/payload/accepted", "true"),
    CV_IMPLIES(CV_STAGE, "READ"),
    {"/payload/accepting_agent", CV_NONE, AS_TEXT, {CV_FROM}},
    END,
};
static const struct cv_row declined[] = {
    ENVELOPE("DATA"),
    {"/payload/request_id", CV_TASK, AS_TEXT},
    CV_CONST("/payload/accepted", "false"),
    CV_IMPLIES(CV_STAGE, "REJECTED"),
    {"/payload/rejection_reason", CV_NOTES, AS_JOINED},
    END,
};

static const struct cv_shape shapes[] = {
    {CV_SHAPE("task_submission", CVK_DISPATCH, CVK_DISPATCH, submission, {"/payload/params", NULL},
              {"/payload/task_id", NULL})},
    {CV_SHAPE("task", CVK_DISPATCH, 0, task, {"/message_type", "DATA"},
              {"/payload/task_type", NULL})},
    {CV_SHAPE("handoff_request", CVK_HANDOFF, CVK_HANDOFF, handoff, {"/payload/request_id", NULL},
              {"/payload/context_snapshot", NULL})},
    {CV_SHAPE("handoff_accept", CVK_ACK, 0, accepted, {"/payload/request_id", NULL},
              {"/payload/accepted", "true"})},
    {CV_SHAPE("handoff_reject", CVK_NACK, 0, declined, {"/payload/request_id", NULL},
              {"/payload/accepted", "false"})},
    {CV_SHAPE("ack/received", CVK_ACK, CVK_ACK, ack, {"/message_type", "ACKNOWLEDGEMENT"},
              {"/payload/ack_stage", "RECEIVED"})},
    {CV_SHAPE("ack/read", CVK_ACK, 0, ack, {"/message_type", "ACKNOWLEDGEMENT"},
              {"/payload/ack_stage", "READ"})},
    {CV_SHAPE("ack/fulfilled", CVK_ACK, 0, ack, {"/message_type", "ACKNOWLEDGEMENT"},
              {"/payload/ack_stage", "FULFILLED"})},
    {CV_SHAPE("nack", CVK_NACK, CVK_NACK, nack, {"/message_type", "ACKNOWLEDGEMENT"})},
    {CV_SHAPE("hitl_invocation", CVK_ESCALATION, CVK_ESCALATION, invocation,
              {"/message_type", "HITL_INVOCATION"})},
    {CV_SHAPE("hitl_decision", CVK_DECISION, CVK_DECISION, decision,
              {"/payload/invocation_id", NULL}, {"/payload/decision", NULL})},
    {CV_SHAPE("heartbeat", CVK_HEARTBEAT, CVK_HEARTBEAT, heartbeat,
              {"/message_type", "HEARTBEAT"})},
    {CV_SHAPE("room_proposal", CVK_REVIEW, CVK_REVIEW, proposal, {"/message_type", "NEGOTIATION"},
              {"/payload/artifact_id", NULL}, {"/payload/requested_critics", NULL})},
    {CV_SHAPE("room_vote/for", CVK_VERDICT, CVK_VERDICT, vote_for, {"/message_type", "NEGOTIATION"},
              {"/payload/passed", "true"}, {"/payload/confidence", NULL}),
     .if_field = CV_WORD, .if_words = "approved approved_with_fix"},
    {CV_SHAPE("room_vote/against", CVK_VERDICT, CVK_VERDICT, vote_against,
              {"/message_type", "NEGOTIATION"}, {"/payload/passed", "false"},
              {"/payload/confidence", NULL})},
    {CV_SHAPE("notification/status", CVK_RESULT, CVK_RESULT, result,
              {"/message_type", "NOTIFICATION"}, {"/payload/status", NULL})},
    {CV_SHAPE("notification/state", CVK_PROGRESS, CVK_PROGRESS, progress,
              {"/message_type", "NOTIFICATION"}, {"/payload/state", NULL})},
    {CV_SHAPE("notification", CVK_MESSAGE, CVK_MESSAGE, message, {"/message_type", "NOTIFICATION"},
              {"/payload/body", NULL})},
};
const struct cv_shapes amp_cv_shapes_sw4rm = {.v = shapes, .n = CV_COUNT(shapes), .outer_to = true};
