/*
 * Shared by the files of the sweep. overdue.c selects the step that is due and makes dead letters,
 * attempt.c decides on further attempts, notify.c notifies senders and persons, step.c commits.
 */
#ifndef AMP_MESSAGE_DELIVERY_SETTLE_STEP_H
#define AMP_MESSAGE_DELIVERY_SETTLE_STEP_H

#include "message/delivery/ledger/delivery.h"
#include "message/delivery/settle/sweep.h"
#include "message/protocol/amp/compose.h"

struct amp_sweep {
    struct amp_store *store;
    const struct amp_sweep_options *opt;
    int64_t now_ms;
    uint32_t raised;
    struct amp_error *err;
    /* The line of the commit, and the record. */
    struct amp_buf line, mem, out;
    char id[AMP_MSG_ID_MAX];
    struct amp_store_emit emit;
    char named[AMP_MSG_ID_MAX]; /* the ledger's id of a message without one */
    struct amp_reader *reader;  /* made when it is needed */
};

/* The message that is handled: its record, and the step. */
struct amp_overdue {
    struct amp_sweep *sw;
    struct amp_span id;
    uint64_t rev;
    struct amp_message_rec r;
    struct amp_delivery_step st;
    struct { /* of the step's notice, if it has one */
        enum amp_ack_stage stage;
        const char *code, *what;
        enum amp_level level;
    } end;
    bool emits, raced, silent;
    enum amp_notified { AMP_NOTIFIED_NOBODY, AMP_NOTIFIED_SENDER, AMP_NOTIFIED_PERSON } notified;
};

/* ---- step.c ---- */

/* Takes the step o->st of o->r, carries out the effects and commits. 1: the record has changed
 * since, so it must be loaded again. */
int amp_step_commit(struct amp_overdue *o);
/* The step for a record with nothing left to do; 1. */
int amp_step_settle(struct amp_overdue *o);
/* Reads a message: 1; 0: its protocol does not allow it any more. The view lives until the next
 * call. */
int amp_step_read(struct amp_overdue *o, struct amp_span line, struct amp_view *v);
/* Whether the message of the record arrived; whether this attempt or an earlier one did. */
bool amp_step_has_arrived(const struct amp_message_rec *r);
int amp_step_arrived(struct amp_overdue *o, bool *arrived);
/* The code of the last failure; the number of the attempt (1, 2, …). */
void amp_step_code(const struct amp_message_rec *r, char out[128]);
int64_t amp_step_attempts(const struct amp_message_rec *r);
/* The type of the escalation about a timeout. */
const char *amp_step_escalation(const struct amp_overdue *o);

/* ---- notify.c ---- */

/* Whether the AMP task waits for an admin's decision; 0 also if it is unknown. */
int amp_notify_suspended(struct amp_sweep *sw, struct amp_span task);
/* Composes the notice o->end of the step: to the sender by a nack or a dead_letter in its
 * protocol, else to a person by an escalation. */
int amp_notify_end(struct amp_overdue *o);

/* ---- attempt.c: 1: another step may follow at once ---- */

/* Decides on another attempt at a message that timed out or failed; sends the one that is due. */
int amp_attempt_decide(struct amp_overdue *o);
int amp_attempt_depart(struct amp_overdue *o);

#endif
