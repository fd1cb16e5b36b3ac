/*
 * Signed answers: a small text that a person's SSH key signed, which may travel by any road. It
 * names the question, the digest of what the question says, and an expiry, so it cannot be used for
 * another question, for a changed one, or twice.
 *
 *     -----BEGIN AMP ANSWER-----
 *     base64 of {"sig":{"key","alg","time","value"},"answer":{"format":"amp-answer/1",…}}
 *     -----END AMP ANSWER-----
 *
 * The signed text is the time, LF, and the bytes of "answer", in the SSHSIG namespace "amp-answer".
 */
#ifndef AMP_PEOPLE_ANSWER_TEXT_SIGNED_H
#define AMP_PEOPLE_ANSWER_TEXT_SIGNED_H

#include "message/delivery/sender/identity.h"
#include "people/question/question.h"

#define AMP_ANSWER_NAMESPACE "amp-answer"
#define AMP_ANSWER_BEGIN     "-----BEGIN AMP ANSWER-----"
#define AMP_ANSWER_END       "-----END AMP ANSWER-----"

enum {
    AMP_ANSWER_TEXT_MAX = 1 << 20, /* of an answer in any form */
    AMP_QUESTION_DIGEST_MAX = 65,
};

/* The BLAKE2b-256, in hexadecimal, of what a question says: its message with sorted members. */
int amp_question_digest(const struct amp_question *q, char out[AMP_QUESTION_DIGEST_MAX],
                        struct amp_error *err);

struct amp_signed_answer {
    const char *question; /* the key of its record */
    const char *digest;
    const char *action, *note; /* as in struct amp_offer; note may be NULL */
    int64_t now_ms, expires_ms;
};
/* Appends the text of a signed answer. */
int amp_signed_answer_write(struct amp_signer *s, const struct amp_signed_answer *a,
                            struct amp_buf *out, struct amp_error *err);

/* Finds the signed answer in a text (the block, or the JSON alone), and verifies its signature and
 * its times. 1: *answer is the object "answer", which the caller owns; 0: the text has no signed
 * answer; -1: DATAERR bad_answer (malformed), NO answer_expired, unsigned (identities are off), and
 * those of amp_verifier_text. */
int amp_signed_answer_read(struct amp_identities *ids, struct amp_span text, int64_t now_ms,
                           json_t **answer, struct amp_identity *by, struct amp_error *err);

#endif
