/* SW4RM 0.5.0 in neutral fields. Unknown fields are ignored there: the origin stands in the
 * envelope. */
#include <stddef.h>

#include "protocol/convert/shape.h"

#define ENVELOPE(type)                                                                             \
    {.at = "/message_id", .field = CV_ID, .as = AS_UUID},                                          \
        {.at = "/producer_id",                                                                     \
         .field = CV_FROM,                                                                         \
         .as = AS_TEXT,                                                                            \
         .alt = {CV_OPERATOR},                                                                     \
         .literal = "\"unknown\""},                                                                \
        {.at = "/correlation_id",                                                                  \
         .field = CV_CORR,                                                                         \
         .as = AS_UUID,                                                                            \
         .alt = {CV_TASK, CV_REF, CV_ID}},                                                         \
        {.at = "/sequence_number", .field = CV_SEQ, .as = AS_SEQUENCE},                            \
        {.at = "/retry_count", .field = CV_ATTEMPT, .as = AS_RETRIES, .literal = "0"},             \
        CV_CONST("/message_type", "\"" type "\""),                                                 \
        CV_CONST("/content_type", "\"application/json\""),                                         \
    {                                                                                              \
        .at = "/timestamp", .field = CV_TIME, .as = AS_TIME                                        \
    }

#define END                                                                                        \
    {.at = "/content_length", .as = AS_LENGTH},                                                    \
    {                                                                                              \
        .at = "/x_amp_origin", .field = CV_ORIGIN, .as = AS_RAW                                    \
    }

/* The bounds up to which a number is read as the word. */
static const struct cv_word priorities[] = {
    {"critical", "-15"}, {"high", "-5"}, {"normal", "0"}, {"low", "10"}, {NULL, NULL}};

static const struct cv_row submission[] = {
    ENVELOPE("DATA"),
    {.at = "/ttl_ms", .field = CV_DUE, .as = AS_TTL},
    {.at = "/payload/agent_id", .field = CV_TO, .as = AS_TEXT},
    {.at = "/payload/task_id", .field = CV_TASK, .as = AS_TEXT, .alt = {CV_CORR, CV_ID}},
    {.at = "/payload/priority", .field = CV_PRIORITY, .as = AS_NUMBERED, .words = priorities},
    {.at = "/payload/params/title", .field = CV_TITLE, .as = AS_TEXT},
    {.at = "/payload/params/description", .field = CV_TEXT, .as = AS_TEXT},
    {.at = "/payload/params/parent_task_id", .field = CV_PARENT, .as = AS_TEXT},
    {.at = "/payload/params/repo", .field = CV_REPO, .as = AS_TEXT},
    {.at = "/payload/params/branch", .field = CV_BRANCH, .as = AS_TEXT},
    {.at = "/payload/params/acceptance_criteria", .field = CV_CRITERIA, .as = AS_TEXTS},
    {.at = "/payload/params/constraints", .field = CV_CONSTRAINTS, .as = AS_TEXTS},
    {.at = "/payload/params/context", .field = CV_CONTEXT, .as = AS_TEXTS},
    {.at = "/payload/params/expected_outputs", .field = CV_OUTPUTS, .as = AS_TEXTS},
    {.at = "/payload/params/required_capabilities", .field = CV_CAPABILITIES, .as = AS_TEXTS},
    {.at = "/payload/params/risk_level", .field = CV_RISK, .as = AS_TEXT, .literal = "\"unknown\""},
    {.at = "/payload/scope", .alt = {CV_REPO, CV_TASK, CV_ID}, .as = AS_TEXT},
    END,
};

/* Read only: a task as the protocol's own example sends it. */
static const struct cv_row task[] = {
    ENVELOPE("DATA"),
    {.at = "/ttl_ms", .field = CV_DUE, .as = AS_TTL},
    {.at = "/payload/agent_id", .field = CV_TO, .as = AS_TEXT},
    {.at = "/payload/task_id", .field = CV_TASK, .as = AS_TEXT, .alt = {CV_CORR, CV_ID}},
    {.at = "/payload/title", .field = CV_TITLE, .as = AS_TEXT},
    {.at = "/payload/description", .field = CV_TEXT, .as = AS_TEXT},
    {.at = "/payload/priority", .field = CV_PRIORITY, .as = AS_NUMBERED, .words = priorities},
    END,
};

