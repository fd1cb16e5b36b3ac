/*
 * The delivery of one message: SW4RM §11, late acknowledgements §11.1, figure in appendix C. The
 * acknowledgements of the other protocols are mapped to its stages; an AMP ack is READ. Extra rows:
 * AMP has a single acknowledgement, so a message may be READ or FULFILLED directly after SENT; a
 * refusal may come before admission (no_route, buffer_full …); a person may requeue a dead letter.
 */
#include "base/codes.h"
#include "message/delivery/record/delivery.h"

#define S(x)       AMP_DELIVERY_##x
#define E(x)       AMP_DELIVERY_EV_##x
#define EFF(x)     AMP_DELIVERY_DO_##x
#define IF(x)      AMP_DELIVERY_IF_##x
#define SETTLED    (EFF(CLOSE_OUTBOX) | EFF(CLEAR_DEADLINE))
#define GOES_ON    (EFF(CLOSE_OUTBOX) | EFF(EXPECT))
#define EXPIRED    (EFF(CLEAR_DEADLINE) | EFF(NOTIFY) | EFF(BURY))
#define WAITED_OUT (EFF(LOG_TIMEOUT) | EFF(CLEAR_DEADLINE))
#define LATE       (EFF(LOG_LATE) | EFF(CLOSE_OUTBOX))
#define VOIDS      (LATE | EFF(WITHDRAW))
#define CANCELS    (LATE | EFF(CANCEL_RETRY))

/* clang-format off */
#define ROW(f, e, t, fa, eff, c)   {S(f), E(e), S(t), false, (fa), 0, (eff), (c)}
#define EXTRA(f, e, t, fa, eff, c) {S(f), E(e), S(t), true, (fa), 0, (eff), (c)}
/* §11.1: late acknowledgements are recorded and change nothing else. */
#define LATE_ROWS(s, eff)                                                                          \
    ROW(s, ACK_RECEIVED, s, 0, VOIDS | (eff), NULL),                                               \
    ROW(s, ACK_READ, s, 0, VOIDS | (eff), NULL),                                                   \
    ROW(s, ACK_FULFILLED, s, 0, VOIDS | (eff), NULL),                                              \
    ROW(s, NACK_REJECTED, s, 0, LATE, NULL),                                                       \
    ROW(s, NACK_FAILED, s, 0, LATE, NULL)
/* States after a refusal or failure. */
#define ENDED_ROWS(s)                                                                              \
    EXTRA(s, REQUEUE, SENT, 0, EFF(BEGIN_ANEW) | EFF(SET_DEADLINE), NULL),                         \
    EXTRA(s, RETRY, RETRYING, 0, EFF(AWAIT_RETRY), NULL),                                          \
    EXTRA(s, GIVE_UP, s, 0, EFF(BURY), NULL),                                                      \
    EXTRA(s, SETTLE, s, 0, EFF(CLEAR_DEADLINE), NULL)

