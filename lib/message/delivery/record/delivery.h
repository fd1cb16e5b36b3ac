/* The state machine of a delivery. */
#ifndef AMP_MESSAGE_DELIVERY_RECORD_DELIVERY_H
#define AMP_MESSAGE_DELIVERY_RECORD_DELIVERY_H

#include <amp/fsm/fsm.h>

#define AMP_DELIVERY_STATES(X)                                                                     \
    X(AMP_DELIVERY_SENT, "SENT", "recorded, no acknowledgement yet")                               \
    X(AMP_DELIVERY_RECEIVED, "RECEIVED", "admitted to the receiver's buffer")                      \
    X(AMP_DELIVERY_READ, "READ", "the receiver works on it")                                       \
    X(AMP_DELIVERY_FULFILLED, "FULFILLED", "done")                                                 \
    X(AMP_DELIVERY_REJECTED, "REJECTED", "refused")                                                \
    X(AMP_DELIVERY_FAILED, "FAILED", "failed while the receiver worked on it")                     \
    X(AMP_DELIVERY_TIMED_OUT, "TIMED_OUT", "no acknowledgement in time")                           \
    X(AMP_DELIVERY_RETRYING, "RETRYING", "to be sent again")

#define AMP_DELIVERY_EVENTS(X)                                                                     \
    X(AMP_DELIVERY_EV_RECORD, "record", "it is recorded")                                          \
    X(AMP_DELIVERY_EV_ACK_RECEIVED, "ack_received", "the receiver has it")                         \
    X(AMP_DELIVERY_EV_ACK_READ, "ack_read", "the receiver has begun")                              \
    X(AMP_DELIVERY_EV_ACK_FULFILLED, "ack_fulfilled", "the receiver has done the work")            \
    X(AMP_DELIVERY_EV_NACK_REJECTED, "nack_rejected", "refused before any work")                   \
    X(AMP_DELIVERY_EV_NACK_FAILED, "nack_failed", "the work failed")                               \
    X(AMP_DELIVERY_EV_NACK_TIMED_OUT, "nack_timed_out", "another program stopped waiting for it")  \
    X(AMP_DELIVERY_EV_TIMEOUT, "timeout", "its deadline passed")                                   \
    X(AMP_DELIVERY_EV_ALIVE, "alive", "another sign of life of the holder")                        \
    X(AMP_DELIVERY_EV_SILENT, "silent", "no sign of life when one was due")                        \
    X(AMP_DELIVERY_EV_HOLD, "hold", "its deadline passed while people suspended its receiver")     \
    X(AMP_DELIVERY_EV_EXPIRE, "expire", "its time to live passed")                                 \
    X(AMP_DELIVERY_EV_RETRY, "retry", "another attempt follows")                                   \
    X(AMP_DELIVERY_EV_RESEND, "resend", "the attempt is sent")                                     \
    X(AMP_DELIVERY_EV_DEPART, "depart", "the next attempt is in the outbox")                       \
    X(AMP_DELIVERY_EV_GIVE_UP, "give_up", "no further attempt follows")                            \
    X(AMP_DELIVERY_EV_SETTLE, "settle", "nothing is left to do")                                   \
    X(AMP_DELIVERY_EV_REQUEUE, "requeue", "a person requeues it")

#define AMP_DELIVERY_FACTS(X)                                                                      \
    X(AMP_DELIVERY_IF_RETRY_DELIVERED, "retry_delivered",                                          \
      "the new attempt already reached the receiver")                                              \
    X(AMP_DELIVERY_IF_ADMISSION_ENDS, "admission_ends", "the sender waits only for its admission") \
    X(AMP_DELIVERY_IF_RUNS_ON, "runs_on", "its time limit is for its outcome")                     \
    X(AMP_DELIVERY_IF_UNTIL_OUTCOME, "until_outcome", "it is sent again until it has an outcome")  \
    X(AMP_DELIVERY_IF_CLASSED, "classed", "the refusal shows whether another attempt may help")    \
    X(AMP_DELIVERY_IF_NOTIFIED, "notified", "the sender or the admin was notified, or will be")

#define AMP_DELIVERY_EFFECTS(X)                                                                    \
    X(AMP_DELIVERY_DO_CLOSE_OUTBOX, "close_outbox", "close its entry in the outbox")               \
    X(AMP_DELIVERY_DO_SET_DEADLINE, "set_deadline", "wait for an acknowledgement")                 \
    X(AMP_DELIVERY_DO_CLEAR_DEADLINE, "clear_deadline", "clear the deadline")                      \
    X(AMP_DELIVERY_DO_EXPECT, "expect", "wait for its outcome, or the next sign of life")          \
    X(AMP_DELIVERY_DO_HEARD, "heard", "move the deadline of the next sign of life")                \
    X(AMP_DELIVERY_DO_RUN_ON, "run_on", "keep its deadline; report the silence once")              \
    X(AMP_DELIVERY_DO_PUT_OFF, "put_off", "begin its time limit anew")                             \
    X(AMP_DELIVERY_DO_LOG_TIMEOUT, "log_timeout", "record the time of the timeout")                \
    X(AMP_DELIVERY_DO_DECIDE, "decide", "decide now on another attempt")                           \
    X(AMP_DELIVERY_DO_AWAIT_RETRY, "await_retry", "set the time of the next attempt")              \
    X(AMP_DELIVERY_DO_DEPART, "depart", "put the next attempt into the outbox")                    \
    X(AMP_DELIVERY_DO_NOTIFY, "notify", "notify the sender, or a person")                          \
    X(AMP_DELIVERY_DO_BURY, "bury", "make it a dead letter")                                       \
    X(AMP_DELIVERY_DO_IMPLY, "imply", "record the stages that this one implies")                   \
    X(AMP_DELIVERY_DO_LOG_LATE, "log_late", "record the late acknowledgement with both times")     \
    X(AMP_DELIVERY_DO_WITHDRAW, "withdraw", "withdraw the dead letters that are void")             \
    X(AMP_DELIVERY_DO_CANCEL_RETRY, "cancel_retry", "drop the attempt that was not sent")          \
    X(AMP_DELIVERY_DO_TRACK_BOTH, "track_both", "count both attempts as one operation")            \
    X(AMP_DELIVERY_DO_BEGIN_ANEW, "begin_anew", "clear the results of earlier attempts")

AMP_FSM_ENUMS(AMP_DELIVERY);

extern const struct amp_fsm amp_delivery_fsm;

#endif
