/*
 * The message ledger has every message that passed a durable tool, and the state of its delivery
 * (SENT → RECEIVED → READ → FULFILLED, SW4RM §11; an AMP ack is READ). Key "message.<id>". The
 * ledger is what AMP calls "readable in SSOT".
 */
#ifndef AMP_MESSAGE_DELIVERY_LEDGER_LEDGER_H
#define AMP_MESSAGE_DELIVERY_LEDGER_LEDGER_H

#include <amp/protocol/protocol.h>

#include "message/delivery/ledger/delivery.h"
#include "message/delivery/record/record.h"
#include "message/protocol/amp/compose.h"
#include "message/store/store.h"

/* Records the message as SENT; if it needs an acknowledgement, with the deadline that
 * message/ledger/timeouts.h computes. *outcome (may be NULL): AMP_STORE_REDELIVERED if the same
 * bytes are recorded already. NO missing_field: it has no id; NO duplicate_msg_id: another message
 * has the id. */
int amp_message_record(struct amp_store *s, const struct amp_view *v, int64_t now_ms,
                       enum amp_store_outcome *outcome, struct amp_error *err);

/* Makes the checks of amp_message_record and changes nothing: NO duplicate_msg_id. */
int amp_message_check(struct amp_store *s, const struct amp_view *v, struct amp_error *err);

/* The time of the message's expiry, 0: never. A time to live without a beginning begins now. */
int64_t amp_message_expiry(const struct amp_view *v, int64_t now_ms);
/* Whether the message has expired (SW4RM ttl_ms, Runtime Protocol expiresAt). Expired messages are
 * not handed over. */
bool amp_message_expired(const struct amp_view *v, int64_t now_ms);

/* An acknowledgement of a message, or another answer to it. If the message is an attempt at an
 * operation, only the agent that holds the work may report its end (message/ledger/holder.h). */
struct amp_message_answer {
    enum amp_ack_stage stage;
    const char *by;
    struct amp_span id;           /* of the acknowledgement itself; empty: none */
    struct amp_span code, result; /* result: a JSON value, recorded if it ends the work */
    enum amp_failure failure;     /* for the sweep: another attempt, or a dead letter */
    bool holds;                   /* of RECEIVED: `by` becomes the holder of the work */
    bool releases;                /* another agent may hold the work after this failure */
    bool worded;         /* reported by a message, not by the program that handed it over */
    bool takes_up;       /* only the agent that has the work may report it */
    bool ours;           /* from the carrier of the message: it needs no holder */
    bool waits;          /* of RECEIVED: in an inbox, the work has not begun */
    bool alive;          /* only a sign of life of the holder: moves nothing */
    bool supervised;     /* of READ: the agent's own record shows whether it is alive */
    bool has_letter;     /* of FULFILLED: an attempt has an open dead letter */
    int64_t eta_ms;      /* of RECEIVED: when the outcome is expected; 0: unknown */
    int64_t progress_ms; /* of READ: the time in a report of progress; 0: it is none */
    /* A line for the outbox of `actor`, in the same commit; NULL: none. A repeated answer commits
     * nothing, so it emits nothing. */
    const struct amp_store_emit *emit;
    const char *actor;
};

/* The changes that an answer made. The caller carries out the rest in this order (settle/answer.h).
 * After a crash in between the record is due, or the outbox entry is sent again. */
struct amp_message_changes {
    bool late;                       /* recorded, but it moved nothing */
    bool withdraw;                   /* the dead letters of the operation are void */
    bool close_outbox;               /* the outbox entry of the message can be closed, */
    char close_next[AMP_MSG_ID_MAX]; /* and that of the next attempt; empty: none */
};
/* Commits the answer. NO unknown_ref: the ledger does not have the message; NO, a code of
 * message/ledger/holder.h. */
int amp_message_answered(struct amp_store *s, struct amp_span id,
                         const struct amp_message_answer *a, int64_t now_ms,
                         struct amp_message_changes *changes, struct amp_error *err);
/* Closes the outbox entries that the changes name. */
int amp_message_close_outbox(struct amp_store *s, struct amp_span id,
                             const struct amp_message_changes *changes, struct amp_error *err);

/* Checks whether amp_message_answered would take the answer, and changes nothing: NO, a code of
 * message/ledger/holder.h; NO unknown_ref. v (may be NULL) describes a message that the ledger does
 * not have yet. */
int amp_message_may_answer(struct amp_store *s, struct amp_span id, const struct amp_view *v,
                           const struct amp_message_answer *a, struct amp_error *err);

/* Sets a message that was refused, failed or timed out to SENT, with a new deadline. NO
 * unknown_ref. */
int amp_message_requeue(struct amp_store *s, struct amp_span id, int64_t now_ms,
                        struct amp_error *err);

/* The attempts before a message. */
struct amp_message_former {
    int64_t attempt, ack_timeout_ms, sla_ms; /* of the previous attempt */
    struct amp_span first;                   /* id of the first attempt */
    struct amp_message_try *tries;           /* all of them */
    uint32_t n_tries;
};
/* amp_message_record for a further attempt; former NULL: the first one. */
int amp_message_record_next(struct amp_store *s, const struct amp_view *v,
                            const struct amp_message_former *former, int64_t now_ms,
                            enum amp_store_outcome *outcome, struct amp_error *err);

#endif
