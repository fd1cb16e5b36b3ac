/* Runtime Protocol v1 in neutral fields. The origin is in the envelope. */
#include <stddef.h>

#include "message/protocol/convert/shape.h"
#include "message/protocol/rtp/rtp.h"

#define ENVELOPE(kind)                                                                             \
    {"/eventId", CV_ID, AS_TEXT}, {"/seq", CV_SEQ, AS_SEQUENCE},                                   \
        CV_CONST("/kind", "\"" kind "\""),                                                         \
        {"/sourceNodeId", CV_NONE, AS_TEXT, {CV_FROM, CV_OPERATOR}, .literal = "\"unknown\""},     \
        {"/sourceAgentId", CV_FROM, AS_TEXT, {CV_OPERATOR}, .literal = "\"unknown\""},             \
        {"/toAgentId", CV_TO, AS_TEXT}, {"/corrId", CV_CORR, AS_TEXT, {CV_TASK, CV_REF, CV_ID}},   \
        CV_ROW("/createdAt", CV_TIME, AS_TIME)

#define END                                                                                        \
    {"/trace/attempt", CV_ATTEMPT, AS_RAW, .literal = "1"},                                        \
        CV_ROW("/x_amp_origin", CV_ORIGIN, AS_RAW)

#define TASK CV_ROW("/payload/taskId", CV_TASK, AS_TEXT, {CV_CORR, CV_ID})

static const struct cv_word priorities[] = {
    {"normal", "normal"}, {"high", "high"}, {"low", "low"}, {"critical", "high"}, {NULL, NULL}};

static const struct cv_row message[] = {
    ENVELOPE("message"),
    {"/expiresAt", CV_DUE, AS_TIME},
    {"/payload/toAgents", CV_TO, AS_LONE},
    {"/payload/subject", CV_SUBJECT, AS_TEXT, .most = 200},
    {"/payload/body", CV_BODY, AS_TEXT, {CV_SUBJECT}, .most = 10000},
    {"/payload/priority", CV_PRIORITY, AS_WORD, .words = priorities},
    END,
};

static const struct cv_row reply[] = {
    ENVELOPE("reply"),
    {"/expiresAt", CV_DUE, AS_TIME},
    {"/payload/refEventId", CV_REF, AS_TEXT},
    {"/payload/subject", CV_SUBJECT, AS_TEXT, .most = 200},
    {"/payload/body", CV_BODY, AS_TEXT, .most = 10000},
    END,
};

static const struct cv_row create[] = {
    ENVELOPE("task_create"),
    TASK,
    {"/payload/title", CV_TITLE, AS_TEXT, {CV_TEXT, CV_CRITERIA, CV_TASK}, .most = 200},
    {"/payload/description", CV_TEXT, AS_TEXT, .most = 5000},
    {"/payload/toAgents", CV_NONE, AS_LONE, {CV_TO}, .literal = "[]"},
    {"/payload/requiredCapabilities", CV_CAPABILITIES, AS_TEXTS},
    {"/payload/priority", CV_PRIORITY, AS_WORD, .words = priorities},
    {"/payload/requesterAgentId", CV_NONE, AS_TEXT, {CV_FROM}, .literal = "\"unknown\""},
    {"/payload/deadlineAt", CV_DUE, AS_TIME},
    END,
};

static const struct cv_row update[] = {
    ENVELOPE("task_update"),
    TASK,
    {"/payload/status", CV_STATE, AS_WORD,
     .words =
         (const struct cv_word[]){{"running", "in_progress"}, {"failed", "failed"}, {NULL, NULL}},
     .literal = "\"in_progress\""},
    {"/payload/progress", CV_PERCENT, AS_RAW},
    {"/payload/note", CV_TEXT, AS_TEXT, {CV_NOTES, CV_BLOCKERS}, .most = 200},
    END,
};

static const struct cv_row completed[] = {
    ENVELOPE("task_complete"),
    TASK,
    CV_IMPLIES(CV_OUTCOME, "complete"),
    {"/payload/completedByAgentId", CV_NONE, AS_TEXT, {CV_FROM}, .literal = "\"unknown\""},
    {"/payload/resultSummary",
     CV_SUMMARY,
     AS_TEXT,
     {CV_NOTES, CV_ACTIONS, CV_OUTCOME},
     .most = 5000},
    {"/payload/resultRef", CV_ARTIFACT, AS_TEXT},
    {"/payload/completedAt", CV_DONE_AT, AS_TIME, {CV_TIME}},
    END,
};

#define X(word) {word, word},
static const struct cv_word classes[] = {AMP_RTP_FAILURE_LIST(X){NULL, NULL}};
#undef X

static const struct cv_row broken[] = {
    ENVELOPE("task_failed"),
    TASK,
    CV_IMPLIES(CV_OUTCOME, "failed"),
    {"/payload/failedByAgentId", CV_NONE, AS_TEXT, {CV_FROM}, .literal = "\"unknown\""},
    {"/payload/errorSummary",
     CV_SUMMARY,
     AS_TEXT,
     {CV_BLOCKERS, CV_NOTES, CV_OUTCOME},
     .most = 5000},
    /* After the summary, from which it may be inferred. */
    {"/payload/failureClass", CV_CODE, AS_WORD, .words = classes, .infer = amp_rtp_failure,
     .literal = "\"execution_error\""},
    {"/payload/failedAt", CV_DONE_AT, AS_TIME, {CV_TIME}},
    {"/payload/retryable", CV_RETRYABLE, AS_RAW},
    END,
};

