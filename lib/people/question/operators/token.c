/* Tokens for answers, and texts that may be used once. */
#include "people/question/operators/token.h"

#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include <amp/base/file.h>

#include "base/codes.h"
#include "message/record/subject.h"
#include "people/question/escalation.h"

#define TOKEN_BYTES 32
#define ID_BYTES    16
#define PROOF_BYTES 32
#define KEEP_MS     (7LL * 86400000)
#define LOCK_MS     10000

/* A token is USING while its answer is given, and OPEN again if no answer followed. */
enum { OPEN, USING, USED };
static const char *const states[] = {"OPEN", "USING", "USED", NULL};

struct record {
    struct amp_span question, recipient, person, proof;
    int64_t expires_ms;
    int64_t rev; /* of the question's record when the use began */
    int64_t due_ms;
    uint8_t state;
};
static const struct amp_rec_field fields[] = {
    AMP_REC_EVER(TEXT, struct record, "question", question),
    AMP_REC_EVER(TEXT, struct record, "recipient", recipient),
    AMP_REC_EVER(TEXT, struct record, "person", person),
    AMP_REC_EVER(TEXT, struct record, "proof", proof),
    AMP_REC_EVER(INT, struct record, "expires", expires_ms),
    AMP_REC(INT, struct record, "rev", rev),
};
AMP_REC_TABLE(record_rec, "an answer token's record", struct record, fields);

/* The two parts of a secret's hash, in hexadecimal. */
struct hash {
    char id[2 * ID_BYTES + 1], proof[2 * PROOF_BYTES + 1];
};

static int random_ready(struct amp_error *err)
{
    return sodium_init() < 0 ? amp_fail(err, AMP_INTERNAL, no_random, "libsodium does not start")
                             : 0;
}

/* what: separates the hashes of tokens from those of texts. */
static void hash_make(const char *what, const void *secret, size_t n, struct hash *out)
{
    unsigned char sum[ID_BYTES + PROOF_BYTES];
    crypto_generichash_state st;

    crypto_generichash_init(&st, NULL, 0, sizeof sum);
    crypto_generichash_update(&st, (const unsigned char *)what, strlen(what) + 1);
    crypto_generichash_update(&st, secret, n);
    crypto_generichash_final(&st, sum, sizeof sum);
    sodium_bin2hex(out->id, sizeof out->id, sum, ID_BYTES);
    sodium_bin2hex(out->proof, sizeof out->proof, sum + ID_BYTES, PROOF_BYTES);
}

static void token_hash(const unsigned char secret[TOKEN_BYTES], struct hash *out)
{
    hash_make("amp-answer-token-v1", secret, TOKEN_BYTES, out);
}

static int token_read(struct amp_span token, struct hash *out, struct amp_error *err)
{
    unsigned char secret[TOKEN_BYTES];
    char again[AMP_ANSWER_TOKEN_MAX];
    size_t n = 0;

    if (random_ready(err) < 0)
        return -1;
    bool good = token.n == AMP_ANSWER_TOKEN_MAX - 1 &&
                sodium_base642bin(secret, sizeof secret, token.p, token.n, NULL, &n, NULL,
                                  sodium_base64_VARIANT_URLSAFE_NO_PADDING) == 0 &&
                n == sizeof secret;
    /* One spelling only: the last letter has two unused bits. */
    if (good) {
        sodium_bin2base64(again, sizeof again, secret, sizeof secret,
                          sodium_base64_VARIANT_URLSAFE_NO_PADDING);
        good = sodium_memcmp(again, token.p, token.n) == 0;
    }
    if (good)
        token_hash(secret, out);
    sodium_memzero(secret, sizeof secret);
    sodium_memzero(again, sizeof again);
    return good ? 0 : amp_fail(err, AMP_NO, token_malformed, "not a token for an answer");
}

enum step { STEP_MAKE, STEP_NOTE, STEP_USE, STEP_DONE, STEP_RETURN };
static const struct {
    const char *event;
    uint8_t to;
} steps[] = {[STEP_MAKE] = {"MAKE", OPEN},
             [STEP_NOTE] = {"MAKE", USING}, /* of a text */
             [STEP_USE] = {"USE", USING},
             [STEP_DONE] = {"DONE", USED},
             [STEP_RETURN] = {"RETURN", OPEN}};

struct change {
    enum step step;
    const char *actor;
    const struct hash *hash;
    int64_t now_ms, rev;
    bool abandoned;               /* USING is as good as OPEN */
    struct record rec;            /* of STEP_MAKE and STEP_NOTE */
    struct amp_answer_token *out; /* gets what the record has; or NULL */
};

static void token_copy(const struct record *r, struct amp_answer_token *out)
{
    *out = (struct amp_answer_token){.expires_ms = r->expires_ms};
    amp_span_copy(r->question, out->question, sizeof out->question);
    amp_span_copy(r->recipient, out->recipient, sizeof out->recipient);
    amp_span_copy(r->person, out->person, sizeof out->person);
}

