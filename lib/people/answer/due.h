/* Deadlines of questions, for every process that watches deadlines, and what questions need to know
 * about tasks. */
#ifndef AMP_PEOPLE_ANSWER_DUE_H
#define AMP_PEOPLE_ANSWER_DUE_H

#include "message/delivery/deadline.h"
#include "message/identity/signer.h"
#include "people/question/question.h"

struct amp_identities;

/* Signs decisions in the name of their operators. */
struct amp_decision_signer {
    struct amp_identities *ids; /* NULL: identities are off, nothing is signed */
    const char *state;
    const char *own; /* the operator whose key ids has, or NULL */
    struct amp_signer *other;
    char other_name[128];
};
/* Appends the line, signed as operator/OP: with the key of ids if OP is `own`, else with that
 * principal's key in the state directory, which is made if there is none. */
int amp_decision_sign(struct amp_decision_signer *s, const char *op, struct amp_span line,
                      struct amp_buf *out, char key[AMP_FINGERPRINT_MAX], struct amp_error *err);
void amp_decision_signer_release(struct amp_decision_signer *s);

/* For struct amp_hitl: whether a task of the coordinator has ended; its risk, and why its question
 * asks. */
int amp_decision_task_ended(struct amp_store *s, struct amp_span task, bool *ended,
                            struct amp_error *err);
int amp_decision_task_facts(struct amp_store *s, struct amp_span task, struct amp_span ref,
                            char risk[16], char why[AMP_WHY_MAX], struct amp_error *err);

/* The row of people/deadlines.c. */
int amp_decision_due_run(struct amp_store *s, int64_t now_ms, const struct amp_deadline_ctx *c,
                         uint32_t *done, struct amp_error *err);

#endif
