/* The sweep: carries out what is due for messages. */
#ifndef AMP_MESSAGE_DELIVERY_SETTLE_SWEEP_H
#define AMP_MESSAGE_DELIVERY_SETTLE_SWEEP_H

#include "message/delivery/ledger/ledger.h"
#include "message/metrics/metrics.h"

struct amp_retry_rules;
struct amp_sweep_options {
    const char *actor;       /* the outbox for the lines of the sweep: the tool's consumer name */
    const char *from;        /* the sender of what it reports: a role, "system"; NULL: actor */
    enum amp_level severity; /* of the escalations */
    int64_t silence_ms;      /* limit between signs of life of holders; 0: none */
    const struct amp_retry_rules *retry; /* NULL: no further attempts */
    int64_t window_ms;                   /* how long the outcome of an operation is valid */
    struct amp_buf *answers;             /* gets the lines instead of the outbox; may be NULL */
    struct amp_metrics *metrics;
    uint32_t most; /* lines of one sweep, then it stops; 0: no limit */
    /* Whether people suspend the task or the agent (either may be empty); NULL: never. The time
     * limits of such a message begin anew until the suspension ends, and once more then; its time
     * to live goes on. */
    bool (*suspended)(void *ctx, struct amp_span task, struct amp_span agent);
    void *ctx;
};

/* Handles deadlines. If an acknowledgement is overdue, one commit sets the message to TIMED_OUT and
 * puts the escalation "ack_timeout" into the outbox of `actor`; "heartbeat_timeout" in the same way
 * if a holder was silent for silence_ms, once for each last sign of life. So each escalation is
 * made once, also with several sweeps at once and after crashes. *raised (may be NULL) is the
 * number of lines made. With retry rules an overdue, refused or failed message gets another attempt
 * in the same outbox, or becomes a dead letter. */
int amp_message_sweep(struct amp_store *s, int64_t now_ms, const struct amp_sweep_options *opt,
                      uint32_t *raised, struct amp_error *err);
/* Handles the deadlines of one message. */
int amp_message_sweep_one(struct amp_store *s, struct amp_span id, int64_t now_ms,
                          const struct amp_sweep_options *opt, struct amp_error *err);
/* Tells whether an outbox entry is a further attempt that nobody needs any more, because it or
 * another attempt arrived: a process that put it there was killed before it could emit it, or
 * before it could close it. */
int amp_attempt_is_void(struct amp_store *s, struct amp_span id, bool *is_void,
                        struct amp_error *err);
/* The time of the next deadline; 0: none. */
int amp_message_next_due(struct amp_store *s, int64_t silence_ms, int64_t *due_ms,
                         struct amp_error *err);

#endif
