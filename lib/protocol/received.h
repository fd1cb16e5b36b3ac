/* The acknowledgement that a message was admitted (queued durably), in the protocols that wait for
 * one: SW4RM's RECEIVED, the Runtime Protocol's accepted. */
#ifndef AMP_PROTOCOL_RECEIVED_H
#define AMP_PROTOCOL_RECEIVED_H

#include <amp/protocol/protocol.h>

/* Appends the line, without LF, said by agent `by`; nothing where the protocol has no such word or
 * the message has no id. */
int amp_answer_received(const struct amp_view *v, struct amp_span by, int64_t now_ms,
                        struct amp_buf *out, struct amp_error *err);

#endif
