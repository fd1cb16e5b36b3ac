/* AOP 2.0.2-C in neutral fields. The origin is an extension at the top. */
#include <stddef.h>

#include "protocol/convert/shape.h"

#define HEADER(type)                                                                               \
    CV_CONST("/aop_version", "\"2.0.2-C\""), CV_CONST("/schema_version", "\"2.0.2\""),             \
        CV_CONST("/protocol_family", "\"AOP\""), CV_CONST("/message_type", "\"" type "\"")

#define ORIGIN                                                                                     \
    {                                                                                              \
        .at = "/extensions/x_amp_origin", .field = CV_ORIGIN, .as = AS_RAW                         \
    }

static const struct cv_word priorities[] = {
    {"critical", "CRITICAL"}, {"high", "HIGH"}, {"normal", "NORMAL"}, {"low", "LOW"}, {NULL, NULL}};

static const struct cv_word inputs[] = {{"{\"type\":\"FILE\",\"path\":%}", "path"}, {NULL, NULL}};
static const struct cv_word outputs[] = {
    {"{\"type\":\"FILE\",\"path\":%,\"description\":\"\"}", "path"}, {NULL, NULL}};
static const struct cv_word artifacts[] = {
    {"{\"type\":\"FILE\",\"path\":%,\"status\":\"UPDATED\"}", "path"}, {NULL, NULL}};

static const struct cv_row task[] = {
    HEADER("TASK"),
    {.at = "/session/session_id", .field = CV_CORR, .as = AS_TEXT, .alt = {CV_TASK, CV_ID}},
    {.at = "/session/created_at", .field = CV_TIME, .as = AS_TIME},
    {.at = "/session/orchestrator", .field = CV_FROM, .as = AS_TEXT, .literal = "\"unknown\""},
    CV_CONST("/session/origin", "\"amp-validate\""),
    {.at = "/target/agent_name", .field = CV_TO, .as = AS_TEXT, .literal = "\"unknown\""},
    CV_CONST("/target/role", "\"EXECUTOR\""),
    CV_CONST("/target/provider", "\"OTHER\""),
    CV_CONST("/target/model", "\"unknown\""),
    {.at = "/task/task_id", .field = CV_TASK, .as = AS_TEXT, .alt = {CV_CORR, CV_ID}},
    {.at = "/task/parent_task_id", .field = CV_PARENT, .as = AS_TEXT},
    {.at = "/task/attempt", .field = CV_ATTEMPT, .as = AS_RAW},
    {.at = "/task/objective", .field = CV_TEXT, .as = AS_TEXT, .alt = {CV_TITLE, CV_CRITERIA}},
    CV_CONST("/task/category", "\"OTHER\""),
    CV_CONST("/task/complexity", "\"MEDIUM\""),
    {.at = "/task/priority", .field = CV_PRIORITY, .as = AS_WORD, .words = priorities},
    {.at = "/task/environment/workspace_root", .field = CV_REPO, .as = AS_TEXT},
    {.at = "/task/environment/git_branch", .field = CV_BRANCH, .as = AS_TEXT},
    {.at = "/task/inputs", .field = CV_CONTEXT, .as = AS_OBJECTS, .words = inputs},
    {.at = "/task/expected_outputs", .field = CV_OUTPUTS, .as = AS_OBJECTS, .words = outputs},
    ORIGIN,
};

/* The last word says more than the state. */
static const struct cv_word signals[] = {
    {"complete", "SUCCESS"},        {"partial", "PARTIAL_SUCCESS"},
    {"failed", "FAILURE"},          {"aborted", "ABORTED"},
    {"blocked", "PARTIAL_SUCCESS"}, {"review", "PARTIAL_SUCCESS"},
    {"skipped", "ABORTED"},         {NULL, NULL}};
static const struct cv_word states[] = {{"complete", "COMPLETED"}, {"partial", "COMPLETED"},
                                        {"failed", "FAILED"},      {"aborted", "ABORTED"},
                                        {"blocked", "FAILED"},     {"review", "COMPLETED"},
                                        {"skipped", "SKIPPED"},    {NULL, NULL}};

static const struct cv_row response[] = {
    HEADER("RESPONSE"),
    {.at = "/session_id", .field = CV_CORR, .as = AS_TEXT, .alt = {CV_TASK, CV_ID}},
    {.at = "/task_id", .field = CV_TASK, .as = AS_TEXT, .alt = {CV_CORR, CV_ID}},
    {.at = "/agent/name", .field = CV_FROM, .as = AS_TEXT, .literal = "\"unknown\""},
    CV_CONST("/agent/provider", "\"OTHER\""),
    CV_CONST("/agent/model", "\"unknown\""),
    {.at = "/task_status/final_signal", .field = CV_OUTCOME, .as = AS_WORD, .words = signals},
    {.at = "/task_status/state", .alt = {CV_OUTCOME}, .as = AS_WORD, .words = states},
    {.at = "/task_status/message", .field = CV_NOTES, .as = AS_JOINED, .literal = "\"\""},
    {.at = "/execution_summary/summary",
     .field = CV_SUMMARY,
     .as = AS_TEXT,
     .alt = {CV_NOTES, CV_ACTIONS, CV_OUTCOME}},
    {.at = "/execution_summary/actions",
     .field = CV_ACTIONS,
     .as = AS_TEXTS,
     .alt = {CV_NOTES, CV_SUMMARY, CV_OUTCOME}},
    {.at = "/execution_summary/output_artifacts",
     .field = CV_FILES,
     .as = AS_OBJECTS,
     .words = artifacts},
    {.at = "/execution_summary/errors", .field = CV_BLOCKERS, .as = AS_TEXTS},
    {.at = "/timing/started_at", .alt = {CV_DONE_AT, CV_TIME}, .as = AS_TIME},
    {.at = "/timing/completed_at", .field = CV_DONE_AT, .as = AS_TIME, .alt = {CV_TIME}},
    CV_CONST("/timing/duration_seconds", "0"),
    ORIGIN,
};

