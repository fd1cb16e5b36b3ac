/* Public and private keys in OpenSSH's file formats (PROTOCOL.key, RFC 4253 §6.6). */
#include "message/identity/key.h"

#include <fcntl.h>
#include <sodium.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <amp/base/file.h>

#include "base/codes.h"
#include "message/identity/wire.h"

#define SECRET_BEGIN "-----BEGIN OPENSSH PRIVATE KEY-----"
#define SECRET_END   "-----END OPENSSH PRIVATE KEY-----"
#define SECRET_MAGIC "openssh-key-v1"
#define ED25519_TYPE "ssh-ed25519"
#define P256_TYPE    "ecdsa-sha2-nistp256"

enum {
    SECRET_FILE_MAX = 16384, /* an RSA key with 16384 bits has 12 KiB */
    PUBLIC_FILE_MAX = 16384,
    BASE64_LINE = 70,
    COMMENT_MAX = 256,
    CIPHER_BLOCK = 8, /* of the cipher "none" */
};

struct amp_seckey {
    struct amp_pubkey public;
    _Alignas(16) unsigned char secret[crypto_sign_SECRETKEYBYTES];
};

/* Public keys */

const unsigned char *amp_pubkey_ed25519(const struct amp_pubkey *k)
{
    return k->blob + k->n - crypto_sign_PUBLICKEYBYTES;
}

static void fingerprint_of(const unsigned char *blob, size_t n, char out[AMP_FINGERPRINT_MAX])
{
    unsigned char hash[crypto_hash_sha256_BYTES];
    crypto_hash_sha256(hash, blob, n);
    memcpy(out, "SHA256:", 7);
    sodium_bin2base64(out + 7, AMP_FINGERPRINT_MAX - 7, hash, sizeof hash,
                      sodium_base64_VARIANT_ORIGINAL_NO_PADDING);
}

bool amp_fingerprint_is(struct amp_span text)
{
    unsigned char hash[crypto_hash_sha256_BYTES];
    size_t n;
    return text.n == AMP_FINGERPRINT_MAX - 1 && amp_span_starts(text, "SHA256:") &&
           sodium_base642bin(hash, sizeof hash, text.p + 7, text.n - 7, NULL, &n, NULL,
                             sodium_base64_VARIANT_ORIGINAL_NO_PADDING) == 0 &&
           n == sizeof hash;
}

static int key_bad(struct amp_error *err, const char *why)
{
    return amp_fail(err, AMP_DATAERR, bad_key, "not a usable public key: %s", why);
}

/* Whether 32 bytes are a canonical encoding of a coordinate, and not of a point of small order. A
 * verification also finds points that are not on the curve; this check is cheap. */
static bool is_usable_point(const unsigned char *point)
{
    /* The y of the points of small order: 0, 1, -1, and two of order 8. */
    static const unsigned char small[5][crypto_sign_PUBLICKEYBYTES] = {
        {0},
        {1},
        {0xec, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
         0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
         0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f},
        {0x26, 0xe8, 0x95, 0x8f, 0xc2, 0xb2, 0x27, 0xb0, 0x45, 0xc3, 0xf4,
         0x89, 0xf2, 0xef, 0x98, 0xf0, 0xd5, 0xdf, 0xac, 0x05, 0xd3, 0xc6,
         0x33, 0x39, 0xb1, 0x38, 0x02, 0x88, 0x6d, 0x53, 0xfc, 0x05},
        {0xc7, 0x17, 0x6a, 0x70, 0x3d, 0x4d, 0xd8, 0x4f, 0xba, 0x3c, 0x0b,
         0x76, 0x0d, 0x10, 0x67, 0x0f, 0x2a, 0x20, 0x53, 0xfa, 0x2c, 0x39,
         0xcc, 0xc6, 0x4e, 0xc7, 0xfd, 0x77, 0x92, 0xac, 0x03, 0x7a},
    };
    unsigned char y[crypto_sign_PUBLICKEYBYTES];
    memcpy(y, point, sizeof y);
    y[31] &= 0x7f;
    for (size_t i = 0; i < sizeof small / sizeof small[0]; i++)
        if (!memcmp(y, small[i], sizeof y))
            return false;
    /* p is 2^255 - 19. */
    bool high = y[31] == 0x7f && y[0] >= 0xed;
    for (size_t i = 1; i < 31; i++)
        high = high && y[i] == 0xff;
    return !high;
}

