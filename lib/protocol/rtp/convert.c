/* Runtime Protocol v1 in neutral fields. The origin stands in the envelope. */
#include <stddef.h>

#include "protocol/convert/shape.h"
#include "protocol/rtp/rtp.h"

#define ENVELOPE(kind)                                                                             \
    {.at = "/eventId", .field = CV_ID, .as = AS_TEXT},                                             \
        {.at = "/seq", .field = CV_SEQ, .as = AS_SEQUENCE}, CV_CONST("/kind", "\"" kind "\""),     \
        {.at = "/sourceNodeId",                                                                    \
         .alt = {CV_FROM, CV_OPERATOR},                                                            \
         .as = AS_TEXT,                                                                            \
         .literal = "\"unknown\""},                                                                \
        {.at = "/sourceAgentId",                                                                   \
         .field = CV_FROM,                                                                         \
         .as = AS_TEXT,                                                                            \
         .alt = {CV_OPERATOR},                                                                     \
         .literal = "\"unknown\""},                                                                \
        {.at = "/toAgentId", .field = CV_TO, .as = AS_TEXT},                                       \
        {.at = "/corrId", .field = CV_CORR, .as = AS_TEXT, .alt = {CV_TASK, CV_REF, CV_ID}},       \
    {                                                                                              \
        .at = "/createdAt", .field = CV_TIME, .as = AS_TIME                                        \
    }

#define END                                                                                        \
    {.at = "/trace/attempt", .field = CV_ATTEMPT, .as = AS_RAW, .literal = "1"},                   \
    {                                                                                              \
        .at = "/x_amp_origin", .field = CV_ORIGIN, .as = AS_RAW                                    \
    }

#define TASK                                                                                       \
    {                                                                                              \
        .at = "/payload/taskId", .field = CV_TASK, .as = AS_TEXT, .alt = { CV_CORR, CV_ID }        \
    }

static const struct cv_word priorities[] = {
    {"normal", "normal"}, {"high", "high"}, {"low", "low"}, {"critical", "high"}, {NULL, NULL}};

static const struct cv_row message[] = {
    ENVELOPE("message"),
    {.at = "/expiresAt", .field = CV_DUE, .as = AS_TIME},
    {.at = "/payload/toAgents", .field = CV_TO, .as = AS_LONE},
    {.at = "/payload/subject", .field = CV_SUBJECT, .as = AS_TEXT, .most = 200},
    {.at = "/payload/body", .field = CV_BODY, .as = AS_TEXT, .most = 10000, .alt = {CV_SUBJECT}},
    {.at = "/payload/priority", .field = CV_PRIORITY, .as = AS_WORD, .words = priorities},
    END,
};

static const struct cv_row reply[] = {
    ENVELOPE("reply"),
    {.at = "/expiresAt", .field = CV_DUE, .as = AS_TIME},
    {.at = "/payload/refEventId", .field = CV_REF, .as = AS_TEXT},
    {.at = "/payload/subject", .field = CV_SUBJECT, .as = AS_TEXT, .most = 200},
    {.at = "/payload/body", .field = CV_BODY, .as = AS_TEXT, .most = 10000},
    END,
};

static const struct cv_row create[] = {
    ENVELOPE("task_create"),
    TASK,
    {.at = "/payload/title",
     .field = CV_TITLE,
     .as = AS_TEXT,
     .most = 200,
     .alt = {CV_TEXT, CV_CRITERIA, CV_TASK}},
    {.at = "/payload/description", .field = CV_TEXT, .as = AS_TEXT, .most = 5000},
    {.at = "/payload/toAgents", .alt = {CV_TO}, .as = AS_LONE, .literal = "[]"},
    {.at = "/payload/requiredCapabilities", .field = CV_CAPABILITIES, .as = AS_TEXTS},
    {.at = "/payload/priority", .field = CV_PRIORITY, .as = AS_WORD, .words = priorities},
    {.at = "/payload/requesterAgentId", .alt = {CV_FROM}, .as = AS_TEXT, .literal = "\"unknown\""},
    {.at = "/payload/deadlineAt", .field = CV_DUE, .as = AS_TIME},
    END,
};

