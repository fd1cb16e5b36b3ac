/*
 * Whether and when another attempt is made (SW4RM §11, §18.3, §21.1). Pure: the time and the random
 * number are arguments. The sweep carries it out.
 */
#ifndef AMP_MESSAGE_DELIVERY_OPERATION_RETRY_H
#define AMP_MESSAGE_DELIVERY_OPERATION_RETRY_H

#include <amp/protocol/protocol.h>

#include "message/delivery/ledger/ledger.h"
#include "message/protocol/delivery.h"

/* Each protocol's waits, with a budget of 0 (Runtime Protocol: 4). */
struct amp_retry_rules {
    struct amp_retry_policy of[AMP_PROTO_COUNT];
    const char *const *idempotent; /* tools that may be called twice; NULL-terminated, or NULL */
};
void amp_retry_defaults(struct amp_retry_rules *out);

/* "[PROTOCOL=]N" sets budgets, "[PROTOCOL=]MIN..MAX" or "[PROTOCOL=]TIME,TIME…" waits: of one
 * protocol or of all. USAGE bad_retries, bad_backoff. */
int amp_retry_set_budget(struct amp_retry_rules *r, const char *text, struct amp_error *err);
int amp_retry_set_backoff(struct amp_retry_rules *r, const char *text, struct amp_error *err);

/* Whether another attempt may help after a refusal or failure with this code. NONE: none is needed,
 * because the operation is done or in progress. */
enum amp_failure amp_retry_class(struct amp_span code);

/* X(id, the word in a dead letter, the reason) */
#define AMP_RETRY_VERDICTS(X)                                                                      \
    X(AGAIN, "", "another attempt at at_ms")                                                       \
    X(EXHAUSTED, "retries_exhausted", "the budget is used up")                                     \
    X(TERMINAL, "terminal_error", "the error is one that comes again")                             \
    X(UNSAFE, "not_idempotent", "a tool call that must not happen twice")                          \
    X(EXPIRED, "ttl_expired", "its time to live passes before the next attempt")

enum amp_retry_verdict {
#define X(id, word, doc) AMP_RETRY_##id,
    AMP_RETRY_VERDICTS(X)
#undef X
        AMP_RETRY_COUNT
};
const char *amp_retry_word(enum amp_retry_verdict v);
const char *amp_retry_why(enum amp_retry_verdict v);

struct amp_retry_facts {
    uint32_t retries; /* made so far */
    bool terminal;    /* the failure's class */
    bool tool_call, idempotent;
    int64_t now_ms, expires_ms; /* expires_ms 0: never */
    uint64_t dice;              /* evenly random */
};
enum amp_retry_verdict amp_retry_decide(const struct amp_retry_policy *p,
                                        const struct amp_retry_facts *f, int64_t *at_ms);

#endif
