/*
 * The message ledger: every message that passed a durable tool, and how far its delivery came
 * (SENT → RECEIVED → READ → FULFILLED, SW4RM §11; an AMP ack is READ). Key "message.<id>". The
 * ledger is AMP's "readable in SSOT".
 */
#ifndef AMP_MESSAGE_MESSAGE_H
#define AMP_MESSAGE_MESSAGE_H

#include <amp/fsm/fsm.h>
#include <amp/protocol/protocol.h>

#include "store/store.h"

extern const struct amp_fsm amp_delivery_fsm;

/* Records the message as SENT with its ack deadline (due_ms, when it needs an ack). Idempotent:
 * AMP_STORE_REDELIVERED for the same bytes; NO duplicate_msg_id for other bytes under the id. */
int amp_message_record(struct amp_store *s, const struct amp_view *v, int64_t now_ms,
                       enum amp_store_outcome *outcome, struct amp_error *err);

/* Applies an acknowledgement stage. A late one is recorded and changes nothing (*late true). An
 * unknown id: NO unknown_ref. Closes the outbox entries of the id. */
int amp_message_ack(struct amp_store *s, struct amp_span id, enum amp_ack_stage stage,
                    const char *by, struct amp_span code, int64_t now_ms, bool *late,
                    struct amp_error *err);

struct amp_message_rec {
    bool found;
    uint8_t state;         /* of amp_delivery_fsm */
    struct amp_span line;  /* the message's bytes; valid until the next call on the store */
    int64_t sent_ms, due_ms;
};
int amp_message_find(struct amp_store *s, struct amp_span id, struct amp_message_rec *out,
                     struct amp_error *err);

/* Overdue messages: moves each to TIMED_OUT once and hands it to fn inside no lock. */
typedef int (*amp_message_overdue_fn)(void *ctx, struct amp_span id, struct amp_span line);
int amp_message_sweep(struct amp_store *s, int64_t now_ms, amp_message_overdue_fn fn, void *ctx,
                      struct amp_error *err);

#endif
