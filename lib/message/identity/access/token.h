/*
 * Tokens that are bound to a key: proof of possession, pop (Runtime Protocol level 3). A token says
 * that its issuer admits the holder of a key, under a name, for a time:
 *
 *   amp1.BASE64URL(claims).BASE64URL(signature)
 *
 * The claims are a JSON object (schemas/records/token.json). The issuer signs the first two parts,
 * with the point between them, in the namespace "amp-token". The holder proves that it has the key
 * `cnf` by signing its message, which contains the token and a nonce of its own.
 */
#ifndef AMP_MESSAGE_IDENTITY_ACCESS_TOKEN_H
#define AMP_MESSAGE_IDENTITY_ACCESS_TOKEN_H

#include "message/identity/signer.h"
#include "message/identity/verify.h"

#define AMP_TOKEN_NAMESPACE "amp-token"

enum {
    AMP_TOKEN_MAX = 8192,     /* bytes of a token */
    AMP_TOKEN_TEXT_MAX = 256, /* of each text in it */
};

struct amp_pop {
    struct amp_span iss;    /* who admits: a principal of the signing key */
    struct amp_span sub;    /* the sender that it admits */
    struct amp_span aud;    /* whom it is for */
    struct amp_span jti;    /* its id */
    struct amp_span nonce;  /* the challenge that asked for it; empty: none */
    struct amp_span cnf;    /* the fingerprint of the holder's key */
    int64_t iat_ms, exp_ms; /* in whole seconds in the token */
    bool once;              /* it admits one message only */
    /* Set by amp_pop_read. */
    struct amp_span key, alg; /* of the signature */
};

/* Appends a token. The texts have 1 to AMP_TOKEN_TEXT_MAX bytes. USAGE bad_token; errors of the
 * signer. */
int amp_pop_make(struct amp_signer *issuer, const struct amp_pop *t, struct amp_buf *out,
                 struct amp_error *err);
/* Reads the claims; the texts are in mem. NO token_malformed. It is not verified. */
int amp_pop_read(struct amp_span text, struct amp_buf *mem, struct amp_pop *out,
                 struct amp_error *err);

/* The use of a token; empty texts are not compared. */
struct amp_pop_use {
    struct amp_span aud, sub, key, nonce;
    int64_t now_ms, skew_ms;
};
/* Verifies the signature of a token that was read, and compares it with its use. *issuer gets who
 * signed; the caller decides whether it may admit. NO token_expired, token_not_yet_valid,
 * token_wrong_audience, token_wrong_subject, token_key_mismatch, token_nonce_mismatch,
 * token_untrusted (the key may not speak for iss), bad_signature. */
int amp_pop_check(struct amp_verifier *v, struct amp_span text, const struct amp_pop *t,
                  const struct amp_pop_use *use, struct amp_identity *issuer,
                  struct amp_error *err);

#endif