int amp_pubkey_from_blob(struct amp_span blob, struct amp_pubkey *out, struct amp_error *err)
{
    struct amp_span rest = blob, type, part;
    if (sodium_init() < 0)
        return amp_fail(err, AMP_INTERNAL, no_random, "libsodium does not start");
    if (blob.n > AMP_PUBKEY_MAX)
        return key_bad(err, "too long");
    if (!wire_string(&rest, &type) || type.n == 0 || type.n >= AMP_PUBKEY_TYPE_MAX || rest.n == 0)
        return key_bad(err, "the key is malformed");
    for (size_t i = 0; i < type.n; i++)
        if (type.p[i] <= ' ' || type.p[i] > '~' || strchr("\"\\,#", type.p[i]))
            return key_bad(err, "the key's type is malformed");
    for (size_t i = 0; i + 5 <= type.n; i++)
        if (!memcmp(type.p + i, "-cert", 5))
            return key_bad(err, "certificates are not supported; use the key itself");
    struct amp_pubkey k = {.kind = AMP_PUBKEY_OTHER, .n = (uint32_t)blob.n};
    memcpy(k.blob, blob.p, blob.n);
    amp_span_copy(type, k.type, sizeof k.type);
    if (amp_span_is(type, ED25519_TYPE)) {
        k.kind = AMP_PUBKEY_ED25519;
        if (!wire_string(&rest, &part) || part.n != crypto_sign_PUBLICKEYBYTES || rest.n > 0)
            return key_bad(err, "an Ed25519 key has 32 bytes");
        if (!is_usable_point((const unsigned char *)part.p))
            return key_bad(err, "a point of small order, or not canonical");
    } else if (amp_span_is(type, P256_TYPE)) {
        k.kind = AMP_PUBKEY_ECDSA_P256;
        if (!wire_string(&rest, &part) || !amp_span_is(part, "nistp256"))
            return key_bad(err, "the curve is not nistp256");
        if (!wire_string(&rest, &part) || part.n != 65 || part.p[0] != 4 || rest.n > 0)
            return key_bad(err, "not an uncompressed point of 65 bytes");
    }
    fingerprint_of(k.blob, k.n, k.fingerprint);
    *out = k;
    return 0;
}

/* Cuts the first word, up to white space, and the white space after it. */
static struct amp_span word_cut(struct amp_span *text)
{
    size_t n = 0;
    while (n < text->n && text->p[n] != ' ' && text->p[n] != '\t')
        n++;
    struct amp_span word = {text->p, n};
    while (n < text->n && (text->p[n] == ' ' || text->p[n] == '\t'))
        n++;
    *text = (struct amp_span){text->p + n, text->n - n};
    return word;
}

int amp_pubkey_parse(struct amp_span text, struct amp_pubkey *out, struct amp_error *err)
{
    unsigned char blob[AMP_PUBKEY_MAX];
    size_t n;
    while (text.n > 0 && strchr(" \t\r\n", text.p[text.n - 1]))
        text.n--;
    while (text.n > 0 && (text.p[0] == ' ' || text.p[0] == '\t')) {
        text.p++;
        text.n--;
    }
    struct amp_span type = word_cut(&text), base64 = word_cut(&text);
    if (type.n == 0 || base64.n == 0)
        return key_bad(err, "expected: TYPE BASE64 [COMMENT]");
    if (sodium_base642bin(blob, sizeof blob, base64.p, base64.n, NULL, &n, NULL,
                          sodium_base64_VARIANT_ORIGINAL) != 0)
        return key_bad(err, "the base64 is malformed");
    struct amp_pubkey k;
    if (amp_pubkey_from_blob((struct amp_span){(char *)blob, n}, &k, err) < 0)
        return -1;
    if (!amp_span_is(type, k.type))
        return key_bad(err, "its type differs from that of the key");
    *out = k;
    return 0;
}

