/*
 * Answers that come as text: JSON, a form that a person filled in, or a signed block. This is the
 * one place that decides what proves an answer's author; then the answer is offered.
 *
 *   {"token":…,"question"?,"answer":"approve","note"?,"commit"?,"until"?,"payload"?,"patch_b64"?}
 *   question: KEY      the form; lines that begin with '#' or '|' are ignored
 *   answer: approve
 *   note: …
 *   the block of people/answer/text/signed.h
 */
#ifndef AMP_PEOPLE_ANSWER_TEXT_ANSWER_H
#define AMP_PEOPLE_ANSWER_TEXT_ANSWER_H

#include "message/identity/trust.h"
#include "people/answer/offer.h"
#include "people/question/operators/token.h"

/* hitl.token_answers says what may be answered with a token. */
enum amp_token_answers {
    AMP_TOKEN_ANSWERS_ALL,
    AMP_TOKEN_ANSWERS_DENY_AND_DEFER, /* nothing that lets work go on */
    AMP_TOKEN_ANSWERS_NONE,
};
/* -1: another word. */
int amp_token_answers_find(const char *word);

struct amp_answer_from {
    enum amp_channel channel; /* of answers that are not signed */
    const char *where;        /* for records and reports: a file, an address; not "" */
    /* The person that the road proves, with LOGIN (the owner of a file); NULL: the answer needs a
     * token or a signature. */
    const char *login;
    const char *recipient; /* the token must be this recipient's; NULL: any */
    enum amp_token_answers tokens;
    int64_t now_ms; /* 0: the clock's */
    uint32_t *left; /* the results of struct amp_offer, or NULL */
    struct amp_buf *line;
};

/* The subject of an answer, as far as it is known. */
struct amp_answer_about {
    char question[AMP_QUESTION_KEY_MAX], action[64], op[AMP_PRINCIPAL_MAX];
};

/* Checks an answer and offers it. As amp_offer_make; before the offer also refused, recorded in the
 * error log and noted:
 * NO    token_malformed, token_unknown, token_replayed, token_expired, token_mismatch (of another
 *       question or recipient), answer_expired, answer_replayed, digest_mismatch (of another
 *       content of the question), those of amp_verifier_text;
 * NOPERM not_proven (neither token nor signature, where one is needed), token_not_allowed
 *       (hitl.token_answers), not_operator (the key is not an operator's);
 * DATAERR bad_answer. */
enum amp_offered amp_answer_take(struct amp_decider *d, struct amp_span text,
                                 const struct amp_answer_from *from, struct amp_answer_about *about,
                                 struct amp_error *err);

/* For requests that are no answers: records a refusal in the error log and notes it. */
void amp_answer_refused(struct amp_decider *d, const struct amp_answer_from *from,
                        const struct amp_answer_about *about, const struct amp_error *why);

/* Whether hitl.token_answers allows the answer; a: of amp_answer_action, or NULL. */
bool amp_token_answers_allow(enum amp_token_answers limit, const struct amp_action *a);

#endif
