/*
 * What must happen at a time: one row for each kind of deadline. Sweeping and watching go through
 * all rows. A row looks into the store only: what several processes do at once, or one does again
 * after a crash, is decided by the compare-and-set of the record that bears the deadline.
 */
#ifndef AMP_FLOW_DEADLINES_H
#define AMP_FLOW_DEADLINES_H

#include "message/dead/dead.h"
#include "message/ledger/ledger.h"
#include "metrics/metrics.h"

/* What the rows work with. */
struct amp_deadline_ctx {
    const char *actor;           /* into whose outbox the lines go */
    const char *from;            /* the sender of escalations: a role, "system" */
    enum amp_level severity;     /* of escalations */
    int64_t silence_ms;          /* how long an agent at work may be silent; 0: not looked at */
    int64_t window_ms;           /* how long the outcome of an operation is kept */
    struct amp_metrics *metrics; /* NULL: nothing is counted */
    const struct amp_retry_rules *retry; /* NULL: nothing is sent again */
    struct amp_dead_limits dead;         /* retention of dead letters; zeros: all stay */
};

struct amp_deadline {
    const char *name; /* one word */
    const char *doc;  /* what happens then */
    /* The earliest moment at which run has something to do, 0 for none. What was done already does
     * not count: a moment in the past means that there is work now. */
    int (*next_due)(struct amp_store *s, const struct amp_deadline_ctx *c, int64_t *ms,
                    struct amp_error *err);
    /* Does all that is due at now_ms; *done is what it did, 0 beforehand. Called outside a batch,
     * under the lock of the actor's outbox; the caller syncs and emits the outbox. */
    int (*run)(struct amp_store *s, int64_t now_ms, const struct amp_deadline_ctx *c,
               uint32_t *done, struct amp_error *err);
    /* Nobody waits for it: who works until nothing is open does not stay for it. */
    bool upkeep;
};
/* The rows, up to the one without a name. */
extern const struct amp_deadline amp_deadlines[];
unsigned amp_deadlines_count(void);

/* Runs every row that has something to do, also what one row's doing makes due; adds what each did
 * to done[row], which may be NULL. */
int amp_deadlines_run(struct amp_store *s, int64_t now_ms, const struct amp_deadline_ctx *c,
                      uint32_t *done, struct amp_error *err);

#endif
