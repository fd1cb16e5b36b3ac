/* Options that several verbs have: how long is waited, and what is sent again. */
#ifndef AMP_ACK_RULES_H
#define AMP_ACK_RULES_H

#include "cli/rows.h"
#include "message/operation/retry.h"

extern struct amp_list ack_retries, ack_backoff, ack_idempotent;

#define ACK_RETRY_OPTS                                                                             \
    {0,                                                                                            \
     "retries",                                                                                    \
     AMP_OPT_LIST,                                                                                 \
     &ack_retries,                                                                                 \
     "[PROTOCOL=]N",                                                                               \
     .doc = "how often a message is sent again before it is a dead letter",                        \
     .config = "retry.budget"},                                                                    \
        {0,                                                                                        \
         "backoff",                                                                                \
         AMP_OPT_LIST,                                                                             \
         &ack_backoff,                                                                             \
         "[PROTOCOL=]WAITS",                                                                       \
         .doc = "how long before each retry: MIN..MAX, or a list of times",                        \
         .config = "retry.backoff"},                                                               \
    {                                                                                              \
        0, "idempotent-tool", AMP_OPT_LIST, &ack_idempotent, "NAME",                               \
            .doc = "a tool that may be called twice", .config = "retry.idempotent_tools"           \
    }

extern struct amp_list ack_timeouts;
extern const char *ack_sla;

/* Of who records messages: track and send. They go before the settings ack.timeout and ack.sla. */
#define ACK_TERMS_OPTS                                                                             \
    {0,                                                                                            \
     "ack-timeout",                                                                                \
     AMP_OPT_LIST,                                                                                 \
     &ack_timeouts,                                                                                \
     "PROTOCOL=TIME",                                                                              \
     .doc = "how long messages of a protocol wait for their acknowledgement"},                     \
    {                                                                                              \
        0, "sla", AMP_OPT_STRING, &ack_sla, "TIME",                                                \
            .doc = "how long an accepted event may be without an outcome; 0: no matter"            \
    }
int ack_terms(struct amp_error *err);

/* What the options say, beside the protocols' own waits. */
int ack_retry_rules(struct amp_retry_rules *out, struct amp_error *err);

#endif
