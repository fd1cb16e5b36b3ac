/*
 * One step of a message's delivery: the machine's decision from the record and the terms of its
 * protocol, and the effects on the record. The ledger and the sweep commit the step and carry out
 * the other effects: implied stages, notices, dead letters and the outbox.
 */
#ifndef AMP_MESSAGE_DELIVERY_LEDGER_DELIVERY_H
#define AMP_MESSAGE_DELIVERY_LEDGER_DELIVERY_H

#include "message/delivery/record/record.h"

enum amp_failure { AMP_FAILURE_NONE, AMP_FAILURE_PASSING, AMP_FAILURE_TERMINAL };

struct amp_delivery_step {
    uint8_t event;
    int64_t now_ms;
    int64_t at_ms;            /* RETRY: when to send the next attempt */
    int64_t eta_ms;           /* the holder's estimate of the end; 0: unknown */
    enum amp_failure failure; /* of a refusal or failure: whether another attempt may help */
    bool waits;               /* admitted to an inbox: its work has not begun */
    bool holder;              /* reported by the holder of the work */
    bool notified;            /* the sender or the admin was notified, or will be */
    /* The machine's decision. */
    struct amp_fsm_result r;
    uint8_t from;
};

/* Decides the step; changes nothing. NO illegal_transition. */
int amp_delivery_decide(const struct amp_message_rec *r, struct amp_delivery_step *st,
                        struct amp_error *err);
/* Carries out its effects on the record. */
void amp_delivery_carry(struct amp_message_rec *r, const struct amp_delivery_step *st);
/* Both. */
int amp_delivery_step(struct amp_message_rec *r, struct amp_delivery_step *st,
                      struct amp_error *err);

/* Whether the step has an estimate of the holder that changes the deadline. */
bool amp_delivery_puts_off(const struct amp_message_rec *r, const struct amp_delivery_step *st);

#endif
