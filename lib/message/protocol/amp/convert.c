/* AMP/1.0 in neutral fields. Its shapes are closed, so the origin is in a member with free text. */
#include <stddef.h>

#include "message/protocol/convert/shape.h"

#define ENVELOPE(type, sender, recipient, acknowledged)                                            \
    {"/msg_id", CV_ID, AS_MSG_ID}, CV_CONST("/protocol_version", "\"AMP/1.0\""),                   \
        CV_CONST("/type", "\"" type "\""),                                                         \
        {"/from", CV_FROM, AS_ROLE, .literal = "\"" sender "\""},                                  \
        {"/to", CV_TO, AS_ROLE, .literal = "\"" recipient "\""},                                   \
        {"/task_id", CV_TASK, AS_TASK_AMP, {CV_CORR, CV_ID}}, {"/timestamp", CV_TIME, AS_TIME},    \
        CV_CONST("/requires_ack", acknowledged)

#define RECORD(type)                                                                               \
    CV_CONST("/protocol_version", "\"AMP/1.0\""), CV_CONST("/type", "\"" type "\""),               \
        {"/ref_msg_id", CV_REF, AS_TEXT, {CV_TASK, CV_CORR}},                                      \
        {"/task_id", CV_TASK, AS_TASK_AMP, {CV_CORR, CV_REF, CV_ID}},                              \
        CV_ROW("/timestamp", CV_TIME, AS_TIME)

static const struct cv_row dispatch[] = {
    ENVELOPE("task_dispatch", "coordinator", "executor", "true"),
    {"/payload/description", CV_TEXT, AS_TEXT, {CV_TITLE, CV_CRITERIA}},
    {"/payload/repo", CV_REPO, AS_TEXT},
    {"/payload/branch", CV_BRANCH, AS_TEXT},
    {"/payload/subtasks", CV_NONE, AS_SUBTASKS, {CV_TEXT, CV_TITLE, CV_CRITERIA}},
    {"/payload/acceptance_criteria", CV_CRITERIA, AS_TEXTS, {CV_TEXT, CV_TITLE}},
    {"/payload/risk_level", CV_RISK, AS_TEXT, .literal = "\"high\""},
    {"/payload/forbidden_actions", CV_CONSTRAINTS, AS_TEXTS},
    {"/payload/tech_constraints/x_amp_origin", CV_ORIGIN, AS_RAW},
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
        {"/payload/subtask_id", CV_NONE, AS_SUBTASK},                                              \
        {"/payload/completion_status", CV_OUTCOME, AS_WORD, .words = outcomes},                    \
        {"/payload/diff_summary/files_changed", CV_FILES, AS_TEXTS, .literal = "[]"},              \
        CV_CONST("/payload/diff_summary/lines_added", "0"),                                        \
        CV_CONST("/payload/diff_summary/lines_removed", "0"),                                      \
        CV_CONST("/payload/self_assessment/criteria_met", "[]"),                                   \
        {"/payload/self_assessment/notes", CV_NOTES, AS_TEXTS, {CV_SUMMARY}, .literal = "[]"},     \
        CV_ROW("/payload/work_log", CV_ACTIONS, AS_LOG, .words = work_log, .literal = "[]")

static const struct cv_row complete[] = {RESULT};
static const struct cv_row incomplete[] = {
    RESULT,
    {"/payload/blockers", CV_BLOCKERS, AS_TEXTS, {CV_NOTES, CV_SUMMARY, CV_OUTCOME}},
};

static const struct cv_row review[] = {
    ENVELOPE("review_request", "coordinator", "reviewer", "true"),
    {"/payload/original_dispatch_ref", CV_SUBJECT, AS_TEXT},
    {"/payload/task_result_ref", CV_REF, AS_TEXT},
    CV_CONST("/payload/review_scope", "\"full\""),
    {"/payload/diff_url", CV_ARTIFACT, AS_TEXT},
    CV_CONST("/payload/reject_count", "0"),
    {"/payload/coordinator_notes", CV_NOTES, AS_NOTE},
    CV_CONST("/payload/ci_status", "{}"),
};

static const struct cv_row verdict[] = {
    ENVELOPE("review_verdict", "reviewer", "coordinator", "true"),
    {"/payload/decision", CV_WORD, AS_TEXT},
    CV_CONST("/payload/criteria_results", "[]"),
    {"/payload/issues", CV_CRITIQUE, AS_OBJECTS,
     .words = (const struct cv_word[]){{"{\"severity\":\"major\",\"file\":\"\",\"line\":0,"
                                        "\"description\":%,\"suggested_fix\":\"\"}",
                                        "description"},
                                       {NULL, NULL}}},
    {"/payload/architecture_notes", CV_NOTES, AS_NOTE},
    {"/payload/confidence", CV_CONFIDENCE, AS_RAW},
};

/* SW4RM has one reason for several of these; the first row with it is read. */
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
    {"/payload/escalation_type", CV_REASON, AS_WORD, .words = same, .literal = "\"unknown\""},
    {"/payload/severity", CV_SEVERITY, AS_TEXT, .literal = "\"warning\""},
    CV_CONST("/payload/triggered_by", "\"system\""),
    {"/payload/description", CV_TEXT, AS_TEXT, {CV_NOTES, CV_SUGGESTED, CV_REASON}},
    {"/payload/affected_msgs", CV_REF, AS_LONE, .literal = "[]"},
    CV_CONST("/payload/system_state_snapshot",
             "{\"task_status\":\"unknown\",\"reject_count\":0,\"last_successful_msg_id\":\"\"}"),
    {"/payload/suggested_actions", CV_SUGGESTED, AS_TEXTS, .literal = "[]"},
    CV_CONST("/payload/auto_suspended", "true"),
};

