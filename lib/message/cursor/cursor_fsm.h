/* The words of the cursor's machine. */
#ifndef AMP_MESSAGE_CURSOR_CURSOR_FSM_H
#define AMP_MESSAGE_CURSOR_CURSOR_FSM_H

#include <amp/fsm/fsm.h>

#define AMP_CURSOR_STATES(X)                                                                       \
    X(ACTIVE, "ACTIVE", "nothing is missing")                                                      \
    X(GAP, "GAP", "an event is missing and later ones wait")                                       \
    X(OVERDUE, "OVERDUE", "it has been missing for longer than is waited for")                     \
    X(EXPIRED, "EXPIRED", "its lease ran out: it holds nothing back any more")                     \
    X(RETIRED, "RETIRED", "its consumer is gone for good")

#define AMP_CURSOR_EVENTS(X)                                                                       \
    X(ENQUEUE, "enqueue", "the next event is durably queued")                                      \
    X(HOLD, "hold", "an event beyond the next one is kept")                                        \
    X(TIMEOUT, "gap_timeout", "nobody sent what is missing in time")                               \
    X(SKIP, "skip", "what is missing is given up")                                                 \
    X(TOMBSTONE, "tombstone", "it is given up, and a mark stands in its place")                    \
    X(RENEW, "renew", "its holder is alive")                                                       \
    X(LET_GO, "let_go", "its holder ends")                                                         \
    X(EXPIRE, "expire", "the lease ran out")                                                       \
    X(TAKE_OVER, "take_over", "a consumer takes it")                                               \
    X(MOVE, "move", "a person sets it")                                                            \
    X(RETIRE, "retire", "a person ends it")

#define AMP_CURSOR_FACTS(X)                                                                        \
    X(MISSING, "missing", "an event waits, and the one before it is not there")                    \
    X(SAME, "same_gap", "it is the gap that was there before")                                     \
    X(TOLD, "told", "its incident was told already")

#define AMP_CURSOR_EFFECTS(X)                                                                      \
    X(ADVANCE, "advance", "the position moves, by the commit that queues")                         \
    X(KEEP, "keep", "the event waits in the store")                                                \
    X(ARM, "arm", "wait for what is missing")                                                      \
    X(DISARM, "disarm", "nothing is waited for")                                                   \
    X(INCIDENT, "incident", "tell it, once")                                                       \
    X(LEASE, "lease", "the lease runs anew")                                                       \
    X(END_LEASE, "end_lease", "nobody holds it")                                                   \
    X(FENCE, "fence", "a new epoch: what an earlier holder commits is refused")

#define AMP_CURSOR_STATE_ID(id, name, doc)  AMP_CURSOR_##id,
#define AMP_CURSOR_EVENT_ID(id, name, doc)  AMP_CURSOR_EV_##id,
#define AMP_CURSOR_FACT_ID(id, name, doc)   AMP_CURSOR_IF_##id,
#define AMP_CURSOR_EFFECT_ID(id, name, doc) AMP_CURSOR_DO_##id,
enum amp_cursor_state { AMP_CURSOR_STATES(AMP_CURSOR_STATE_ID) AMP_CURSOR_STATE_COUNT };
enum amp_cursor_event { AMP_CURSOR_EVENTS(AMP_CURSOR_EVENT_ID) AMP_CURSOR_EV_COUNT };
enum amp_cursor_fact { AMP_CURSOR_FACTS(AMP_CURSOR_FACT_ID) AMP_CURSOR_IF_COUNT };
enum amp_cursor_effect { AMP_CURSOR_EFFECTS(AMP_CURSOR_EFFECT_ID) AMP_CURSOR_DO_COUNT };

extern const struct amp_fsm amp_cursor_fsm;

#endif
