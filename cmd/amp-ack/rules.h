/* Options of who sends messages again: sweep and watch. */
#ifndef AMP_ACK_RULES_H
#define AMP_ACK_RULES_H

#include "cli/cli.h"
#include "message/retry.h"

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

/* What the options say, beside the protocols' own waits. */
int ack_retry_rules(struct amp_retry_rules *out, struct amp_error *err);

#endif
