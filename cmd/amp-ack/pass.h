/*
 * The pass-through that track, send and show share: reads what is there, hands each message to the
 * verb, lets the verb make it durable, then writes; never blocks on its output.
 */
#ifndef AMP_ACK_PASS_H
#define AMP_ACK_PASS_H

#include <amp/base/pipe.h>

#include "flow/intake.h"
#include "flow/outbox.h"
#include "verbs.h"

struct pass {
    const char *in_path, *out_path; /* "-" for the standard ones */
    int64_t open_timeout_ms;        /* of an output FIFO without a reader */
    bool hold;
    struct amp_store *store; /* NULL: none */
    const char *counts;      /* whose --metrics it writes; NULL: it has none */
    /* Each message; what shall leave is added with pass_emit. -1 stops. */
    int (*take)(struct pass *p, const struct amp_view *v, struct amp_error *err);
    /* Before a turn, outside the store's lock; may be NULL. With a store a turn's lines are taken
     * under its lock and leave after its sync. */
    int (*begin)(struct pass *p, struct amp_error *err);
    void *ctx;

    struct amp_metrics *metrics; /* NULL: nothing is counted */
    struct amp_input in;
    struct amp_intake intake;
    struct amp_outq out;
    struct amp_buf turn, said; /* lines that leave together; diagnostics of the turn */
};

/* Adds a line (without LF) to what leaves at the end of the turn. */
int pass_emit(struct pass *p, struct amp_span line, struct amp_error *err);
/* Refuses a message that the checks let through: to the error log and stderr, status 1. */
int pass_reject(struct pass *p, const struct amp_view *v, const struct amp_error *why,
                struct amp_error *err);
/* A warning, printed when the turn ends: inside of it the state's lock is held, and a terminal
 * could be slow. */
void pass_warn(struct pass *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Runs to the end of input; returns a status. */
int pass_run(struct pass *p);

/* The state directory that --state names: NULL with a complaint when it cannot be opened. Who only
 * looks into it makes none: a mistyped name is an error, not an empty directory. */
enum ack_need {
    ACK_OPTIONAL,
    ACK_MAKE,
    ACK_EXISTING,
    ACK_LOOK /* existing, and only read where it cannot be written to, as on a read-only medium */
};
struct amp_store *ack_open_state(enum ack_need need, int *status);
/* An output like --out: "-" is stdout. */
int ack_open_output(const char *path, int64_t timeout_ms, struct amp_outq *q,
                    struct amp_error *err);
/* Writes and closes what is open in the outbox of `name`, whose lock the caller has. The caller
 * commits between the lock and this, so that no other process emits it a second time. */
int ack_outbox_emit(struct amp_store *s, const char *name, struct amp_outq *q,
                    struct amp_error *err);

#endif
