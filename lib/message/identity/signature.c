/* Signed lines, and OpenSSH's signature format (PROTOCOL.sshsig). */
#include "message/identity/signature.h"

#include <sodium.h>
#include <string.h>

#include "base/codes.h"
#include "message/identity/wire.h"

#define MAGIC       "SSHSIG"
#define HASH        "sha512"
#define CONTEXT     "amp-message-v1\n"
#define ARMOR_BEGIN "-----BEGIN SSH SIGNATURE-----"
#define ARMOR_END   "-----END SSH SIGNATURE-----"

enum {
    NAMESPACE_MOST = 64,
    SSHSIG_MOST = 16384,
    BASE64_LINE = 70,
};

/* Takes the literal from the front of the line. */
static bool literal_take(struct amp_span *in, const char *literal, size_t n)
{
    if (in->n < n || memcmp(in->p, literal, n) != 0)
        return false;
    in->p += n;
    in->n -= n;
    return true;
}
#define TAKE(in, literal) literal_take(in, literal, sizeof(literal) - 1)

/* Takes the text of a string up to and with its closing quote; without escapes and controls. */
static bool text_take(struct amp_span *in, struct amp_span *out)
{
    size_t n = 0;
    while (n < in->n && in->p[n] != '"') {
        if (in->p[n] == '\\' || (unsigned char)in->p[n] < ' ' || (unsigned char)in->p[n] > '~')
            return false;
        n++;
    }
    if (n == in->n)
        return false;
    *out = (struct amp_span){in->p, n};
    in->p += n + 1;
    in->n -= n + 1;
    return true;
}

/* Takes the value of `to`: a string, or an array of strings. */
static bool to_take(struct amp_span *in, struct amp_span *out)
{
    const char *from = in->p;
    size_t n = 0;
    bool list = in->n > 0 && in->p[0] == '[', text = false;
    if (!list && (in->n == 0 || in->p[0] != '"'))
        return false;
    for (; n < in->n; n++) {
        char c = in->p[n];
        if (text && c == '\\')
            n++;
        else if (c == '"')
            text = !text;
        if (!text && (list ? c == ']' : c == '"') && n > 0)
            break;
    }
    if (n >= in->n)
        return false;
    *out = (struct amp_span){from, n + 1};
    in->p += n + 1;
    in->n -= n + 1;
    return true;
}

bool amp_signed_split(struct amp_span line, struct amp_signed *out)
{
    struct amp_signed s = {0};
    if (!TAKE(&line, "{"))
        return false;
    if (TAKE(&line, "\"to\":") && (!to_take(&line, &s.to) || !TAKE(&line, ",")))
        return false;
    if (!TAKE(&line, "\"sig\":{\"key\":\"") || !text_take(&line, &s.sig.key) ||
        !TAKE(&line, ",\"alg\":\"") || !text_take(&line, &s.sig.alg) ||
        !TAKE(&line, ",\"time\":\"") || !text_take(&line, &s.sig.time) ||
        !TAKE(&line, ",\"value\":\"") || !text_take(&line, &s.sig.value) ||
        !TAKE(&line, "},\"msg\":"))
        return false;
    if (line.n < 2 || line.p[line.n - 1] != '}')
        return false;
    s.msg = (struct amp_span){line.p, line.n - 1};
    *out = s;
    return true;
}

static int span_add(struct amp_buf *out, const char *before, struct amp_span text,
                    struct amp_error *err)
{
    return amp_buf_str(out, before, err) < 0 ? -1 : amp_buf_add(out, text.p, text.n, err);
}

int amp_signed_write(const struct amp_signed *s, struct amp_buf *out, struct amp_error *err)
{
    size_t before = out->len;
    if (amp_buf_reserve(out, s->to.n + s->msg.n + s->sig.value.n + 256, err) < 0)
        return -1;
    if ((s->to.n > 0 && (span_add(out, "{\"to\":", s->to, err) < 0)) ||
        span_add(out, s->to.n > 0 ? ",\"sig\":{\"key\":\"" : "{\"sig\":{\"key\":\"", s->sig.key,
                 err) < 0 ||
        span_add(out, "\",\"alg\":\"", s->sig.alg, err) < 0 ||
        span_add(out, "\",\"time\":\"", s->sig.time, err) < 0 ||
        span_add(out, "\",\"value\":\"", s->sig.value, err) < 0 ||
        span_add(out, "\"},\"msg\":", s->msg, err) < 0 || amp_buf_add(out, "}", 1, err) < 0) {
        out->len = before;
        return -1;
    }
    return 0;
}