static const struct amp_fsm_row rows[] = {
    EXTRA(SENT, RECORD, SENT, 0, EFF(SET_DEADLINE), NULL),
    ROW(SENT, ACK_RECEIVED, RECEIVED, IF(ADMISSION_ENDS), GOES_ON, NULL),
    ROW(SENT, ACK_RECEIVED, RECEIVED, 0, EFF(EXPECT), NULL),
    ROW(SENT, TIMEOUT, TIMED_OUT, IF(NOTIFIED), EFF(LOG_TIMEOUT) | EFF(DECIDE), AMP_CODE(ack_timeout)),
    ROW(SENT, TIMEOUT, TIMED_OUT, 0, EFF(LOG_TIMEOUT) | EFF(DECIDE) | EFF(NOTIFY), AMP_CODE(ack_timeout)),
    EXTRA(SENT, ACK_READ, READ, IF(RUNS_ON), GOES_ON | EFF(IMPLY), NULL),
    EXTRA(SENT, ACK_READ, READ, 0, SETTLED | EFF(IMPLY), NULL),
    EXTRA(SENT, ACK_FULFILLED, FULFILLED, 0, SETTLED | EFF(IMPLY), NULL),
    EXTRA(SENT, NACK_REJECTED, REJECTED, IF(CLASSED), SETTLED | EFF(DECIDE), NULL),
    EXTRA(SENT, NACK_REJECTED, REJECTED, 0, SETTLED, NULL),
    EXTRA(SENT, NACK_FAILED, FAILED, IF(CLASSED), SETTLED | EFF(DECIDE), NULL),
    EXTRA(SENT, NACK_FAILED, FAILED, 0, SETTLED, NULL),
    EXTRA(SENT, NACK_TIMED_OUT, TIMED_OUT, 0, WAITED_OUT, AMP_CODE(ack_timeout)),
    EXTRA(SENT, SILENT, SENT, 0, EFF(NOTIFY) | EFF(RUN_ON), NULL),
    EXTRA(SENT, HOLD, SENT, 0, EFF(PUT_OFF), NULL),
    EXTRA(SENT, EXPIRE, FAILED, 0, EXPIRED, AMP_CODE(ttl_expired)),

    ROW(RECEIVED, ACK_READ, READ, IF(RUNS_ON), GOES_ON, NULL),
    ROW(RECEIVED, ACK_READ, READ, 0, SETTLED, NULL),
    ROW(RECEIVED, NACK_REJECTED, REJECTED, IF(CLASSED), SETTLED | EFF(DECIDE), NULL),
    ROW(RECEIVED, NACK_REJECTED, REJECTED, 0, SETTLED, NULL),
    ROW(RECEIVED, NACK_FAILED, FAILED, IF(CLASSED), SETTLED | EFF(DECIDE), NULL),
    ROW(RECEIVED, NACK_FAILED, FAILED, 0, SETTLED, NULL),
    EXTRA(RECEIVED, NACK_TIMED_OUT, TIMED_OUT, 0, WAITED_OUT, AMP_CODE(ack_timeout)),
    EXTRA(RECEIVED, ACK_RECEIVED, RECEIVED, 0, EFF(EXPECT), NULL),
    EXTRA(RECEIVED, ACK_FULFILLED, FULFILLED, 0, SETTLED | EFF(IMPLY), NULL),
    EXTRA(RECEIVED, HOLD, RECEIVED, 0, EFF(PUT_OFF), NULL),
    EXTRA(RECEIVED, EXPIRE, FAILED, 0, EXPIRED, AMP_CODE(ttl_expired)),
    EXTRA(RECEIVED, TIMEOUT, TIMED_OUT, IF(UNTIL_OUTCOME) | IF(NOTIFIED),
          EFF(LOG_TIMEOUT) | EFF(DECIDE), AMP_CODE(ack_timeout)),
    EXTRA(RECEIVED, TIMEOUT, TIMED_OUT, IF(UNTIL_OUTCOME),
          EFF(LOG_TIMEOUT) | EFF(DECIDE) | EFF(NOTIFY), AMP_CODE(ack_timeout)),
    EXTRA(RECEIVED, TIMEOUT, TIMED_OUT, 0, WAITED_OUT | EFF(NOTIFY), AMP_CODE(ack_timeout)),

    ROW(READ, ACK_FULFILLED, FULFILLED, 0, SETTLED, NULL),
    ROW(READ, NACK_FAILED, FAILED, IF(CLASSED), SETTLED | EFF(DECIDE), NULL),
    ROW(READ, NACK_FAILED, FAILED, 0, SETTLED, NULL),
    EXTRA(READ, NACK_TIMED_OUT, TIMED_OUT, 0, WAITED_OUT, AMP_CODE(ack_timeout)),
    EXTRA(READ, ACK_RECEIVED, READ, 0, EFF(EXPECT), NULL),
    EXTRA(READ, ACK_READ, READ, 0, EFF(EXPECT), NULL),
    EXTRA(READ, NACK_REJECTED, REJECTED, IF(CLASSED), SETTLED | EFF(DECIDE), NULL),
    EXTRA(READ, NACK_REJECTED, REJECTED, 0, SETTLED, NULL),
    EXTRA(READ, ALIVE, READ, 0, EFF(HEARD), NULL),
    EXTRA(READ, HOLD, READ, 0, EFF(PUT_OFF), NULL),
    EXTRA(READ, SILENT, READ, 0, EFF(NOTIFY) | EFF(RUN_ON), NULL),
    EXTRA(READ, TIMEOUT, TIMED_OUT, IF(UNTIL_OUTCOME) | IF(NOTIFIED), EFF(LOG_TIMEOUT) | EFF(DECIDE),
          AMP_CODE(ack_timeout)),
    EXTRA(READ, TIMEOUT, TIMED_OUT, IF(UNTIL_OUTCOME), EFF(LOG_TIMEOUT) | EFF(DECIDE) | EFF(NOTIFY),
          AMP_CODE(ack_timeout)),
    EXTRA(READ, TIMEOUT, TIMED_OUT, 0, WAITED_OUT | EFF(NOTIFY), AMP_CODE(ack_timeout)),

    LATE_ROWS(FULFILLED, 0),
    EXTRA(FULFILLED, SETTLE, FULFILLED, 0, EFF(CLEAR_DEADLINE), NULL),
    LATE_ROWS(REJECTED, 0),
    ENDED_ROWS(REJECTED),
    LATE_ROWS(FAILED, 0),
    ENDED_ROWS(FAILED),

    LATE_ROWS(TIMED_OUT, EFF(CLEAR_DEADLINE)),
    EXTRA(TIMED_OUT, ALIVE, TIMED_OUT, 0, EFF(HEARD), NULL),
    EXTRA(TIMED_OUT, SILENT, TIMED_OUT, 0, EFF(NOTIFY) | EFF(RUN_ON), NULL),
    ROW(TIMED_OUT, RETRY, RETRYING, 0, EFF(AWAIT_RETRY), NULL),
    EXTRA(TIMED_OUT, REQUEUE, SENT, 0, EFF(BEGIN_ANEW) | EFF(SET_DEADLINE), NULL),
    EXTRA(TIMED_OUT, GIVE_UP, TIMED_OUT, IF(NOTIFIED), EFF(BURY), NULL),
    EXTRA(TIMED_OUT, GIVE_UP, TIMED_OUT, 0, EFF(BURY) | EFF(NOTIFY), NULL),
    EXTRA(TIMED_OUT, SETTLE, TIMED_OUT, 0, EFF(CLEAR_DEADLINE), NULL),

    /* RESEND begins the record of the new attempt; the record of the former one stays here. */
    ROW(RETRYING, RESEND, SENT, 0, EFF(SET_DEADLINE), NULL),
    EXTRA(RETRYING, ALIVE, RETRYING, 0, EFF(HEARD), NULL),
    EXTRA(RETRYING, SILENT, RETRYING, 0, EFF(NOTIFY) | EFF(RUN_ON), NULL),
    EXTRA(RETRYING, DEPART, RETRYING, 0, EFF(DEPART), NULL),
    EXTRA(RETRYING, SETTLE, RETRYING, 0, EFF(CLEAR_DEADLINE), NULL),
    EXTRA(RETRYING, EXPIRE, FAILED, 0, EXPIRED, AMP_CODE(ttl_expired)),
    EXTRA(RETRYING, REQUEUE, SENT, 0, EFF(BEGIN_ANEW) | EFF(SET_DEADLINE), NULL),
    ROW(RETRYING, ACK_RECEIVED, RETRYING, IF(RETRY_DELIVERED), VOIDS | EFF(TRACK_BOTH), NULL),
    ROW(RETRYING, ACK_READ, RETRYING, IF(RETRY_DELIVERED), VOIDS | EFF(TRACK_BOTH), NULL),
    ROW(RETRYING, ACK_FULFILLED, RETRYING, IF(RETRY_DELIVERED), VOIDS | EFF(TRACK_BOTH), NULL),
    ROW(RETRYING, ACK_RECEIVED, RECEIVED, 0, CANCELS | EFF(EXPECT), NULL),
    ROW(RETRYING, ACK_READ, READ, IF(RUNS_ON), CANCELS | EFF(EXPECT) | EFF(IMPLY), NULL),
    ROW(RETRYING, ACK_READ, READ, 0, CANCELS | SETTLED | EFF(IMPLY), NULL),
    ROW(RETRYING, ACK_FULFILLED, FULFILLED, 0, CANCELS | SETTLED | EFF(IMPLY), NULL),
    ROW(RETRYING, NACK_REJECTED, RETRYING, 0, LATE, NULL),
    ROW(RETRYING, NACK_FAILED, RETRYING, 0, LATE, NULL),
};
/* clang-format on */

const struct amp_fsm amp_delivery_fsm = {
    .name = "delivery",
    .source = "SW4RM §11, §11.1, appendix C",
    .doc = "how far the delivery of one message came",
    AMP_FSM_LISTS(AMP_DELIVERY),
    .initial = AMP_DELIVERY_SENT,
    .terminal =
        1u << AMP_DELIVERY_FULFILLED | 1u << AMP_DELIVERY_REJECTED | 1u << AMP_DELIVERY_FAILED,
    .rows = rows,
    .n_rows = sizeof(rows) / sizeof(rows[0]),
};
