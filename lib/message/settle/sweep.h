/*
 * The sweep: carries out what is due of messages.
 */
#ifndef AMP_MESSAGE_SETTLE_SWEEP_H
#define AMP_MESSAGE_SETTLE_SWEEP_H

#include "message/settle/options.h"

/* Deadlines. A message whose acknowledgement is overdue goes to TIMED_OUT, and the escalation
 * "ack_timeout" is in the outbox of `actor` by the same commit; work whose holder was silent
 * for silence_ms gets "heartbeat_timeout" the same way, once for each last sign of life.
 * So an escalation is made once however many sweep, also across crashes; who emits the outbox does
 * it under one lock. *raised counts the escalations made now. With rules for retries an overdue,
 * refused or failed message is sent again by the same outbox, or becomes a dead letter. */
int amp_message_sweep(struct amp_store *s, int64_t now_ms, const struct amp_sweep_options *opt,
                      uint32_t *raised, struct amp_error *err);
/* The same for one message: one that expired before it was passed on. */
int amp_message_sweep_one(struct amp_store *s, struct amp_span id, int64_t now_ms,
                          const struct amp_sweep_options *opt, struct amp_error *err);
/* The earliest moment at which a sweep has something to do, 0 for none. */
int amp_message_next_due(struct amp_store *s, int64_t silence_ms, int64_t *due_ms,
                         struct amp_error *err);

#endif
