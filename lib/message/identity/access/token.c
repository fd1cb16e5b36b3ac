/* Makes, reads and verifies tokens. */
#include "message/identity/access/token.h"

#include <sodium.h>
#include <string.h>

#include <amp/base/clock.h>
#include <amp/json/tape.h>
#include <amp/json/writer.h>

#include "base/codes.h"

#define LEAD "amp1."

enum { CLAIMS_MAX = AMP_TOKEN_MAX / 2, SIG_MAX = AMP_SSHSIG_BLOB_MAX };

/* The texts among the claims. */
static const struct {
    const char *name;
    size_t at;
    bool optional;
} texts[] = {
    {"iss", offsetof(struct amp_pop, iss), false},    {"sub", offsetof(struct amp_pop, sub), false},
    {"aud", offsetof(struct amp_pop, aud), false},    {"jti", offsetof(struct amp_pop, jti), false},
    {"nonce", offsetof(struct amp_pop, nonce), true}, {"cnf", offsetof(struct amp_pop, cnf), false},
    {"key", offsetof(struct amp_pop, key), false},    {"alg", offsetof(struct amp_pop, alg), false},
};
enum { TEXTS = sizeof texts / sizeof *texts };

static struct amp_span *text_at(const struct amp_pop *t, int i)
{
    return (struct amp_span *)((char *)(uintptr_t)t + texts[i].at);
}

static int base64_add(struct amp_buf *out, struct amp_span bytes, struct amp_error *err)
{
    size_t room = sodium_base64_ENCODED_LEN(bytes.n, sodium_base64_VARIANT_URLSAFE_NO_PADDING);
    if (amp_buf_reserve(out, room, err) < 0)
        return -1;
    sodium_bin2base64(out->data + out->len, room, (const unsigned char *)bytes.p, bytes.n,
                      sodium_base64_VARIANT_URLSAFE_NO_PADDING);
    out->len += room - 1;
    return 0;
}

/* Decodes exactly; false: it is not base64 of that variant. */
static bool base64_read(struct amp_span text, int variant, unsigned char *out, size_t most,
                        size_t *n)
{
    return text.n > 0 && sodium_base642bin(out, most, text.p, text.n, NULL, n, NULL, variant) == 0;
}

static int claims_write(const struct amp_pop *t, struct amp_buf *out, struct amp_error *err)
{
    struct amp_jw w;
    amp_jw_init(&w, out);
    amp_jw_open(&w, '{');
    for (int i = 0; i < TEXTS; i++)
        amp_jw_some_str(&w, texts[i].name, *text_at(t, i));
    amp_jw_member_int(&w, "iat", t->iat_ms / 1000);
    amp_jw_member_int(&w, "exp", t->exp_ms / 1000);
    if (t->once)
        amp_jw_member_bool(&w, "once", true);
    amp_jw_close(&w, '}');
    return amp_jw_end(&w, err);
}

int amp_pop_make(struct amp_signer *issuer, const struct amp_pop *t, struct amp_buf *out,
                 struct amp_error *err)
{
    AMP_BUF struct amp_buf claims = {0}, text = {0};
    char value[AMP_SSHSIG_BASE64_MAX];
    unsigned char sig[SIG_MAX];
    size_t n = 0;
    struct amp_pop full = *t;
    full.key = amp_span_str(amp_signer_public(issuer)->fingerprint);
    full.alg = amp_span_str(amp_signer_alg(issuer));
    for (int i = 0; i < TEXTS; i++)
        if (text_at(&full, i)->n > AMP_TOKEN_TEXT_MAX ||
            (!texts[i].optional && text_at(&full, i)->n == 0))
            return amp_fail(err, AMP_USAGE, bad_token, "%s of a token has 1 to %d bytes",
                            texts[i].name, AMP_TOKEN_TEXT_MAX);
    amp_buf_init(&claims, CLAIMS_MAX);
    amp_buf_init(&text, AMP_TOKEN_MAX);
    if (claims_write(&full, &claims, err) < 0 || amp_buf_str(&text, LEAD, err) < 0 ||
        base64_add(&text, amp_buf_span(&claims), err) < 0 ||
        amp_signer_sign(issuer, AMP_TOKEN_NAMESPACE, amp_buf_span(&text), value, err) < 0)
        return -1;
    if (!base64_read(amp_span_str(value), sodium_base64_VARIANT_ORIGINAL, sig, sizeof sig, &n))
        return amp_fail(err, AMP_INTERNAL, bad_signature, "the signer's signature is not base64");
    if (amp_buf_str(&text, ".", err) < 0 ||
        base64_add(&text, (struct amp_span){(const char *)sig, n}, err) < 0)
        return -1;
    return amp_buf_add(out, text.data, text.len, err);
}

/* ---- reading ---- */

static int token_malformed(struct amp_error *err, const char *why)
{
    return amp_fail(err, AMP_NO, token_malformed, "the token is malformed: %s", why);
}

/* The signed part, and the signature after the last point. */
static bool parts_find(struct amp_span text, struct amp_span *signed_, struct amp_span *claims,
                       struct amp_span *sig)
{
    const size_t lead = sizeof LEAD - 1;
    if (text.n <= lead || text.n > AMP_TOKEN_MAX || memcmp(text.p, LEAD, lead) != 0)
        return false;
    const char *dot = memchr(text.p + lead, '.', text.n - lead);
    if (!dot)
        return false;
    *signed_ = (struct amp_span){text.p, (size_t)(dot - text.p)};
    *claims = (struct amp_span){text.p + lead, signed_->n - lead};
    *sig = (struct amp_span){dot + 1, text.n - signed_->n - 1};
    return true;
}