int amp_pubkey_read(const char *path, struct amp_pubkey *out, struct amp_error *err)
{
    AMP_BUF struct amp_buf text = {0};
    struct amp_error why;
    amp_buf_init(&text, PUBLIC_FILE_MAX);
    if (amp_file_read(AT_FDCWD, path, PUBLIC_FILE_MAX, &text, err) < 0)
        return -1;
    const char *end = text.len > 0 ? memchr(text.data, '\n', text.len) : NULL;
    struct amp_span line = {text.data, end ? (size_t)(end - text.data) : text.len};
    if (amp_pubkey_parse(line, out, &why) < 0)
        return amp_fail_again(err, AMP_DATAERR, path, &why);
    return 0;
}

int amp_pubkey_write(const struct amp_pubkey *k, const char *comment, struct amp_buf *out,
                     struct amp_error *err)
{
    char base64[sodium_base64_ENCODED_LEN(AMP_PUBKEY_MAX, sodium_base64_VARIANT_ORIGINAL)];
    sodium_bin2base64(base64, sizeof base64, k->blob, k->n, sodium_base64_VARIANT_ORIGINAL);
    bool some = comment && *comment;
    return amp_buf_fmt(out, err, "%s %s%s%s", k->type, base64, some ? " " : "",
                       some ? comment : "");
}

/* Private keys */

static struct amp_seckey *seckey_new(struct amp_error *err)
{
    if (sodium_init() < 0) {
        amp_fail(err, AMP_INTERNAL, no_random, "libsodium does not start");
        return NULL;
    }
    struct amp_seckey *k = sodium_malloc(sizeof *k);
    if (!k)
        amp_fail_memory(err);
    else
        memset(&k->public, 0, sizeof k->public);
    return k;
}

static int public_fill(struct amp_seckey *k, struct amp_error *err)
{
    unsigned char blob[4 + sizeof ED25519_TYPE + 4 + crypto_sign_PUBLICKEYBYTES];
    unsigned char *p = wire_put(blob, ED25519_TYPE, sizeof ED25519_TYPE - 1);
    p = wire_put(p, k->secret + crypto_sign_SEEDBYTES, crypto_sign_PUBLICKEYBYTES);
    return amp_pubkey_from_blob((struct amp_span){(char *)blob, (size_t)(p - blob)}, &k->public,
                                err);
}

int amp_seckey_generate(struct amp_seckey **out, struct amp_error *err)
{
    unsigned char public[crypto_sign_PUBLICKEYBYTES];
    struct amp_seckey *k = seckey_new(err);
    if (!k)
        return -1;
    crypto_sign_keypair(public, k->secret);
    if (public_fill(k, err) < 0) {
        amp_seckey_free(k);
        return -1;
    }
    *out = k;
    return 0;
}

void amp_seckey_free(struct amp_seckey *k)
{
    if (k)
        sodium_free(k); /* clears it */
}

void amp_auto_seckey(struct amp_seckey **k)
{
    amp_seckey_free(*k);
}

const struct amp_pubkey *amp_seckey_public(const struct amp_seckey *k)
{
    return &k->public;
}

void amp_seckey_sign(const struct amp_seckey *k, struct amp_span data, unsigned char out[64])
{
    crypto_sign_detached(out, NULL, (const unsigned char *)data.p, data.n, k->secret);
}

/* The bytes of a file with a private key, in locked memory. */
struct secret_file {
    size_t n, raw_n;
    char text[SECRET_FILE_MAX];
    unsigned char raw[SECRET_FILE_MAX];
};

static void secret_file_free(struct secret_file **f)
{
    if (*f)
        sodium_free(*f);
}

static int secret_file_read(int dirfd, const char *path, bool nofollow, struct secret_file *f,
                            struct amp_error *err)
{
    struct stat st;
    AMP_CLOSE int fd = openat(
        dirfd, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | (nofollow ? O_NOFOLLOW : 0));
    if (fd < 0 || fstat(fd, &st) < 0)
        return amp_fail_errno(err, AMP_UNAVAILABLE, "cannot read the key %s", path);
    if (!S_ISREG(st.st_mode))
        return amp_fail(err, AMP_DATAERR, bad_key, "%s is not a regular file", path);
    if (st.st_mode & 077)
        return amp_fail(err, AMP_NOPERM, key_permissions,
                        "others may access the private key %s (mode %04o, expected 0600)", path,
                        (unsigned)st.st_mode & 07777);
    if (st.st_uid != geteuid() && geteuid() != 0)
        return amp_fail(err, AMP_NOPERM, key_permissions,
                        "the private key %s belongs to another user", path);
    f->n = 0;
    while (f->n < sizeof f->text) {
        ssize_t k = read(fd, f->text + f->n, sizeof f->text - f->n);
        if (k < 0)
            return amp_fail_errno(err, AMP_IOERR, "cannot read the key %s", path);
        if (k == 0)
            return 0;
        f->n += (size_t)k;
    }
    return amp_fail(err, AMP_DATAERR, bad_key, "%s is too long for a private key (limit 16 KiB)",
                    path);
}

