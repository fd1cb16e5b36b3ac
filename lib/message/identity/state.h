/*
 * The keys of a state directory: STATE/keys/ (0700) with a private key (0600) and its .pub for each
 * principal, and allowed_signers, which lists them. They are made on first use, under a lock. The
 * file's name is the principal with "." for "/".
 */
#ifndef AMP_MESSAGE_IDENTITY_STATE_H
#define AMP_MESSAGE_IDENTITY_STATE_H

#include "message/identity/signer.h"
#include "message/identity/trust.h"

/* The signer of a principal of the state: "coordinator", "executor/ann", "operator/ann", …. Makes
 * the key if there is none. After amp_state_rotate, amp_signer_refresh takes the new key. USAGE
 * bad_principal; NOPERM key_permissions. */
int amp_state_signer(const char *state, const char *principal, struct amp_signer **out,
                     struct amp_error *err);
/* Like amp_state_signer, but fails with NO key_not_found if there is none. */
int amp_state_signer_existing(const char *state, const char *principal, struct amp_signer **out,
                              struct amp_error *err);

/* The trust of a state (NULL: none): its own keys (local), and allowed_signers from outside (NULL:
 * none), which must exist. */
int amp_state_trust(const char *state, const char *allowed_signers, amp_trust_finding_fn finding,
                    void *ctx, struct amp_trust **out, struct amp_error *err);

/* The path of STATE/keys/allowed_signers. */
int amp_state_signers_path(const char *state, struct amp_buf *out, struct amp_error *err);

/* Replaces the key of a principal. The old one stays valid until now + grace, for the programs that
 * have it; its private key is removed. grace_ms 0: it is revoked from now on. NO key_not_found. */
int amp_state_rotate(const char *state, const char *principal, int64_t now_ms, int64_t grace_ms,
                     struct amp_pubkey *before, struct amp_pubkey *after, struct amp_error *err);

#endif
