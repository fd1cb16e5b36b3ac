/* What the parts of the sweep share: sweep.c (silent agents, escalations), overdue.c (messages),
 * attempt.c (retries), bury.c (dead letters). */
#ifndef AMP_MESSAGE_SETTLE_SWEEP_H
#define AMP_MESSAGE_SETTLE_SWEEP_H

#include "message/record/record.h"
#include "metrics/metrics.h"
#include "protocol/compose.h"

struct amp_sweep {
    struct amp_store *store;
    const struct amp_sweep_options *opt;
    int64_t now_ms;
    uint32_t raised;
    struct amp_error *err;
    int rc;
    /* The line that is being committed, and the record that goes with it. */
    struct amp_buf line, mem, out;
    char id[AMP_MSG_ID_MAX];
    struct amp_store_emit emit;
    int64_t last_seen;
    bool committed;
    char named[AMP_MSG_ID_MAX]; /* the id of the message that was looked at, where it bears none */
    struct amp_reader *reader;  /* of messages that are looked at again; made when needed */
};

/* The message that is looked at: its record as it stood, and what a commit makes of it. */
struct amp_overdue {
    struct amp_sweep *sw;
    struct amp_span id;
    uint64_t rev;
    struct amp_message_rec r;
    enum amp_delivery_event event;
    bool emits, raced, silent;
    enum amp_told { AMP_TOLD_NOBODY, AMP_TOLD_SENDER, AMP_TOLD_PERSON } told;
};

/* Composes an escalation into sw->line and sw->emit. protocol, task: whose work it is about; what
 * is not AMP's stands in the description. */
int amp_sweep_escalate(struct amp_sweep *sw, const char *type, enum amp_level level,
                       struct amp_span protocol, struct amp_span task, const char *what,
                       const char *const *affected, const char *const *suggested);
/* Takes sw->line, composed with LF, as the answer to a message. */
void amp_sweep_answer(struct amp_sweep *sw, struct amp_span id);

/* Counts an escalation of that type. */
void amp_sweep_count(const struct amp_sweep *sw, struct amp_span type);

/* Everything that is due of one message. */
int amp_overdue_look(struct amp_sweep *sw, struct amp_span id);
/* Commits o->r by o->event; what the machine clears is cleared, o->r.due_ms is the caller's. 1 when
 * the record had changed in the meantime: look again. */
int amp_overdue_move(struct amp_overdue *o);
/* What the sender is told of the end: a nack, a dead_letter or an escalation in its protocol. */
int amp_overdue_tell(struct amp_overdue *o, enum amp_ack_stage stage, const char *code,
                     enum amp_level level, const char *what);

/* Nothing is left to do about it. */
int amp_attempt_settle(struct amp_overdue *o);
/* The message as its protocol reads it: 1; 0: it is none that the protocol allows any more. The
 * view lives until the next one. */
int amp_attempt_view(struct amp_overdue *o, struct amp_span line, struct amp_view *v);
/* Whether this attempt or one before it turned out to have arrived. */
int amp_attempt_arrived(struct amp_overdue *o, bool *arrived);
/* The code of the acknowledgement that has one, the last; the how manieth attempt it is. */
void amp_attempt_code(const struct amp_message_rec *r, char out[128]);
int64_t amp_attempt_count(const struct amp_message_rec *r);

/* The next step of a message that timed out, failed or waits for its next attempt: 1 when another
 * step may follow at once. */
int amp_attempt_decide(struct amp_overdue *o);
int amp_attempt_depart(struct amp_overdue *o);
int amp_attempt_bury(struct amp_overdue *o);
/* It was done although it, or another attempt, had a letter: that is closed. */
int amp_attempt_withdraw(struct amp_overdue *o);

#endif