/* Compares the proof with that of the record. */
static int record_prove(bool found, const struct hash *h, const struct record *r,
                        struct amp_error *err)
{
    return found && r->proof.n == 2 * PROOF_BYTES &&
                   sodium_memcmp(r->proof.p, h->proof, r->proof.n) == 0
               ? 0
               : amp_fail(err, AMP_NO, token_unknown, "the token was not made here");
}

/* The revision of the question's record. 1: no answer of this person followed the use that began at
 * another revision, so the process was killed in between: it has neither a vote of the person nor
 * was it deferred. 0: one followed, or it cannot be told. */
static int use_look(struct amp_store *s, const struct record *r, int64_t *rev,
                    struct amp_error *err)
{
    struct amp_store_rec row;
    struct amp_question_rec q;
    AMP_BUF struct amp_buf mem = {0};
    char key[AMP_QUESTION_KEY_MAX];

    *rev = 0;
    if (!amp_span_copy(r->question, key, sizeof key))
        return 0;
    if (amp_store_get(s, AMP_KEY(AMP_ESCALATION_KIND, amp_span_str(key)), &row, err) < 0)
        return -1;
    if (!row.found)
        return 0;
    *rev = (int64_t)row.rev;
    if (*rev == r->rev)
        return 1;
    amp_buf_init(&mem, AMP_REC_MAX);
    int found = amp_question_find(s, amp_span_str(key), &mem, &q, err);
    if (found <= 0)
        return found;
    for (uint32_t i = 0; i < q.n_votes; i++)
        if (amp_span_eq(q.votes[i].person, r->person))
            return 0;
    return q.until_ms == 0 && q.decided_ms == 0;
}

/* abandoned: whether a use that has begun has not led to an answer. */
static int record_check(const struct record *r, int64_t now_ms, bool abandoned,
                        struct amp_error *err)
{
    if (r->state != OPEN && !(abandoned && r->state == USING))
        return amp_fail(err, AMP_NO, token_replayed, "the token was used before");
    if (r->expires_ms <= now_ms)
        return amp_fail(err, AMP_NO, token_expired, "the token has expired");
    return 0;
}

static int token_step(void *rec, struct amp_subject_turn *t, struct amp_error *err)
{
    const struct change *c = t->step->with;
    const bool notes = c->step == STEP_MAKE || c->step == STEP_NOTE;
    struct record *r = rec;

    if (notes && t->now->found && !(c->abandoned && r->state == USING))
        return amp_fail(err, AMP_NO, answer_replayed, "this answer was used before");
    if (notes) {
        *r = c->rec;
    } else {
        if (record_prove(t->now->found, c->hash, r, err) < 0)
            return -1;
        if (c->out)
            token_copy(r, c->out);
        if (c->step == STEP_USE && record_check(r, c->now_ms, c->abandoned, err) < 0)
            return -1;
    }
    if (c->step == STEP_NOTE || c->step == STEP_USE)
        r->rev = c->rev;
    r->state = steps[c->step].to;
    r->due_ms = r->expires_ms + KEEP_MS;
    t->change->event = steps[c->step].event;
    return 0;
}

static const struct amp_subject tokens = {.kind = AMP_ANSWER_TOKEN_KIND,
                                          .table = &record_rec,
                                          .states = states,
                                          .state = AMP_SUBJECT_AT(struct record, state),
                                          .due = AMP_SUBJECT_AT(struct record, due_ms),
                                          .carry = token_step};

static struct amp_key key_of(const struct hash *h)
{
    return AMP_KEY(AMP_ANSWER_TOKEN_KIND, amp_span_str(h->id));
}

static int change_make(struct amp_store *s, const struct change *c, struct amp_error *err)
{
    const struct amp_subject_step step = {.key = key_of(c->hash), .with = c, .actor = c->actor};

    return amp_subject_step(&tokens, s, &step, NULL, NULL, NULL, err);
}

static struct record record_of(const struct amp_answer_token *t, const struct hash *h)
{
    return (struct record){.question = amp_span_str(t->question),
                           .recipient = amp_span_str(t->recipient),
                           .person = amp_span_str(t->person),
                           .proof = amp_span_str(h->proof),
                           .expires_ms = t->expires_ms};
}

int amp_answer_token_make(struct amp_store *s, const struct amp_answer_token *t, const char *actor,
                          char out[AMP_ANSWER_TOKEN_MAX], struct amp_error *err)
{
    unsigned char secret[TOKEN_BYTES];
    struct hash h;

    if (random_ready(err) < 0)
        return -1;
    randombytes_buf(secret, sizeof secret);
    token_hash(secret, &h);
    struct change c = {.step = STEP_MAKE, .actor = actor, .hash = &h, .rec = record_of(t, &h)};
    int rc = change_make(s, &c, err);
    if (rc == 0)
        sodium_bin2base64(out, AMP_ANSWER_TOKEN_MAX, secret, sizeof secret,
                          sodium_base64_VARIANT_URLSAFE_NO_PADDING);
    sodium_memzero(secret, sizeof secret);
    return rc;
}