#define EVENT(word)                                                                                \
    CV_CONST("/aop_version", "\"2.0.2-C\""), CV_CONST("/message_type", "\"EVENT\""),               \
        CV_CONST("/event", "\"" word "\""),                                                        \
        {.at = "/session_id", .field = CV_CORR, .as = AS_TEXT, .alt = {CV_TASK, CV_ID}},           \
        {.at = "/task_id", .field = CV_TASK, .as = AS_TEXT, .alt = {CV_CORR}},                     \
        {.at = "/timestamp", .field = CV_TIME, .as = AS_TIME},                                     \
    {                                                                                              \
        .at = "/agent", .field = CV_FROM, .as = AS_TEXT, .literal = "\"unknown\""                  \
    }

static const struct cv_row heartbeat[] = {
    EVENT("HEARTBEAT"),
    {.at = "/progress_percentage", .field = CV_PERCENT, .as = AS_RAW},
    {.at = "/current_phase", .field = CV_PHASE, .as = AS_TEXT},
    {.at = "/current_checkpoint", .field = CV_CHECKPOINT, .as = AS_TEXT},
    ORIGIN,
};

static const struct cv_row progress[] = {
    EVENT("PROGRESS_UPDATE"),
    {.at = "/progress/percentage", .field = CV_PERCENT, .as = AS_RAW},
    {.at = "/progress/current_phase", .field = CV_PHASE, .as = AS_TEXT},
    {.at = "/progress/current_checkpoint", .field = CV_CHECKPOINT, .as = AS_TEXT},
    {.at = "/progress/message", .field = CV_TEXT, .as = AS_TEXT},
    ORIGIN,
};

/* An acknowledgement that is the end of a task, and no report. */
#define ENDED(signal, state)                                                                       \
    HEADER("RESPONSE"),                                                                            \
        {.at = "/session_id", .field = CV_CORR, .as = AS_TEXT, .alt = {CV_TASK, CV_REF, CV_ID}},   \
        {.at = "/task_id", .field = CV_TASK, .as = AS_TEXT, .alt = {CV_REF, CV_CORR}},             \
        {.at = "/agent/name", .field = CV_FROM, .as = AS_TEXT, .literal = "\"unknown\""},          \
        CV_CONST("/agent/provider", "\"OTHER\""), CV_CONST("/agent/model", "\"unknown\""),         \
        CV_CONST("/task_status/state", state), CV_CONST("/task_status/final_signal", signal),      \
        {.at = "/task_status/message", .field = CV_NOTES, .as = AS_JOINED, .literal = "\"\""},     \
        {.at = "/execution_summary/summary", .alt = {CV_NOTES, CV_STAGE}, .as = AS_TEXT},          \
    {                                                                                              \
        .at = "/execution_summary/actions", .alt = {CV_NOTES, CV_STAGE}, .as = AS_TEXTS            \
    }

#define ENDED_AT                                                                                   \
    {.at = "/timing/started_at", .alt = {CV_TIME}, .as = AS_TIME},                                 \
        {.at = "/timing/completed_at", .field = CV_TIME, .as = AS_TIME},                           \
        CV_CONST("/timing/duration_seconds", "0"), ORIGIN

static const struct cv_row done[] = {
    ENDED("\"SUCCESS\"", "\"COMPLETED\""),
    CV_IMPLIES(CV_STAGE, "FULFILLED"),
    ENDED_AT,
};
static const struct cv_row not_done[] = {
    ENDED("\"FAILURE\"", "\"FAILED\""),
    CV_IMPLIES(CV_STAGE, "FAILED"),
    {.at = "/error_details/error_code",
     .field = CV_CODE,
     .as = AS_TEXT,
     .literal = "\"E_UNKNOWN\""},
    {.at = "/error_details/message", .alt = {CV_NOTES, CV_STAGE}, .as = AS_TEXT},
    ENDED_AT,
};

static const struct cv_shape shapes[] = {
    {.type = "TASK",
     .kind = CVK_DISPATCH,
     .kinds = CVK_DISPATCH | CVK_HANDOFF,
     .when = {{"/message_type", "TASK"}},
     CV_ROWS(task)},
    {.type = "RESPONSE",
     .kind = CVK_RESULT,
     .kinds = CVK_RESULT,
     .when = {{"/message_type", "RESPONSE"}},
     CV_ROWS(response)},
    {.type = "RESPONSE/done",
     .kinds = CVK_ACK,
     .when = {{"/task_status/final_signal", "SUCCESS"}, {"/message_type", CV_NEVER}},
     .if_field = CV_STAGE,
     .if_words = "FULFILLED",
     CV_ROWS(done)},
    {.type = "RESPONSE/failed",
     .kinds = CVK_NACK,
     .when = {{"/task_status/final_signal", "FAILURE"}, {"/message_type", CV_NEVER}},
     .if_field = CV_STAGE,
     .if_words = "FAILED TIMED_OUT",
     CV_ROWS(not_done)},
    {.type = "HEARTBEAT",
     .kind = CVK_HEARTBEAT,
     .kinds = CVK_HEARTBEAT,
     .when = {{"/event", "HEARTBEAT"}},
     CV_ROWS(heartbeat)},
    {.type = "PROGRESS_UPDATE",
     .kind = CVK_PROGRESS,
     .kinds = CVK_PROGRESS,
     .when = {{"/event", "PROGRESS_UPDATE"}},
     CV_ROWS(progress)},
};
const struct cv_shapes amp_cv_shapes_aop = {.v = shapes, .n = CV_COUNT(shapes)};
