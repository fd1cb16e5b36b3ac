/*
 * The shape of a deadline: a row for each kind of them. The subjects have the functions of their
 * rows; the table of all rows is people/deadlines.h, and its sweep calls them.
 */
#ifndef AMP_MESSAGE_DELIVERY_DEADLINE_H
#define AMP_MESSAGE_DELIVERY_DEADLINE_H

#include "message/delivery/dead/dead.h"
#include "message/delivery/ledger/ledger.h"
#include "message/metrics/metrics.h"

struct amp_prepare;

struct amp_identities;

struct amp_deadline_ctx {
    const char *actor;                   /* its outbox gets the lines */
    const char *from;                    /* the sender of escalations: a role, "system" */
    enum amp_level severity;             /* of escalations */
    int64_t silence_ms;                  /* how long a working agent may be silent; 0: no limit */
    int64_t window_ms;                   /* how long the outcome of an operation is kept */
    uint32_t most;                       /* lines about messages in one run; 0: no limit */
    struct amp_metrics *metrics;         /* NULL: nothing is counted */
    const struct amp_retry_rules *retry; /* NULL: no retries */
    struct amp_dead_limits dead;         /* retention of dead letters; zeros: all are kept */
    /* Opens the identities that sign a fallback's decision; NULL: it is not signed. */
    int (*identities)(struct amp_identities **out, struct amp_error *err);
    /* Reports what became of a question; may be NULL. */
    void (*note)(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
    const struct amp_prepare *prepare; /* worktrees of repeated binds; NULL: as they are */
};

struct amp_deadline {
    const char *name; /* one word */
    const char *doc;
    const char *kind; /* of the records with the deadline; NULL: next_due returns it */
    /* The earliest time at which run has work, 0 for none; completed work does not count. */
    int (*next_due)(struct amp_store *s, const struct amp_deadline_ctx *c, int64_t *ms,
                    struct amp_error *err);
    /* Does all work that is due at now_ms and counts it in *done, which is 0 at the call. Called
     * outside a batch, under the lock of the actor's outbox; the caller syncs and emits the outbox.
     * With neither this nor sweep the records of the kind are removed when they are due. */
    int (*run)(struct amp_store *s, int64_t now_ms, const struct amp_deadline_ctx *c,
               uint32_t *done, struct amp_error *err);
    int (*sweep)(struct amp_store *s, int64_t now_ms, const char *actor, uint32_t *done,
                 struct amp_error *err);
    bool upkeep; /* no message waits for it: a run until everything is settled may end before it */
};

#endif
