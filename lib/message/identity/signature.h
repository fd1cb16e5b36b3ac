/*
 * Signed lines (SW4RM §6.2) and OpenSSH's signature format, SSHSIG (PROTOCOL.sshsig).
 *
 * A signed line is {"to":…,"sig":{"key":…,"alg":…,"time":…,"value":…},"msg":…}, without spaces
 * between the members; `to` is optional and not signed. The signed text is "amp-message-v1", LF,
 * key, LF, time, LF and the bytes of `msg`. Its signature is that of an SSHSIG with the namespace
 * "amp" and the hash SHA-512: ssh-keygen -Y verify -n amp accepts it in an armoured SSHSIG.
 */
#ifndef AMP_MESSAGE_IDENTITY_SIGNATURE_H
#define AMP_MESSAGE_IDENTITY_SIGNATURE_H

#include "message/identity/key.h"

#define AMP_SIGN_MESSAGES "amp" /* the namespace of messages */

enum {
    AMP_SSHSIG_DATA_MAX = 256,    /* see amp_sshsig_data; the namespace has at most 64 bytes */
    AMP_SSHSIG_BLOB_MAX = 2400,   /* a signature in the SSH wire format */
    AMP_SSHSIG_BASE64_MAX = 3204, /* the same in base64, with a NUL */
};

/* The four texts of a signature. As JSON strings they have no escapes. */
struct amp_sig {
    struct amp_span key;   /* a fingerprint */
    struct amp_span alg;   /* "Ed25519", "ECDSA" (P-256), else OpenSSH's name */
    struct amp_span time;  /* "2026-02-26T14:32:07.123Z" */
    struct amp_span value; /* base64: 64 bytes for Ed25519, else the SSH signature blob */
};

/* The parts of a signed line; to is its JSON value, empty if absent. */
struct amp_signed {
    struct amp_span to, msg;
    struct amp_sig sig;
};
/* Splits a signed line. False: the line does not have exactly this form. msg is not checked to be
 * JSON. */
bool amp_signed_split(struct amp_span line, struct amp_signed *out);
/* Appends a signed line without LF. */
int amp_signed_write(const struct amp_signed *s, struct amp_buf *out, struct amp_error *err);

/* The parts of the signed text of a message, in their order; its SHA-512. */
enum { AMP_SIGNED_PARTS = 6 };
void amp_signed_parts(struct amp_span key, struct amp_span time, struct amp_span msg,
                      struct amp_span out[AMP_SIGNED_PARTS]);
void amp_signed_digest(struct amp_span key, struct amp_span time, struct amp_span msg,
                       unsigned char out[64]);
/* The bytes that the key signs: "SSHSIG", namespace, reserved, "sha512", digest. Returns their
 * number. */
size_t amp_sshsig_data(const char *ns, const unsigned char digest[64],
                       unsigned char out[AMP_SSHSIG_DATA_MAX]);

/* Appends an armoured SSHSIG. value is as in amp_sig. DATAERR bad_signature: value is malformed. */
int amp_sshsig_write(const struct amp_pubkey *key, const char *ns, const struct amp_sig *sig,
                     struct amp_buf *out, struct amp_error *err);
/* Reads an armoured SSHSIG with this namespace and hash sha512, such as ssh-keygen -Y sign writes:
 * its key, the word for alg, and value. DATAERR bad_signature. */
int amp_sshsig_read(struct amp_span text, const char *ns, struct amp_pubkey *key,
                    char alg[AMP_PUBKEY_TYPE_MAX], char value[AMP_SSHSIG_BASE64_MAX],
                    struct amp_error *err);
/* Reads alg and value from an SSH signature blob. */
int amp_sig_from_blob(struct amp_span blob, const struct amp_pubkey *key,
                      char alg[AMP_PUBKEY_TYPE_MAX], char value[AMP_SSHSIG_BASE64_MAX],
                      struct amp_error *err);

/* Whether value is the key's signature of data, for Ed25519: rejects encodings that are not
 * canonical, s >= L, and points of small order. */
bool amp_sig_ed25519(const struct amp_pubkey *key, struct amp_span value, const unsigned char *data,
                     size_t n);

#endif