static const struct cv_row handoff[] = {
    ENVELOPE("DATA"),
    {.at = "/payload/request_id", .field = CV_TASK, .as = AS_TEXT, .alt = {CV_ID}},
    {.at = "/payload/from_agent", .alt = {CV_FROM}, .as = AS_TEXT, .literal = "\"unknown\""},
    {.at = "/payload/to_agent", .field = CV_TO, .as = AS_TEXT},
    {.at = "/payload/reason",
     .field = CV_TEXT,
     .as = AS_TEXT,
     .alt = {CV_TITLE, CV_CRITERIA, CV_TASK}},
    {.at = "/payload/context_snapshot/parent_task_id",
     .field = CV_PARENT,
     .as = AS_TEXT,
     .alt = {CV_TASK}},
    {.at = "/payload/context_snapshot/acceptance_criteria", .field = CV_CRITERIA, .as = AS_TEXTS},
    {.at = "/payload/context_snapshot/expected_outputs", .field = CV_OUTPUTS, .as = AS_TEXTS},
    {.at = "/payload/context_snapshot/context_refs", .field = CV_CONTEXT, .as = AS_TEXTS},
    {.at = "/payload/context_snapshot/constraints", .field = CV_CONSTRAINTS, .as = AS_TEXTS},
    {.at = "/payload/capabilities_required",
     .field = CV_CAPABILITIES,
     .as = AS_TEXTS,
     .literal = "[]"},
    {.at = "/payload/priority", .field = CV_PRIORITY, .as = AS_NUMBERED, .words = priorities},
    {.at = "/payload/timeout_ms", .field = CV_DUE, .as = AS_TTL},
    END,
};

static const struct cv_word statuses[] = {
    {"complete", "FULFILLED"}, {"failed", "FAILED"},      {"partial", "FAILED"},
    {"blocked", "FAILED"},     {"review", "FULFILLED"},   {"aborted", "FAILED"},
    {"skipped", "FAILED"},     {"complete", "COMPLETED"}, {NULL, NULL}};

static const struct cv_row result[] = {
    ENVELOPE("NOTIFICATION"),
    {.at = "/payload/status", .field = CV_OUTCOME, .as = AS_WORD, .words = statuses},
    {.at = "/payload/task_id", .field = CV_TASK, .as = AS_TEXT, .alt = {CV_CORR}},
    {.at = "/payload/agent_id", .alt = {CV_FROM}, .as = AS_TEXT},
    {.at = "/payload/summary", .field = CV_SUMMARY, .as = AS_TEXT},
    {.at = "/payload/result_ref", .field = CV_ARTIFACT, .as = AS_TEXT},
    {.at = "/payload/files_changed", .field = CV_FILES, .as = AS_TEXTS},
    {.at = "/payload/actions", .field = CV_ACTIONS, .as = AS_TEXTS},
    {.at = "/payload/notes", .field = CV_NOTES, .as = AS_TEXTS},
    {.at = "/payload/blockers", .field = CV_BLOCKERS, .as = AS_TEXTS},
    {.at = "/payload/tests", .field = CV_TESTS, .as = AS_RAW},
    {.at = "/payload/failure_class", .field = CV_CODE, .as = AS_TEXT},
    {.at = "/payload/retryable", .field = CV_RETRYABLE, .as = AS_RAW},
    {.at = "/payload/completed_at", .field = CV_DONE_AT, .as = AS_TIME},
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
    {.at = "/payload/state",
     .field = CV_STATE,
     .as = AS_WORD,
     .words = states,
     .literal = "\"RUNNING\""},
    {.at = "/payload/task_id", .field = CV_TASK, .as = AS_TEXT, .alt = {CV_CORR}},
    {.at = "/payload/agent_id", .alt = {CV_FROM}, .as = AS_TEXT},
    {.at = "/payload/progress", .field = CV_PERCENT, .as = AS_RAW},
    {.at = "/payload/message", .field = CV_TEXT, .as = AS_TEXT},
    {.at = "/payload/phase", .field = CV_PHASE, .as = AS_TEXT},
    {.at = "/payload/checkpoint", .field = CV_CHECKPOINT, .as = AS_TEXT},
    {.at = "/payload/blockers", .field = CV_BLOCKERS, .as = AS_TEXTS},
    {.at = "/payload/notes", .field = CV_NOTES, .as = AS_TEXTS},
    END,
};

