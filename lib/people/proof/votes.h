/* The approvals of several persons: decisions that each of them signed
 * (people/question/operators/operators.h). */
#ifndef AMP_PEOPLE_PROOF_VOTES_H
#define AMP_PEOPLE_PROOF_VOTES_H

#include "message/delivery/sender/identity.h"
#include "people/question/record.h"

/* Appends the signed lines of the votes for what was decided, each with LF. */
int amp_votes_collect(const struct amp_question_rec *rec, struct amp_buf *out,
                      struct amp_error *err);

/* The votes must agree on this. */
struct amp_votes_of {
    struct amp_span task, ref; /* ref: the question */
    enum amp_operator_word word;
    /* Only those count who may decide this matter; NULL: every operator. */
    const struct amp_operators *operators;
    const struct amp_matter *matter;
    const struct amp_question_rec *record; /* of the question, or NULL: unknown */
};
/* Returns from the record how the person was known whose answer a key of the state signed: by the
 * vote with this signature, or the decision with this key. COUNT: none has it. */
enum amp_known_by amp_votes_by(const struct amp_question_rec *rec, const struct amp_view *v);
/* Counts the persons among the signers: valid signatures of operators, each principal and each key
 * once. A line that is not such a decision is not counted. */
int amp_votes_verify(struct amp_identities *ids, struct amp_reader *reader, struct amp_span lines,
                     const struct amp_votes_of *of, uint32_t *n, struct amp_error *err);

#endif
