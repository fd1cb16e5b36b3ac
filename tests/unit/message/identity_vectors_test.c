/* Signatures and keys at the edges of Ed25519 and ECDSA P-256: what must be refused, is. */
#include <signal.h>
#include <sodium.h>
#include <stdlib.h>
#include <unistd.h>

#include "../tap.h"
#include "message/identity/key.h"
#include "message/identity/process/worker.h"
#include "message/identity/signature.h"

static struct amp_error err;

static struct amp_span base64(const void *p, size_t n)
{
    static char text[8192];
    sodium_bin2base64(text, sizeof text, p, n, sodium_base64_VARIANT_ORIGINAL);
    return amp_span_str(text);
}

static size_t put(unsigned char *to, const void *p, size_t n)
{
    to[0] = to[1] = 0;
    to[2] = (unsigned char)(n >> 8);
    to[3] = (unsigned char)n;
    memcpy(to + 4, p, n);
    return n + 4;
}

static int ed25519_key(const unsigned char point[32], struct amp_pubkey *out)
{
    unsigned char blob[64];
    size_t n = put(blob, "ssh-ed25519", 11);
    n += put(blob + n, point, 32);
    return amp_pubkey_from_blob((struct amp_span){(char *)blob, n}, out, &err);
}

static void unhex(const char *hex, unsigned char *out, size_t n)
{
    size_t got;
    sodium_hex2bin(out, n, hex, strlen(hex), NULL, &got, NULL);
}

/* RFC 8032 §7.1, test 3. */
static void test_rfc8032(void)
{
    unsigned char point[32], sig[64];
    const unsigned char message[] = {0xaf, 0x82};
    struct amp_pubkey key;
    unhex("fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025", point, 32);
    unhex("6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac"
          "18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a",
          sig, 64);
    TAP_OK(ed25519_key(point, &key) == 0, "a key of RFC 8032");
    TAP_OK(amp_sig_ed25519(&key, base64(sig, 64), message, 2), "its signature is valid");
    TAP_OK(!amp_sig_ed25519(&key, base64(sig, 64), message, 1), "not for another text");
    TAP_OK(!amp_sig_ed25519(&key, base64(sig, 63), message, 2), "63 bytes are refused");
    TAP_OK(!amp_sig_ed25519(&key, base64(sig, 0), message, 2), "0 bytes are refused");
    unsigned char more[65] = {0};
    memcpy(more, sig, 64);
    TAP_OK(!amp_sig_ed25519(&key, base64(more, 65), message, 2), "65 bytes are refused");
    char text[128];
    snprintf(text, sizeof text, "%s", base64(sig, 64).p);
    TAP_OK(!amp_sig_ed25519(&key, (struct amp_span){text, 86}, message, 2),
           "base64 without padding is refused");
    text[85] = (char)(text[85] + 1);
    TAP_OK(!amp_sig_ed25519(&key, amp_span_str(text), message, 2),
           "base64 with other unused bits is refused");
    snprintf(text, sizeof text, "%s\n", base64(sig, 64).p);
    TAP_OK(!amp_sig_ed25519(&key, amp_span_str(text), message, 2),
           "base64 with white space is refused");

    /* S + L is the same number modulo the order. */
    static const unsigned char order[32] = {0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58,
                                            0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde, 0x14,
                                            0,    0,    0,    0,    0,    0,    0,    0,
                                            0,    0,    0,    0,    0,    0,    0,    0x10};
    for (int times = 1; times <= 8; times++) {
        unsigned carry = 0;
        for (int i = 0; i < 32; i++) {
            carry += (unsigned)sig[32 + i] + order[i];
            sig[32 + i] = (unsigned char)carry;
            carry >>= 8;
        }
        TAP_OK(!amp_sig_ed25519(&key, base64(sig, 64), message, 2), "S + %d L is refused", times);
    }
}

/* The points of small order, and encodings with y >= p: all that a key could be and must not. */
static void test_small_order(void)
{
    static const char *const points[] = {
        "0100000000000000000000000000000000000000000000000000000000000000",
        "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "0000000000000000000000000000000000000000000000000000000000000000",
        "0000000000000000000000000000000000000000000000000000000000000080",
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85",
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
        "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
        "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
        "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
        "0100000000000000000000000000000000000000000000000000000000000080",
        "f0ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f", /* y = 3 + p */
    };
    unsigned char point[32], sig[64] = {1};
    struct amp_pubkey key;
    for (size_t i = 0; i < sizeof points / sizeof points[0]; i++) {
        unhex(points[i], point, 32);
        err = (struct amp_error){0};
        TAP_OK(ed25519_key(point, &key) < 0 && !strcmp(err.code, "bad_key"),
               "the key %.12s… is refused", points[i]);
        /* A forgery that holds for any text with a key of small order, if it came that far. */
        struct amp_pubkey forced = {.kind = AMP_PUBKEY_ED25519, .n = 32};
        memcpy(forced.blob, point, 32);
        TAP_OK(!amp_sig_ed25519(&forced, base64(sig, 64), (const unsigned char *)"any", 3),
               "and verifies no forgery");
    }
}

