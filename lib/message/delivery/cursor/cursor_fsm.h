/* The state machine of a cursor. */
#ifndef AMP_MESSAGE_DELIVERY_CURSOR_CURSOR_FSM_H
#define AMP_MESSAGE_DELIVERY_CURSOR_CURSOR_FSM_H

#include <amp/fsm/fsm.h>

#define AMP_CURSOR_STATES(X)                                                                       \
    X(AMP_CURSOR_ACTIVE, "ACTIVE", "nothing is missing")                                           \
    X(AMP_CURSOR_GAP, "GAP", "an event is missing and later ones wait")                            \
    X(AMP_CURSOR_OVERDUE, "OVERDUE", "the event is missing for longer than the limit")             \
    X(AMP_CURSOR_EXPIRED, "EXPIRED", "its lease ran out: it retains no events")                    \
    X(AMP_CURSOR_RETIRED, "RETIRED", "ended by a person")

#define AMP_CURSOR_EVENTS(X)                                                                       \
    X(AMP_CURSOR_EV_ENQUEUE, "enqueue", "the next event is durably queued")                        \
    X(AMP_CURSOR_EV_HOLD, "hold", "an event beyond the next one is kept")                          \
    X(AMP_CURSOR_EV_TIMEOUT, "gap_timeout", "the missing events were not sent in time")            \
    X(AMP_CURSOR_EV_SKIP, "skip", "the missing events are given up")                               \
    X(AMP_CURSOR_EV_TOMBSTONE, "tombstone", "a mark replaces the missing events")                  \
    X(AMP_CURSOR_EV_RENEW, "renew", "its holder is alive")                                         \
    X(AMP_CURSOR_EV_LET_GO, "let_go", "its holder ended")                                          \
    X(AMP_CURSOR_EV_EXPIRE, "expire", "the lease ran out")                                         \
    X(AMP_CURSOR_EV_TAKE_OVER, "take_over", "a consumer takes it")                                 \
    X(AMP_CURSOR_EV_MOVE, "move", "a person sets the position")                                    \
    X(AMP_CURSOR_EV_RETIRE, "retire", "a person ends it")

#define AMP_CURSOR_FACTS(X)                                                                        \
    X(AMP_CURSOR_IF_MISSING, "missing", "an event waits for a missing one")                        \
    X(AMP_CURSOR_IF_SAME, "same_gap", "the gap has not changed")                                   \
    X(AMP_CURSOR_IF_TOLD, "told", "its incident was reported already")

#define AMP_CURSOR_EFFECTS(X)                                                                      \
    X(AMP_CURSOR_DO_ADVANCE, "advance", "move the position in the commit that queues the event")   \
    X(AMP_CURSOR_DO_REWIND, "rewind", "forget the events that were given up")                      \
    X(AMP_CURSOR_DO_HOLE, "hole", "record the events that are given up")                           \
    X(AMP_CURSOR_DO_KEEP, "keep", "keep the event in the store")                                   \
    X(AMP_CURSOR_DO_ARM, "arm", "start the time limit of the gap")                                 \
    X(AMP_CURSOR_DO_DISARM, "disarm", "clear the gap")                                             \
    X(AMP_CURSOR_DO_INCIDENT, "incident", "report the gap once")                                   \
    X(AMP_CURSOR_DO_LEASE, "lease", "renew the lease")                                             \
    X(AMP_CURSOR_DO_END_LEASE, "end_lease", "clear the holder")                                    \
    X(AMP_CURSOR_DO_LAPSE, "lapse", "end the lease at once")                                       \
    X(AMP_CURSOR_DO_HOLDER, "holder", "record the new holder")                                     \
    X(AMP_CURSOR_DO_FENCE, "fence",                                                                \
      "raise the epoch, so that commits of an earlier holder are refused")

AMP_FSM_ENUMS(AMP_CURSOR);

extern const struct amp_fsm amp_cursor_fsm;

#endif
