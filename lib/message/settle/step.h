/*
 * The steps of which a sweep is made, and what they share. step.c commits, notify.c notifies sender
 * or person, attempt.c decides on further attempts, overdue.c says which step is due and makes dead
 * letters.
 */
#ifndef AMP_MESSAGE_SETTLE_STEP_H
#define AMP_MESSAGE_SETTLE_STEP_H

#include "message/ledger/delivery.h"
#include "message/settle/options.h"
#include "protocol/amp/compose.h"

struct amp_sweep {
    struct amp_store *store;
    const struct amp_sweep_options *opt;
    int64_t now_ms;
    uint32_t raised;
    struct amp_error *err;
    /* The line that is being committed, and the record that goes with it. */
    struct amp_buf line, mem, out;
    char id[AMP_MSG_ID_MAX];
    struct amp_store_emit emit;
    char named[AMP_MSG_ID_MAX]; /* the id of the message that was looked at, where it bears none */
    struct amp_reader *reader;  /* of messages that are looked at again; made when needed */
};

/* The message that is looked at: its record as it stood, and what a commit makes of it. */
struct amp_overdue {
    struct amp_sweep *sw;
    struct amp_span id;
    uint64_t rev;
    struct amp_message_rec r;
    struct amp_delivery_step st;
    /* What the step's notice says, where it gives one, and the stage that the message reaches. */
    struct {
        enum amp_ack_stage stage;
        const char *code, *what;
        enum amp_level level;
    } end;
    bool emits, raced, silent;
    enum amp_notified { AMP_NOTIFIED_NOBODY, AMP_NOTIFIED_SENDER, AMP_NOTIFIED_PERSON } notified;
};

/* ---- step.c ---- */

/* Steps o->r by o->st, carries out the effects and commits. 1 when the record had changed in the
 * meantime: look again. */
int amp_step_commit(struct amp_overdue *o);
/* Nothing is left to do about it. */
int amp_step_settle(struct amp_overdue *o);
/* The message as its protocol reads it: 1; 0: it is none that the protocol allows any more. The
 * view lives until the next one. */
int amp_step_read(struct amp_overdue *o, struct amp_span line, struct amp_view *v);
/* Whether the record says that its message arrived; whether this attempt or one before it did. */
bool amp_step_has_arrived(const struct amp_message_rec *r);
int amp_step_arrived(struct amp_overdue *o, bool *arrived);
/* The code of the last acknowledgement that has one; its number among the attempts (1, 2, …). */
void amp_step_code(const struct amp_message_rec *r, char out[128]);
int64_t amp_step_attempts(const struct amp_message_rec *r);
/* The type of the escalation about its timeout.*/
const char *amp_step_escalation(const struct amp_overdue *o);

/* ---- notify.c ---- */

/* Whether the task of AMP waits for an admin's decision: 0 also where it is not known. */
int amp_notify_suspended(struct amp_sweep *sw, struct amp_span task);
/* Notifies the sender of the end: a nack, a dead_letter or an escalation in its protocol. */
int amp_notify_end(struct amp_overdue *o, enum amp_ack_stage stage, const char *code,
                   enum amp_level level, const char *what);

/* ---- attempt.c, overdue.c: 1 when another step may follow at once ---- */

/* Another attempt at a message that timed out or failed, or none; the attempt that is due leaves.
 */
int amp_attempt_decide(struct amp_overdue *o);
int amp_attempt_depart(struct amp_overdue *o);

/* Everything that is due of one message. */
int amp_overdue_look(struct amp_sweep *sw, struct amp_span id);

#endif
