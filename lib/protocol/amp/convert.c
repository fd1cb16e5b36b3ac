/* AMP/1.0 in neutral fields. Its origin stands where its closed shapes leave room for words. */
#include <stddef.h>

#include "protocol/convert/shape.h"

#define ENVELOPE(type, sender, recipient, acknowledged)                                            \
    {.at = "/msg_id", .field = CV_ID, .as = AS_MSG_ID},                                            \
        CV_CONST("/protocol_version", "\"AMP/1.0\""), CV_CONST("/type", "\"" type "\""),           \
        {.at = "/from", .field = CV_FROM, .as = AS_ROLE, .literal = "\"" sender "\""},             \
        {.at = "/to", .field = CV_TO, .as = AS_ROLE, .literal = "\"" recipient "\""},              \
        {.at = "/task_id", .field = CV_TASK, .as = AS_TASK_AMP, .alt = {CV_CORR, CV_ID}},          \
        {.at = "/timestamp", .field = CV_TIME, .as = AS_TIME},                                     \
        CV_CONST("/requires_ack", acknowledged)

#define RECORD(type)                                                                               \
    CV_CONST("/protocol_version", "\"AMP/1.0\""), CV_CONST("/type", "\"" type "\""),               \
        {.at = "/ref_msg_id", .field = CV_REF, .as = AS_TEXT, .alt = {CV_TASK, CV_CORR}},          \
        {.at = "/task_id", .field = CV_TASK, .as = AS_TASK_AMP, .alt = {CV_CORR, CV_REF, CV_ID}},  \
    {                                                                                              \
        .at = "/timestamp", .field = CV_TIME, .as = AS_TIME                                        \
    }

static const struct cv_row dispatch[] = {
    ENVELOPE("task_dispatch", "coordinator", "executor", "true"),
    {.at = "/payload/description", .field = CV_TEXT, .as = AS_TEXT, .alt = {CV_TITLE, CV_CRITERIA}},
    {.at = "/payload/repo", .field = CV_REPO, .as = AS_TEXT},
    {.at = "/payload/branch", .field = CV_BRANCH, .as = AS_TEXT},
    {.at = "/payload/subtasks", .as = AS_SUBTASKS, .alt = {CV_TEXT, CV_TITLE, CV_CRITERIA}},
    {.at = "/payload/acceptance_criteria",
     .field = CV_CRITERIA,
     .as = AS_TEXTS,
     .alt = {CV_TEXT, CV_TITLE}},
    {.at = "/payload/risk_level", .field = CV_RISK, .as = AS_TEXT, .literal = "\"high\""},
    {.at = "/payload/forbidden_actions", .field = CV_CONSTRAINTS, .as = AS_TEXTS},
    {.at = "/payload/tech_constraints/x_amp_origin", .field = CV_ORIGIN, .as = AS_RAW},
};

static const struct cv_word outcomes[] = {{"complete", "complete"}, {"partial", "partial"},
                                          {"failed", "failed"},     {"blocked", "partial"},
                                          {"review", "complete"},   {"aborted", "failed"},
                                          {"skipped", "complete"},  {NULL, NULL}};

static const struct cv_word work_log[] = {
    {"{\"timestamp\":@,\"action\":\"reported\",\"file\":\"\",\"detail\":%}", "detail"},
    {"{\"timestamp\":@,\"action\":\"x_amp_origin\",\"file\":\"\",\"detail\":%}", "detail"},
    {NULL, NULL}};

