/* Each verb's option table and function, which are in the file or folder of its name, and the
 * options of several verbs. */
#ifndef AMP_ACK_VERBS_H
#define AMP_ACK_VERBS_H

#include "message/delivery/operation/retry.h"
#include "message/metrics/metrics.h"
#include "shared/state.h"

/* Options of the tool's own table. */
extern const char *ack_as, *ack_config;
extern int64_t ack_lock_timeout_ms;

/* Opens the identities of the state for a tool that signs as `principal` (NULL: as nobody); *out is
 * NULL if they are off or there is no state. */
struct amp_identities;
const char *ack_identity_word(void); /* local, all or off */
int ack_identities(const char *principal, struct amp_identities **out, struct amp_error *err);

/* Refuses agents other than `agent`, or all if it is NULL (people/answer/person.h). */
int ack_person_or_self(const char *agent, const char *act, struct amp_error *err);

/* --metrics of the verbs that count. */
extern struct amp_metrics_options ack_metrics;
/* Writes the last values and closes m. Returns rc, or -1 if the values cannot be written. */
int ack_metrics_end(struct amp_metrics *m, int rc, struct amp_error *err);

/* These options set how often and when messages are attempted again. */
extern struct amp_list ack_retries, ack_backoff, ack_idempotent;
#define ACK_RETRY_OPTS                                                                             \
    AMP_OPT_ROW(0, "retries", AMP_OPT_LIST, &ack_retries, "[PROTOCOL=]N",                          \
                "how often a message is sent again", .config = "retry.budget"),                    \
        AMP_OPT_ROW(0, "backoff", AMP_OPT_LIST, &ack_backoff, "[PROTOCOL=]WAITS",                  \
                    "waits before retries: MIN..MAX or a list of times",                           \
                    .config = "retry.backoff"),                                                    \
        AMP_OPT_ROW(0, "idempotent-tool", AMP_OPT_LIST, &ack_idempotent, "NAME",                   \
                    "a tool that may be called twice", .config = "retry.idempotent_tools")
/* The protocols' own rules, changed by these options. */
int ack_retry_rules(struct amp_retry_rules *out, struct amp_error *err);

/* For verbs that record messages, these options set how long messages wait. They override the
 * settings ack.timeout and ack.sla. */
extern struct amp_list ack_timeouts;
extern const char *ack_sla;
#define ACK_TERMS_OPTS                                                                             \
    AMP_OPT_ROW(0, "ack-timeout", AMP_OPT_LIST, &ack_timeouts, "PROTOCOL=TIME",                    \
                "how long messages of a protocol wait for an acknowledgement"),                    \
        AMP_OPT_ROW(0, "sla", AMP_OPT_STRING, &ack_sla, "TIME",                                    \
                    "how long an accepted event may go without an outcome")
/* Sets them for the process. */
int ack_terms(struct amp_error *err);

/* --since of log and audit in milliseconds: an RFC 3339 time, or a duration before now. NULL: 0.
 * USAGE bad_time. */
int ack_since(const char *since, int64_t *ms, struct amp_error *err);

#endif
