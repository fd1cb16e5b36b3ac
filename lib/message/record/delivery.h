/* The words of the delivery machine. */
#ifndef AMP_MESSAGE_RECORD_DELIVERY_H
#define AMP_MESSAGE_RECORD_DELIVERY_H

#include <amp/fsm/fsm.h>

#define AMP_DELIVERY_STATES(X)                                                                     \
    X(SENT, "SENT", "recorded and on its way")                                                     \
    X(RECEIVED, "RECEIVED", "admitted to the receiver's buffer")                                   \
    X(READ, "READ", "taken up by the receiver")                                                    \
    X(FULFILLED, "FULFILLED", "done")                                                              \
    X(REJECTED, "REJECTED", "refused")                                                             \
    X(FAILED, "FAILED", "taken up, then failed")                                                   \
    X(TIMED_OUT, "TIMED_OUT", "no acknowledgement in time")                                        \
    X(RETRYING, "RETRYING", "to be sent again")

#define AMP_DELIVERY_EVENTS(X)                                                                     \
    X(ACK_RECEIVED, "ack_received", "the receiver has it")                                         \
    X(ACK_READ, "ack_read", "the receiver took it up")                                             \
    X(ACK_FULFILLED, "ack_fulfilled", "the receiver is done with it")                              \
    X(NACK_REJECTED, "nack_rejected", "refused before any work")                                   \
    X(NACK_FAILED, "nack_failed", "failed at work")                                                \
    X(TIMEOUT, "timeout", "its deadline passed")                                                   \
    X(ALIVE, "alive", "another sign of life while it is at work")                                  \
    X(SILENT, "silent", "no sign of life when one was due")                                        \
    X(EXPIRE, "expire", "its time to live passed")                                                 \
    X(RETRY, "retry", "another attempt is decided")                                                \
    X(RESEND, "resend", "the attempt leaves")                                                      \
    X(DEPART, "depart", "the next attempt stands in the outbox")                                   \
    X(GIVE_UP, "give_up", "there is no further attempt")                                           \
    X(SETTLE, "settle", "nothing is left to do about it")                                          \
    X(REQUEUE, "requeue", "a person sends it again")

#define AMP_DELIVERY_FACTS(X)                                                                      \
    X(RETRY_DELIVERED, "retry_delivered", "the new attempt already reached the receiver")

#define AMP_DELIVERY_EFFECTS(X)                                                                    \
    X(ADMITTED, "admitted", "ends the wait where admission is what the protocol waits for")        \
    X(CLOSE_OUTBOX, "close_outbox", "the sender need not keep it any longer")                      \
    X(SET_DEADLINE, "set_deadline", "wait for an acknowledgement")                                 \
    X(CLEAR_DEADLINE, "clear_deadline", "wait no longer")                                          \
    X(ESCALATE, "escalate", "tell a person, once")                                                 \
    X(BURY, "bury", "make it a dead letter")                                                       \
    X(LOG_LATE, "log_late", "record the late acknowledgement with both times")                     \
    X(CANCEL_RETRY, "cancel_retry", "drop the attempt that did not leave")                         \
    X(TRACK_BOTH, "track_both", "both attempts count as one by their token")

#define AMP_DELIVERY_STATE_ID(id, name, doc)  AMP_DELIVERY_##id,
#define AMP_DELIVERY_EVENT_ID(id, name, doc)  AMP_DELIVERY_EV_##id,
#define AMP_DELIVERY_FACT_ID(id, name, doc)   AMP_DELIVERY_IF_##id,
#define AMP_DELIVERY_EFFECT_ID(id, name, doc) AMP_DELIVERY_DO_##id,
enum amp_delivery_state { AMP_DELIVERY_STATES(AMP_DELIVERY_STATE_ID) AMP_DELIVERY_STATE_COUNT };
enum amp_delivery_event { AMP_DELIVERY_EVENTS(AMP_DELIVERY_EVENT_ID) AMP_DELIVERY_EV_COUNT };
enum amp_delivery_fact { AMP_DELIVERY_FACTS(AMP_DELIVERY_FACT_ID) AMP_DELIVERY_IF_COUNT };
enum amp_delivery_effect { AMP_DELIVERY_EFFECTS(AMP_DELIVERY_EFFECT_ID) AMP_DELIVERY_DO_COUNT };

extern const struct amp_fsm amp_delivery_fsm;

#endif