/* Decodes the text between the lines of dashes. */
static bool secret_decode(struct secret_file *f)
{
    struct amp_span text = {f->text, f->n};
    while (text.n > 0 && strchr(" \t\r\n", text.p[text.n - 1]))
        text.n--;
    if (!amp_span_starts(text, SECRET_BEGIN) || !amp_span_ends(text, SECRET_END))
        return false;
    size_t from = sizeof SECRET_BEGIN - 1, to = text.n - (sizeof SECRET_END - 1);
    return from < to && sodium_base642bin(f->raw, sizeof f->raw, text.p + from, to - from, "\r\n",
                                          &f->raw_n, NULL, sodium_base64_VARIANT_ORIGINAL) == 0;
}

static bool is_padding(struct amp_span rest)
{
    for (size_t i = 0; i < rest.n; i++)
        if ((unsigned char)rest.p[i] != (i + 1) % 256)
            return false;
    return rest.n < CIPHER_BLOCK;
}

/* Reads the decoded bytes. A code: why not. */
static const char *secret_parse(const struct secret_file *f, struct amp_seckey *k)
{
    struct amp_span in = {(const char *)f->raw, f->raw_n}, cipher, kdf, options, public, private;
    struct amp_span type, own, key, comment;
    uint32_t keys, check1, check2;
    if (in.n < sizeof SECRET_MAGIC || memcmp(in.p, SECRET_MAGIC, sizeof SECRET_MAGIC) != 0)
        return AMP_CODE(bad_key);
    in.p += sizeof SECRET_MAGIC;
    in.n -= sizeof SECRET_MAGIC;
    if (!wire_string(&in, &cipher) || !wire_string(&in, &kdf) || !wire_string(&in, &options) ||
        !wire_u32(&in, &keys) || keys != 1 || !wire_string(&in, &public) ||
        !wire_string(&public, &type))
        return AMP_CODE(bad_key);
    if (!amp_span_is(type, ED25519_TYPE))
        return AMP_CODE(key_not_ed25519);
    if (!amp_span_is(cipher, "none"))
        return "key_encrypted";
    if (!amp_span_is(kdf, "none") || options.n > 0 || !wire_string(&in, &private) || in.n > 0 ||
        !wire_u32(&private, &check1) || !wire_u32(&private, &check2) || check1 != check2 ||
        !wire_string(&private, &type) || !amp_span_is(type, ED25519_TYPE) ||
        !wire_string(&private, &own) || own.n != crypto_sign_PUBLICKEYBYTES ||
        !wire_string(&private, &key) || key.n != crypto_sign_SECRETKEYBYTES ||
        !wire_string(&private, &comment) || !is_padding(private))
        return AMP_CODE(bad_key);
    /* The public key is computed: a signature with one that does not belong to the secret would
     * reveal the secret. */
    unsigned char computed[crypto_sign_PUBLICKEYBYTES];
    crypto_sign_seed_keypair(computed, k->secret, (const unsigned char *)key.p);
    return sodium_memcmp(computed, own.p, sizeof computed) == 0 &&
                   sodium_memcmp(k->secret, key.p, sizeof k->secret) == 0
               ? NULL
               : AMP_CODE(bad_key);
}

static int secret_refuse(const char *path, const char *code, struct amp_error *err)
{
    if (!strcmp(code, "key_encrypted"))
        return amp_fail_text(err, AMP_NO, code, "the private key %s has a passphrase", path);
    if (amp_code_is(code, key_not_ed25519))
        return amp_fail_text(err, AMP_NO, code, "the private key %s is not an Ed25519 key", path);
    return amp_fail_text(err, AMP_DATAERR, code, "%s is not a private key in OpenSSH's format",
                         path);
}

