/*
 * Keys in OpenSSH's file formats: public keys, their fingerprints, and Ed25519 private keys without
 * a passphrase. Other private keys sign through ssh-agent or ssh-keygen (signer.h).
 */
#ifndef AMP_MESSAGE_IDENTITY_KEY_H
#define AMP_MESSAGE_IDENTITY_KEY_H

#include <amp/base/buf.h>

enum {
    AMP_FINGERPRINT_MAX = 51, /* "SHA256:", 43 letters of base64 without padding, NUL */
    AMP_PUBKEY_MAX = 2400,    /* bytes of a key: RSA with 16384 bits is the largest */
    AMP_PUBKEY_TYPE_MAX = 64,
};

/* Signatures of a key are verified in process, by key-worker, or by ssh-keygen. */
enum amp_pubkey_kind { AMP_PUBKEY_ED25519, AMP_PUBKEY_ECDSA_P256, AMP_PUBKEY_OTHER };

struct amp_pubkey {
    enum amp_pubkey_kind kind;
    char type[AMP_PUBKEY_TYPE_MAX];        /* "ssh-ed25519", "ecdsa-sha2-nistp256", … */
    char fingerprint[AMP_FINGERPRINT_MAX]; /* as ssh-keygen -l prints it */
    uint32_t n;                            /* bytes of blob */
    unsigned char blob[AMP_PUBKEY_MAX];    /* the key in the SSH wire format (RFC 4253 §6.6) */
};

/* The 32 bytes of an Ed25519 key, within blob. */
const unsigned char *amp_pubkey_ed25519(const struct amp_pubkey *k);

/* Reads "TYPE BASE64 [COMMENT]". DATAERR bad_key: malformed, a certificate, a type that differs
 * from the one in the key, or an Ed25519 key that is of small order or not canonical. A point that
 * is not on the curve is not found here, but no signature is valid for it. */
int amp_pubkey_parse(struct amp_span text, struct amp_pubkey *out, struct amp_error *err);
/* Reads a key in the wire format, with the same checks. */
int amp_pubkey_from_blob(struct amp_span blob, struct amp_pubkey *out, struct amp_error *err);
/* Reads the first line of a .pub file. */
int amp_pubkey_read(const char *path, struct amp_pubkey *out, struct amp_error *err);
/* Appends "TYPE BASE64", and " COMMENT" if comment is not empty, without LF. */
int amp_pubkey_write(const struct amp_pubkey *k, const char *comment, struct amp_buf *out,
                     struct amp_error *err);
/* Whether text has the form of a fingerprint. */
bool amp_fingerprint_is(struct amp_span text);

/* An Ed25519 private key in locked memory, which is cleared when it is freed. */
struct amp_seckey;
int amp_seckey_generate(struct amp_seckey **out, struct amp_error *err);
/* Reads a private key file, not through a symbolic link if `nofollow`. NOPERM key_permissions:
 * group or others can read it, or it belongs to another user; NO key_encrypted: it has a
 * passphrase; NO key_not_ed25519: another type; DATAERR bad_key: not a private key in OpenSSH's
 * format. */
int amp_seckey_read(int dirfd, const char *path, bool nofollow, struct amp_seckey **out,
                    struct amp_error *err);
/* Writes PATH (0600), then PATH.pub (0644), both synced. Returns 1, and writes nothing, if PATH
 * exists. */
int amp_seckey_write(const struct amp_seckey *k, int dirfd, const char *path, const char *comment,
                     struct amp_error *err);
const struct amp_pubkey *amp_seckey_public(const struct amp_seckey *k);
/* The 64 bytes of an Ed25519 signature over data. */
void amp_seckey_sign(const struct amp_seckey *k, struct amp_span data, unsigned char out[64]);
void amp_seckey_free(struct amp_seckey *k); /* NULL: nothing */
void amp_auto_seckey(struct amp_seckey **k);

#endif
