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

#endif