void amp_signed_parts(struct amp_span key, struct amp_span time, struct amp_span msg,
                      struct amp_span out[AMP_SIGNED_PARTS])
{
    out[0] = AMP_SPAN(CONTEXT);
    out[1] = key;
    out[2] = AMP_SPAN("\n");
    out[3] = time;
    out[4] = AMP_SPAN("\n");
    out[5] = msg;
}

void amp_signed_digest(struct amp_span key, struct amp_span time, struct amp_span msg,
                       unsigned char out[64])
{
    struct amp_span part[AMP_SIGNED_PARTS];
    crypto_hash_sha512_state h;
    amp_signed_parts(key, time, msg, part);
    crypto_hash_sha512_init(&h);
    for (size_t i = 0; i < AMP_SIGNED_PARTS; i++)
        crypto_hash_sha512_update(&h, (const unsigned char *)part[i].p, part[i].n);
    crypto_hash_sha512_final(&h, out);
}

size_t amp_sshsig_data(const char *ns, const unsigned char digest[64],
                       unsigned char out[AMP_SSHSIG_DATA_MAX])
{
    unsigned char *p = out + sizeof MAGIC - 1;
    memcpy(out, MAGIC, sizeof MAGIC - 1);
    p = wire_put(p, ns, strnlen(ns, NAMESPACE_MOST));
    p = wire_put(p, NULL, 0);
    p = wire_put(p, HASH, sizeof HASH - 1);
    p = wire_put(p, digest, 64);
    return (size_t)(p - out);
}

static int sig_bad(struct amp_error *err, const char *why)
{
    return amp_fail(err, AMP_DATAERR, bad_signature, "not a usable SSH signature: %s", why);
}

/* The SSH signature blob of a value. */
static int blob_of(const struct amp_pubkey *key, struct amp_span value,
                   unsigned char out[AMP_SSHSIG_BLOB_MAX], size_t *n, struct amp_error *err)
{
    if (sodium_base642bin(out, AMP_SSHSIG_BLOB_MAX, value.p, value.n, NULL, n, NULL,
                          sodium_base64_VARIANT_ORIGINAL) != 0)
        return sig_bad(err, "the base64 is malformed");
    if (key->kind != AMP_PUBKEY_ED25519)
        return 0;
    if (*n != crypto_sign_BYTES)
        return sig_bad(err, "an Ed25519 signature has 64 bytes");
    unsigned char raw[crypto_sign_BYTES];
    memcpy(raw, out, sizeof raw);
    unsigned char *p = wire_put(out, key->type, strlen(key->type));
    *n = (size_t)(wire_put(p, raw, sizeof raw) - out);
    return 0;
}

int amp_sshsig_write(const struct amp_pubkey *key, const char *ns, const struct amp_sig *sig,
                     struct amp_buf *out, struct amp_error *err)
{
    unsigned char blob[AMP_SSHSIG_BLOB_MAX], raw[AMP_SSHSIG_BLOB_MAX + AMP_PUBKEY_MAX + 128];
    char base64[sodium_base64_ENCODED_LEN(sizeof raw, sodium_base64_VARIANT_ORIGINAL)];
    size_t n;
    if (blob_of(key, sig->value, blob, &n, err) < 0)
        return -1;
    unsigned char *p = raw + sizeof MAGIC - 1;
    memcpy(raw, MAGIC, sizeof MAGIC - 1);
    p = wire_put_u32(p, 1);
    p = wire_put(p, key->blob, key->n);
    p = wire_put(p, ns, strnlen(ns, NAMESPACE_MOST));
    p = wire_put(p, NULL, 0);
    p = wire_put(p, HASH, sizeof HASH - 1);
    p = wire_put(p, blob, n);
    sodium_bin2base64(base64, sizeof base64, raw, (size_t)(p - raw),
                      sodium_base64_VARIANT_ORIGINAL);
    size_t before = out->len;
    int rc = amp_buf_str(out, ARMOR_BEGIN "\n", err);
    for (const char *at = base64; *at && rc == 0;) {
        size_t most = strnlen(at, BASE64_LINE);
        rc = amp_buf_add(out, at, most, err) < 0 ? -1 : amp_buf_add(out, "\n", 1, err);
        at += most;
    }
    if (rc < 0 || amp_buf_str(out, ARMOR_END "\n", err) < 0) {
        out->len = before;
        return -1;
    }
    return 0;
}