static const struct cv_row message[] = {
    ENVELOPE("NOTIFICATION"),
    {.at = "/ttl_ms", .field = CV_DUE, .as = AS_TTL},
    {.at = "/payload/subject", .field = CV_SUBJECT, .as = AS_TEXT},
    {.at = "/payload/body", .field = CV_BODY, .as = AS_TEXT, .literal = "\"\""},
    {.at = "/payload/agent_id", .field = CV_TO, .as = AS_TEXT},
    {.at = "/payload/ref_message_id", .field = CV_REF, .as = AS_TEXT},
    {.at = "/payload/priority", .field = CV_PRIORITY, .as = AS_NUMBERED, .words = priorities},
    END,
};

static const struct cv_row heartbeat[] = {
    ENVELOPE("HEARTBEAT"),
    {.at = "/payload/agent_id", .alt = {CV_FROM}, .as = AS_TEXT, .literal = "\"unknown\""},
    {.at = "/payload/state",
     .field = CV_STATE,
     .as = AS_WORD,
     .words = states,
     .literal = "\"RUNNING\""},
    {.at = "/payload/health/task_id", .field = CV_TASK, .as = AS_TEXT},
    {.at = "/payload/health/phase", .field = CV_PHASE, .as = AS_TEXT},
    {.at = "/payload/health/checkpoint", .field = CV_CHECKPOINT, .as = AS_TEXT},
    {.at = "/payload/progress", .field = CV_PERCENT, .as = AS_RAW},
    END,
};

#define ACKED                                                                                      \
    ENVELOPE("ACKNOWLEDGEMENT"),                                                                   \
        {.at = "/payload/ack_for_message_id",                                                      \
         .field = CV_REF,                                                                          \
         .as = AS_TEXT,                                                                            \
         .alt = {CV_TASK, CV_CORR}},                                                               \
    {                                                                                              \
        .at = "/payload/task_id", .field = CV_TASK, .as = AS_TEXT                                  \
    }

static const struct cv_row ack[] = {
    ACKED,
    {.at = "/payload/ack_stage", .field = CV_STAGE, .as = AS_TEXT, .literal = "\"READ\""},
    {.at = "/payload/note", .field = CV_NOTES, .as = AS_JOINED},
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
    {.at = "/payload/ack_stage", .field = CV_STAGE, .as = AS_TEXT, .literal = "\"REJECTED\""},
    {.at = "/payload/error_code",
     .field = CV_CODE,
     .as = AS_WORD,
     .words = error_codes,
     .literal = "\"VALIDATION_ERROR\""},
    {.at = "/payload/note", .field = CV_NOTES, .as = AS_JOINED},
    END,
};

/* Reading takes the first row with the word, so each has its plainest meaning first. */
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
    {.at = "/payload/invocation_id", .alt = {CV_ID}, .as = AS_TEXT},
    {.at = "/payload/reason_type",
     .field = CV_REASON,
     .as = AS_WORD,
     .words = reasons,
     .literal = "\"TASK_ESCALATION\""},
    {.at = "/payload/subject/task_id", .field = CV_TASK, .as = AS_TEXT},
    {.at = "/payload/context/description", .field = CV_TEXT, .as = AS_TEXT, .alt = {CV_NOTES}},
    {.at = "/payload/context/severity", .field = CV_SEVERITY, .as = AS_TEXT},
    {.at = "/payload/context/ref_message_id", .field = CV_REF, .as = AS_TEXT},
    {.at = "/payload/proposed_actions", .field = CV_SUGGESTED, .as = AS_TEXTS},
    {.at = "/payload/suggested_action", .field = CV_SUGGESTED, .as = AS_TEXT},
    {.at = "/payload/deadline_ts", .field = CV_DUE, .as = AS_TIME},
    END,
};

static const struct cv_word decisions[] = {{"resume", "approve"},
                                           {"terminate", "deny"},
                                           {"redispatch", "modify"},
                                           {"rollback", "rollback"},
                                           {NULL, NULL}};

