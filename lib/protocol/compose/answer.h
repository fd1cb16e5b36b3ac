/*
 * An acknowledgement or refusal in the protocol of the message that it answers: AMP's ack and nack,
 * SW4RM's ACKNOWLEDGEMENT, the Runtime Protocol's ack. It names the message, the stage and the
 * code, and repeats the correlation id.
 */
#ifndef AMP_PROTOCOL_ANSWER_H
#define AMP_PROTOCOL_ANSWER_H

#include "protocol/terms.h"

/* Whether the protocol has a word for the stage: 0, or NO unsupported_stage. */
int amp_answer_check(enum amp_protocol p, enum amp_ack_stage stage, struct amp_error *err);

/* Appends one line with LF, or nothing where the protocol has no answer to such a message. What is
 * of no protocol is answered by AMP's records. */
int amp_answer_line(const struct amp_view *of, const struct amp_answer *a, struct amp_buf *out,
                    struct amp_error *err);

/*
 * Another attempt at the same operation: the message byte for byte, but for what a protocol makes
 * new with each attempt: its id, the count of attempts, and for the Runtime Protocol the outbox in
 * which it stands, where the first event's id becomes trace.idempotencyKey.
 */
/* An id for the next attempt, in the protocol's form; NO bad_msg_id where it would be too long. */
int amp_again_id(const struct amp_view *of, int64_t now_ms, char out[AMP_MSG_ID_MAX],
                 struct amp_error *err);

/* What a message says of its own retries. */
void amp_again_terms(const struct amp_view *of, struct amp_again_terms *out);

/* Appends the line, without LF. */
int amp_again_line(const struct amp_view *of, const struct amp_again *a, struct amp_buf *out,
                   struct amp_error *err);

#endif
