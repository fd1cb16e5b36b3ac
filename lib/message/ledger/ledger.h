/*
 * The message ledger: every message that passed a durable tool, and how far its delivery came
 * (SENT → RECEIVED → READ → FULFILLED, SW4RM §11; an AMP ack is READ). Key "message.<id>". The
 * ledger is AMP's "readable in SSOT".
 */
#ifndef AMP_MESSAGE_LEDGER_LEDGER_H
#define AMP_MESSAGE_LEDGER_LEDGER_H

#include <amp/protocol/protocol.h>

#include "message/ledger/delivery.h"
#include "metrics/metrics.h"
#include "store/store.h"

/* Records the message as SENT with its ack deadline (due_ms, when it needs an ack; how long that
 * is, message/ledger/stages.h says). Idempotent:
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

/* Applies an acknowledgement stage. A late one is recorded and changes nothing (*late true). An
 * unknown id: NO unknown_ref. Closes the outbox entries of the id. */
int amp_message_ack(struct amp_store *s, struct amp_span id, enum amp_ack_stage stage,
                    const char *by, struct amp_span code, int64_t now_ms, bool *late,
                    struct amp_error *err);

/* The same with all that an acknowledgement may say. Of a message that is an attempt at an
 * operation, only who took it up may tell the end: NO message/ledger/holder.h's codes from anybody
 * else.
 */
struct amp_message_answer {
    enum amp_ack_stage stage;
    const char *by;
    struct amp_span id;           /* of the acknowledgement itself; empty: it has none */
    struct amp_span code, result; /* result: a JSON value, kept when it ends the work */
    /* Of a refusal or failure: what the sweep makes of it, another attempt or a dead letter. */
    enum amp_failure { AMP_FAILURE_NONE, AMP_FAILURE_PASSING, AMP_FAILURE_TERMINAL } failure;
    bool holds;     /* who says RECEIVED takes the work up with it */
    bool worded;    /* by a message, not by who handed the work over */
    bool takes_up;  /* a word that only the agent which has the work may say */
    bool ours;      /* told by who carries it: where nobody took it up, nobody is asked */
    bool waits;     /* RECEIVED into an inbox: the work has not begun */
    int64_t eta_ms; /* of RECEIVED: an outcome is expected only then; 0: not said */
    /* A line that leaves because of it, into the outbox of `actor` by the same commit; NULL: none.
     * Where nothing is committed (it was said before) none leaves. */
    const struct amp_store_emit *emit;
    const char *actor;
};
int amp_message_answered(struct amp_store *s, struct amp_span id,
                         const struct amp_message_answer *a, int64_t now_ms, bool *late,
                         struct amp_error *err);

/* Whether this answer would be taken, without changing anything: NO, a code of
 * message/ledger/holder.h, where somebody else holds the work; NO unknown_ref. Where the ledger
 * does not know the message yet, its view v (or NULL) describes it. */
int amp_message_may_answer(struct amp_store *s, struct amp_span id, const struct amp_view *v,
                           const struct amp_message_answer *a, struct amp_error *err);

/* Puts a message that was refused, failed or timed out on its way again, with a new deadline. */
int amp_message_requeue(struct amp_store *s, struct amp_span id, int64_t now_ms,
                        struct amp_error *err);

/* What the ledger knows of a message. The spans point into the caller's `mem` (an initialised
 * buffer, emptied first) and live as long as it does. */
struct amp_message_rec {
    bool found;
    uint8_t state;                                  /* of amp_delivery_fsm */
    struct amp_span line;                           /* the message's bytes */
    struct amp_span protocol, type, from, to, task; /* to: the first recipient */
    struct amp_span acks; /* the acknowledgements so far: the elements of a JSON array */
    struct amp_span correlation;
    struct amp_span claim;  /* the operation it is an attempt at; empty: none is kept */
    struct amp_span holder; /* who took the work up */
    struct amp_span
        result; /* what the acknowledgement of the end gave: a JSON value; empty: none */
    int64_t sent_ms, due_ms, timed_out_ms; /* 0: not, or no deadline */
    int64_t ack_timeout_ms;
    int64_t expires_ms; /* 0: never */
    int64_t sla_ms;     /* from admission to an outcome; 0: it does not matter */
    bool wants_outcome; /* somebody waits for one */
    bool for_many;      /* several recipients, or all: `to` is not the only one */
    bool told;          /* of its timeout a person was told */
    /* Signs of life (AOP §6.1): without one for beat_ms it counts as lost although its time runs
     * until until_ms; beat_warns: that is only told. */
    int64_t beat_ms, until_ms;
    bool beat_warns, silent; /* silent: it timed out for that */
    /* Attempts (message/operation/retry.h): this is the how manieth of the same operation, `tries`
     * tells the former ones as a dead letter's history does, `next` is the one after it, which has
     * left at departed_ms from the outbox `node`. */
    int64_t attempt, departed_ms, sequence;
    struct amp_span origin, tries, next, node;
    struct amp_span failure;  /* "passing", "terminal": what became of it is to be decided */
    struct amp_span given_up; /* why there is no further attempt */
};
int amp_message_find(struct amp_store *s, struct amp_span id, struct amp_buf *mem,
                     struct amp_message_rec *out, struct amp_error *err);
/* The same for a row of kind "message" as amp_store_each gives it. */
int amp_message_parse(const struct amp_store_rec *row, struct amp_buf *mem,
                      struct amp_message_rec *out, struct amp_error *err);

/* Deadlines. A message whose acknowledgement is overdue goes to TIMED_OUT, and the escalation
 * "ack_timeout" stands in the outbox of `actor` by the same commit; an agent at work that
 * was silent for silence_ms gets "heartbeat_timeout" the same way, once for each last sign of life.
 * So an escalation is made once however many sweep, also across crashes; who emits the outbox does
 * it under one lock. *raised counts the escalations made now. With rules for retries an overdue,
 * refused or failed message is sent again by the same outbox, or becomes a dead letter. */
struct amp_retry_rules;
struct amp_sweep_options {
    const char *actor; /* the outbox they go to: the tool's consumer name */
    const char *from;  /* the escalation's sender: a role, "system" */
    enum amp_level severity;
    int64_t silence_ms;                  /* 0: agents are not looked at */
    const struct amp_retry_rules *retry; /* NULL: nothing is sent again */
    int64_t
        window_ms; /* how long an operation's outcome counts (message/operation/idempotency.h) */
    struct amp_buf
        *answers; /* what is told is appended here as lines, not to the outbox; or NULL */
    struct amp_metrics *metrics;
};
int amp_message_sweep(struct amp_store *s, int64_t now_ms, const struct amp_sweep_options *opt,
                      uint32_t *raised, struct amp_error *err);
/* The same for one message: one that expired before it was passed on. */
int amp_message_sweep_one(struct amp_store *s, struct amp_span id, int64_t now_ms,
                          const struct amp_sweep_options *opt, struct amp_error *err);
/* The earliest moment at which a sweep has something to do, 0 for none. */
int amp_message_next_due(struct amp_store *s, int64_t silence_ms, int64_t *due_ms,
                         struct amp_error *err);

#endif
