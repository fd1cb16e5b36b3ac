/* The helper key-worker, which verifies what needs libcrypto or ssh-keygen: one request at a time.
 */
#ifndef AMP_MESSAGE_IDENTITY_PROCESS_WORKER_H
#define AMP_MESSAGE_IDENTITY_PROCESS_WORKER_H

#include "message/identity/signature.h"

struct identity_worker;

void identity_worker_free(struct identity_worker *w); /* NULL: nothing */
/* Whether sig is the key's signature of the text that the parts make together; data is what the key
 * signs (amp_sshsig_data). *w is made with the first request and kept. Returns 1: valid, 0: not;
 * -1: UNAVAILABLE key_worker_failed, INTERRUPTED if *stop is non-zero. */
int identity_worker_verify(struct identity_worker **w, const struct amp_pubkey *key, const char *ns,
                           const struct amp_sig *sig, struct amp_span data,
                           const struct amp_span *parts, size_t n_parts, volatile const int *stop,
                           struct amp_error *err);

#endif
