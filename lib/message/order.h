/*
 * Whose order must survive lanes and queueing: the events of one negotiation (SW4RM §17), and those
 * of one conversation of the Runtime Protocol, where an update makes no sense before its create.
 * Messages with the same key never overtake each other on their way to one port.
 */
#ifndef AMP_MESSAGE_ORDER_H
#define AMP_MESSAGE_ORDER_H

#include <amp/base/buf.h>
#include <amp/protocol/protocol.h>

/* The key, a span of the view; empty for messages that any other may overtake. */
struct amp_span amp_order_key(const struct amp_view *v);

/* In which stream a message is numbered: the outbox of its node (Runtime Protocol), its producer
 * (SW4RM). Empty where the protocol numbers nothing, or the message bears no number. */
struct amp_span amp_order_source(const struct amp_view *v);

/* That stream's name among those of all protocols, as cursors bear it: a node's is its own, a
 * producer's stands behind "sw4rm:", and "rtp:" stands before a node's that would look like either.
 * Lives in mem, which is emptied first, or in the view. */
int amp_order_stream(const struct amp_view *v, struct amp_buf *mem, struct amp_span *out,
                     struct amp_error *err);

#endif
