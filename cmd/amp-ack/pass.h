/*
 * The pass-through of track, send and show: reads the available input, calls the verb for each
 * message, syncs its records, then writes. It never blocks on its output.
 */
#ifndef AMP_ACK_PASS_H
#define AMP_ACK_PASS_H

#include <amp/base/pipe.h>

#include "message/delivery/intake.h"
#include "message/delivery/outbox.h"
#include "people/deadlines.h"
#include "verbs.h"

/* The options of inputs and outputs. */
struct pass_options {
    const char *in_path, *out_path; /* "-": standard input and output */
    int64_t open_timeout_ms;        /* of an output FIFO without a reader */
    bool hold;
};
extern struct pass_options pass_options;
#define PASS_IN_OPT(doc) AMP_OPT_ROW('i', "in", AMP_OPT_PATH, &pass_options.in_path, "PATH", doc)
#define PASS_OUT_OPT                                                                               \
    AMP_OPT_ROW('o', "out", AMP_OPT_PATH, &pass_options.out_path, "PATH", "write to PATH")
#define PASS_HOLD_OPT                                                                              \
    AMP_OPT_ROW(0, "hold", AMP_OPT_FLAG, &pass_options.hold, NULL,                                 \
                "keep an input FIFO open: no end of file")
#define PASS_OPEN_OPT AMP_OPT_OPEN_TIMEOUT(pass_options.open_timeout_ms)

struct pass {
    struct amp_store *store; /* NULL: none */
    bool answers;            /* invalid lines whose protocol falls back are answered */
    const char *name;        /* for --metrics and, without --as, in the state; may be NULL */
    /* Called for each message; adds output with pass_emit. -1 stops. */
    int (*take)(struct pass *p, const struct amp_view *v, struct amp_error *err);
    /* Called before each turn, outside the store's lock; may be NULL. With a store, the lines of a
     * turn are taken under its lock and written after its sync. */
    int (*begin)(struct pass *p, struct amp_error *err);

    struct amp_identities *ids; /* see pass_say; opened by the first message that needs it */
    char speaker[64];           /* the principal of ids */

    struct amp_metrics *metrics; /* NULL: nothing is counted */
    struct amp_input in;
    struct amp_intake intake;
    struct amp_outq out;
    struct amp_buf turn, diagnostics; /* of the turn */
};

/* The name of the program in the state: --as, or the pass's own. */
const char *pass_actor(const struct pass *p);
/* Adds a line (without LF) to the output of the turn. */
int pass_emit(struct pass *p, struct amp_span line, struct amp_error *err);
/* Signs an own line with the state's key of a role (message/delivery/sender/identity.h), and adds
 * it. */
int pass_say(struct pass *p, const char *role, struct amp_span line, struct amp_error *err);
/* Whether the acknowledgement counts as said by the addressee of its message. 0: no, *why has the
 * code; -1: failure. */
int pass_hears(struct pass *p, const struct amp_view *ack, struct amp_error *why,
               struct amp_error *err);
/* Refuses a message that passed the checks of the intake: in the error log and on stderr; status 1.
 */
int pass_reject(struct pass *p, const struct amp_view *v, const struct amp_error *why,
                struct amp_error *err);
/* A warning, printed when the turn ends: during the turn the state's lock is held, and a terminal
 * may be slow. */
void pass_warn(struct pass *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Runs to the end of input; returns a status, of failures that it printed. */
int pass_run(struct pass *p, struct amp_error *err);

/* Opens the output of --out. */
int ack_open_output(struct amp_outq *q, struct amp_error *err);
/* Writes the open entries of the outbox of `name`, whose lock the caller holds, and closes them.
 * Entries from the speaker are signed with its key, which is made on first use. The caller commits
 * between taking the lock and this call, so that no other process emits them, too. */
int ack_outbox_emit(struct amp_store *s, const char *name, const char *speaker, struct amp_outq *q,
                    struct amp_error *err);

/* sweep.c: the deadlines of a state directory, with the options of sweep and watch. Both verbs use
 * one outbox, so that each writes the lines that the other left when it was killed. */
#define SWEEP_NAME "amp-ack.sweep"
struct amp_deadline_ctx sweep_deadlines(struct amp_metrics *metrics);

#endif
