/*
 * The log as a history. A frame gives rows: one for the transition, one for each line that it
 * emits, one for each line that is known to be written. A conversation has all messages with its
 * correlation id, or with its task if the protocol has no such id, and the later transitions of
 * these messages.
 */
#ifndef AMP_MESSAGE_DELIVERY_HISTORY_HISTORY_H
#define AMP_MESSAGE_DELIVERY_HISTORY_HISTORY_H

#include <amp/protocol/protocol.h>

enum amp_history_what {
    AMP_HISTORY_STEP, /* a record changed */
    AMP_HISTORY_EMIT, /* a line was put into an outbox */
    AMP_HISTORY_LEFT, /* it was written, or its acknowledgement arrived */
};
const char *amp_history_word(enum amp_history_what w);

/* Spans are valid during the callback; empty if unknown. Texts come from messages and are
 * untrusted.
 */
struct amp_history_row {
    uint64_t n; /* of the frame */
    enum amp_history_what what;
    struct amp_span at, kind, id; /* id: of the message, or of another record by its kind */
    struct amp_span agent;        /* of a delivery: the recipient */
    struct amp_span event, from, to, actor;
    struct amp_span correlation, session, task, protocol, type, sender, recipient;
    struct amp_span stage, by, code, why; /* an acknowledgement, a refusal, a letter */
    struct amp_span original, decision;   /* of an operation: the first attempt, the decision */
    int64_t attempt;                      /* 0: unknown */
    int64_t tokens, cost_micros;          /* of work that was paid for, in millionths of a USD */
    struct amp_span message;              /* JSON, in the first row of a message; see the filter */
    bool late;
    bool implied;                   /* not acknowledged itself, but a later stage was */
    int64_t acked_ms, timed_out_ms; /* of a late acknowledgement; 0: unknown */
};

struct amp_history_filter {
    struct amp_span correlation, agent, id; /* empty: any */
    struct amp_span session;                /* messages of this session, and their transitions */
    int64_t since_ms;
    bool messages; /* set row.message */
    /* Appends the text of a blob that a frame names; NULL: rows of such frames have no details. */
    int (*blob)(void *ctx, struct amp_span name, struct amp_buf *out, struct amp_error *err);
    void *blob_ctx;
    /* Called when the conversation gets another message, by its id, or (n > 0) a line in an outbox
     * by frame n: later frames with them may have rows. NULL: not needed. */
    int (*learn)(void *ctx, struct amp_span id, uint64_t n, struct amp_error *err);
    void *learn_ctx;
};

struct amp_history;
struct amp_history *amp_history_new(const struct amp_history_filter *f, struct amp_error *err);
void amp_history_free(struct amp_history *h);

/* Call it with frames in the order of the log. fn returns 0 to continue, 1 to stop, or -1 with an
 * error; the function returns the same. */
typedef int (*amp_history_fn)(void *ctx, const struct amp_history_row *row, struct amp_error *err);
int amp_history_frame(struct amp_history *h, uint64_t n, struct amp_span frame, amp_history_fn fn,
                      void *ctx, struct amp_error *err);

/* One row as a JSON object with LF (SW4RM §19: time, correlation, actor, event, details). */
int amp_history_json(const struct amp_history_row *r, struct amp_buf *out, struct amp_error *err);
/* Writes a row as SW4RM's LogEvent (logging.proto, §19) in protobuf's JSON form, with the names of
 * the .proto: ts, correlation_id, agent_id, event_type ("kind.event"), level, and the row as
 * details_json. */
int amp_history_log_event(const struct amp_history_row *r, struct amp_buf *out,
                          struct amp_error *err);

#endif