#define RESULT                                                                                     \
    ENVELOPE("task_result", "executor", "coordinator", "true"),                                    \
        {.at = "/payload/subtask_id", .as = AS_SUBTASK},                                           \
        {.at = "/payload/completion_status",                                                       \
         .field = CV_OUTCOME,                                                                      \
         .as = AS_WORD,                                                                            \
         .words = outcomes},                                                                       \
        {.at = "/payload/diff_summary/files_changed",                                              \
         .field = CV_FILES,                                                                        \
         .as = AS_TEXTS,                                                                           \
         .literal = "[]"},                                                                         \
        CV_CONST("/payload/diff_summary/lines_added", "0"),                                        \
        CV_CONST("/payload/diff_summary/lines_removed", "0"),                                      \
        CV_CONST("/payload/self_assessment/criteria_met", "[]"),                                   \
        {.at = "/payload/self_assessment/notes",                                                   \
         .field = CV_NOTES,                                                                        \
         .as = AS_TEXTS,                                                                           \
         .alt = {CV_SUMMARY},                                                                      \
         .literal = "[]"},                                                                         \
    {                                                                                              \
        .at = "/payload/work_log", .field = CV_ACTIONS, .as = AS_LOG, .words = work_log,           \
        .literal = "[]"                                                                            \
    }

static const struct cv_row complete[] = {RESULT};
static const struct cv_row incomplete[] = {
    RESULT,
    {.at = "/payload/blockers",
     .field = CV_BLOCKERS,
     .as = AS_TEXTS,
     .alt = {CV_NOTES, CV_SUMMARY, CV_OUTCOME}},
};

static const struct cv_row review[] = {
    ENVELOPE("review_request", "coordinator", "reviewer", "true"),
    {.at = "/payload/original_dispatch_ref", .field = CV_SUBJECT, .as = AS_TEXT},
    {.at = "/payload/task_result_ref", .field = CV_REF, .as = AS_TEXT},
    CV_CONST("/payload/review_scope", "\"full\""),
    {.at = "/payload/diff_url", .field = CV_ARTIFACT, .as = AS_TEXT},
    CV_CONST("/payload/reject_count", "0"),
    {.at = "/payload/coordinator_notes", .field = CV_NOTES, .as = AS_NOTE},
    CV_CONST("/payload/ci_status", "{}"),
};

static const struct cv_row verdict[] = {
    ENVELOPE("review_verdict", "reviewer", "coordinator", "true"),
    {.at = "/payload/decision", .field = CV_WORD, .as = AS_TEXT},
    CV_CONST("/payload/criteria_results", "[]"),
    {.at = "/payload/issues",
     .field = CV_CRITIQUE,
     .as = AS_OBJECTS,
     .words = (const struct cv_word[]){{"{\"severity\":\"major\",\"file\":\"\",\"line\":0,"
                                        "\"description\":%,\"suggested_fix\":\"\"}",
                                        "description"},
                                       {NULL, NULL}}},
    {.at = "/payload/architecture_notes", .field = CV_NOTES, .as = AS_NOTE},
    {.at = "/payload/confidence", .field = CV_CONFIDENCE, .as = AS_RAW},
};

/* Where SW4RM knows one reason for several of AMP's, its first row is read. */
static const struct cv_word same[] = {{"hallucination_lock", "hallucination_lock"},
                                      {"ack_timeout", "ack_timeout"},
                                      {"branch_violation", "branch_violation"},
                                      {"ci_failure", "ci_failure"},
                                      {"conflict", "conflict"},
                                      {"heartbeat_timeout", "heartbeat_timeout"},
                                      {"permission_denied", "permission_denied"},
                                      {"unknown", "unknown"},
                                      {NULL, NULL}};

static const struct cv_row escalation[] = {
    ENVELOPE("escalation", "system", "admin", "false"),
    {.at = "/payload/escalation_type",
     .field = CV_REASON,
     .as = AS_WORD,
     .words = same,
     .literal = "\"unknown\""},
    {.at = "/payload/severity", .field = CV_SEVERITY, .as = AS_TEXT, .literal = "\"warning\""},
    CV_CONST("/payload/triggered_by", "\"system\""),
    {.at = "/payload/description",
     .field = CV_TEXT,
     .as = AS_TEXT,
     .alt = {CV_NOTES, CV_SUGGESTED, CV_REASON}},
    {.at = "/payload/affected_msgs", .field = CV_REF, .as = AS_LONE, .literal = "[]"},
    CV_CONST("/payload/system_state_snapshot",
             "{\"task_status\":\"unknown\",\"reject_count\":0,\"last_successful_msg_id\":\"\"}"),
    {.at = "/payload/suggested_actions", .field = CV_SUGGESTED, .as = AS_TEXTS, .literal = "[]"},
    CV_CONST("/payload/auto_suspended", "true"),
};