#define ACKED                                                                                      \
    ENVELOPE("ack"), {"/payload/refEventId", CV_REF, AS_TEXT, {CV_TASK, CV_CORR}},                 \
        {"/payload/taskId", CV_TASK, AS_TEXT},                                                     \
        {"/payload/ackedByAgentId", CV_NONE, AS_TEXT, {CV_FROM}, .literal = "\"unknown\""},        \
        CV_ROW("/payload/ackedAt", CV_NONE, AS_TIME, {CV_TIME})

static const struct cv_word stages[] = {
    {"RECEIVED", "accepted"}, {"FULFILLED", "processed"}, {"READ", "accepted"}, {NULL, NULL}};

static const struct cv_row ack[] = {
    ACKED,
    {"/payload/ackType", CV_STAGE, AS_WORD, .words = stages, .literal = "\"accepted\""},
    END,
};

static const struct cv_row nack[] = {
    ACKED,
    CV_CONST("/payload/ackType", "\"failed_terminal\""),
    CV_IMPLIES(CV_STAGE, "FAILED"),
    {"/payload/code", CV_CODE, AS_TEXT},
    {"/payload/reason", CV_NOTES, AS_JOINED, .most = 5000},
    END,
};

/* Read only: the acceptance of a task. */
static const struct cv_row accept_rows[] = {
    ENVELOPE("task_accept"),
    TASK,
    CV_IMPLIES(CV_STAGE, "READ"),
    {"/payload/acceptedByAgentId", CV_NONE, AS_TEXT, {CV_FROM}},
    {"/payload/planSummary", CV_NOTES, AS_JOINED},
    END,
};

/* The payload of a signal is free. */
static const struct cv_row ask[] = {
    ENVELOPE("signal"),
    CV_CONST("/payload/signal", "\"escalation\""),
    {"/payload/taskId", CV_TASK, AS_TEXT},
    {"/payload/reason", CV_REASON, AS_TEXT, .literal = "\"unknown\""},
    {"/payload/severity", CV_SEVERITY, AS_TEXT},
    {"/payload/description", CV_TEXT, AS_TEXT, {CV_NOTES}},
    {"/payload/refEventId", CV_REF, AS_TEXT},
    {"/payload/suggestedActions", CV_SUGGESTED, AS_TEXTS},
    {"/payload/deadlineAt", CV_DUE, AS_TIME},
    END,
};

static const struct cv_row answer[] = {
    ENVELOPE("signal"),
    CV_CONST("/payload/signal", "\"decision\""),
    {"/payload/taskId", CV_TASK, AS_TEXT},
    {"/payload/refEventId", CV_REF, AS_TEXT},
    {"/payload/decision", CV_WORD, AS_TEXT},
    {"/payload/operator", CV_OPERATOR, AS_TEXT},
    {"/payload/note", CV_NOTES, AS_JOINED},
    END,
};

static const struct cv_shape shapes[] = {
    {CV_SHAPE("message", CVK_MESSAGE, CVK_MESSAGE, message, {"/kind", "message"})},
    {CV_SHAPE("reply", CVK_MESSAGE, 0, reply, {"/kind", "reply"})},
    {CV_SHAPE("task_create", CVK_DISPATCH, CVK_DISPATCH | CVK_HANDOFF, create,
              {"/kind", "task_create"})},
    {CV_SHAPE("task_accept", CVK_ACK, 0, accept_rows, {"/kind", "task_accept"})},
    {CV_SHAPE("ack/accept", CVK_ACK, 0, accept_rows, {"/kind", "ack"},
              {"/payload/acceptedByAgentId", NULL})},
    {CV_SHAPE("task_update", CVK_PROGRESS, CVK_PROGRESS, update, {"/kind", "task_update"})},
    {CV_SHAPE("task_complete", CVK_RESULT, CVK_RESULT, completed, {"/kind", "task_complete"}),
     .if_field = CV_OUTCOME, .if_words = "complete review skipped"},
    {CV_SHAPE("task_failed", CVK_RESULT, CVK_RESULT, broken, {"/kind", "task_failed"})},
    {CV_SHAPE("ack/failed", CVK_NACK, CVK_NACK, nack, {"/kind", "ack"},
              {"/payload/ackType", "failed_terminal"})},
    {CV_SHAPE("ack", CVK_ACK, CVK_ACK, ack, {"/kind", "ack"})},
    {CV_SHAPE("signal/escalation", CVK_ESCALATION, CVK_ESCALATION, ask, {"/kind", "signal"},
              {"/payload/signal", "escalation"})},
    {CV_SHAPE("signal/decision", CVK_DECISION, CVK_DECISION, answer, {"/kind", "signal"},
              {"/payload/signal", "decision"})},
};
const struct cv_shapes amp_cv_shapes_rtp = {.v = shapes, .n = CV_COUNT(shapes), .lists_to = true};