/* A coordinate that no point has. */
static void test_off_curve(void)
{
    unsigned char point[32] = {2}, sig[64] = {1};
    struct amp_pubkey key;
    TAP_OK(!crypto_core_ed25519_is_valid_point(point) && ed25519_key(point, &key) == 0 &&
               !amp_sig_ed25519(&key, base64(sig, 64), (const unsigned char *)"any", 3),
           "a key that is not on the curve verifies nothing");
}

/* A signer who knows its key can make a signature with R of small order that satisfies the
 * equation. It is refused: several signatures of this form would be valid for one text. */
static void test_small_r(void)
{
    unsigned char seed[32] = {7}, public[32], secret[64], az[64], h[64], scalar[32], hashed[32],
                  sig[64] = {1};
    const unsigned char message[] = "message";
    struct amp_pubkey key;
    crypto_sign_seed_keypair(public, secret, seed);
    crypto_hash_sha512(az, seed, 32);
    az[0] &= 248;
    az[31] &= 127;
    az[31] |= 64;
    crypto_hash_sha512_state st;
    crypto_hash_sha512_init(&st);
    crypto_hash_sha512_update(&st, sig, 32); /* R: the neutral element */
    crypto_hash_sha512_update(&st, public, 32);
    crypto_hash_sha512_update(&st, message, sizeof message);
    crypto_hash_sha512_final(&st, h);
    unsigned char wide[64] = {0};
    memcpy(wide, az, 32);
    crypto_core_ed25519_scalar_reduce(scalar, wide);
    crypto_core_ed25519_scalar_reduce(hashed, h);
    crypto_core_ed25519_scalar_mul(sig + 32, scalar, hashed);
    TAP_OK(ed25519_key(public, &key) == 0, "a good key");
    TAP_OK(!amp_sig_ed25519(&key, base64(sig, 64), message, sizeof message),
           "a signature with R of small order is refused");
}

/* Blobs of keys that are malformed. */
static void test_key_blobs(void)
{
    static const struct {
        const char *text, *what;
    } rows[] = {
        {"", "an empty text"},
        {"ssh-ed25519", "a type alone"},
        {"ssh-ed25519 AAAA", "a blob that is too short"},
        {"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAINcrg/GUqI3f94hK1iFFwvnAAp8yB8B/p1xmIYvKkFN",
         "a truncated key"},
        {"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAINcrg/GUqI3f94hK1iFFwvnAAp8yB8B/p1xmIYvKkFNFAAAA",
         "bytes after the key"},
        {"ssh-rsa AAAAC3NzaC1lZDI1NTE5AAAAINcrg/GUqI3f94hK1iFFwvnAAp8yB8B/p1xmIYvKkFNF",
         "another type than that of the key"},
        {"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAINcrg_GUqI3f94hK1iFFwvnAAp8yB8B/p1xmIYvKkFNF",
         "another alphabet"},
    };
    struct amp_pubkey key;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        TAP_OK(amp_pubkey_parse(amp_span_str(rows[i].text), &key, &err) < 0, "%s is refused",
               rows[i].what);
    TAP_OK(amp_pubkey_parse(AMP_SPAN("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAINcrg/"
                                     "GUqI3f94hK1iFFwvnAAp8yB8B/p1xmIYvKkFNF a b"),
                            &key, &err) == 0,
           "a key with a comment is read");
    TAP_STR(key.fingerprint, "SHA256:+km05ukB0+5aST3sVBw3gzN+sfCke4A///O+OmUxMCE",
            "its fingerprint is that of ssh-keygen");
}

/* ECDSA. The numbers of a signature as mpints, and what surrounds them. */

static struct identity_worker *worker;
static const unsigned char p256_order[32] = {
    0xff, 0xff, 0xff, 0xff, 0x00, 0x00, 0x00, 0x00, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
    0xbc, 0xe6, 0xfa, 0xad, 0xa7, 0x17, 0x9e, 0x84, 0xf3, 0xb9, 0xca, 0xc2, 0xfc, 0x63, 0x25, 0x51};

