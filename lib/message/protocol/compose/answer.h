/*
 * An acknowledgement or refusal in the protocol of the message that it answers: AMP's ack and nack,
 * SW4RM's ACKNOWLEDGEMENT, the Runtime Protocol's ack. It has the message's id and correlation id,
 * the stage and the code.
 */
#ifndef AMP_MESSAGE_PROTOCOL_COMPOSE_ANSWER_H
#define AMP_MESSAGE_PROTOCOL_COMPOSE_ANSWER_H

#include "message/protocol/answers.h"
#include "message/protocol/delivery.h"

/* Checks that the protocol has the stage: 0, or NO unsupported_stage. */
int amp_answer_check(enum amp_protocol p, enum amp_ack_stage stage, struct amp_error *err);

/* Appends one line with LF, or nothing if the protocol has no answer to such a message. A message
 * of no protocol is answered by AMP's records. */
int amp_answer_line(const struct amp_view *of, const struct amp_answer *a, struct amp_buf *out,
                    struct amp_error *err);

/*
 * Another attempt at the same operation: the message unchanged except for its id, the number of the
 * attempt, and for the Runtime Protocol the outbox; there the first event's id becomes
 * trace.idempotencyKey.
 */
/* Writes an id for the next attempt, in the protocol's form; NO bad_msg_id if it would be too long.
 */
int amp_again_id(const struct amp_view *of, int64_t now_ms, char out[AMP_MSG_ID_MAX],
                 struct amp_error *err);

/* The retries that a message itself asks for. */
void amp_again_terms(const struct amp_view *of, struct amp_again_terms *out);
/* The last time an attempt may leave: the expiry, or the deadline if it is earlier; 0: any time. */
int64_t amp_again_until(const struct amp_view *of);

/* The line of a request with the names that a router assigns. They depend on the message alone. 1:
 * appended, without LF; 0: the message stays as it is, as every signed message does. */
int amp_assigned_line(const struct amp_view *v, struct amp_buf *out, struct amp_error *err);

/* Appends the line, without LF. */
int amp_again_line(const struct amp_view *of, const struct amp_again *a, struct amp_buf *out,
                   struct amp_error *err);

#endif
