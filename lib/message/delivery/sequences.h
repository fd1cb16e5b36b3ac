/*
 * Messages that keep their order in lanes and queues: the events of a negotiation (SW4RM §17), and
 * those of a conversation (Runtime Protocol), in which an update must follow its create. Messages
 * with the same key never overtake each other on the way to one port.
 */
#ifndef AMP_MESSAGE_DELIVERY_SEQUENCES_H
#define AMP_MESSAGE_DELIVERY_SEQUENCES_H

#include <amp/base/buf.h>
#include <amp/protocol/protocol.h>

/* The key, a span of the view; empty: any message may overtake this one. */
struct amp_span amp_sequence_key(const struct amp_view *v);

/* The stream in which the message has its number: the outbox of its node (Runtime Protocol) or its
 * producer (SW4RM). Empty: the message has no number. */
struct amp_span amp_sequence_source(const struct amp_view *v);

/* The name of this stream for cursors, unique among all protocols: NODE, or "sw4rm:PRODUCER"; a
 * node whose name begins with "sw4rm:" or "rtp:" is "rtp:NODE". In mem, which is emptied first, or
 * in the view. */
int amp_sequence_stream(const struct amp_view *v, struct amp_buf *mem, struct amp_span *out,
                        struct amp_error *err);

#endif