/* RFC 6979 §A.2.5: the key, and the signature of "sample" with SHA-256. */
static const char p256_x[] = "60fed4ba255a9d31c961eb74c6356d68c049b8923b61fa6ce669622e60f29fb6";
static const char p256_y[] = "7903fe1008b8bc99a41ae9e95628bc64f2f1b20c2d7e9f5177a3c294d4462299";
static const char p256_r[] = "efd48b2aacb6a8fd1140dd9cd45e81d69d2c877b56aaf991c34d0ea84eaf3716";
static const char p256_s[] = "f7cb1c942d657c41d436c7a1b6e29f65f3e900dbb9aff4064dc4ab2f843acda8";

static int p256_key(const unsigned char *point, size_t n, const char *curve, struct amp_pubkey *out)
{
    unsigned char blob[256];
    size_t at = put(blob, "ecdsa-sha2-nistp256", 19);
    at += put(blob + at, curve, strlen(curve));
    at += put(blob + at, point, n);
    return amp_pubkey_from_blob((struct amp_span){(char *)blob, at}, out, &err);
}

/* An mpint: a zero before a first byte with the highest bit. */
static size_t mpint(unsigned char *to, const unsigned char *p, size_t n)
{
    unsigned char number[64] = {0};
    while (n > 0 && *p == 0) {
        p++;
        n--;
    }
    bool zero = n > 0 && (p[0] & 0x80);
    memcpy(number + zero, p, n);
    return put(to, number, n + zero);
}

static const unsigned char *sample = (const unsigned char *)"sample";

static int ecdsa(const struct amp_pubkey *key, const char *type, const unsigned char *inner,
                 size_t n, const unsigned char *after, size_t after_n)
{
    unsigned char blob[512];
    size_t at = put(blob, type, strlen(type));
    at += put(blob + at, inner, n);
    if (after_n > 0)
        memcpy(blob + at, after, after_n);
    const struct amp_sig sig = {.value = base64(blob, at + after_n)};
    int valid = identity_worker_verify(
        &worker, key, "amp", &sig, (struct amp_span){(const char *)sample, 6}, NULL, 0, NULL, &err);
    if (valid < 0)
        printf("# %s\n", err.what);
    return valid;
}

static int ecdsa_numbers(const struct amp_pubkey *key, const unsigned char *r,
                         const unsigned char *s)
{
    unsigned char inner[128];
    size_t n = mpint(inner, r, 32);
    n += mpint(inner + n, s, 32);
    return ecdsa(key, "ecdsa-sha2-nistp256", inner, n, NULL, 0);
}

static void minus(const unsigned char *a, const unsigned char *b, unsigned char *out)
{
    int borrow = 0;
    for (int i = 31; i >= 0; i--) {
        int d = a[i] - b[i] - borrow;
        borrow = d < 0;
        out[i] = (unsigned char)d;
    }
}

