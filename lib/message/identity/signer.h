/*
 * Signers. A signer has one key: in this process (Ed25519 without a passphrase), in ssh-agent, or
 * in a file that ssh-keygen -Y sign can use, which may ask for a passphrase or a touch on the
 * terminal.
 */
#ifndef AMP_MESSAGE_IDENTITY_SIGNER_H
#define AMP_MESSAGE_IDENTITY_SIGNER_H

#include "message/identity/signature.h"

struct amp_signer;

/* Takes the key. */
int amp_signer_of_key(struct amp_seckey *key, struct amp_signer **out, struct amp_error *err);
/* Signs with a private key file: in this process if possible, else by ssh-keygen, which needs the
 * public key in PATH.pub. A .pub file: its key in ssh-agent, whose socket the
 * value of SSH_AUTH_SOCK names (NULL: none). */
int amp_signer_of_file(const char *path, const char *socket, struct amp_signer **out,
                       struct amp_error *err);
/* Signs with the key of ssh-agent that `which` names: a fingerprint, a public key, or the path of a
 * .pub file. socket: the value of SSH_AUTH_SOCK. UNAVAILABLE agent_unavailable, key_not_found. */
int amp_signer_of_agent(const char *socket, const char *which, struct amp_signer **out,
                        struct amp_error *err);
void amp_signer_free(struct amp_signer *s); /* NULL: nothing */
void amp_auto_signer(struct amp_signer **s);

/* Makes a signer with a key in this process follow its file: amp_signer_refresh reads the key again
 * after the file was replaced (a stat call otherwise). On failure the key stays as it is. */
int amp_signer_follow(struct amp_signer *s, const char *path, struct amp_error *err);
int amp_signer_refresh(struct amp_signer *s, struct amp_error *err);

const struct amp_pubkey *amp_signer_public(const struct amp_signer *s);
/* The value of alg in its signatures. */
const char *amp_signer_alg(const struct amp_signer *s);

/* Signs a text in a namespace ("amp" is for messages; others must not use it). The value of `value`
 * in the signature, NUL-terminated. Fails with UNAVAILABLE agent_unavailable, agent_refused or
 * signing_failed. */
int amp_signer_sign(struct amp_signer *s, const char *ns, struct amp_span text,
                    char value[AMP_SSHSIG_BASE64_MAX], struct amp_error *err);

/* Appends the signed line, without LF, of a message with the bytes msg; to is a JSON value or
 * empty.
 */
int amp_signer_message(struct amp_signer *s, struct amp_span to, struct amp_span msg,
                       int64_t now_ms, struct amp_buf *out, struct amp_error *err);
/* Signs a line: a bare message, or {"to":…,"msg":…}. An earlier signature is replaced.
 * DATAERR with the scanner's code if the line is not JSON. */
int amp_signer_line(struct amp_signer *s, struct amp_span line, int64_t now_ms, struct amp_buf *out,
                    struct amp_error *err);
/* Signs an unsigned line: NO already_signed if it has a signature, also a malformed one. */
int amp_signer_unsigned_line(struct amp_signer *s, struct amp_span line, int64_t now_ms,
                             struct amp_buf *out, struct amp_error *err);

#endif
