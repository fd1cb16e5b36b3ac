/* AOP 2.0.2-C in neutral fields. The origin is an extension at the top. */
#include <stddef.h>

#include "message/protocol/aop/aop.h"
#include "message/protocol/convert/shape.h"

#define HEADER(type)                                                                               \
    CV_CONST("/aop_version", "\"2.0.2-C\""), CV_CONST("/schema_version", "\"2.0.2\""),             \
        CV_CONST("/protocol_family", "\"AOP\""), CV_CONST("/message_type", "\"" type "\"")

#define ORIGIN CV_ROW("/extensions/x_amp_origin", CV_ORIGIN, AS_RAW)

static const struct cv_word priorities[] = {
    {"critical", "CRITICAL"}, {"high", "HIGH"}, {"normal", "NORMAL"}, {"low", "LOW"}, {NULL, NULL}};

static const struct cv_word inputs[] = {{"{\"type\":\"FILE\",\"path\":%}", "path"}, {NULL, NULL}};
static const struct cv_word outputs[] = {
    {"{\"type\":\"FILE\",\"path\":%,\"description\":\"\"}", "path"}, {NULL, NULL}};
static const struct cv_word artifacts[] = {
    {"{\"type\":\"FILE\",\"path\":%,\"status\":\"UPDATED\"}", "path"}, {NULL, NULL}};

static const struct cv_row task[] = {
    HEADER("TASK"),
    {"/session/session_id", CV_CORR, AS_TEXT, {CV_TASK, CV_ID}},
    {"/session/created_at", CV_TIME, AS_TIME},
    {"/session/orchestrator", CV_FROM, AS_TEXT, .literal = "\"unknown\""},
    CV_CONST("/session/origin", "\"amp-validate\""),
    {"/target/agent_name", CV_TO, AS_TEXT, .literal = "\"unknown\""},
    CV_CONST("/target/role", "\"EXECUTOR\""),
    CV_CONST("/target/provider", "\"OTHER\""),
    CV_CONST("/target/model", "\"unknown\""),
    {"/task/task_id", CV_TASK, AS_TEXT, {CV_CORR, CV_ID}},
    {"/task/parent_task_id", CV_PARENT, AS_TEXT},
    {"/task/attempt", CV_ATTEMPT, AS_RAW},
    {"/task/objective", CV_TEXT, AS_TEXT, {CV_TITLE, CV_CRITERIA}},
    CV_CONST("/task/category", "\"OTHER\""),
    CV_CONST("/task/complexity", "\"MEDIUM\""),
    {"/task/priority", CV_PRIORITY, AS_WORD, .words = priorities},
    {"/task/environment/workspace_root", CV_REPO, AS_TEXT},
    {"/task/environment/git_branch", CV_BRANCH, AS_TEXT},
    {"/task/inputs", CV_CONTEXT, AS_OBJECTS, .words = inputs},
    {"/task/expected_outputs", CV_OUTPUTS, AS_OBJECTS, .words = outputs},
    ORIGIN,
};

/* final_signal has more values than the state. */
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
    {"/session_id", CV_CORR, AS_TEXT, {CV_TASK, CV_ID}},
    {"/task_id", CV_TASK, AS_TEXT, {CV_CORR, CV_ID}},
    {"/agent/name", CV_FROM, AS_TEXT, .literal = "\"unknown\""},
    CV_CONST("/agent/provider", "\"OTHER\""),
    CV_CONST("/agent/model", "\"unknown\""),
    {"/task_status/final_signal", CV_OUTCOME, AS_WORD, .words = signals},
    {"/task_status/state", CV_NONE, AS_WORD, {CV_OUTCOME}, .words = states},
    {"/task_status/message", CV_NOTES, AS_JOINED, .literal = "\"\""},
    {"/execution_summary/summary", CV_SUMMARY, AS_TEXT, {CV_NOTES, CV_ACTIONS, CV_OUTCOME}},
    {"/execution_summary/actions", CV_ACTIONS, AS_TEXTS, {CV_NOTES, CV_SUMMARY, CV_OUTCOME}},
    {"/execution_summary/output_artifacts", CV_FILES, AS_OBJECTS, .words = artifacts},
    {"/execution_summary/errors", CV_BLOCKERS, AS_TEXTS},
    {"/timing/started_at", CV_NONE, AS_TIME, {CV_DONE_AT, CV_TIME}},
    {"/timing/completed_at", CV_DONE_AT, AS_TIME, {CV_TIME}},
    CV_CONST("/timing/duration_seconds", "0"),
    ORIGIN,
};

#define EVENT(word)                                                                                \
    CV_CONST("/aop_version", "\"2.0.2-C\""), CV_CONST("/message_type", "\"EVENT\""),               \
        CV_CONST("/event", "\"" word "\""), {"/session_id", CV_CORR, AS_TEXT, {CV_TASK, CV_ID}},   \
        {"/task_id", CV_TASK, AS_TEXT, {CV_CORR}}, {"/timestamp", CV_TIME, AS_TIME},               \
        CV_ROW("/agent", CV_FROM, AS_TEXT, .literal = "\"unknown\"")

static const struct cv_row heartbeat[] = {
    EVENT("HEARTBEAT"),
    {"/progress_percentage", CV_PERCENT, AS_RAW},
    {"/current_phase", CV_PHASE, AS_TEXT},
    {"/current_checkpoint", CV_CHECKPOINT, AS_TEXT},
    ORIGIN,
};

