/*
 * Acknowledgements that pass a tool, and the answer to the sender of a repeated operation: the
 * outcome of the first attempt.
 */
#ifndef AMP_MESSAGE_SETTLE_ACKNOWLEDGE_H
#define AMP_MESSAGE_SETTLE_ACKNOWLEDGE_H

#include "message/operation/idempotency.h"

/* The stage of an ack or nack. A nack names the stage that was not reached: REJECTED or FAILED. */
enum amp_ack_stage amp_message_stage_of(const struct amp_view *v);

/* Applies an ack or nack to the message that it answers. NO outcome_missing: processed (Runtime
 * Protocol) for a message without an outcome; else as amp_message_answered. */
int amp_message_acknowledge(struct amp_store *s, const struct amp_view *v, int64_t now_ms,
                            struct amp_error *err);

/* Checks whether its sender may give it: amp_message_may_answer. */
int amp_message_acknowledge_check(struct amp_store *s, const struct amp_view *v,
                                  struct amp_error *err);

/* Appends the answer of `node` to a message whose operation is in progress or done (a->verdict), in
 * its protocol, with LF. */
int amp_idem_reply(struct amp_store *s, const struct amp_view *v, const struct amp_idem_answer *a,
                   const char *node, int64_t now_ms, struct amp_buf *out, struct amp_error *err);

#endif