static const struct cv_row update[] = {
    ENVELOPE("task_update"),
    TASK,
    {.at = "/payload/status",
     .field = CV_STATE,
     .as = AS_WORD,
     .words =
         (const struct cv_word[]){{"running", "in_progress"}, {"failed", "failed"}, {NULL, NULL}},
     .literal = "\"in_progress\""},
    {.at = "/payload/progress", .field = CV_PERCENT, .as = AS_RAW},
    {.at = "/payload/note",
     .field = CV_TEXT,
     .as = AS_TEXT,
     .most = 200,
     .alt = {CV_NOTES, CV_BLOCKERS}},
    END,
};

static const struct cv_row completed[] = {
    ENVELOPE("task_complete"),
    TASK,
    CV_IMPLIES(CV_OUTCOME, "complete"),
    {.at = "/payload/completedByAgentId",
     .alt = {CV_FROM},
     .as = AS_TEXT,
     .literal = "\"unknown\""},
    {.at = "/payload/resultSummary",
     .field = CV_SUMMARY,
     .as = AS_TEXT,
     .most = 5000,
     .alt = {CV_NOTES, CV_ACTIONS, CV_OUTCOME}},
    {.at = "/payload/resultRef", .field = CV_ARTIFACT, .as = AS_TEXT},
    {.at = "/payload/completedAt", .field = CV_DONE_AT, .as = AS_TIME, .alt = {CV_TIME}},
    END,
};

#define SAME(w)                                                                                    \
    {                                                                                              \
        w, w                                                                                       \
    }
static const struct cv_word classes[] = {SAME("execution_error"),
                                         SAME("failed_terminal"),
                                         SAME("dependency_missing"),
                                         SAME("dependency_unavailable"),
                                         SAME("capability_unavailable"),
                                         SAME("version_incompatible"),
                                         SAME("approval_required"),
                                         SAME("timeout"),
                                         SAME("authz_denied"),
                                         SAME("invalid_target"),
                                         SAME("overloaded"),
                                         SAME("policy_blocked"),
                                         SAME("transport_error"),
                                         SAME("unknown"),
                                         {NULL, NULL}};

static const struct cv_row broken[] = {
    ENVELOPE("task_failed"),
    TASK,
    CV_IMPLIES(CV_OUTCOME, "failed"),
    {.at = "/payload/failedByAgentId", .alt = {CV_FROM}, .as = AS_TEXT, .literal = "\"unknown\""},
    {.at = "/payload/errorSummary",
     .field = CV_SUMMARY,
     .as = AS_TEXT,
     .most = 5000,
     .alt = {CV_BLOCKERS, CV_NOTES, CV_OUTCOME}},
    /* Behind the summary, which it may be inferred from. */
    {.at = "/payload/failureClass",
     .field = CV_CODE,
     .as = AS_WORD,
     .words = classes,
     .infer = amp_rtp_failure,
     .literal = "\"execution_error\""},
    {.at = "/payload/failedAt", .field = CV_DONE_AT, .as = AS_TIME, .alt = {CV_TIME}},
    {.at = "/payload/retryable", .field = CV_RETRYABLE, .as = AS_RAW},
    END,
};

#define ACKED                                                                                      \
    ENVELOPE("ack"),                                                                               \
        {.at = "/payload/refEventId", .field = CV_REF, .as = AS_TEXT, .alt = {CV_TASK, CV_CORR}},  \
        {.at = "/payload/taskId", .field = CV_TASK, .as = AS_TEXT},                                \
        {.at = "/payload/ackedByAgentId",                                                          \
         .alt = {CV_FROM},                                                                         \
         .as = AS_TEXT,                                                                            \
         .literal = "\"unknown\""},                                                                \
    {                                                                                              \
        .at = "/payload/ackedAt", .alt = {CV_TIME}, .as = AS_TIME                                  \
    }

static const struct cv_word stages[] = {
    {"RECEIVED", "accepted"}, {"FULFILLED", "processed"}, {"READ", "accepted"}, {NULL, NULL}};

static const struct cv_row ack[] = {
    ACKED,
    {.at = "/payload/ackType",
     .field = CV_STAGE,
     .as = AS_WORD,
     .words = stages,
     .literal = "\"accepted\""},
    END,
};

static const struct cv_row nack[] = {
    ACKED,
    CV_CONST("/payload/ackType", "\"failed_terminal\""),
    CV_IMPLIES(CV_STAGE, "FAILED"),
    {.at = "/payload/code", .field = CV_CODE, .as = AS_TEXT},
    {.at = "/payload/reason", .field = CV_NOTES, .as = AS_JOINED, .most = 5000},
    END,
};

