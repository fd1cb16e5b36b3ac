/*
 * Verifying signatures: the key is trusted, may speak for the sender at the signature's time, and
 * the signature is its. Ed25519 is verified in this process; ECDSA P-256 and other keys by
 * key-worker, which starts with the first such signature and answers one request at a time.
 */
#ifndef AMP_MESSAGE_IDENTITY_VERIFY_H
#define AMP_MESSAGE_IDENTITY_VERIFY_H

#include "message/identity/signature.h"
#include "message/identity/trust.h"

/* Defaults of identity.skew and identity.max_age. */
#define AMP_IDENTITY_SKEW_MS    300000
#define AMP_IDENTITY_MAX_AGE_MS 604800000

struct amp_verifier_options {
    struct amp_trust *trust;  /* borrowed */
    int64_t skew_ms;          /* how far a signature's time may be in the future */
    int64_t max_age_ms;       /* and in the past; 0: no limit */
    volatile const int *stop; /* non-zero: a wait for key-worker ends, INTERRUPTED; may be NULL */
};
struct amp_verifier;
int amp_verifier_new(const struct amp_verifier_options *opt, struct amp_verifier **out,
                     struct amp_error *err);
void amp_verifier_free(struct amp_verifier *v);
void amp_auto_verifier(struct amp_verifier **v);

/* The signer of a message or text. */
struct amp_identity {
    char principal[AMP_PRINCIPAL_MAX]; /* "executor/ann" */
    char key[AMP_FINGERPRINT_MAX];
    int64_t time_ms;
    bool local; /* a key of this state */
};

/* Verifies the signature of a message whose sender is `from` (empty: any). now_ms 0: the
 * signature's time is not compared with the present, for records. -1 with status NO: bad_signature,
 * unknown_key, key_revoked, key_expired, bad_sender, bad_signature_time (malformed, too far in the
 * future or in the past). Other statuses: it could not be verified (UNAVAILABLE key_worker_failed,
 * INTERRUPTED). *out is filled on success, and with bad_sender (principal: the key's first). */
int amp_verifier_message(struct amp_verifier *v, const struct amp_sig *sig, struct amp_span msg,
                         struct amp_span from, int64_t now_ms, struct amp_identity *out,
                         struct amp_error *err);
/* Verifies a text that was signed with amp_signer_sign in a namespace, in the same way. */
int amp_verifier_text(struct amp_verifier *v, const char *ns, const struct amp_sig *sig,
                      struct amp_span text, struct amp_span from, int64_t now_ms,
                      struct amp_identity *out, struct amp_error *err);

#endif
