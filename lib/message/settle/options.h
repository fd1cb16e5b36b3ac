/* Options of a sweep. */
#ifndef AMP_MESSAGE_SETTLE_OPTIONS_H
#define AMP_MESSAGE_SETTLE_OPTIONS_H

#include "message/ledger/ledger.h"
#include "metrics/metrics.h"

struct amp_retry_rules;
struct amp_sweep_options {
    const char *actor; /* the outbox they go to: the tool's consumer name */
    const char *from;  /* the escalation's sender: a role, "system" */
    enum amp_level severity;
    int64_t silence_ms;                  /* of holders of work that was read; 0: not looked at */
    const struct amp_retry_rules *retry; /* NULL: nothing is sent again */
    int64_t window_ms;                   /* how long an operation's outcome counts */
    struct amp_buf *answers; /* receives the answers as lines, instead of the outbox; or NULL */
    struct amp_metrics *metrics;
};

#endif
