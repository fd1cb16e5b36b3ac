/* The state machine of a message that arrives in chunks. */
#ifndef AMP_MESSAGE_DELIVERY_TRANSFER_TRANSFER_FSM_H
#define AMP_MESSAGE_DELIVERY_TRANSFER_TRANSFER_FSM_H

#include <amp/fsm/fsm.h>

#define AMP_TRANSFER_STATES(X)                                                                     \
    X(AMP_TRANSFER_RECEIVING, "RECEIVING", "chunks are missing")                                   \
    X(AMP_TRANSFER_ASSEMBLED, "ASSEMBLED", "the message is being handed to the tool")              \
    X(AMP_TRANSFER_COMPLETE, "COMPLETE", "the tool has the message")                               \
    X(AMP_TRANSFER_FAILED, "FAILED", "the message was dropped")

#define AMP_TRANSFER_EVENTS(X)                                                                     \
    X(AMP_TRANSFER_EV_PIECE, "piece", "a chunk arrives, and others are missing")                   \
    X(AMP_TRANSFER_EV_LAST, "last", "the last missing chunk arrives, and the digest is right")     \
    X(AMP_TRANSFER_EV_RESUME, "resume",                                                            \
      "the tool was killed before it had the message, and starts")                                 \
    X(AMP_TRANSFER_EV_TAKEN, "taken", "the tool asks for the next message")                        \
    X(AMP_TRANSFER_EV_CORRUPT, "corrupt", "a chunk or the complete message is wrong")              \
    X(AMP_TRANSFER_EV_REFUSE, "refuse", "the message is too large, or too many are unfinished")    \
    X(AMP_TRANSFER_EV_TIMEOUT, "timeout", "no chunk came in time")

#define AMP_TRANSFER_FACTS(X)                                                                      \
    X(AMP_TRANSFER_IF_SAME, "repeated", "the chunk arrived before, with the same bytes")

#define AMP_TRANSFER_EFFECTS(X)                                                                    \
    X(AMP_TRANSFER_DO_KEEP, "keep", "keep the chunk's bytes and start its time limit again")       \
    X(AMP_TRANSFER_DO_HAND_OVER, "hand_over", "give the message to the tool")                      \
    X(AMP_TRANSFER_DO_DROP, "drop", "remove the bytes")                                            \
    X(AMP_TRANSFER_DO_TELL, "tell", "report it, and answer the message's sender")

AMP_FSM_ENUMS(AMP_TRANSFER);

extern const struct amp_fsm amp_transfer_fsm;

#define AMP_TRANSFER_KIND "transfer" /* of the records */

#endif
