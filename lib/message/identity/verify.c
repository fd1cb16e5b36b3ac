/* Verifying the signature of a message or another text. */
#include "message/identity/verify.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include <amp/base/clock.h>

#include "base/codes.h"
#include "message/identity/process/worker.h"

struct amp_verifier {
    struct amp_verifier_options opt;
    struct identity_worker *worker; /* NULL: not needed yet */
};

int amp_verifier_new(const struct amp_verifier_options *opt, struct amp_verifier **out,
                     struct amp_error *err)
{
    if (sodium_init() < 0)
        return amp_fail(err, AMP_INTERNAL, no_random, "libsodium does not start");
    struct amp_verifier *v = calloc(1, sizeof *v);
    if (!v)
        return amp_fail_memory(err);
    v->opt = *opt;
    *out = v;
    return 0;
}

void amp_verifier_free(struct amp_verifier *v)
{
    if (!v)
        return;
    identity_worker_free(v->worker);
    free(v);
}

void amp_auto_verifier(struct amp_verifier **v)
{
    amp_verifier_free(*v);
}

static int bad_time(struct amp_error *err, struct amp_span time, const char *why)
{
    return amp_fail(err, AMP_NO, bad_signature_time, "the signature's time \"%.*s\" is %s",
                    AMP_CLIP(time, 40), why);
}

/* The time, in the only form that signers write. */
static int time_check(const struct amp_verifier *v, struct amp_span text, int64_t now_ms,
                      int64_t *out, struct amp_error *err)
{
    char again[AMP_TIME_MAX];
    if (!amp_time_parse(text, out))
        return bad_time(err, text, "malformed");
    amp_time_format(*out, again);
    if (!amp_span_is(text, again))
        return bad_time(err, text, "not in UTC with milliseconds");
    if (now_ms == 0)
        return 0;
    if (*out - now_ms > v->opt.skew_ms)
        return bad_time(err, text, "too far in the future (identity.skew)");
    if (v->opt.max_age_ms > 0 && now_ms - *out > v->opt.max_age_ms)
        return bad_time(err, text, "too far in the past (identity.max_age)");
    return 0;
}

static bool alg_fits(const struct amp_pubkey *key, struct amp_span alg)
{
    switch (key->kind) {
    case AMP_PUBKEY_ED25519:
        return amp_span_is(alg, "Ed25519");
    case AMP_PUBKEY_ECDSA_P256:
        return amp_span_is(alg, "ECDSA");
    case AMP_PUBKEY_OTHER:
        break;
    }
    if (!strcmp(key->type, "ssh-rsa"))
        return amp_span_is(alg, "rsa-sha2-512") || amp_span_is(alg, "rsa-sha2-256");
    return amp_span_is(alg, key->type);
}

static int verify_parts(struct amp_verifier *v, const char *ns, const struct amp_sig *sig,
                        const struct amp_span *parts, size_t n_parts,
                        const unsigned char digest[64], struct amp_span from, int64_t now_ms,
                        struct amp_identity *out, struct amp_error *err)
{
    const struct amp_trust_entry *e = NULL;
    struct amp_identity who = {0};
    struct amp_error sender;
    if (time_check(v, sig->time, now_ms, &who.time_ms, err) < 0)
        return -1;
    int found =
        amp_trust_find(v->opt.trust, sig->key, ns, from, who.time_ms, &e, who.principal, &sender);
    if (found < 0 && !e) {
        if (err)
            *err = sender;
        return -1;
    }
    amp_span_copy(sig->key, who.key, sizeof who.key);
    who.local = e->local;

    /* Also for a key that may not speak for the sender: the caller reports whose key it was. */
    unsigned char data[AMP_SSHSIG_DATA_MAX];
    size_t n = amp_sshsig_data(ns, digest, data);
    int valid = 0;
    if (!alg_fits(e->key, sig->alg))
        return amp_fail(err, AMP_NO, bad_signature, "the algorithm \"%.*s\" is not that of the key",
                        AMP_CLIP(sig->alg, 40));
    if (e->key->kind == AMP_PUBKEY_ED25519)
        valid = amp_sig_ed25519(e->key, sig->value, data, n);
    else
        valid =
            identity_worker_verify(&v->worker, e->key, ns, sig, (struct amp_span){(char *)data, n},
                                   parts, n_parts, v->opt.stop, err);
    if (valid < 0)
        return -1;
    if (!valid)
        return amp_fail(err, AMP_NO, bad_signature, "the signature is not valid for the key %s",
                        who.key);
    *out = who;
    if (found < 0 && err)
        *err = sender;
    return found;
}

int amp_verifier_message(struct amp_verifier *v, const struct amp_sig *sig, struct amp_span msg,
                         struct amp_span from, int64_t now_ms, struct amp_identity *out,
                         struct amp_error *err)
{
    struct amp_span parts[AMP_SIGNED_PARTS];
    unsigned char digest[64];
    amp_signed_parts(sig->key, sig->time, msg, parts);
    amp_signed_digest(sig->key, sig->time, msg, digest);
    return verify_parts(v, AMP_SIGN_MESSAGES, sig, parts, AMP_SIGNED_PARTS, digest, from, now_ms,
                        out, err);
}

int amp_verifier_text(struct amp_verifier *v, const char *ns, const struct amp_sig *sig,
                      struct amp_span text, struct amp_span from, int64_t now_ms,
                      struct amp_identity *out, struct amp_error *err)
{
    unsigned char digest[64];
    crypto_hash_sha512(digest, (const unsigned char *)text.p, text.n);
    return verify_parts(v, ns, sig, &text, 1, digest, from, now_ms, out, err);
}