static const struct cv_row decision[] = {
    RECORD("decision"),
    {"/decision", CV_WORD, AS_TEXT},
    {"/note", CV_NOTES, AS_NOTE},
    {"/operator", CV_OPERATOR, AS_TEXT, {CV_FROM}},
};

static const struct cv_row ack[] = {
    RECORD("ack"),
    {"/from", CV_FROM, AS_ROLE, .literal = "\"executor\""},
    {"/ack_stage", CV_STAGE, AS_TEXT, .literal = "\"READ\""},
    {"/note", CV_NOTES, AS_NOTE},
};

static const struct cv_row nack[] = {
    RECORD("nack"),
    {"/from", CV_FROM, AS_ROLE, .literal = "\"executor\""},
    {"/failed_stage", CV_STAGE, AS_TEXT, .literal = "\"REJECTED\""},
    {"/code", CV_CODE, AS_TEXT, .literal = "\"rejected\""},
    {"/message", CV_NOTES, AS_JOINED, {CV_CODE}, .literal = "\"\""},
    {"/rule", CV_NONE, AS_TEXT, {CV_CODE}, .literal = "\"rejected\""},
    {"/retryable", CV_RETRYABLE, AS_RAW, .literal = "false"},
};

static const struct cv_shape shapes[] = {
    {CV_SHAPE("task_dispatch", CVK_DISPATCH, CVK_DISPATCH | CVK_HANDOFF, dispatch,
              {"/type", "task_dispatch"})},
    {CV_SHAPE("task_result", CVK_RESULT, CVK_RESULT, complete, {"/type", "task_result"},
              {"/payload/completion_status", "complete"}),
     .if_field = CV_OUTCOME, .if_words = "complete review skipped"},
    {CV_SHAPE("task_result/incomplete", CVK_RESULT, CVK_RESULT, incomplete,
              {"/type", "task_result"})},
    {CV_SHAPE("review_request", CVK_REVIEW, CVK_REVIEW, review, {"/type", "review_request"})},
    {CV_SHAPE("review_verdict", CVK_VERDICT, CVK_VERDICT, verdict, {"/type", "review_verdict"})},
    {CV_SHAPE("escalation", CVK_ESCALATION, CVK_ESCALATION, escalation, {"/type", "escalation"})},
    {CV_SHAPE("decision", CVK_DECISION, CVK_DECISION, decision, {"/type", "decision"})},
    {CV_SHAPE("ack", CVK_ACK, CVK_ACK, ack, {"/type", "ack"})},
    {CV_SHAPE("nack", CVK_NACK, CVK_NACK, nack, {"/type", "nack"})},
};
const struct cv_shapes amp_cv_shapes_amp = {.v = shapes, .n = CV_COUNT(shapes)};
