/* The values of the fields that machines use: X(id, spelling). Each list defines an enum and its
 * spellings. */
#ifndef AMP_PROTOCOL_WORDS_H
#define AMP_PROTOCOL_WORDS_H

#include <amp/base/api.h>

AMP_API_BEGIN

#define AMP_RISK_LIST(X)                                                                           \
    X(NONE, "none")                                                                                \
    X(LOW, "low")                                                                                  \
    X(MEDIUM, "medium")                                                                            \
    X(HIGH, "high")
#define AMP_COMPLETION_LIST(X)                                                                     \
    X(COMPLETE, "complete")                                                                        \
    X(PARTIAL, "partial")                                                                          \
    X(FAILED, "failed")
#define AMP_VERDICT_LIST(X)                                                                        \
    X(APPROVED, "approved")                                                                        \
    X(APPROVED_WITH_FIX, "approved_with_fix")                                                      \
    X(REJECTED, "rejected")
#define AMP_LEVEL_LIST(X)                                                                          \
    X(INFO, "info")                                                                                \
    X(WARNING, "warning")                                                                          \
    X(CRITICAL, "critical")
#define AMP_DO_LIST(X)                                                                             \
    X(RESUME, "resume")                                                                            \
    X(TERMINATE, "terminate")                                                                      \
    X(REDISPATCH, "redispatch")                                                                    \
    X(ROLLBACK, "rollback")
#define AMP_STAGE_LIST(X)                                                                          \
    X(RECEIVED, "RECEIVED")                                                                        \
    X(READ, "READ")                                                                                \
    X(FULFILLED, "FULFILLED")                                                                      \
    X(REJECTED, "REJECTED")                                                                        \
    X(FAILED, "FAILED")                                                                            \
    X(TIMED_OUT, "TIMED_OUT")

#define X(id, name) AMP_RISK_##id,
enum amp_risk { AMP_RISK_LIST(X) };
#undef X
#define X(id, name) AMP_COMPLETION_##id,
enum amp_completion { AMP_COMPLETION_LIST(X) };
#undef X
#define X(id, name) AMP_VERDICT_##id,
enum amp_decision_word { AMP_VERDICT_LIST(X) };
#undef X
#define X(id, name) AMP_LEVEL_##id,
enum amp_level { AMP_LEVEL_LIST(X) };
#undef X
#define X(id, name) AMP_DO_##id,
enum amp_operator_word { AMP_DO_LIST(X) };
#undef X
#define X(id, name) AMP_STAGE_##id,
enum amp_ack_stage { AMP_STAGE_LIST(X) };
#undef X
const char *amp_risk_name(enum amp_risk v);
const char *amp_completion_name(enum amp_completion v);
const char *amp_verdict_name(enum amp_decision_word v);
const char *amp_level_name(enum amp_level v);
const char *amp_operator_word_name(enum amp_operator_word v);
const char *amp_ack_stage_name(enum amp_ack_stage v);

AMP_API_END

#endif
