/* The record of a question to a person: kind "escalation", states of amp_escalation_fsm. */
#ifndef AMP_FLOW_QUESTION_H
#define AMP_FLOW_QUESTION_H

#include "flow/subject.h"
#include "hitl/escalation.h"

/* Times are 0 and texts are empty until something sets them. */
struct amp_question_rec {
    struct amp_span task, type, severity, protocol;
    int64_t arrived_ms;
    struct amp_subject about;
    int64_t asked_ms;
    struct amp_span decision, operator, note;
    int64_t decided_ms;
    struct amp_span passed; /* why nobody decided */
    struct amp_span refused;
    int64_t refused_ms, ended_ms;
};

/* What is read lives in mem. */
int amp_question_rec_read(struct amp_span json, struct amp_buf *mem, struct amp_question_rec *out,
                          struct amp_error *err);
/* The record with the fields that `set` has. */
int amp_question_rec_write(struct amp_question_rec *r, const struct amp_question_rec *set,
                           struct amp_buf *out, struct amp_error *err);

#endif