static const struct cv_row progress[] = {
    EVENT("PROGRESS_UPDATE"),
    {"/progress/percentage", CV_PERCENT, AS_RAW},
    {"/progress/current_phase", CV_PHASE, AS_TEXT},
    {"/progress/current_checkpoint", CV_CHECKPOINT, AS_TEXT},
    {"/progress/message", CV_TEXT, AS_TEXT},
    ORIGIN,
};

/* An acknowledgement that ends a task without a report. */
#define ENDED(signal, state)                                                                       \
    HEADER("RESPONSE"), {"/session_id", CV_CORR, AS_TEXT, {CV_TASK, CV_REF, CV_ID}},               \
        {"/task_id", CV_TASK, AS_TEXT, {CV_REF, CV_CORR}},                                         \
        {"/agent/name", CV_FROM, AS_TEXT, .literal = "\"unknown\""},                               \
        CV_CONST("/agent/provider", "\"OTHER\""), CV_CONST("/agent/model", "\"unknown\""),         \
        CV_CONST("/task_status/state", state), CV_CONST("/task_status/final_signal", signal),      \
        {"/task_status/message", CV_NOTES, AS_JOINED, .literal = "\"\""},                          \
        {"/execution_summary/summary", CV_NONE, AS_TEXT, {CV_NOTES, CV_STAGE}},                    \
        CV_ROW("/execution_summary/actions", CV_NONE, AS_TEXTS, {CV_NOTES, CV_STAGE})

#define ENDED_AT                                                                                   \
    {"/timing/started_at", CV_NONE, AS_TIME, {CV_TIME}},                                           \
        {"/timing/completed_at", CV_TIME, AS_TIME}, CV_CONST("/timing/duration_seconds", "0"),     \
        ORIGIN

static const struct cv_row done[] = {
    ENDED("\"SUCCESS\"", "\"COMPLETED\""),
    CV_IMPLIES(CV_STAGE, "FULFILLED"),
    ENDED_AT,
};
#define SAME(code)                                                                                 \
    {                                                                                              \
        code, code                                                                                 \
    }
static const struct cv_word error_codes[] = {SAME("E_SCHEMA_VALIDATION"),
                                             SAME("E_MALFORMED_RESPONSE"),
                                             SAME("E_PARSE_FAILURE"),
                                             SAME("E_CONTEXT_OVERFLOW"),
                                             SAME("E_PAYLOAD_SIZE_WARNING"),
                                             SAME("E_PERMISSION_DENIED"),
                                             SAME("E_COST_LIMIT_EXCEEDED"),
                                             SAME("E_MAX_DEPTH_EXCEEDED"),
                                             SAME("E_TIMEOUT"),
                                             SAME("E_HEARTBEAT_FAILURE"),
                                             SAME("E_AGENT_NOT_FOUND"),
                                             SAME("E_MODEL_UNAVAILABLE"),
                                             SAME("E_ALL_MODELS_EXHAUSTED"),
                                             SAME("E_FILE_NOT_FOUND"),
                                             SAME("E_DEPENDENCY_FAILED"),
                                             SAME("E_PROCESS_CRASH"),
                                             SAME("E_ROLLBACK_FAILED"),
                                             SAME("E_UNKNOWN"),
                                             {NULL, NULL}};
#undef SAME

static const struct cv_row not_done[] = {
    ENDED("\"FAILURE\"", "\"FAILED\""),
    CV_IMPLIES(CV_STAGE, "FAILED"),
    {"/error_details/error_code", CV_CODE, AS_WORD, .words = error_codes, .infer = amp_aop_failure,
     .literal = "\"E_UNKNOWN\""},
    {"/error_details/message", CV_NONE, AS_TEXT, {CV_NOTES, CV_STAGE}},
    ENDED_AT,
};

static const struct cv_shape shapes[] = {
    {CV_SHAPE("TASK", CVK_DISPATCH, CVK_DISPATCH | CVK_HANDOFF, task, {"/message_type", "TASK"})},
    {CV_SHAPE("RESPONSE", CVK_RESULT, CVK_RESULT, response, {"/message_type", "RESPONSE"})},
    {CV_SHAPE("RESPONSE/done", 0, CVK_ACK, done, {"/task_status/final_signal", "SUCCESS"},
              {"/message_type", CV_NEVER}),
     .if_field = CV_STAGE, .if_words = "FULFILLED"},
    {CV_SHAPE("RESPONSE/failed", 0, CVK_NACK, not_done, {"/task_status/final_signal", "FAILURE"},
              {"/message_type", CV_NEVER}),
     .if_field = CV_STAGE, .if_words = "FAILED TIMED_OUT"},
    {CV_SHAPE("HEARTBEAT", CVK_HEARTBEAT, CVK_HEARTBEAT, heartbeat, {"/event", "HEARTBEAT"})},
    {CV_SHAPE("PROGRESS_UPDATE", CVK_PROGRESS, CVK_PROGRESS, progress,
              {"/event", "PROGRESS_UPDATE"})},
};
const struct cv_shapes amp_cv_shapes_aop = {.v = shapes, .n = CV_COUNT(shapes)};
