/*
 * The message ledger: every message that passed a durable tool, and how far its delivery came
 * (SENT → RECEIVED → READ → FULFILLED, SW4RM §11; an AMP ack is READ). Key "message.<id>". The
 * ledger is AMP's "readable in SSOT".
 */
#ifndef AMP_MESSAGE_LEDGER_LEDGER_H
#define AMP_MESSAGE_LEDGER_LEDGER_H

#include <amp/protocol/protocol.h>

#include "message/ledger/delivery.h"
#include "message/record/record.h"
#include "protocol/amp/compose.h"
#include "store/store.h"

/* Records the message as SENT with its ack deadline (due_ms, when it needs an ack; how long that
 * is, message/ledger/timeouts.h says). Idempotent:
 * AMP_STORE_REDELIVERED for the same bytes; NO duplicate_msg_id for other bytes under the id. */
int amp_message_record(struct amp_store *s, const struct amp_view *v, int64_t now_ms,
                       enum amp_store_outcome *outcome, struct amp_error *err);

/* Whether amp_message_record would take it, without changing anything: NO duplicate_msg_id. */
int amp_message_check(struct amp_store *s, const struct amp_view *v, struct amp_error *err);

/* When its time to live is over, 0 never; where it does not say since when it lives, it lives since
 * now. */
int64_t amp_message_expiry(const struct amp_view *v, int64_t now_ms);
/* Whether its time to live has passed (SW4RM ttl_ms, Runtime Protocol expiresAt): such a message is
 * not handed over any more. */
bool amp_message_expired(const struct amp_view *v, int64_t now_ms);

/* What an acknowledgement, or another answer, says of a message. Of a message that is an attempt at
 * an operation, only the agent that took it up may report the end: NO message/ledger/holder.h's
 * codes from anybody else. */
struct amp_message_answer {
    enum amp_ack_stage stage;
    const char *by;
    struct amp_span id;           /* of the acknowledgement itself; empty: it has none */
    struct amp_span code, result; /* result: a JSON value, kept when it ends the work */
    /* Of a refusal or failure: what the sweep makes of it, another attempt or a dead letter. */
    enum amp_failure failure;
    bool holds;    /* who says RECEIVED takes the work up with it */
    bool releases; /* after this failure another agent may take the work up */
    bool worded;   /* by a message, not by who handed the work over */
    bool takes_up; /* a word that only the agent which has the work may say */
    bool ours;     /* whoever carries the message answers: if nobody took it up, nobody is asked */
    bool waits;    /* RECEIVED into an inbox: the work has not begun */
    bool alive;    /* only a sign of life of who holds the work: it says nothing of the message */
    bool supervised; /* READ by an agent whose own record shows whether it is alive */
    /* Of FULFILLED: an attempt at the operation has an open dead letter. */
    bool has_letter;
    int64_t eta_ms; /* of RECEIVED: an outcome is expected only then; 0: not said */
    /* A line that leaves because of it, into the outbox of `actor` by the same commit; NULL: none.
     * Where nothing is committed (it was said before) none leaves. */
    const struct amp_store_emit *emit;
    const char *actor;
};

/* What an answer changed, and what its caller has to do after it, in this order (settle/answer.h
 * does). A crash in between leaves a record that is due, or an outbox entry that is sent again. */
struct amp_message_changes {
    bool late;         /* it was recorded, and moved nothing */
    bool withdraw;     /* the dead letters of the operation are void */
    bool close_outbox; /* the sender need not keep the message: amp_message_close_outbox */
    char close_next[AMP_MSG_ID_MAX]; /* nor the attempt after it, which has this id; empty: none */
};
/* Commits the answer. NO unknown_ref: the ledger does not know the id. */
int amp_message_answered(struct amp_store *s, struct amp_span id,
                         const struct amp_message_answer *a, int64_t now_ms,
                         struct amp_message_changes *changes, struct amp_error *err);
/* Closes the outbox entries that the changes name. */
int amp_message_close_outbox(struct amp_store *s, struct amp_span id,
                             const struct amp_message_changes *changes, struct amp_error *err);

/* Whether this answer would be taken, without changing anything: NO, a code of
 * message/ledger/holder.h, where somebody else holds the work; NO unknown_ref. Where the ledger
 * does not know the message yet, its view v (or NULL) describes it. */
int amp_message_may_answer(struct amp_store *s, struct amp_span id, const struct amp_view *v,
                           const struct amp_message_answer *a, struct amp_error *err);

/* Puts a message that was refused, failed or timed out on its way again, with a new deadline. */
int amp_message_requeue(struct amp_store *s, struct amp_span id, int64_t now_ms,
                        struct amp_error *err);

/* Records an attempt that follows another: SENT, where it is not recorded yet. */
struct amp_message_former {
    int64_t attempt, ack_timeout_ms, sla_ms; /* of the one before it */
    struct amp_span first;                   /* the first one's id */
    struct amp_message_try *tries;           /* all so far */
    uint32_t n_tries;
};
int amp_message_record_next(struct amp_store *s, const struct amp_view *v,
                            const struct amp_message_former *former, int64_t now_ms,
                            struct amp_error *err);

#endif
