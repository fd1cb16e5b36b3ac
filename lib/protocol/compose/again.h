/*
 * Another attempt at the same operation: the message byte for byte, but for what a protocol makes
 * new with each attempt: its id, the count of attempts, and for the Runtime Protocol the outbox in
 * which it stands, where the first event's id becomes trace.idempotencyKey.
 */
#ifndef AMP_PROTOCOL_AGAIN_H
#define AMP_PROTOCOL_AGAIN_H

#include "protocol/compose/compose.h"

/* Whether messages of the protocol can be sent again by themselves. */
bool amp_again_can(enum amp_protocol p);

/* An id for the next attempt, in the protocol's form. */
int amp_again_id(const struct amp_view *of, int64_t now_ms, char out[AMP_MSG_ID_MAX],
                 struct amp_error *err);

/* What a message says of its own retries: SW4RM §18.2's execution_policy, AOP's. */
#define AMP_AGAIN_WAITS_MAX 16
struct amp_again_terms {
    int64_t most;                          /* retries; -1: not said */
    int64_t waits_ms[AMP_AGAIN_WAITS_MAX]; /* before each of them */
    uint32_t n_waits;                      /* 0: not said */
};
void amp_again_terms(const struct amp_view *of, struct amp_again_terms *out);

struct amp_again {
    const char *id;
    const char *node;      /* the Runtime Protocol's outbox, */
    int64_t sequence;      /* and the event's number in it */
    struct amp_span first; /* the first attempt's id */
};
/* Appends the line, without LF. */
int amp_again_line(const struct amp_view *of, const struct amp_again *a, struct amp_buf *out,
                   struct amp_error *err);

#endif
