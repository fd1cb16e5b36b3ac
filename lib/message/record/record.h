/* The ledger's record of one message as JSON: written and read here only. */
#ifndef AMP_MESSAGE_RECORD_RECORD_H
#define AMP_MESSAGE_RECORD_RECORD_H

#include "message/record/delivery.h"
#include "store/store.h"
#include "json/record.h"

#define AMP_MESSAGE_KIND "message" /* of the ledger's records in the store */

/* One acknowledgement of a message. */
struct amp_ack_note {
    const char *stage;
    const char *by;
    struct amp_span id, code; /* empty: none */
    int64_t at_ms;
    bool late;
    bool implied; /* by a later stage: nobody said it */
};

/* A former attempt at an operation, also in the history of a dead letter. */
struct amp_message_try {
    struct amp_span msg_id; /* of that attempt, empty: the message's */
    int64_t at_ms;
    const char *code, *route, *why;
};
extern const struct amp_rec amp_message_try_rec;

/* What the ledger knows of a message. The spans point into the caller's `mem` (an initialised
 * buffer, emptied first) and live as long as it does. */
struct amp_message_rec {
    bool found;
    uint8_t state;                                  /* of amp_delivery_fsm */
    struct amp_span line;                           /* the message's bytes */
    struct amp_span protocol, type, from, to, task; /* to: the first recipient */
    struct amp_ack_note *acks;                      /* so far; as read, with room for one more */
    uint32_t n_acks;
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
    bool notified;      /* a person was notified of its timeout */
    /* Signs of life (AOP §6.1): without one for beat_ms it counts as lost although its time runs
     * until until_ms; beat_warns: that is only reported. */
    int64_t beat_ms, until_ms;
    bool beat_warns, silent; /* silent: it timed out for that */
    /* AMP's work that was read: the last sign of life of who holds it (ledger/work.h), 0 where
     * nobody is watched; lost: a person was notified since. supervised: never watched here. */
    int64_t seen_ms;
    bool lost, supervised;
    /* Attempts (message/operation/retry.h): the number of this attempt at the same operation,
     * `tries` has the former ones (as read, with room for one more), `next` is the one after it,
     * which has left at departed_ms from the outbox `node`. */
    int64_t attempt, departed_ms, sequence;
    struct amp_span origin, next, node;
    struct amp_message_try *tries;
    uint32_t n_tries;
    struct amp_span failure;  /* "passing", "terminal": what became of it is to be decided */
    struct amp_span given_up; /* why there is no further attempt */
};
int amp_message_find(struct amp_store *s, struct amp_span id, struct amp_buf *mem,
                     struct amp_message_rec *out, struct amp_error *err);
/* The same for a row of kind "message" as amp_store_each gives it. */
int amp_message_parse(const struct amp_store_rec *row, struct amp_buf *mem,
                      struct amp_message_rec *out, struct amp_error *err);

/* Appends the record as one JSON object, with `note` behind its acks when that is not NULL. */
int amp_record_write(const struct amp_message_rec *r, const struct amp_ack_note *note,
                     struct amp_buf *out, struct amp_error *err);
/* Reads one; everything is copied into mem. state and found are 0. */
int amp_record_read(struct amp_span json, struct amp_buf *mem, struct amp_message_rec *out,
                    struct amp_error *err);
/* The acknowledgements as a JSON array. */
void amp_record_acks(const struct amp_message_rec *r, struct amp_jw *w);
/* Whether (stage, by) is among the acks; *late is how the last of them was recorded. */
bool amp_record_has_ack(const struct amp_message_rec *r, const char *stage, const char *by,
                        bool *late);
/* Whether the note is: one of another id is news once an acknowledgement comes late. note->late is
 * set then. */
bool amp_record_knows_ack(const struct amp_message_rec *r, struct amp_ack_note *note);

/* Whether anybody said, in time or late, that the message came to that stage; that it arrived. */
bool amp_record_has_stage(const struct amp_message_rec *r, const char *stage);
bool amp_record_arrived(const struct amp_message_rec *r);

#define AMP_SILENCE_MS (30 * 60 * 1000) /* AMP: an agent gives a sign of life that often */
/* When whoever holds the work counts as silent, where that long without a sign of life is too long;
 * 0: never. When somebody has to look at the record, for that or its deadline; 0: never. */
int64_t amp_record_lost_at(const struct amp_message_rec *r, int64_t silence_ms);
int64_t amp_record_due(const struct amp_message_rec *r, int64_t silence_ms);

#define AMP_RECORD_MAX AMP_REC_MAX

#endif
