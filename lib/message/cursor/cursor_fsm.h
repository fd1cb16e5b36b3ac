/* The words of the cursor's machine. */
#ifndef AMP_MESSAGE_CURSOR_CURSOR_FSM_H
#define AMP_MESSAGE_CURSOR_CURSOR_FSM_H

#include <amp/fsm/fsm.h>

#define AMP_CURSOR_STATES(X)                                                                       \
    X(AMP_CURSOR_ACTIVE, "ACTIVE", "nothing is missing")                                           \
    X(AMP_CURSOR_GAP, "GAP", "an event is missing and later ones wait")                            \
    X(AMP_CURSOR_OVERDUE, "OVERDUE", "it has been missing for longer than is waited for")          \
    X(AMP_CURSOR_EXPIRED, "EXPIRED", "its lease ran out: it holds nothing back any more")          \
    X(AMP_CURSOR_RETIRED, "RETIRED", "its consumer is gone for good")

#define AMP_CURSOR_EVENTS(X)                                                                       \
    X(AMP_CURSOR_EV_ENQUEUE, "enqueue", "the next event is durably queued")                        \
    X(AMP_CURSOR_EV_HOLD, "hold", "an event beyond the next one is kept")                          \
    X(AMP_CURSOR_EV_TIMEOUT, "gap_timeout", "the missing events were not sent in time")            \
    X(AMP_CURSOR_EV_SKIP, "skip", "what is missing is given up")                                   \
    X(AMP_CURSOR_EV_TOMBSTONE, "tombstone", "it is retired: a mark takes its place")               \
    X(AMP_CURSOR_EV_RENEW, "renew", "its holder is alive")                                         \
    X(AMP_CURSOR_EV_LET_GO, "let_go", "its holder ends")                                           \
    X(AMP_CURSOR_EV_EXPIRE, "expire", "the lease ran out")                                         \
    X(AMP_CURSOR_EV_TAKE_OVER, "take_over", "a consumer takes it")                                 \
    X(AMP_CURSOR_EV_MOVE, "move", "a person sets it")                                              \
    X(AMP_CURSOR_EV_RETIRE, "retire", "a person ends it")

#define AMP_CURSOR_FACTS(X)                                                                        \
    X(AMP_CURSOR_IF_MISSING, "missing", "an event waits, and the one before it is not there")      \
    X(AMP_CURSOR_IF_SAME, "same_gap", "it is the gap that was there before")                       \
    X(AMP_CURSOR_IF_TOLD, "told", "its incident was told already")

#define AMP_CURSOR_EFFECTS(X)                                                                      \
    X(AMP_CURSOR_DO_ADVANCE, "advance", "the position moves, by the commit that queues")           \
    X(AMP_CURSOR_DO_REWIND, "rewind",                                                              \
      "a person set the position: what was given up counts no more")                               \
    X(AMP_CURSOR_DO_HOLE, "hole", "remember what was given up")                                    \
    X(AMP_CURSOR_DO_KEEP, "keep", "the event waits in the store")                                  \
    X(AMP_CURSOR_DO_ARM, "arm", "wait for what is missing")                                        \
    X(AMP_CURSOR_DO_DISARM, "disarm", "nothing is waited for")                                     \
    X(AMP_CURSOR_DO_INCIDENT, "incident", "report it once")                                        \
    X(AMP_CURSOR_DO_LEASE, "lease", "the lease runs anew")                                         \
    X(AMP_CURSOR_DO_END_LEASE, "end_lease", "no consumer holds it")                                \
    X(AMP_CURSOR_DO_LAPSE, "lapse", "the lease is over at once")                                   \
    X(AMP_CURSOR_DO_HOLDER, "holder", "who takes it holds it")                                     \
    X(AMP_CURSOR_DO_FENCE, "fence", "a new epoch: what an earlier holder commits is refused")

enum amp_cursor_state { AMP_CURSOR_STATES(AMP_FSM_ENUM) AMP_CURSOR_STATE_COUNT };
enum amp_cursor_event { AMP_CURSOR_EVENTS(AMP_FSM_ENUM) AMP_CURSOR_EV_COUNT };
enum { AMP_CURSOR_FACTS(AMP_FSM_BIT) AMP_CURSOR_IF_COUNT };
enum { AMP_CURSOR_FACTS(AMP_FSM_FLAG) };
enum { AMP_CURSOR_EFFECTS(AMP_FSM_BIT) AMP_CURSOR_DO_COUNT };
enum { AMP_CURSOR_EFFECTS(AMP_FSM_FLAG) };

extern const struct amp_fsm amp_cursor_fsm;

#endif
