/*
 * An answer to a message with all its consequences: the ledger's commit, then the withdrawal of
 * void dead letters, then the outbox.
 */
#ifndef AMP_MESSAGE_DELIVERY_SETTLE_ANSWER_H
#define AMP_MESSAGE_DELIVERY_SETTLE_ANSWER_H

#include "message/delivery/ledger/ledger.h"

/* *late (may be NULL): the answer was recorded but moved nothing. Codes: amp_message_answered. */
int amp_settle_answer(struct amp_store *s, struct amp_span id, const struct amp_message_answer *a,
                      int64_t now_ms, bool *late, struct amp_error *err);
/* Settles an acknowledgement that has only a stage and a code, in the same way. */
int amp_settle_ack(struct amp_store *s, struct amp_span id, enum amp_ack_stage stage,
                   const char *by, struct amp_span code, int64_t now_ms, bool *late,
                   struct amp_error *err);
/* Like amp_settle_ack, but 0 if the message is unknown or cannot reach the stage any more. */
int amp_settle_known(struct amp_store *s, struct amp_span id, enum amp_ack_stage stage,
                     const char *by, struct amp_span code, int64_t now_ms, struct amp_error *err);

#endif
