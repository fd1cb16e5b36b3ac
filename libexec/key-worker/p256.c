/* ECDSA with the curve P-256 and SHA-256, by libcrypto. */
#include "worker.h"

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/params.h>

#include "base/codes.h"
#include "message/identity/wire.h"

enum { SCALAR_BYTES = 32, POINT_BYTES = 65 };

static int crypto_failed(struct amp_error *err)
{
    return amp_fail(err, AMP_INTERNAL, crypto_failed, "libcrypto failed");
}

/* Reads an mpint (RFC 4251 §5): not negative, not zero, in its shortest form, at most 32 bytes.
 * OpenSSL checks that it is less than the order. */
static bool scalar_take(struct amp_span *in, BIGNUM **out)
{
    struct amp_span m;
    if (!wire_string(in, &m) || m.n == 0 || m.n > SCALAR_BYTES + 1)
        return false;
    const unsigned char *p = (const unsigned char *)m.p;
    if ((p[0] & 0x80) || (p[0] == 0 && (m.n == 1 || !(p[1] & 0x80))))
        return false;
    if (m.n == SCALAR_BYTES + 1 && p[0] != 0)
        return false;
    *out = BN_bin2bn(p, (int)m.n, NULL);
    return *out != NULL;
}

/* The signature in DER, which the caller frees with OPENSSL_free; NULL: malformed. */
static unsigned char *der_of(struct amp_span blob, int *n)
{
    struct amp_span type, inner;
    BIGNUM *r = NULL, *s = NULL;
    unsigned char *der = NULL;
    if (!wire_string(&blob, &type) || !amp_span_is(type, "ecdsa-sha2-nistp256") ||
        !wire_string(&blob, &inner) || blob.n > 0)
        return NULL;
    ECDSA_SIG *sig = ECDSA_SIG_new();
    bool ok = sig && scalar_take(&inner, &r) && scalar_take(&inner, &s) && inner.n == 0;
    if (ok && ECDSA_SIG_set0(sig, r, s)) {
        r = s = NULL; /* sig owns them */
        *n = i2d_ECDSA_SIG(sig, &der);
    }
    BN_free(r);
    BN_free(s);
    ECDSA_SIG_free(sig);
    return der;
}

/* NULL: not a point of the curve. */
static EVP_PKEY *key_of(const struct amp_pubkey *key)
{
    char group[] = "prime256v1";
    unsigned char point[POINT_BYTES];
    memcpy(point, key->blob + key->n - POINT_BYTES, sizeof point);
    OSSL_PARAM params[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_PKEY_PARAM_GROUP_NAME, group, 0),
        OSSL_PARAM_construct_octet_string(OSSL_PKEY_PARAM_PUB_KEY, point, sizeof point),
        OSSL_PARAM_construct_end(),
    };
    EVP_PKEY *out = NULL;
    EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_from_name(NULL, "EC", NULL), *check = NULL;
    if (!ctx || EVP_PKEY_fromdata_init(ctx) <= 0 ||
        EVP_PKEY_fromdata(ctx, &out, EVP_PKEY_PUBLIC_KEY, params) <= 0)
        out = NULL;
    if (out) {
        check = EVP_PKEY_CTX_new_from_pkey(NULL, out, NULL);
        if (!check || EVP_PKEY_public_check(check) <= 0) {
            EVP_PKEY_free(out);
            out = NULL;
        }
    }
    EVP_PKEY_CTX_free(check);
    EVP_PKEY_CTX_free(ctx);
    return out;
}

/* The key of the last signature: one sender often signs many messages. */
static struct {
    char fingerprint[AMP_FINGERPRINT_MAX];
    EVP_PKEY *key;
} last;

static EVP_PKEY *key_find(const struct amp_pubkey *key)
{
    if (last.key && !strcmp(last.fingerprint, key->fingerprint))
        return last.key;
    EVP_PKEY_free(last.key);
    last.key = key_of(key);
    memcpy(last.fingerprint, key->fingerprint, sizeof last.fingerprint);
    return last.key;
}

int p256_verify(const struct amp_pubkey *key, struct amp_span blob, struct amp_span data,
                struct amp_error *err)
{
    int n = 0, valid = 0;
    unsigned char *der = der_of(blob, &n);
    if (!der || n <= 0)
        return 0;
    EVP_PKEY *public = key_find(key);
    EVP_MD_CTX *md = EVP_MD_CTX_new();
    if (!md)
        valid = crypto_failed(err);
    else if (public)
        valid = EVP_DigestVerifyInit(md, NULL, EVP_sha256(), NULL, public) > 0 &&
                EVP_DigestVerify(md, der, (size_t)n, (const unsigned char *)data.p, data.n) == 1;
    EVP_MD_CTX_free(md);
    OPENSSL_free(der);
    return valid;
}