static const struct cv_row decision[] = {
    ENVELOPE("HITL_DECISION"),
    {.at = "/payload/invocation_id", .field = CV_REF, .as = AS_TEXT, .alt = {CV_TASK, CV_CORR}},
    {.at = "/payload/decision", .field = CV_WORD, .as = AS_WORD, .words = decisions},
    {.at = "/payload/rationale", .field = CV_NOTES, .as = AS_JOINED, .literal = "\"\""},
    {.at = "/payload/operator", .field = CV_OPERATOR, .as = AS_TEXT},
    {.at = "/payload/decided_at", .alt = {CV_TIME}, .as = AS_TIME},
    {.at = "/payload/task_id", .field = CV_TASK, .as = AS_TEXT},
    END,
};

static const struct cv_row proposal[] = {
    ENVELOPE("NEGOTIATION"),
    CV_CONST("/payload/artifact_type", "\"CODE\""),
    {.at = "/payload/artifact_id", .field = CV_REF, .as = AS_TEXT},
    {.at = "/payload/artifact", .field = CV_ARTIFACT, .as = AS_TEXT},
    CV_CONST("/payload/artifact_content_type", "\"text/uri-list\""),
    {.at = "/payload/requested_critics", .field = CV_TO, .as = AS_LONE, .literal = "[]"},
    {.at = "/payload/negotiation_room_id", .field = CV_TASK, .as = AS_TEXT, .alt = {CV_CORR}},
    {.at = "/payload/dispatch_ref", .field = CV_SUBJECT, .as = AS_TEXT},
    {.at = "/payload/notes", .field = CV_NOTES, .as = AS_JOINED},
    END,
};

static const struct cv_word passed[] = {
    {"approved", "10"}, {"approved_with_fix", "10"}, {"rejected", "0"}, {NULL, NULL}};

static const struct cv_row vote_for[] = {
    ENVELOPE("NEGOTIATION"),
    {.at = "/payload/negotiation_room_id", .field = CV_TASK, .as = AS_TEXT, .alt = {CV_CORR}},
    {.at = "/payload/critic_id", .alt = {CV_FROM}, .as = AS_TEXT},
    {.at = "/payload/score", .alt = {CV_WORD}, .as = AS_NUMBERED, .words = passed},
    {.at = "/payload/confidence", .field = CV_CONFIDENCE, .as = AS_RAW},
    CV_CONST("/payload/passed", "true"),
    CV_IMPLIES(CV_WORD, "approved"),
    {.at = "/payload/recommendations", .field = CV_NOTES, .as = AS_JOINED},
    END,
};
static const struct cv_row vote_against[] = {
    ENVELOPE("NEGOTIATION"),
    {.at = "/payload/negotiation_room_id", .field = CV_TASK, .as = AS_TEXT, .alt = {CV_CORR}},
    {.at = "/payload/critic_id", .alt = {CV_FROM}, .as = AS_TEXT},
    {.at = "/payload/score", .alt = {CV_WORD}, .as = AS_NUMBERED, .words = passed},
    {.at = "/payload/confidence", .field = CV_CONFIDENCE, .as = AS_RAW},
    CV_CONST("/payload/passed", "false"),
    CV_IMPLIES(CV_WORD, "rejected"),
    {.at = "/payload/weaknesses", .field = CV_CRITIQUE, .as = AS_TEXTS, .literal = "[]"},
    {.at = "/payload/recommendations", .field = CV_NOTES, .as = AS_JOINED},
    END,
};

/* Read only: a handoff's own answers. */
static const struct cv_row accepted[] = {
    ENVELOPE("DATA"),
    {.at = "/payload/request_id", .field = CV_TASK, .as = AS_TEXT},
    CV_CONST("/payload/accepted", "true"),
    CV_IMPLIES(CV_STAGE, "READ"),
    {.at = "/payload/accepting_agent", .alt = {CV_FROM}, .as = AS_TEXT},
    END,
};
static const struct cv_row declined[] = {
    ENVELOPE("DATA"),
    {.at = "/payload/request_id", .field = CV_TASK, .as = AS_TEXT},
    CV_CONST("/payload/accepted", "false"),
    CV_IMPLIES(CV_STAGE, "REJECTED"),
    {.at = "/payload/rejection_reason", .field = CV_NOTES, .as = AS_JOINED},
    END,
};

#define STAGE(word)                                                                                \
    {                                                                                              \
        {"/message_type", "ACKNOWLEDGEMENT"},                                                      \
        {                                                                                          \
            "/payload/ack_stage", word                                                             \
        }                                                                                          \
    }

