/* The parts of key-worker. */
#ifndef KEY_WORKER_WORKER_H
#define KEY_WORKER_WORKER_H

#include "message/identity/key.h"

/* Whether blob is the P-256 key's ECDSA signature of data: the SSH signature blob of RFC 5656
 * §3.1.2. 1: valid; 0: not; -1: libcrypto failed. */
int p256_verify(const struct amp_pubkey *key, struct amp_span blob, struct amp_span data,
                struct amp_error *err);

/* Verifies with ssh-keygen -Y verify, for other keys: text is what was signed. */
int keygen_verify(const struct amp_pubkey *key, struct amp_span namespace, struct amp_span value,
                  struct amp_span text, struct amp_error *err);

#endif
