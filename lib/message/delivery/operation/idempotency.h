/*
 * An operation of a producer is done once (SW4RM §11.2). It is identified by producer and
 * idempotency token, or by producer and sequence number without a token; states RUNNING, DONE. The
 * record has the attempts that passed and the last decision. The results of the attempts are in the
 * ledger, so an outcome is one commit.
 */
#ifndef AMP_MESSAGE_DELIVERY_OPERATION_IDEMPOTENCY_H
#define AMP_MESSAGE_DELIVERY_OPERATION_IDEMPOTENCY_H

#include <amp/protocol/protocol.h>

#include "message/store/store.h"

#define AMP_IDEM_WINDOW_MS ((int64_t)3600 * 1000)

/* X(id, the word in the log) */
#define AMP_IDEM_VERDICTS(X)                                                                       \
    X(NEW, "claim")                   /* unknown, or its outcome is older than the window */       \
    X(SAME, "redelivered")            /* an attempt that passed before and has not ended */        \
    X(RETRY, "retry")                 /* no agent took the earlier attempts */                     \
    X(RUNNING, "already_in_progress") /* another attempt is in progress: does not pass */          \
    X(DONE, "duplicate_detected")     /* the operation has an outcome: does not pass */

enum amp_idem_verdict {
#define X(id, word) AMP_IDEM_##id,
    AMP_IDEM_VERDICTS(X)
#undef X
        AMP_IDEM_COUNT
};
const char *amp_idem_word(enum amp_idem_verdict v);

/* The decision, and the attempt that counts. */
struct amp_idem_answer {
    enum amp_idem_verdict verdict;
    struct amp_buf original; /* the first attempt's id */
    struct amp_buf result;   /* its cached result, a JSON value; empty: none */
    struct amp_buf code;     /* of a failure */
    const char *status;      /* the delivery state of the attempt */
    int64_t at_ms;           /* DONE: when the outcome came */
};
void amp_idem_answer_init(struct amp_idem_answer *a);
void amp_idem_answer_release(struct amp_idem_answer *a);

/* Decides whether a message may pass, and commits the decision. The caller then records a message
 * that passes in the ledger. NO attempt_not_incremented: the number of the attempt does not
 * increase (Runtime Protocol). */
struct amp_idem_options {
    int64_t now_ms, window_ms;
    const char *actor;
};
int amp_idem_claim(struct amp_store *s, const struct amp_view *v,
                   const struct amp_idem_options *opt, struct amp_idem_answer *out,
                   struct amp_error *err);

/* The ids of the first attempt and the newest ones, in order; in mem. */
#define AMP_IDEM_ATTEMPTS 32
int amp_idem_attempts(struct amp_store *s, struct amp_span operation, struct amp_buf *mem,
                      struct amp_span ids[AMP_IDEM_ATTEMPTS], uint32_t *n, struct amp_error *err);

/* Removes operations whose outcome is older than the window; *gone is their number. */
int amp_idem_forget(struct amp_store *s, const struct amp_idem_options *opt, uint32_t *gone,
                    struct amp_error *err);

#endif
