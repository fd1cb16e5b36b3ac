/* AOF/1 in neutral fields. Unknown fields are ignored there: the origin stands in the envelope. */
#include <stddef.h>

#include "protocol/convert/shape.h"

#define ENVELOPE(type)                                                                             \
    CV_CONST("/protocol", "\"aof\""), CV_CONST("/version", "1"),                                   \
        CV_CONST("/type", "\"" type "\""),                                                         \
        {.at = "/taskId", .field = CV_TASK, .as = AS_TASK_AOF, .alt = {CV_CORR, CV_REF, CV_ID}},   \
        {.at = "/parentTaskId", .field = CV_PARENT, .as = AS_TASK_AOF},                            \
        {.at = "/fromAgent",                                                                       \
         .field = CV_FROM,                                                                         \
         .as = AS_TEXT,                                                                            \
         .alt = {CV_OPERATOR},                                                                     \
         .literal = "\"unknown\""},                                                                \
        {.at = "/toAgent", .field = CV_TO, .as = AS_TEXT, .literal = "\"unknown\""},               \
        {.at = "/sentAt", .field = CV_TIME, .as = AS_TIME_Z},                                      \
        {.at = "/messageId", .field = CV_ID, .as = AS_TEXT},                                       \
    {                                                                                              \
        .at = "/payload/taskId", .alt = {CV_TASK, CV_CORR, CV_REF}, .as = AS_TASK_AOF              \
    }

#define ORIGIN                                                                                     \
    {                                                                                              \
        .at = "/x_amp_origin", .field = CV_ORIGIN, .as = AS_RAW                                    \
    }

#define ITEMS(pointer, f, n)                                                                       \
    {                                                                                              \
        .at = pointer, .field = f, .as = AS_TEXTS, .most = 256, .items = n                         \
    }

static const struct cv_row request[] = {
    ENVELOPE("handoff.request"),
    {.at = "/payload/parentTaskId", .alt = {CV_PARENT, CV_TASK, CV_CORR}, .as = AS_TASK_AOF},
    {.at = "/payload/fromAgent", .alt = {CV_FROM}, .as = AS_TEXT, .literal = "\"unknown\""},
    {.at = "/payload/toAgent", .alt = {CV_TO}, .as = AS_TEXT, .literal = "\"unknown\""},
    ITEMS("/payload/acceptanceCriteria", CV_CRITERIA, 50),
    ITEMS("/payload/expectedOutputs", CV_OUTPUTS, 50),
    ITEMS("/payload/contextRefs", CV_CONTEXT, 50),
    ITEMS("/payload/constraints", CV_CONSTRAINTS, 50),
    {.at = "/payload/dueBy", .field = CV_DUE, .as = AS_DUE_Z},
    ORIGIN,
};

static const struct cv_row accepted[] = {
    ENVELOPE("handoff.accepted"),
    CV_CONST("/payload/accepted", "true"),
    CV_IMPLIES(CV_STAGE, "READ"),
    {.at = "/payload/reason", .field = CV_NOTES, .as = AS_JOINED, .most = 512},
    ORIGIN,
};

static const struct cv_row rejected[] = {
    ENVELOPE("handoff.rejected"),
    CV_CONST("/payload/accepted", "false"),
    CV_IMPLIES(CV_STAGE, "REJECTED"),
    {.at = "/payload/reason", .field = CV_NOTES, .as = AS_JOINED, .most = 512, .alt = {CV_CODE}},
    ORIGIN,
};

static const struct cv_word statuses[] = {
    {"running", "in-progress"}, {"blocked", "blocked"}, {"ready", "ready"},    {"review", "review"},
    {"done", "done"},           {"backlog", "backlog"}, {"failed", "blocked"}, {NULL, NULL}};

static const struct cv_row status[] = {
    ENVELOPE("status.update"),
    {.at = "/payload/agentId", .alt = {CV_FROM}, .as = AS_TEXT, .literal = "\"unknown\""},
    {.at = "/payload/status",
     .field = CV_STATE,
     .as = AS_WORD,
     .words = statuses,
     .literal = "\"in-progress\""},
    {.at = "/payload/progress", .field = CV_TEXT, .as = AS_TEXT, .most = 1000},
    ITEMS("/payload/blockers", CV_BLOCKERS, 20),
    {.at = "/payload/notes", .field = CV_NOTES, .as = AS_JOINED, .most = 10000},
    ORIGIN,
};