int amp_sig_from_blob(struct amp_span blob, const struct amp_pubkey *key,
                      char alg[AMP_PUBKEY_TYPE_MAX], char value[AMP_SSHSIG_BASE64_MAX],
                      struct amp_error *err)
{
    struct amp_span rest = blob, type, raw;
    if (blob.n > AMP_SSHSIG_BLOB_MAX || !wire_string(&rest, &type) ||
        type.n >= AMP_PUBKEY_TYPE_MAX || !wire_string(&rest, &raw))
        return sig_bad(err, "the signature is malformed");
    for (size_t i = 0; i < type.n; i++)
        if (type.p[i] <= ' ' || type.p[i] > '~' || type.p[i] == '"' || type.p[i] == '\\')
            return sig_bad(err, "its algorithm is malformed");
    bool rsa = !strcmp(key->type, "ssh-rsa") && amp_span_starts(type, "rsa-sha2-");
    if (!rsa && !amp_span_is(type, key->type))
        return sig_bad(err, "its algorithm is not that of the key");
    struct amp_span bytes = blob;
    if (key->kind == AMP_PUBKEY_ED25519) {
        if (raw.n != crypto_sign_BYTES || rest.n > 0)
            return sig_bad(err, "an Ed25519 signature has 64 bytes");
        bytes = raw;
        type = AMP_SPAN("Ed25519");
    } else if (key->kind == AMP_PUBKEY_ECDSA_P256) {
        type = AMP_SPAN("ECDSA");
    }
    amp_span_copy(type, alg, AMP_PUBKEY_TYPE_MAX);
    sodium_bin2base64(value, AMP_SSHSIG_BASE64_MAX, (const unsigned char *)bytes.p, bytes.n,
                      sodium_base64_VARIANT_ORIGINAL);
    return 0;
}

int amp_sshsig_read(struct amp_span text, const char *ns, struct amp_pubkey *key,
                    char alg[AMP_PUBKEY_TYPE_MAX], char value[AMP_SSHSIG_BASE64_MAX],
                    struct amp_error *err)
{
    unsigned char raw[SSHSIG_MOST];
    struct amp_span in, public, name, reserved, hash, blob;
    size_t n;
    uint32_t version;
    while (text.n > 0 && strchr(" \t\r\n", text.p[text.n - 1]))
        text.n--;
    size_t head = sizeof ARMOR_BEGIN - 1, tail = sizeof ARMOR_END - 1;
    if (!amp_span_starts(text, ARMOR_BEGIN) || !amp_span_ends(text, ARMOR_END) ||
        text.n < head + tail)
        return sig_bad(err, "it is not between BEGIN and END SSH SIGNATURE");
    if (sodium_base642bin(raw, sizeof raw, text.p + head, text.n - head - tail, "\r\n", &n, NULL,
                          sodium_base64_VARIANT_ORIGINAL) != 0)
        return sig_bad(err, "the base64 is malformed");
    in = (struct amp_span){(char *)raw, n};
    if (!TAKE(&in, MAGIC) || !wire_u32(&in, &version) || version != 1 ||
        !wire_string(&in, &public) || !wire_string(&in, &name) || !wire_string(&in, &reserved) ||
        !wire_string(&in, &hash) || !wire_string(&in, &blob) || in.n > 0)
        return sig_bad(err, "it is malformed");
    if (!amp_span_is(name, ns))
        return sig_bad(err, "it has another namespace");
    if (!amp_span_is(hash, HASH))
        return sig_bad(err, "its hash is not sha512");
    struct amp_pubkey k;
    if (amp_pubkey_from_blob(public, &k, err) < 0 ||
        amp_sig_from_blob(blob, &k, alg, value, err) < 0)
        return -1;
    *key = k;
    return 0;
}

bool amp_sig_ed25519(const struct amp_pubkey *key, struct amp_span value, const unsigned char *data,
                     size_t n)
{
    unsigned char sig[crypto_sign_BYTES];
    size_t got;
    return key->kind == AMP_PUBKEY_ED25519 &&
           sodium_base642bin(sig, sizeof sig, value.p, value.n, NULL, &got, NULL,
                             sodium_base64_VARIANT_ORIGINAL) == 0 &&
           got == sizeof sig &&
           crypto_sign_verify_detached(sig, data, n, amp_pubkey_ed25519(key)) == 0;
}
