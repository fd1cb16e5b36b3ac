/*
 * Tokens for answers. A channel that leaves this machine gives each recipient of a question a token
 * of 32 random bytes (43 letters of base64url). Whoever has it may answer this question once. The
 * state has only a hash of it: the key of the record is one part of the hash, the record has
 * another part, which is compared in constant time.
 */
#ifndef AMP_PEOPLE_QUESTION_OPERATORS_TOKEN_H
#define AMP_PEOPLE_QUESTION_OPERATORS_TOKEN_H

#include "people/question/record.h"

#define AMP_ANSWER_TOKEN_KIND "answer_token"

enum {
    AMP_ANSWER_TOKEN_MAX = 44,      /* with its NUL */
    AMP_ANSWER_RECIPIENT_MAX = 128, /* the name of a channel, with its NUL */
};

struct amp_answer_token {
    char question[AMP_QUESTION_KEY_MAX]; /* the key of its record */
    char recipient[AMP_ANSWER_RECIPIENT_MAX];
    char person[AMP_ANSWER_RECIPIENT_MAX]; /* who holds it */
    int64_t expires_ms;
};

/* Makes a token for a question and a recipient. The tokens that this recipient had for this
 * question stay valid until one of them is used or the question is settled. */
int amp_answer_token_make(struct amp_store *s, const struct amp_answer_token *t, const char *actor,
                          char out[AMP_ANSWER_TOKEN_MAX], struct amp_error *err);

/* Finds a token without using it. NO token_malformed, token_unknown, token_replayed (it was used),
 * token_expired. *out is also filled with the last two. */
int amp_answer_token_find(struct amp_store *s, struct amp_span token, int64_t now_ms,
                          struct amp_answer_token *out, struct amp_error *err);
/* Finds a token, and begins to use it: one of several processes that do this at the same time
 * succeeds. The answer follows, and then amp_answer_token_done or _return. If a process was killed
 * before its answer, the question's record shows it, and the token is valid; the caller has the
 * lock of amp_answer_lock from here to the end, so that no living process is taken for a killed
 * one. */
int amp_answer_token_use(struct amp_store *s, struct amp_span token, int64_t now_ms,
                         const char *actor, struct amp_answer_token *out, struct amp_error *err);
/* The answer is recorded: the token stays used. */
int amp_answer_token_done(struct amp_store *s, struct amp_span token, const char *actor,
                          struct amp_error *err);
/* Makes a used token valid again, because the answer was refused and changed nothing. */
int amp_answer_token_return(struct amp_store *s, struct amp_span token, const char *actor,
                            struct amp_error *err);

/* These three use a text (a signed answer) in the same way. It is noted until its expiry. NO
 * answer_replayed: it was used before. */
int amp_answer_text_use(struct amp_store *s, struct amp_span text, const struct amp_answer_token *t,
                        const char *actor, struct amp_error *err);
int amp_answer_text_done(struct amp_store *s, struct amp_span text, const char *actor,
                         struct amp_error *err);
int amp_answer_text_return(struct amp_store *s, struct amp_span text, const char *actor,
                           struct amp_error *err);

/* Takes the lock under which answers with tokens and signatures are used, one after the other;
 * close *fd. TEMPFAIL lock_timeout after 10 s. */
int amp_answer_lock(const char *state_dir, int *fd, struct amp_error *err);

#endif
