/*
 * The log as what happened: each frame becomes rows, one for the transition, one for each line that
 * it emits, one for each line that is known to have left. A conversation is all that has its
 * correlation id, or its task where the protocol has no such id, and what happened to these
 * messages afterwards.
 */
#ifndef AMP_MESSAGE_HISTORY_HISTORY_H
#define AMP_MESSAGE_HISTORY_HISTORY_H

#include <amp/protocol/protocol.h>

enum amp_history_what {
    AMP_HISTORY_STEP, /* a record changed */
    AMP_HISTORY_EMIT, /* a line stands in an outbox */
    AMP_HISTORY_LEFT, /* and has left, or its acknowledgement came */
};
const char *amp_history_word(enum amp_history_what w);

/* Spans live during the callback; empty where nothing is known. Texts are as untrusted as the
 * messages that they come from. */
struct amp_history_row {
    uint64_t n; /* of the frame */
    enum amp_history_what what;
    struct amp_span at, kind, id; /* id: of the message, or of whatever the kind names */
    struct amp_span agent;        /* of a delivery to one recipient: who */
    struct amp_span event, from, to, actor;
    struct amp_span correlation, task, protocol, type, sender, recipient;
    struct amp_span stage, by, code, why; /* an acknowledgement, a refusal, a letter */
    struct amp_span original, decision;   /* of an operation: its first attempt, what was decided */
    int64_t attempt;                      /* 0: not said */
    bool late;
    bool implied;                   /* nobody acknowledged that stage, but a later one */
    int64_t acked_ms, timed_out_ms; /* of a late acknowledgement; 0: not said */
};

struct amp_history_filter {
    struct amp_span correlation, agent, id; /* empty: any */
    int64_t since_ms;
    /* Appends the text of a blob that a frame names; NULL: such frames are told without details. */
    int (*blob)(void *ctx, struct amp_span name, struct amp_buf *out, struct amp_error *err);
    void *blob_ctx;
};

struct amp_history;
struct amp_history *amp_history_new(const struct amp_history_filter *f, struct amp_error *err);
void amp_history_free(struct amp_history *h);

/* Frames in the order of the log. fn returns 0 to go on, else amp_history_frame returns 1. */
typedef int (*amp_history_fn)(void *ctx, const struct amp_history_row *row);
int amp_history_frame(struct amp_history *h, uint64_t n, struct amp_span frame, amp_history_fn fn,
                      void *ctx, struct amp_error *err);

/* One row as a JSON object with LF (SW4RM §19: time, correlation, actor, event, details). */
int amp_history_json(const struct amp_history_row *r, struct amp_buf *out, struct amp_error *err);

#endif
