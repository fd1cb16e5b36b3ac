/* The neutral fields of conversions, and their values in one message. */
#ifndef AMP_MESSAGE_PROTOCOL_CONVERT_FIELDS_H
#define AMP_MESSAGE_PROTOCOL_CONVERT_FIELDS_H

#include <amp/base/buf.h>

/* The fields that several protocols have: X(id, name); the names are those of --fill. */
#define CV_FIELD_LIST(X)                                                                           \
    X(NONE, "")                                                                                    \
    X(ID, "id")                                                                                    \
    X(TIME, "time")                                                                                \
    X(FROM, "from")                                                                                \
    X(TO, "to")                                                                                    \
    X(TASK, "task")                                                                                \
    X(PARENT, "parent")                                                                            \
    X(CORR, "correlation")                                                                         \
    X(SEQ, "sequence")                                                                             \
    X(ATTEMPT, "attempt")                                                                          \
    X(DUE, "due")                                                                                  \
    X(ORIGIN, "origin")                                                                            \
    X(TITLE, "title")                                                                              \
    X(TEXT, "text")                                                                                \
    X(PRIORITY, "priority")                                                                        \
    X(CRITERIA, "criteria")                                                                        \
    X(OUTPUTS, "outputs")                                                                          \
    X(CONSTRAINTS, "constraints")                                                                  \
    X(CONTEXT, "context")                                                                          \
    X(CAPABILITIES, "capabilities")                                                                \
    X(REPO, "repo")                                                                                \
    X(BRANCH, "branch")                                                                            \
    X(RISK, "risk")                                                                                \
    X(OUTCOME, "outcome")                                                                          \
    X(SUMMARY, "summary")                                                                          \
    X(FILES, "files")                                                                              \
    X(BLOCKERS, "blockers")                                                                        \
    X(NOTES, "notes")                                                                              \
    X(ACTIONS, "actions")                                                                          \
    X(TESTS, "tests")                                                                              \
    X(DONE_AT, "done_at")                                                                          \
    X(REF, "ref")                                                                                  \
    X(STAGE, "stage")                                                                              \
    X(CODE, "code")                                                                                \
    X(RETRYABLE, "retryable")                                                                      \
    X(REASON, "reason")                                                                            \
    X(SEVERITY, "severity")                                                                        \
    X(SUGGESTED, "suggested")                                                                      \
    X(WORD, "decision")                                                                            \
    X(OPERATOR, "operator")                                                                        \
    X(PERCENT, "percent")                                                                          \
    X(STATE, "state")                                                                              \
    X(PHASE, "phase")                                                                              \
    X(CHECKPOINT, "checkpoint")                                                                    \
    X(SUBJECT, "subject")                                                                          \
    X(BODY, "body")                                                                                \
    X(CONFIDENCE, "confidence")                                                                    \
    X(ARTIFACT, "artifact")                                                                        \
    X(CRITIQUE, "critique")                                                                        \
    X(SCORE, "score")

#define X(id, name) CV_##id,
enum cv_field { CV_FIELD_LIST(X) CV_FIELDS };
#undef X

struct cv_value {
    enum { CV_ABSENT, CV_IS_TEXT, CV_IS_LIST, CV_IS_RAW } is;
    struct amp_span text; /* decoded, or the JSON of a raw one */
    struct amp_span *list;
    uint32_t n;
};

struct cv_neutral {
    struct cv_value v[CV_FIELDS];
};

#endif