static bool time_read(const struct amp_tape *t, const char *name, int64_t *ms)
{
    uint32_t tok = amp_tape_get(t, 0, amp_span_str(name));
    int64_t s;
    if (tok == AMP_TOK_NONE || !amp_tok_int(t, tok, &s) || s < 0 || s > INT64_MAX / 2000)
        return false;
    *ms = s * 1000;
    return true;
}

int amp_pop_read(struct amp_span text, struct amp_buf *mem, struct amp_pop *out,
                 struct amp_error *err)
{
    struct amp_span signed_, claims, sig;
    unsigned char json[CLAIMS_MAX];
    size_t n = 0;
    struct amp_json_fault fault;
    AMP_TAPE struct amp_tape t = {0};
    struct amp_pop k = {0};
    if (!parts_find(text, &signed_, &claims, &sig))
        return token_malformed(err, "it is not amp1.CLAIMS.SIGNATURE");
    if (!base64_read(claims, sodium_base64_VARIANT_URLSAFE_NO_PADDING, json, sizeof json, &n))
        return token_malformed(err, "its claims are not base64url");
    amp_tape_init(&t, NULL);
    if (amp_tape_scan(&t, (const char *)json, n, &fault) < 0)
        return amp_json_fault_is_memory(&fault) ? amp_fail_memory(err)
                                                : token_malformed(err, "its claims are not JSON");
    if (t.tok[0].type != AMP_JSON_OBJECT)
        return token_malformed(err, "its claims are not an object");
    size_t start = mem->len;
    if (amp_buf_reserve(mem, n, err) < 0)
        return -1;
    for (int i = 0; i < TEXTS; i++) {
        uint32_t tok = amp_tape_get(&t, 0, amp_span_str(texts[i].name));
        struct amp_span v;
        AMP_BUF struct amp_buf one = {0};
        if (tok == AMP_TOK_NONE && texts[i].optional)
            continue;
        amp_buf_init(&one, sizeof json);
        if (tok == AMP_TOK_NONE || t.tok[tok].type != AMP_JSON_STRING ||
            t.tok[tok].flags & AMP_TOK_NUL)
            return mem->len = start, token_malformed(err, "a claim is missing or not a text");
        if (amp_tok_text(&t, tok, &one, &v, err) < 0)
            return mem->len = start, -1;
        if (v.n == 0 || v.n > AMP_TOKEN_TEXT_MAX)
            return mem->len = start, token_malformed(err, "a claim is empty or too long");
        const char *at = mem->data + mem->len;
        if (amp_buf_add(mem, v.p, v.n, err) < 0)
            return -1;
        *text_at(&k, i) = (struct amp_span){at, v.n};
    }
    uint32_t once = amp_tape_get(&t, 0, AMP_SPAN("once"));
    k.once = once != AMP_TOK_NONE && t.tok[once].type == AMP_JSON_TRUE;
    if (!time_read(&t, "iat", &k.iat_ms) || !time_read(&t, "exp", &k.exp_ms) ||
        k.exp_ms <= k.iat_ms)
        return mem->len = start, token_malformed(err, "iat and exp are not an interval in seconds");
    *out = k;
    return 0;
}

/* ---- verifying ---- */

static int token_refuse(struct amp_error *err, const char *code, const char *what)
{
    return amp_fail_text(err, AMP_NO, code, "%s", what);
}

static bool span_differs(struct amp_span want, struct amp_span is)
{
    return want.n > 0 && !amp_span_eq(want, is);
}

int amp_pop_check(struct amp_verifier *v, struct amp_span text, const struct amp_pop *t,
                  const struct amp_pop_use *use, struct amp_identity *issuer, struct amp_error *err)
{
    struct amp_span signed_, claims, sig;
    unsigned char bytes[SIG_MAX];
    char value[AMP_SSHSIG_BASE64_MAX], time[AMP_TIME_MAX];
    size_t n = 0;
    if (!parts_find(text, &signed_, &claims, &sig) ||
        !base64_read(sig, sodium_base64_VARIANT_URLSAFE_NO_PADDING, bytes, sizeof bytes, &n))
        return token_malformed(err, "its signature is not base64url");
    sodium_bin2base64(value, sizeof value, bytes, n, sodium_base64_VARIANT_ORIGINAL);
    amp_time_format(t->iat_ms, time);
    const struct amp_sig s = {t->key, t->alg, amp_span_str(time), amp_span_str(value)};
    if (amp_verifier_text(v, AMP_TOKEN_NAMESPACE, &s, signed_, t->iss, 0, issuer, err) < 0) {
        if (err->status != AMP_NO || amp_code_is(err->code, bad_signature))
            return -1;
        struct amp_error why = *err;
        return amp_fail(err, AMP_NO, token_untrusted, "the token's issuer: %s: %s", why.code,
                        why.what);
    }
    if (t->exp_ms <= use->now_ms)
        return token_refuse(err, AMP_CODE(token_expired), "the token has expired");
    if (t->iat_ms > use->now_ms + use->skew_ms)
        return token_refuse(err, AMP_CODE(token_not_yet_valid), "the token is not valid yet");
    if (span_differs(use->aud, t->aud))
        return token_refuse(err, AMP_CODE(token_wrong_audience),
                            "the token is for another audience");
    if (span_differs(use->sub, t->sub))
        return token_refuse(err, AMP_CODE(token_wrong_subject), "the token is for another sender");
    if (span_differs(use->key, t->cnf))
        return token_refuse(err, AMP_CODE(token_key_mismatch), "the token is bound to another key");
    if (span_differs(use->nonce, t->nonce))
        return token_refuse(err, AMP_CODE(token_nonce_mismatch),
                            "the token answers another challenge");
    return 0;
}
