/* The record of a question. */
#include "flow/question.h"

#define MEMBER(as, key, member) AMP_REC(as, struct amp_question_rec, key, member)
static const struct amp_rec_field fields[] = {
    AMP_REC_EVER(TEXT, struct amp_question_rec, "task", task),
    AMP_REC_EVER(TEXT, struct amp_question_rec, "type", type),
    AMP_REC_EVER(TEXT, struct amp_question_rec, "severity", severity),
    MEMBER(INT, "arrived", arrived_ms),
    MEMBER(TEXT, "protocol", protocol),
    AMP_REC_IN(struct amp_question_rec, "about", about, &amp_subject_rec, false),
    MEMBER(INT, "asked", asked_ms),
    MEMBER(TEXT, "decision", decision),
    MEMBER(TEXT, "operator", operator),
    MEMBER(INT, "decided_at", decided_ms),
    MEMBER(TEXT, "note", note),
    MEMBER(TEXT, "passed", passed),
    MEMBER(TEXT, "refused", refused),
    MEMBER(INT, "refused_at", refused_ms),
    MEMBER(INT, "ended", ended_ms),
};
AMP_REC_TABLE(question_rec, "a question's record", struct amp_question_rec, fields);

int amp_question_rec_read(struct amp_span json, struct amp_buf *mem, struct amp_question_rec *out,
                          struct amp_error *err)
{
    return amp_rec_parse(&question_rec, json, mem, out, err);
}

int amp_question_rec_write(struct amp_question_rec *r, const struct amp_question_rec *set,
                           struct amp_buf *out, struct amp_error *err)
{
    amp_rec_overlay(&question_rec, set, r);
    return amp_rec_write(&question_rec, r, out, err);
}