static void test_ecdsa(void)
{
    unsigned char point[65] = {4}, r[32], s[32], other[32], zero[32] = {0}, all[32], inner[160];
    struct amp_pubkey key, bad;
    unhex(p256_x, point + 1, 32);
    unhex(p256_y, point + 33, 32);
    unhex(p256_r, r, 32);
    unhex(p256_s, s, 32);
    memset(all, 0xff, sizeof all);
    TAP_OK(p256_key(point, 65, "nistp256", &key) == 0, "the key of RFC 6979");
    TAP_INT(ecdsa_numbers(&key, r, s), 1, "its signature is valid");
    minus(p256_order, s, other);
    TAP_INT(ecdsa_numbers(&key, r, other), 1, "so is (r, n - s), as for OpenSSH");
    sample = (const unsigned char *)"sampla";
    TAP_INT(ecdsa_numbers(&key, r, s), 0, "not for another text");
    sample = (const unsigned char *)"sample";
    TAP_INT(ecdsa_numbers(&key, zero, s), 0, "r = 0");
    TAP_INT(ecdsa_numbers(&key, r, zero), 0, "s = 0");
    TAP_INT(ecdsa_numbers(&key, zero, zero), 0, "both 0");
    TAP_INT(ecdsa_numbers(&key, p256_order, s), 0, "r = n");
    TAP_INT(ecdsa_numbers(&key, r, p256_order), 0, "s = n");
    TAP_INT(ecdsa_numbers(&key, r, all), 0, "s > n");
    TAP_INT(ecdsa_numbers(&key, all, s), 0, "r > n");
    TAP_INT(ecdsa_numbers(&key, s, r), 0, "r and s exchanged");

    /* s + n has 33 bytes with another first one. */
    unsigned char sum[33] = {0};
    unsigned carry = 0;
    for (int i = 31; i >= 0; i--) {
        carry += (unsigned)s[i] + p256_order[i];
        sum[i + 1] = (unsigned char)carry;
        carry >>= 8;
    }
    sum[0] = (unsigned char)carry;
    size_t n = mpint(inner, r, 32), first = n;
    n += put(inner + n, sum, 33);
    TAP_INT(ecdsa(&key, key.type, inner, n, NULL, 0), 0, "s + n");

    n = first + put(inner + first, s, 32);
    TAP_INT(ecdsa(&key, key.type, inner, n, NULL, 0), 0, "a negative mpint");
    unsigned char padded[34] = {0};
    memcpy(padded + 2, s, 32);
    n = first + put(inner + first, padded, 34);
    TAP_INT(ecdsa(&key, key.type, inner, n, NULL, 0), 0, "an mpint with too many zeros");
    n = first + mpint(inner + first, s, 32);
    TAP_INT(ecdsa(&key, key.type, inner, n, NULL, 0), 1, "the same, well-formed");
    TAP_INT(ecdsa(&key, key.type, inner, n - 1, NULL, 0), 0, "truncated");
    TAP_INT(ecdsa(&key, key.type, inner, first, NULL, 0), 0, "without s");
    TAP_INT(ecdsa(&key, key.type, inner, 0, NULL, 0), 0, "empty");
    inner[n] = 0;
    TAP_INT(ecdsa(&key, key.type, inner, n + 1, NULL, 0), 0, "a byte after s");
    TAP_INT(ecdsa(&key, key.type, inner, n, inner, 4), 0, "bytes after the signature");
    TAP_INT(ecdsa(&key, "ecdsa-sha2-nistp384", inner, n, NULL, 0), 0, "the name of another curve");
    TAP_INT(ecdsa(&key, "ssh-ed25519", inner, n, NULL, 0), 0, "another algorithm");
    const struct amp_sig text = {.value = AMP_SPAN("!!")};
    TAP_INT(identity_worker_verify(&worker, &key, "amp", &text, AMP_SPAN("sample"), NULL, 0, NULL,
                                   &err),
            0, "not base64");

    point[64] ^= 1;
    TAP_OK(p256_key(point, 65, "nistp256", &bad) == 0, "a key whose point is not on the curve");
    TAP_INT(ecdsa_numbers(&bad, r, s), 0, "verifies nothing");
    memset(point + 1, 0, 64);
    TAP_OK(p256_key(point, 65, "nistp256", &bad) == 0 && ecdsa_numbers(&bad, r, s) == 0,
           "nor does the point 0, 0");
    memset(point + 1, 0xff, 64);
    TAP_OK(p256_key(point, 65, "nistp256", &bad) == 0 && ecdsa_numbers(&bad, r, s) == 0,
           "nor coordinates above the field's prime");
    point[0] = 2;
    TAP_OK(p256_key(point, 33, "nistp256", &bad) < 0, "a compressed point is not a key");
    TAP_OK(p256_key(point, 1, "nistp256", &bad) < 0, "nor is infinity");
    point[0] = 4;
    TAP_OK(p256_key(point, 65, "nistp384", &bad) < 0, "nor a key that names another curve");
    TAP_INT(ecdsa_numbers(&key, r, s), 1, "after all this the worker still works");

    /* Its process, the only child of this one, is killed. */
    char name[64], children[64] = "";
    snprintf(name, sizeof name, "/proc/self/task/%d/children", (int)getpid());
    FILE *f = fopen(name, "r");
    pid_t child = f && fgets(children, sizeof children, f) ? (pid_t)atoi(children) : 0;
    if (f)
        fclose(f);
    signal(SIGPIPE, SIG_IGN);
    if (TAP_OK(child > 1 && kill(child, SIGKILL) == 0, "the worker is killed"))
        TAP_INT(ecdsa_numbers(&key, r, s), 1, "and started again");
}

int main(void)
{
    if (sodium_init() < 0)
        return 1;
    test_rfc8032();
    test_small_order();
    test_off_curve();
    test_small_r();
    test_key_blobs();
    test_ecdsa();
    identity_worker_free(worker);
    return tap_done();
}
