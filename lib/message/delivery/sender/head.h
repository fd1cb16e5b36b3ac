/*
 * The signature of the log's head, which is made where a segment ends (store/store.h): by the key
 * "log-head" of the state directory, in the namespace "amp-log".
 */
#ifndef AMP_MESSAGE_DELIVERY_SENDER_HEAD_H
#define AMP_MESSAGE_DELIVERY_SENDER_HEAD_H

#include "message/store/history/verify.h"

#define AMP_HEAD_PRINCIPAL "log-head"
#define AMP_HEAD_NAMESPACE "amp-log"

/* For struct amp_store_options. Makes the key if there is none. */
int amp_head_sign(const char *dir, struct amp_span text, struct amp_buf *sig,
                  struct amp_error *err);

/* amp_store_verify with the trust of the state; how->check and ctx are set. */
int amp_head_verify(struct amp_store *s, struct amp_store_verify how, struct amp_store_verdict *out,
                    struct amp_error *err);

#endif
