/*
 * The signature of the log's head, which is made where a segment ends (store/store.h): by the key
 * "log-head" of the state directory, in the namespace "amp-log".
 */
#ifndef AMP_MESSAGE_DELIVERY_SENDER_HEAD_H
#define AMP_MESSAGE_DELIVERY_SENDER_HEAD_H

#include "message/identity/verify.h"
#include "message/store/store.h"

#define AMP_HEAD_PRINCIPAL "log-head"
#define AMP_HEAD_NAMESPACE "amp-log"

/* For struct amp_store_options. Makes the key if there is none. */
int amp_head_sign(const char *dir, struct amp_span text, struct amp_buf *sig,
                  struct amp_error *err);

/* Verifies a signature that it made: {"key","alg","time","value"}. ctx: a struct amp_verifier with
 * the trust of the state. NO with the verifier's codes. */
int amp_head_check(void *ctx, struct amp_span text, struct amp_span sig, struct amp_error *err);

#endif