static const struct cv_row decision[] = {
    RECORD("decision"),
    {.at = "/decision", .field = CV_WORD, .as = AS_TEXT},
    {.at = "/note", .field = CV_NOTES, .as = AS_NOTE},
    {.at = "/operator", .field = CV_OPERATOR, .as = AS_TEXT, .alt = {CV_FROM}},
};

static const struct cv_row ack[] = {
    RECORD("ack"),
    {.at = "/from", .field = CV_FROM, .as = AS_ROLE, .literal = "\"executor\""},
    {.at = "/ack_stage", .field = CV_STAGE, .as = AS_TEXT, .literal = "\"READ\""},
    {.at = "/note", .field = CV_NOTES, .as = AS_NOTE},
};

static const struct cv_row nack[] = {
    RECORD("nack"),
    {.at = "/from", .field = CV_FROM, .as = AS_ROLE, .literal = "\"executor\""},
    {.at = "/failed_stage", .field = CV_STAGE, .as = AS_TEXT, .literal = "\"REJECTED\""},
    {.at = "/code", .field = CV_CODE, .as = AS_TEXT, .literal = "\"rejected\""},
    {.at = "/message", .field = CV_NOTES, .as = AS_JOINED, .alt = {CV_CODE}, .literal = "\"\""},
    {.at = "/rule", .alt = {CV_CODE}, .as = AS_TEXT, .literal = "\"rejected\""},
    {.at = "/retryable", .field = CV_RETRYABLE, .as = AS_RAW, .literal = "false"},
};

static const struct cv_shape shapes[] = {
    {.type = "task_dispatch",
     .kind = CVK_DISPATCH,
     .kinds = CVK_DISPATCH | CVK_HANDOFF,
     .when = {{"/type", "task_dispatch"}},
     .word = "task_dispatch",
     CV_ROWS(dispatch)},
    {.type = "task_result",
     .kind = CVK_RESULT,
     .kinds = CVK_RESULT,
     .when = {{"/type", "task_result"}, {"/payload/completion_status", "complete"}},
     .if_field = CV_OUTCOME,
     .if_words = "complete review skipped",
     .word = "task_result",
     CV_ROWS(complete)},
    {.type = "task_result/incomplete",
     .kind = CVK_RESULT,
     .kinds = CVK_RESULT,
     .when = {{"/type", "task_result"}},
     .word = "task_result",
     CV_ROWS(incomplete)},
    {.type = "review_request",
     .kind = CVK_REVIEW,
     .kinds = CVK_REVIEW,
     .when = {{"/type", "review_request"}},
     .word = "review_request",
     CV_ROWS(review)},
    {.type = "review_verdict",
     .kind = CVK_VERDICT,
     .kinds = CVK_VERDICT,
     .when = {{"/type", "review_verdict"}},
     .word = "review_verdict",
     CV_ROWS(verdict)},
    {.type = "escalation",
     .kind = CVK_ESCALATION,
     .kinds = CVK_ESCALATION,
     .when = {{"/type", "escalation"}},
     .word = "escalation",
     CV_ROWS(escalation)},
    {.type = "decision",
     .kind = CVK_DECISION,
     .kinds = CVK_DECISION,
     .when = {{"/type", "decision"}},
     CV_ROWS(decision)},
    {.type = "ack", .kind = CVK_ACK, .kinds = CVK_ACK, .when = {{"/type", "ack"}}, CV_ROWS(ack)},
    {.type = "nack",
     .kind = CVK_NACK,
     .kinds = CVK_NACK,
     .when = {{"/type", "nack"}},
     CV_ROWS(nack)},
};
const struct cv_shapes amp_cv_shapes_amp = {.v = shapes, .n = CV_COUNT(shapes)};
