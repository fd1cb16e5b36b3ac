/*
 * Idempotency tokens (SW4RM §11.2): "{producer}:{operation}:" and the first 16 hex digits of the
 * SHA-256 of producer, LF, operation, LF and the canonical bytes of the parameters. Pure.
 */
#ifndef AMP_MESSAGE_DELIVERY_OPERATION_TOKEN_H
#define AMP_MESSAGE_DELIVERY_OPERATION_TOKEN_H

#include <amp/base/buf.h>

/* Appends the token. USAGE bad_token_part: producer or operation is empty or contains an LF, so two
 * operations could have the same token. */
int amp_token_make(struct amp_span producer, struct amp_span operation, struct amp_span canonical,
                   struct amp_buf *out, struct amp_error *err);

#endif
