/* What sweep and watch share: the deadlines' options, and going after them. */
#ifndef AMP_ACK_DUE_H
#define AMP_ACK_DUE_H

#include <amp/base/pipe.h>

#include "flow/deadlines.h"
#include "rules.h"
#include "verbs.h"

/* One outbox for both, so that each writes what the other left when it was killed. */
#define DUE_NAME "amp-ack.sweep"

struct due {
    const char *out_path, *severity, *from;
    int64_t open_timeout_ms, silence_ms, window_ms;
    struct amp_retry_rules rules;
    struct amp_dead_limits dead;
};
extern struct due ack_due;
extern const char *const due_severities[];

#define DUE_OPTS                                                                                   \
    {0,                                                                                            \
     "severity",                                                                                   \
     AMP_OPT_CHOICE,                                                                               \
     &ack_due.severity,                                                                            \
     "LEVEL",                                                                                      \
     .doc = "of the escalations",                                                                  \
     .choices = due_severities,                                                                    \
     .config = "ack.severity"},                                                                    \
        {0,                                                                                        \
         "silence",                                                                                \
         AMP_OPT_DURATION,                                                                         \
         &ack_due.silence_ms,                                                                      \
         "TIME",                                                                                   \
         .doc = "how long an agent at work may be silent; 0: not looked at",                       \
         .config = "ack.silence"},                                                                 \
        {0,                                                                                        \
         "window",                                                                                 \
         AMP_OPT_DURATION,                                                                         \
         &ack_due.window_ms,                                                                       \
         "TIME",                                                                                   \
         .doc = "how long the outcome of an operation is kept",                                    \
         .config = "ack.window"},                                                                  \
        ACK_RETRY_OPTS,                                                                            \
        {0,                                                                                        \
         "dead-max-age",                                                                           \
         AMP_OPT_DURATION,                                                                         \
         &ack_due.dead.max_age_ms,                                                                 \
         "TIME",                                                                                   \
         .doc = "dead letters go so long after their last failure; 0: never",                      \
         .config = "dead.max_age"},                                                                \
        {0,                                                                                        \
         "dead-max-count",                                                                         \
         AMP_OPT_INT,                                                                              \
         &ack_due.dead.max_count,                                                                  \
         "N",                                                                                      \
         .doc = "of dead letters the N newest stay; 0: all",                                       \
         .config = "dead.max_count"},                                                              \
        {0, "from", AMP_OPT_STRING, &ack_due.from, "ROLE", .doc = "the escalations' sender"},      \
        {'o', "out", AMP_OPT_PATH, &ack_due.out_path, "PATH", .doc = "write to PATH"},             \
        AMP_OPT_OPEN_TIMEOUT(ack_due.open_timeout_ms)

void due_ctx(struct amp_metrics *metrics, struct amp_deadline_ctx *out);
/* Sleeps and acts until a signal comes, or, with until_idle, until nobody waits for anything. */
int watch_loop(struct amp_store *s, struct amp_outq *q, bool until_idle, struct amp_error *err);

#endif
