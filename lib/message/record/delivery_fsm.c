/*
 * The delivery lifecycle of one message: SW4RM §11, its late acknowledgements §11.1 and its figure
 * in appendix C. What the other protocols call an acknowledgement is mapped on its stages; an AMP
 * ack is READ. Rows marked extra are edges that practice needs: AMP has a single acknowledgement,
 * so a message may be read or settled straight from SENT; a refusal may come before admission
 * (no_route, buffer_full …); a person may send a dead message again.
 */
#include "message/record/delivery.h"

static const struct amp_fsm_name states[] = {AMP_DELIVERY_STATES(AMP_FSM_NAMES)};
static const struct amp_fsm_name events[] = {AMP_DELIVERY_EVENTS(AMP_FSM_NAMES)};
static const struct amp_fsm_name facts[] = {AMP_DELIVERY_FACTS(AMP_FSM_NAMES)};
static const struct amp_fsm_name effects[] = {AMP_DELIVERY_EFFECTS(AMP_FSM_NAMES)};

#define S(x)         AMP_DELIVERY_##x
#define E(x)         AMP_DELIVERY_EV_##x
#define EFF(x)       AMP_DELIVERY_DO_##x
#define RETRY_IS_OUT AMP_DELIVERY_IF_RETRY_DELIVERED
#define SETTLED      (EFF(CLOSE_OUTBOX) | EFF(CLEAR_DEADLINE))
#define EXPIRED      (SETTLED | EFF(BURY))
#define GIVEN_UP     (EFF(BURY) | EFF(CLEAR_DEADLINE))

/* clang-format off */
#define ROW(f, e, t, eff, c)   {S(f), E(e), S(t), false, 0, 0, (eff), (c)}
#define EXTRA(f, e, t, eff, c) {S(f), E(e), S(t), true, 0, 0, (eff), (c)}
/* §11.1: what comes late is recorded and changes nothing. */
#define LATE(s)                                                                                    \
    ROW(s, ACK_RECEIVED, s, EFF(LOG_LATE), NULL),                                                  \
    ROW(s, ACK_READ, s, EFF(LOG_LATE), NULL),                                                      \
    ROW(s, ACK_FULFILLED, s, EFF(LOG_LATE), NULL),                                                 \
    ROW(s, NACK_REJECTED, s, EFF(LOG_LATE), NULL),                                                 \
    ROW(s, NACK_FAILED, s, EFF(LOG_LATE), NULL)