int amp_seckey_read(int dirfd, const char *path, bool nofollow, struct amp_seckey **out,
                    struct amp_error *err)
{
    AMP_CLEANUP(amp_auto_seckey) struct amp_seckey *k = seckey_new(err);
    if (!k)
        return -1;
    AMP_CLEANUP(secret_file_free) struct secret_file *f = sodium_malloc(sizeof *f);
    if (!f)
        return amp_fail_memory(err);
    if (secret_file_read(dirfd, path, nofollow, f, err) < 0)
        return -1;
    struct amp_span text = {f->text, f->n};
    if (!secret_decode(f)) {
        /* ssh-keygen also reads PEM. */
        bool pem = amp_span_starts(text, "-----BEGIN ") && !amp_span_starts(text, SECRET_BEGIN);
        return secret_refuse(path, pem ? AMP_CODE(key_not_ed25519) : AMP_CODE(bad_key), err);
    }
    const char *code = secret_parse(f, k);
    if (code)
        return secret_refuse(path, code, err);
    if (public_fill(k, err) < 0)
        return -1;
    *out = k;
    k = NULL;
    return 0;
}

/* The text of a private key file, in f->text. */
static void secret_write(const struct amp_seckey *k, const char *comment, struct secret_file *f)
{
    static const unsigned char magic[] = SECRET_MAGIC; /* with its NUL */
    size_t comment_n = strnlen(comment, COMMENT_MAX);
    unsigned char *p = f->raw, *section, *body;
    memcpy(p, magic, sizeof magic);
    p = wire_put(p + sizeof magic, "none", 4);
    p = wire_put(p, "none", 4);
    p = wire_put(p, NULL, 0);
    p = wire_put_u32(p, 1);
    p = wire_put(p, k->public.blob, k->public.n);
    section = p;
    body = p + 4;
    uint32_t check = randombytes_random();
    p = wire_put_u32(body, check);
    p = wire_put_u32(p, check);
    p = wire_put(p, ED25519_TYPE, sizeof ED25519_TYPE - 1);
    p = wire_put(p, k->secret + crypto_sign_SEEDBYTES, crypto_sign_PUBLICKEYBYTES);
    p = wire_put(p, k->secret, sizeof k->secret);
    p = wire_put(p, comment, comment_n);
    for (unsigned char i = 1; (p - body) % CIPHER_BLOCK != 0; i++)
        *p++ = i;
    wire_put_u32(section, (uint32_t)(p - body));

    char *base64 = (char *)f->raw + SECRET_FILE_MAX / 2, *to = f->text;
    sodium_bin2base64(base64, SECRET_FILE_MAX / 2, f->raw, (size_t)(p - f->raw),
                      sodium_base64_VARIANT_ORIGINAL);
    to = memcpy(to, SECRET_BEGIN "\n", sizeof SECRET_BEGIN);
    to += sizeof SECRET_BEGIN;
    for (size_t left = strlen(base64); left > 0;) {
        size_t n = left < BASE64_LINE ? left : BASE64_LINE;
        memcpy(to, base64, n);
        to[n] = '\n';
        to += n + 1;
        base64 += n;
        left -= n;
    }
    memcpy(to, SECRET_END "\n", sizeof SECRET_END);
    f->n = (size_t)(to - f->text) + sizeof SECRET_END;
}

int amp_seckey_write(const struct amp_seckey *k, int dirfd, const char *path, const char *comment,
                     struct amp_error *err)
{
    AMP_BUF struct amp_buf public = {0};
    AMP_FREE char *name = NULL;
    amp_buf_init(&public, PUBLIC_FILE_MAX);
    if (amp_pubkey_write(&k->public, comment, &public, err) < 0 ||
        amp_buf_add(&public, "\n", 1, err) < 0)
        return -1;
    name = malloc(strlen(path) + 5);
    if (!name)
        return amp_fail_memory(err);
    memcpy(name, path, strlen(path));
    memcpy(name + strlen(path), ".pub", 5);
    AMP_CLEANUP(secret_file_free) struct secret_file *f = sodium_malloc(sizeof *f);
    if (!f)
        return amp_fail_memory(err);
    secret_write(k, comment, f);
    int rc = amp_file_publish(dirfd, path, 0600, (struct amp_span){f->text, f->n}, err);
    if (rc != 0)
        return rc;
    return amp_file_write_atomic(dirfd, name, 0644, amp_buf_span(&public), err);
}
