/* The ledger's record of one message. */
#ifndef AMP_MESSAGE_DELIVERY_RECORD_RECORD_H
#define AMP_MESSAGE_DELIVERY_RECORD_RECORD_H

#include "message/delivery/record/delivery.h"
#include "message/protocol/amp/compose.h"
#include "message/store/store.h"
#include "json/record.h"

#define AMP_MESSAGE_KIND "message" /* of the ledger's records in the store */

/* One acknowledgement of a message. */
struct amp_ack_note {
    const char *stage;
    const char *by;
    struct amp_span id, code; /* empty: none */
    int64_t at_ms;
    bool late;
    bool implied; /* by the acknowledgement of a later stage */
};

/* A former attempt at an operation, also in the history of a dead letter. */
struct amp_message_try {
    struct amp_span msg_id; /* of that attempt, empty: the message's */
    int64_t at_ms;
    const char *code, *route, *why;
};
extern const struct amp_rec amp_message_try_rec;

/* The record of a message. The spans point into the caller's `mem` (an initialised buffer, which is
 * emptied first) and live as long as it does. */
struct amp_message_rec {
    bool found;
    uint8_t state;                                  /* of amp_delivery_fsm */
    struct amp_span line;                           /* the message's bytes */
    struct amp_span protocol, type, from, to, task; /* to: the first recipient */
    struct amp_ack_note *acks;                      /* with room for one more */
    uint32_t n_acks;
    struct amp_span correlation;
    struct amp_span claim;                 /* the key of its operation; empty: none */
    struct amp_span holder;                /* the agent that holds the work */
    struct amp_span result;                /* of the outcome: a JSON value; empty: none */
    int64_t sent_ms, due_ms, timed_out_ms; /* 0: none */
    int64_t ack_timeout_ms;
    int64_t expires_ms; /* 0: never */
    int64_t sla_ms;     /* limit from admission to the outcome; 0: none */
    bool wants_outcome; /* the sender waits for an outcome */
    bool for_many;      /* several recipients or all, not only `to` */
    bool notified;      /* a person was notified of its timeout */
    bool held;          /* people suspended its receiver when its deadline last passed */
    /* Signs of life (AOP §6.1): without one for beat_ms the message times out before its deadline
     * until_ms; beat_warns: this is only reported. */
    int64_t beat_ms, until_ms;
    bool beat_warns, silent; /* silent: it timed out for this reason */
    /* AMP's work after READ: the last sign of life of its holder (ledger/holder.h), 0: not watched;
     * lost: a person was notified since; supervised: never watched here. */
    int64_t seen_ms;
    bool lost, supervised;
    int64_t progress_ms; /* the newest time in a report of progress (AOP §6.2); 0: none */
    /* Attempts (message/operation/retry.h): the number of this one; `tries` has the former ones,
     * with room for one more; `next` is the id of the next one, which was put into the outbox
     * `node` at departed_ms. */
    int64_t attempt, departed_ms, sequence;
    struct amp_span origin, next, node;
    struct amp_message_try *tries;
    uint32_t n_tries;
    struct amp_span failure;  /* "passing", "terminal": of a refusal or failure */
    struct amp_span given_up; /* the reason why no further attempt follows */
    int64_t requeues;         /* how often a person sent it again after its end */
};
int amp_message_find(struct amp_store *s, struct amp_span id, struct amp_buf *mem,
                     struct amp_message_rec *out, struct amp_error *err);
/* Reads a row of kind "message" from amp_store_each. */
int amp_message_parse(const struct amp_store_rec *row, struct amp_buf *mem,
                      struct amp_message_rec *out, struct amp_error *err);

/* Appends the record as one JSON object, with `note` (may be NULL) after its acks. */
int amp_record_write(const struct amp_message_rec *r, const struct amp_ack_note *note,
                     struct amp_buf *out, struct amp_error *err);
/* Reads a record; state and found are 0. */
int amp_record_read(struct amp_span json, struct amp_buf *mem, struct amp_message_rec *out,
                    struct amp_error *err);
/* The acknowledgements as a JSON array. */
void amp_record_acks(const struct amp_message_rec *r, struct amp_jw *w);
/* Whether the acks have (stage, by); *late: whether the last of these was late. */
bool amp_record_has_ack(const struct amp_message_rec *r, const char *stage, const char *by,
                        bool *late);
/* Whether the acks have the note; then note->late is set. Late acknowledgements with different ids
 * are different. */
bool amp_record_knows_ack(const struct amp_message_rec *r, struct amp_ack_note *note);

/* Whether the stage was acknowledged, in time or late; whether the message arrived. */
bool amp_record_has_stage(const struct amp_message_rec *r, const char *stage);
bool amp_record_arrived(const struct amp_message_rec *r);

#define AMP_SILENCE_MS (30 * 60 * 1000) /* AMP: the limit between signs of life */
/* lost_at: the time at which the holder counts as lost. due: the time at which the sweep handles
 * the record, because of its holder or its deadline. 0: never. */
int64_t amp_record_lost_at(const struct amp_message_rec *r, int64_t silence_ms);
int64_t amp_record_due(const struct amp_message_rec *r, int64_t silence_ms);

#define AMP_RECORD_MAX AMP_REC_MAX

/* The ledger records a message without an id under an id that its protocol makes. Sets the id, in
 * mem, if the view has none. False: there is no such id. */
bool amp_message_name(struct amp_view *v, char mem[AMP_MSG_ID_MAX]);

#endif