/* A human is asked: the task goes to review, with the question. */
static const struct cv_row ask[] = {
    ENVELOPE("status.update"),
    {.at = "/payload/agentId", .alt = {CV_FROM}, .as = AS_TEXT, .literal = "\"unknown\""},
    CV_CONST("/payload/status", "\"review\""),
    {.at = "/payload/blockers",
     .field = CV_REASON,
     .as = AS_LONE,
     .most = 256,
     .literal = "[\"unknown\"]"},
    {.at = "/payload/notes", .field = CV_TEXT, .as = AS_TEXT, .most = 10000, .alt = {CV_NOTES}},
    ORIGIN,
};

/* A human has answered: the task goes on, or stays where it is. */
static const struct cv_word answers[] = {{"resume", "in-progress"},
                                         {"redispatch", "ready"},
                                         {"rollback", "ready"},
                                         {"terminate", "blocked"},
                                         {NULL, NULL}};
static const struct cv_row answer[] = {
    ENVELOPE("status.update"),
    {.at = "/payload/agentId",
     .alt = {CV_OPERATOR, CV_FROM},
     .as = AS_TEXT,
     .literal = "\"unknown\""},
    {.at = "/payload/status", .field = CV_WORD, .as = AS_WORD, .words = answers},
    {.at = "/payload/notes", .field = CV_NOTES, .as = AS_JOINED, .most = 10000},
    ORIGIN,
};

static const struct cv_word outcomes[] = {{"complete", "done"},        {"blocked", "blocked"},
                                          {"review", "needs_review"},  {"partial", "partial"},
                                          {"failed", "blocked"},       {"aborted", "blocked"},
                                          {"skipped", "needs_review"}, {NULL, NULL}};

static const struct cv_row report[] = {
    ENVELOPE("completion.report"),
    {.at = "/payload/agentId", .alt = {CV_FROM}, .as = AS_TEXT, .literal = "\"unknown\""},
    {.at = "/payload/completedAt", .field = CV_DONE_AT, .as = AS_TIME_Z, .alt = {CV_TIME}},
    {.at = "/payload/outcome", .field = CV_OUTCOME, .as = AS_WORD, .words = outcomes},
    {.at = "/payload/summaryRef",
     .field = CV_ARTIFACT,
     .as = AS_TEXT,
     .most = 256,
     .literal = "\"outputs/summary.md\""},
    ITEMS("/payload/deliverables", CV_FILES, 50),
    {.at = "/payload/tests",
     .field = CV_TESTS,
     .as = AS_RAW,
     .literal = "{\"total\":0,\"passed\":0,\"failed\":0}"},
    ITEMS("/payload/blockers", CV_BLOCKERS, 20),
    {.at = "/payload/notes",
     .field = CV_NOTES,
     .as = AS_JOINED,
     .most = 10000,
     .alt = {CV_SUMMARY, CV_ACTIONS},
     .literal = "\"\""},
    ORIGIN,
};

static const struct cv_shape shapes[] = {
    {.type = "handoff.request",
     .kind = CVK_HANDOFF,
     .kinds = CVK_HANDOFF | CVK_DISPATCH,
     .when = {{"/type", "handoff.request"}},
     CV_ROWS(request)},
    {.type = "handoff.accepted",
     .kind = CVK_ACK,
     .kinds = CVK_ACK,
     .when = {{"/type", "handoff.accepted"}},
     CV_ROWS(accepted)},
    {.type = "handoff.rejected",
     .kind = CVK_NACK,
     .kinds = CVK_NACK,
     .when = {{"/type", "handoff.rejected"}},
     CV_ROWS(rejected)},
    {.type = "status.update",
     .kind = CVK_PROGRESS,
     .kinds = CVK_PROGRESS,
     .when = {{"/type", "status.update"}},
     CV_ROWS(status)},
    {.type = "completion.report",
     .kind = CVK_RESULT,
     .kinds = CVK_RESULT,
     .when = {{"/type", "completion.report"}},
     CV_ROWS(report)},
    {.type = "status.update/review",
     .kinds = CVK_ESCALATION,
     CV_ROWS(ask),
     .when = {{"/type", "status.update"}, {"/type", CV_NEVER}}},
    {.type = "status.update/answer",
     .kinds = CVK_DECISION,
     CV_ROWS(answer),
     .when = {{"/type", "status.update"}, {"/type", CV_NEVER}}},
};
const struct cv_shapes amp_cv_shapes_aof = {.v = shapes, .n = CV_COUNT(shapes)};