/* rev: of the question's record; *abandoned: see use_look. */
static int token_look(struct amp_store *s, struct amp_span token, int64_t now_ms, struct hash *h,
                      struct amp_answer_token *out, int64_t *rev, bool *abandoned,
                      struct amp_error *err)
{
    struct record r;
    AMP_BUF struct amp_buf mem = {.max = AMP_REC_MAX};

    if (token_read(token, h, err) < 0)
        return -1;
    int found = amp_subject_find(&tokens, s, key_of(h), &mem, &r, err);
    if (found < 0 || record_prove(found > 0, h, &r, err) < 0)
        return -1;
    token_copy(&r, out);
    int unused = use_look(s, &r, rev, err);
    if (unused < 0)
        return -1;
    *abandoned = unused > 0;
    return record_check(&r, now_ms, *abandoned, err);
}

int amp_answer_token_find(struct amp_store *s, struct amp_span token, int64_t now_ms,
                          struct amp_answer_token *out, struct amp_error *err)
{
    struct hash h;
    int64_t rev;
    bool abandoned;

    return token_look(s, token, now_ms, &h, out, &rev, &abandoned, err);
}

int amp_answer_token_use(struct amp_store *s, struct amp_span token, int64_t now_ms,
                         const char *actor, struct amp_answer_token *out, struct amp_error *err)
{
    struct hash h;
    struct change c = {.step = STEP_USE, .actor = actor, .hash = &h, .now_ms = now_ms, .out = out};

    /* Read first: forged tokens must not wait for the turn of the writers. */
    return token_look(s, token, now_ms, &h, out, &c.rev, &c.abandoned, err) < 0
               ? -1
               : change_make(s, &c, err);
}

int amp_answer_token_done(struct amp_store *s, struct amp_span token, const char *actor,
                          struct amp_error *err)
{
    struct hash h;
    struct change c = {.step = STEP_DONE, .actor = actor, .hash = &h};

    return token_read(token, &h, err) < 0 ? -1 : change_make(s, &c, err);
}

int amp_answer_token_return(struct amp_store *s, struct amp_span token, const char *actor,
                            struct amp_error *err)
{
    struct hash h;
    struct change c = {.step = STEP_RETURN, .actor = actor, .hash = &h};

    return token_read(token, &h, err) < 0 ? -1 : change_make(s, &c, err);
}

/* ---- texts ---- */

/* Whether an earlier use of the text was abandoned, and the revision of the question's record. */
static int text_look(struct amp_store *s, const struct hash *h, struct change *c,
                     struct amp_error *err)
{
    struct record r;
    AMP_BUF struct amp_buf mem = {.max = AMP_REC_MAX};

    int found = amp_subject_find(&tokens, s, key_of(h), &mem, &r, err);
    if (found < 0 || (found > 0 && record_prove(true, h, &r, err) < 0))
        return -1;
    if (found == 0)
        r = c->rec;
    int unused = use_look(s, &r, &c->rev, err);
    c->abandoned = unused > 0;
    return unused < 0 ? -1 : 0;
}

int amp_answer_lock(const char *state_dir, int *fd, struct amp_error *err)
{
    char path[4200];

    snprintf(path, sizeof path, "%s/run", state_dir);
    if (amp_mkdirs(path, 0700, err) < 0)
        return -1;
    snprintf(path, sizeof path, "%s/run/answers.lock", state_dir);
    AMP_CLOSE int lock = amp_file_open(AT_FDCWD, path, O_RDWR | O_CREAT | O_NOFOLLOW, 0600, err);
    if (lock < 0 || amp_lock(lock, LOCK_MS, err) < 0)
        return -1;
    *fd = lock;
    lock = -1;
    return 0;
}

int amp_answer_text_use(struct amp_store *s, struct amp_span text, const struct amp_answer_token *t,
                        const char *actor, struct amp_error *err)
{
    struct hash h;

    if (random_ready(err) < 0)
        return -1;
    hash_make("amp-answer-text-v1", text.p, text.n, &h);
    struct change c = {.step = STEP_NOTE, .actor = actor, .hash = &h, .rec = record_of(t, &h)};
    if (text_look(s, &h, &c, err) < 0)
        return -1;
    return change_make(s, &c, err);
}

int amp_answer_text_done(struct amp_store *s, struct amp_span text, const char *actor,
                         struct amp_error *err)
{
    struct hash h;

    if (random_ready(err) < 0)
        return -1;
    hash_make("amp-answer-text-v1", text.p, text.n, &h);
    struct change c = {.step = STEP_DONE, .actor = actor, .hash = &h};
    return change_make(s, &c, err);
}

int amp_answer_text_return(struct amp_store *s, struct amp_span text, const char *actor,
                           struct amp_error *err)
{
    struct hash h;

    if (random_ready(err) < 0)
        return -1;
    hash_make("amp-answer-text-v1", text.p, text.n, &h);
    return amp_subject_remove(&tokens, s, key_of(&h), 0, "FORGET", actor, err) < 0 ? -1 : 0;
}