static const struct amp_fsm_row rows[] = {
    ROW(SENT, ACK_RECEIVED, RECEIVED, EFF(ADMITTED), NULL),
    ROW(SENT, TIMEOUT, TIMED_OUT, EFF(ESCALATE) | EFF(CLEAR_DEADLINE), "ack_timeout"),
    EXTRA(SENT, ACK_READ, READ, SETTLED, NULL),
    EXTRA(SENT, ACK_FULFILLED, FULFILLED, SETTLED, NULL),
    EXTRA(SENT, NACK_REJECTED, REJECTED, SETTLED, NULL),
    EXTRA(SENT, NACK_FAILED, FAILED, SETTLED, NULL),
    EXTRA(SENT, SILENT, SENT, EFF(ESCALATE), NULL),
    EXTRA(SENT, EXPIRE, FAILED, EXPIRED, "ttl_expired"),

    ROW(RECEIVED, ACK_READ, READ, SETTLED, NULL),
    ROW(RECEIVED, NACK_REJECTED, REJECTED, SETTLED, NULL),
    ROW(RECEIVED, NACK_FAILED, FAILED, SETTLED, NULL),
    EXTRA(RECEIVED, ACK_RECEIVED, RECEIVED, 0, NULL),
    EXTRA(RECEIVED, ACK_FULFILLED, FULFILLED, SETTLED, NULL),
    EXTRA(RECEIVED, EXPIRE, FAILED, EXPIRED, "ttl_expired"),
    EXTRA(RECEIVED, TIMEOUT, TIMED_OUT, EFF(ESCALATE) | EFF(CLEAR_DEADLINE), "ack_timeout"),

    ROW(READ, ACK_FULFILLED, FULFILLED, SETTLED, NULL),
    ROW(READ, NACK_FAILED, FAILED, SETTLED, NULL),
    EXTRA(READ, ACK_RECEIVED, READ, 0, NULL),
    EXTRA(READ, ACK_READ, READ, 0, NULL),
    EXTRA(READ, NACK_REJECTED, REJECTED, SETTLED, NULL),
    EXTRA(READ, ALIVE, READ, EFF(SET_DEADLINE), NULL),
    EXTRA(READ, SILENT, READ, EFF(ESCALATE), NULL),
    EXTRA(READ, TIMEOUT, TIMED_OUT, EFF(ESCALATE) | EFF(CLEAR_DEADLINE), "ack_timeout"),

    LATE(FULFILLED),
    EXTRA(FULFILLED, SETTLE, FULFILLED, EFF(CLEAR_DEADLINE), NULL),

    LATE(REJECTED),
    EXTRA(REJECTED, REQUEUE, SENT, EFF(SET_DEADLINE), NULL),
    EXTRA(REJECTED, RETRY, RETRYING, 0, NULL),
    EXTRA(REJECTED, GIVE_UP, REJECTED, GIVEN_UP, NULL),
    EXTRA(REJECTED, SETTLE, REJECTED, EFF(CLEAR_DEADLINE), NULL),
    LATE(FAILED),
    EXTRA(FAILED, REQUEUE, SENT, EFF(SET_DEADLINE), NULL),
    EXTRA(FAILED, RETRY, RETRYING, 0, NULL),
    EXTRA(FAILED, GIVE_UP, FAILED, GIVEN_UP, NULL),
    EXTRA(FAILED, SETTLE, FAILED, EFF(CLEAR_DEADLINE), NULL),

    LATE(TIMED_OUT),
    EXTRA(TIMED_OUT, ALIVE, TIMED_OUT, EFF(SET_DEADLINE), NULL),
    EXTRA(TIMED_OUT, SILENT, TIMED_OUT, EFF(ESCALATE), NULL),
    ROW(TIMED_OUT, RETRY, RETRYING, 0, NULL),
    EXTRA(TIMED_OUT, REQUEUE, SENT, EFF(SET_DEADLINE), NULL),
    EXTRA(TIMED_OUT, GIVE_UP, TIMED_OUT, GIVEN_UP | EFF(ESCALATE), NULL),
    EXTRA(TIMED_OUT, SETTLE, TIMED_OUT, EFF(CLEAR_DEADLINE), NULL),

    /* RESEND is where the new attempt's own life begins; the former one stays here. */
    ROW(RETRYING, RESEND, SENT, EFF(SET_DEADLINE), NULL),
    EXTRA(RETRYING, ALIVE, RETRYING, EFF(SET_DEADLINE), NULL),
    EXTRA(RETRYING, SILENT, RETRYING, EFF(ESCALATE), NULL),
    EXTRA(RETRYING, DEPART, RETRYING, 0, NULL),
    EXTRA(RETRYING, SETTLE, RETRYING, EFF(CLEAR_DEADLINE), NULL),
    EXTRA(RETRYING, GIVE_UP, RETRYING, GIVEN_UP, NULL),
    EXTRA(RETRYING, EXPIRE, FAILED, EXPIRED, "ttl_expired"),
    EXTRA(RETRYING, REQUEUE, SENT, EFF(SET_DEADLINE), NULL),
    {S(RETRYING), E(ACK_RECEIVED), S(RETRYING), false, RETRY_IS_OUT, 0,
     EFF(LOG_LATE) | EFF(TRACK_BOTH), NULL},
    {S(RETRYING), E(ACK_READ), S(RETRYING), false, RETRY_IS_OUT, 0,
     EFF(LOG_LATE) | EFF(TRACK_BOTH), NULL},
    {S(RETRYING), E(ACK_FULFILLED), S(RETRYING), false, RETRY_IS_OUT, 0,
     EFF(LOG_LATE) | EFF(TRACK_BOTH), NULL},
    ROW(RETRYING, ACK_RECEIVED, RECEIVED, EFF(LOG_LATE) | EFF(CANCEL_RETRY) | EFF(ADMITTED), NULL),
    ROW(RETRYING, ACK_READ, READ, EFF(LOG_LATE) | EFF(CANCEL_RETRY) | SETTLED, NULL),
    ROW(RETRYING, ACK_FULFILLED, FULFILLED, EFF(LOG_LATE) | EFF(CANCEL_RETRY) | SETTLED, NULL),
    ROW(RETRYING, NACK_REJECTED, RETRYING, EFF(LOG_LATE), NULL),
    ROW(RETRYING, NACK_FAILED, RETRYING, EFF(LOG_LATE), NULL),
};
/* clang-format on */

const struct amp_fsm amp_delivery_fsm = {
    .name = "delivery",
    .source = "SW4RM §11, §11.1, appendix C",
    .doc = "How far the delivery of one message came",
    .states = states,
    .events = events,
    .facts = facts,
    .effects = effects,
    .n_states = AMP_DELIVERY_STATE_COUNT,
    .n_events = AMP_DELIVERY_EV_COUNT,
    .n_facts = AMP_DELIVERY_IF_COUNT,
    .n_effects = AMP_DELIVERY_DO_COUNT,
    .initial = AMP_DELIVERY_SENT,
    .terminal =
        1u << AMP_DELIVERY_FULFILLED | 1u << AMP_DELIVERY_REJECTED | 1u << AMP_DELIVERY_FAILED,
    .rows = rows,
    .n_rows = sizeof(rows) / sizeof(rows[0]),
};