static const struct cv_shape shapes[] = {
    {.type = "task_submission",
     .kind = CVK_DISPATCH,
     .kinds = CVK_DISPATCH,
     .when = {{"/payload/params", NULL}, {"/payload/task_id", NULL}},
     CV_ROWS(submission)},
    {.type = "task",
     .kind = CVK_DISPATCH,
     .when = {{"/message_type", "DATA"}, {"/payload/task_type", NULL}},
     CV_ROWS(task)},
    {.type = "handoff_request",
     .kind = CVK_HANDOFF,
     .kinds = CVK_HANDOFF,
     .when = {{"/payload/request_id", NULL}, {"/payload/context_snapshot", NULL}},
     CV_ROWS(handoff)},
    {.type = "handoff_accept",
     .kind = CVK_ACK,
     .when = {{"/payload/request_id", NULL}, {"/payload/accepted", "true"}},
     CV_ROWS(accepted)},
    {.type = "handoff_reject",
     .kind = CVK_NACK,
     .when = {{"/payload/request_id", NULL}, {"/payload/accepted", "false"}},
     CV_ROWS(declined)},
    {.type = "ack/received",
     .kind = CVK_ACK,
     .kinds = CVK_ACK,
     .when = STAGE("RECEIVED"),
     CV_ROWS(ack)},
    {.type = "ack/read", .kind = CVK_ACK, .when = STAGE("READ"), CV_ROWS(ack)},
    {.type = "ack/fulfilled", .kind = CVK_ACK, .when = STAGE("FULFILLED"), CV_ROWS(ack)},
    {.type = "nack",
     .kind = CVK_NACK,
     .kinds = CVK_NACK,
     .when = {{"/message_type", "ACKNOWLEDGEMENT"}},
     CV_ROWS(nack)},
    {.type = "hitl_invocation",
     .kind = CVK_ESCALATION,
     .kinds = CVK_ESCALATION,
     .when = {{"/message_type", "HITL_INVOCATION"}},
     CV_ROWS(invocation)},
    {.type = "hitl_decision",
     .kind = CVK_DECISION,
     .kinds = CVK_DECISION,
     .when = {{"/payload/invocation_id", NULL}, {"/payload/decision", NULL}},
     CV_ROWS(decision)},
    {.type = "heartbeat",
     .kind = CVK_HEARTBEAT,
     .kinds = CVK_HEARTBEAT,
     .when = {{"/message_type", "HEARTBEAT"}},
     CV_ROWS(heartbeat)},
    {.type = "room_proposal",
     .kind = CVK_REVIEW,
     .kinds = CVK_REVIEW,
     .when = {{"/message_type", "NEGOTIATION"},
              {"/payload/artifact_id", NULL},
              {"/payload/requested_critics", NULL}},
     CV_ROWS(proposal)},
    {.type = "room_vote/for",
     .kind = CVK_VERDICT,
     .kinds = CVK_VERDICT,
     .when = {{"/message_type", "NEGOTIATION"},
              {"/payload/passed", "true"},
              {"/payload/confidence", NULL}},
     .if_field = CV_WORD,
     .if_words = "approved approved_with_fix",
     CV_ROWS(vote_for)},
    {.type = "room_vote/against",
     .kind = CVK_VERDICT,
     .kinds = CVK_VERDICT,
     .when = {{"/message_type", "NEGOTIATION"},
              {"/payload/passed", "false"},
              {"/payload/confidence", NULL}},
     CV_ROWS(vote_against)},
    {.type = "notification/status",
     .kind = CVK_RESULT,
     .kinds = CVK_RESULT,
     .when = {{"/message_type", "NOTIFICATION"}, {"/payload/status", NULL}},
     CV_ROWS(result)},
    {.type = "notification/state",
     .kind = CVK_PROGRESS,
     .kinds = CVK_PROGRESS,
     .when = {{"/message_type", "NOTIFICATION"}, {"/payload/state", NULL}},
     CV_ROWS(progress)},
    {.type = "notification",
     .kind = CVK_MESSAGE,
     .kinds = CVK_MESSAGE,
     .when = {{"/message_type", "NOTIFICATION"}, {"/payload/body", NULL}},
     CV_ROWS(message)},
};
const struct cv_shapes amp_cv_shapes_sw4rm = {.v = shapes, .n = CV_COUNT(shapes), .outer_to = true};
