/*
 * What passes a tool that keeps the ledger: an acknowledgement moves the message that it answers,
 * and the sender of a repeated operation gets the outcome of the first attempt.
 */
#ifndef AMP_MESSAGE_SETTLE_ACKNOWLEDGE_H
#define AMP_MESSAGE_SETTLE_ACKNOWLEDGE_H

#include "message/operation/idempotency.h"

/* The stage that an ack or nack is for. A nack names the one that was not reached: no work was
 * done, or it failed. */
enum amp_ack_stage amp_message_stage_of(const struct amp_view *v);

/* Applies an ack or nack as it came: its stage, its code and whether that may pass, its result. NO
 * outcome_missing: processed (Runtime Protocol) of what has no outcome; else as
 * amp_message_answered. */
int amp_message_acknowledge(struct amp_store *s, const struct amp_view *v, int64_t now_ms,
                            struct amp_error *err);

/* Whether its sender may give it, without any change: as amp_message_may_answer. */
int amp_message_acknowledge_check(struct amp_store *s, const struct amp_view *v,
                                  struct amp_error *err);

/* Appends the answer to a message whose operation is at work or done (a->verdict), with LF, in its
 * protocol, by `node`. */
int amp_idem_reply(struct amp_store *s, const struct amp_view *v, const struct amp_idem_answer *a,
                   const char *node, int64_t now_ms, struct amp_buf *out, struct amp_error *err);

#endif
