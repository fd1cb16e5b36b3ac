/*
 * An operation of a producer is done once (SW4RM §11.2): by its idempotency token, or by producer
 * and sequence number where it bears none. Its key names producer and token, so that a token counts
 * only for its own producer; states RUNNING, DONE. The record holds the attempts that were let
 * through and the last decision; what became of an attempt is what the ledger says of it, so that
 * an outcome is one commit.
 */
#ifndef AMP_MESSAGE_OPERATION_IDEMPOTENCY_H
#define AMP_MESSAGE_OPERATION_IDEMPOTENCY_H

#include <amp/protocol/protocol.h>

#include "store/store.h"

#define AMP_IDEM_WINDOW_MS ((int64_t)3600 * 1000)

/* X(id, the word in the log) */
#define AMP_IDEM_VERDICTS(X)                                                                       \
    X(NEW, "claim")                   /* never seen, or its outcome is older than the window */    \
    X(SAME, "redelivered")            /* an attempt that was let through before, not ended */      \
    X(RETRY, "retry")                 /* nobody took up the attempts before this one */            \
    X(RUNNING, "already_in_progress") /* at work: this attempt does not pass */                    \
    X(DONE, "duplicate_detected")     /* has an outcome: this attempt does not pass */

enum amp_idem_verdict {
#define X(id, word) AMP_IDEM_##id,
    AMP_IDEM_VERDICTS(X)
#undef X
        AMP_IDEM_COUNT
};
const char *amp_idem_word(enum amp_idem_verdict v);

/* What is known of the operation. */
struct amp_idem_answer {
    enum amp_idem_verdict verdict;
    struct amp_buf original; /* the first attempt's id */
    struct amp_buf result;   /* its cached result, a JSON value; empty: none */
    struct amp_buf code;     /* of an outcome that was no success */
    const char *status;      /* the delivery state of the attempt that counts */
    int64_t at_ms;           /* DONE: when the outcome came */
};
void amp_idem_answer_init(struct amp_idem_answer *a);
void amp_idem_answer_release(struct amp_idem_answer *a);

/* Decides whether a message may pass, and commits the decision with a link to the first attempt.
 * Who passes a message records it in the ledger after this. NO attempt_not_incremented: another
 * event of the Runtime Protocol for an operation that was sent before. */
struct amp_idem_options {
    int64_t now_ms, window_ms;
    const char *actor;
};
int amp_idem_claim(struct amp_store *s, const struct amp_view *v,
                   const struct amp_idem_options *opt, struct amp_idem_answer *out,
                   struct amp_error *err);

/* The ids of the attempts at an operation, the first and the newest, in their order; in mem. */
#define AMP_IDEM_ATTEMPTS 32
int amp_idem_attempts(struct amp_store *s, struct amp_span operation, struct amp_buf *mem,
                      struct amp_span ids[AMP_IDEM_ATTEMPTS], uint32_t *n, struct amp_error *err);

/* Forgets the operations whose outcome is older than the window; *gone counts them. */
int amp_idem_forget(struct amp_store *s, const struct amp_idem_options *opt, uint32_t *gone,
                    struct amp_error *err);

#endif