/* Read only: a task is taken. */
static const struct cv_row accept_rows[] = {
    ENVELOPE("task_accept"),
    TASK,
    CV_IMPLIES(CV_STAGE, "READ"),
    {.at = "/payload/acceptedByAgentId", .alt = {CV_FROM}, .as = AS_TEXT},
    {.at = "/payload/planSummary", .field = CV_NOTES, .as = AS_JOINED},
    END,
};

/* A signal's payload is free. */
static const struct cv_row ask[] = {
    ENVELOPE("signal"),
    CV_CONST("/payload/signal", "\"escalation\""),
    {.at = "/payload/taskId", .field = CV_TASK, .as = AS_TEXT},
    {.at = "/payload/reason", .field = CV_REASON, .as = AS_TEXT, .literal = "\"unknown\""},
    {.at = "/payload/severity", .field = CV_SEVERITY, .as = AS_TEXT},
    {.at = "/payload/description", .field = CV_TEXT, .as = AS_TEXT, .alt = {CV_NOTES}},
    {.at = "/payload/refEventId", .field = CV_REF, .as = AS_TEXT},
    {.at = "/payload/suggestedActions", .field = CV_SUGGESTED, .as = AS_TEXTS},
    {.at = "/payload/deadlineAt", .field = CV_DUE, .as = AS_TIME},
    END,
};

static const struct cv_row answer[] = {
    ENVELOPE("signal"),
    CV_CONST("/payload/signal", "\"decision\""),
    {.at = "/payload/taskId", .field = CV_TASK, .as = AS_TEXT},
    {.at = "/payload/refEventId", .field = CV_REF, .as = AS_TEXT},
    {.at = "/payload/decision", .field = CV_WORD, .as = AS_TEXT},
    {.at = "/payload/operator", .field = CV_OPERATOR, .as = AS_TEXT},
    {.at = "/payload/note", .field = CV_NOTES, .as = AS_JOINED},
    END,
};

static const struct cv_shape shapes[] = {
    {.type = "message",
     .kind = CVK_MESSAGE,
     .kinds = CVK_MESSAGE,
     .when = {{"/kind", "message"}},
     CV_ROWS(message)},
    {.type = "reply", .kind = CVK_MESSAGE, .when = {{"/kind", "reply"}}, CV_ROWS(reply)},
    {.type = "task_create",
     .kind = CVK_DISPATCH,
     .kinds = CVK_DISPATCH | CVK_HANDOFF,
     .when = {{"/kind", "task_create"}},
     CV_ROWS(create)},
    {.type = "task_accept",
     .kind = CVK_ACK,
     .when = {{"/kind", "task_accept"}},
     CV_ROWS(accept_rows)},
    {.type = "ack/accept",
     .kind = CVK_ACK,
     .when = {{"/kind", "ack"}, {"/payload/acceptedByAgentId", NULL}},
     CV_ROWS(accept_rows)},
    {.type = "task_update",
     .kind = CVK_PROGRESS,
     .kinds = CVK_PROGRESS,
     .when = {{"/kind", "task_update"}},
     CV_ROWS(update)},
    {.type = "task_complete",
     .kind = CVK_RESULT,
     .kinds = CVK_RESULT,
     .when = {{"/kind", "task_complete"}},
     .if_field = CV_OUTCOME,
     .if_words = "complete review skipped",
     CV_ROWS(completed)},
    {.type = "task_failed",
     .kind = CVK_RESULT,
     .kinds = CVK_RESULT,
     .when = {{"/kind", "task_failed"}},
     CV_ROWS(broken)},
    {.type = "ack/failed",
     .kind = CVK_NACK,
     .kinds = CVK_NACK,
     .when = {{"/kind", "ack"}, {"/payload/ackType", "failed_terminal"}},
     CV_ROWS(nack)},
    {.type = "ack", .kind = CVK_ACK, .kinds = CVK_ACK, .when = {{"/kind", "ack"}}, CV_ROWS(ack)},
    {.type = "signal/escalation",
     .kind = CVK_ESCALATION,
     .kinds = CVK_ESCALATION,
     .when = {{"/kind", "signal"}, {"/payload/signal", "escalation"}},
     CV_ROWS(ask)},
    {.type = "signal/decision",
     .kind = CVK_DECISION,
     .kinds = CVK_DECISION,
     .when = {{"/kind", "signal"}, {"/payload/signal", "decision"}},
     CV_ROWS(answer)},
};
const struct cv_shapes amp_cv_shapes_rtp = {.v = shapes, .n = CV_COUNT(shapes), .lists_to = true};
