/* AOF/1 in neutral fields. AOF ignores unknown fields, so the origin is in the envelope. */
#include <stddef.h>

#include "message/protocol/convert/shape.h"

#define ENVELOPE(type)                                                                             \
    CV_CONST("/protocol", "\"aof\""), CV_CONST("/version", "1"),                                   \
        CV_CONST("/type", "\"" type "\""),                                                         \
        {"/taskId", CV_TASK, AS_TASK_AOF, {CV_CORR, CV_REF, CV_ID}},                               \
        {"/parentTaskId", CV_PARENT, AS_TASK_AOF},                                                 \
        {"/fromAgent", CV_FROM, AS_TEXT, {CV_OPERATOR}, .literal = "\"unknown\""},                 \
        {"/toAgent", CV_TO, AS_TEXT, .literal = "\"unknown\""}, {"/sentAt", CV_TIME, AS_TIME_Z},   \
        {"/messageId", CV_ID, AS_TEXT},                                                            \
        CV_ROW("/payload/taskId", CV_NONE, AS_TASK_AOF, {CV_TASK, CV_CORR, CV_REF})

#define ORIGIN CV_ROW("/x_amp_origin", CV_ORIGIN, AS_RAW)

#define ITEMS(pointer, f, n)                                                                       \
    {                                                                                              \
        pointer, f, AS_TEXTS, .most = 256, .items = n                                              \
    }

static const struct cv_row request[] = {
    ENVELOPE("handoff.request"),
    {"/payload/parentTaskId", CV_NONE, AS_TASK_AOF, {CV_PARENT, CV_TASK, CV_CORR}},
    {"/payload/fromAgent", CV_NONE, AS_TEXT, {CV_FROM}, .literal = "\"unknown\""},
    {"/payload/toAgent", CV_NONE, AS_TEXT, {CV_TO}, .literal = "\"unknown\""},
    ITEMS("/payload/acceptanceCriteria", CV_CRITERIA, 50),
    ITEMS("/payload/expectedOutputs", CV_OUTPUTS, 50),
    ITEMS("/payload/contextRefs", CV_CONTEXT, 50),
    ITEMS("/payload/constraints", CV_CONSTRAINTS, 50),
    {"/payload/dueBy", CV_DUE, AS_DUE_Z},
    ORIGIN,
};

static const struct cv_row accepted[] = {
    ENVELOPE("handoff.accepted"),
    CV_CONST("/payload/accepted", "true"),
    CV_IMPLIES(CV_STAGE, "READ"),
    {"/payload/reason", CV_NOTES, AS_JOINED, .most = 512},
    ORIGIN,
};

static const struct cv_row rejected[] = {
    ENVELOPE("handoff.rejected"),
    CV_CONST("/payload/accepted", "false"),
    CV_IMPLIES(CV_STAGE, "REJECTED"),
    {"/payload/reason", CV_NOTES, AS_JOINED, {CV_CODE}, .most = 512},
    ORIGIN,
};

static const struct cv_word statuses[] = {
    {"running", "in-progress"}, {"blocked", "blocked"}, {"ready", "ready"},    {"review", "review"},
    {"done", "done"},           {"backlog", "backlog"}, {"failed", "blocked"}, {NULL, NULL}};

static const struct cv_row status[] = {
    ENVELOPE("status.update"),
    {"/payload/agentId", CV_NONE, AS_TEXT, {CV_FROM}, .literal = "\"unknown\""},
    {"/payload/status", CV_STATE, AS_WORD, .words = statuses, .literal = "\"in-progress\""},
    {"/payload/progress", CV_TEXT, AS_TEXT, .most = 1000},
    ITEMS("/payload/blockers", CV_BLOCKERS, 20),
    {"/payload/notes", CV_NOTES, AS_JOINED, .most = 10000},
    ORIGIN,
};

/* A question to a person: the task goes to review. */
static const struct cv_row ask[] = {
    ENVELOPE("status.update"),
    {"/payload/agentId", CV_NONE, AS_TEXT, {CV_FROM}, .literal = "\"unknown\""},
    CV_CONST("/payload/status", "\"review\""),
    {"/payload/blockers", CV_REASON, AS_LONE, .most = 256, .literal = "[\"unknown\"]"},
    {"/payload/notes", CV_TEXT, AS_TEXT, {CV_NOTES}, .most = 10000},
    ORIGIN,
};

/* A decision: the task continues or stays blocked. */
static const struct cv_word answers[] = {{"resume", "in-progress"},
                                         {"redispatch", "ready"},
                                         {"rollback", "ready"},
                                         {"terminate", "blocked"},
                                         {NULL, NULL}};
static const struct cv_row answer[] = {
    ENVELOPE("status.update"),
    {"/payload/agentId", CV_NONE, AS_TEXT, {CV_OPERATOR, CV_FROM}, .literal = "\"unknown\""},
    {"/payload/status", CV_WORD, AS_WORD, .words = answers},
    {"/payload/notes", CV_NOTES, AS_JOINED, .most = 10000},
    ORIGIN,
};

static const struct cv_word outcomes[] = {{"complete", "done"},        {"blocked", "blocked"},
                                          {"review", "needs_review"},  {"partial", "partial"},
                                          {"failed", "blocked"},       {"aborted", "blocked"},
                                          {"skipped", "needs_review"}, {NULL, NULL}};

static const struct cv_row report[] = {
    ENVELOPE("completion.report"),
    {"/payload/agentId", CV_NONE, AS_TEXT, {CV_FROM}, .literal = "\"unknown\""},
    {"/payload/completedAt", CV_DONE_AT, AS_TIME_Z, {CV_TIME}},
    {"/payload/outcome", CV_OUTCOME, AS_WORD, .words = outcomes},
    {"/payload/summaryRef", CV_ARTIFACT, AS_TEXT, .most = 256, .literal = "\"outputs/summary.md\""},
    ITEMS("/payload/deliverables", CV_FILES, 50),
    {"/payload/tests", CV_TESTS, AS_RAW, .literal = "{\"total\":0,\"passed\":0,\"failed\":0}"},
    ITEMS("/payload/blockers", CV_BLOCKERS, 20),
    {"/payload/notes",
     CV_NOTES,
     AS_JOINED,
     {CV_SUMMARY, CV_ACTIONS},
     .most = 10000,
     .literal = "\"\""},
    ORIGIN,
};

static const struct cv_shape shapes[] = {
    {CV_SHAPE("handoff.request", CVK_HANDOFF, CVK_HANDOFF | CVK_DISPATCH, request,
              {"/type", "handoff.request"})},
    {CV_SHAPE("handoff.accepted", CVK_ACK, CVK_ACK, accepted, {"/type", "handoff.accepted"})},
    {CV_SHAPE("handoff.rejected", CVK_NACK, CVK_NACK, rejected, {"/type", "handoff.rejected"})},
    {CV_SHAPE("status.update", CVK_PROGRESS, CVK_PROGRESS, status, {"/type", "status.update"})},
    {CV_SHAPE("completion.report", CVK_RESULT, CVK_RESULT, report, {"/type", "completion.report"})},
    {CV_SHAPE("status.update/review", 0, CVK_ESCALATION, ask, {"/type", "status.update"},
              {"/type", CV_NEVER})},
    {CV_SHAPE("status.update/answer", 0, CVK_DECISION, answer, {"/type", "status.update"},
              {"/type", CV_NEVER})},
};
const struct cv_shapes amp_cv_shapes_aof = {.v = shapes, .n = CV_COUNT(shapes)};
