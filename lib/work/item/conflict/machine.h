/* The states of a pair of jobs whose scopes overlap, and of the breaker of the command that judges
 * them. The tables are in conflict_fsm.c and breaker_fsm.c. */
#ifndef AMP_WORK_ITEM_CONFLICT_MACHINE_H
#define AMP_WORK_ITEM_CONFLICT_MACHINE_H

#include <amp/fsm/fsm.h>

#define AMP_CONFLICT_STATES(X)                                                                     \
    X(AMP_CONFLICT_NEW, "NEW", "not yet recorded")                                                 \
    X(AMP_CONFLICT_CHECKING, "CHECKING", "the command judges it; one after the other until then")  \
    X(AMP_CONFLICT_UNJUDGED, "UNJUDGED", "there is no judgement: one after the other")             \
    X(AMP_CONFLICT_ASKED, "ASKED", "a person is asked; one after the other until then")            \
    X(AMP_CONFLICT_PARALLEL, "PARALLEL", "the jobs may run side by side")                          \
    X(AMP_CONFLICT_SERIAL, "SERIAL", "one after the other, as decided")                            \
    X(AMP_CONFLICT_ENDED, "ENDED", "one of the jobs has ended; the record is removed")

#define AMP_CONFLICT_EVENTS(X)                                                                     \
    X(AMP_CONFLICT_EV_CHECK, "check", "a worker starts the command")                               \
    X(AMP_CONFLICT_EV_CONFIDENT, "confident", "the confidence reaches the threshold")              \
    X(AMP_CONFLICT_EV_UNSURE, "unsure", "the confidence is below the threshold")                   \
    X(AMP_CONFLICT_EV_UNAVAILABLE, "unavailable", "the command gave no valid answer in time")      \
    X(AMP_CONFLICT_EV_ASK, "ask", "a person is asked")                                             \
    X(AMP_CONFLICT_EV_ALLOW, "allow", "a person lets them run side by side")                       \
    X(AMP_CONFLICT_EV_ORDER, "order", "a person, or the fallback, wants one after the other")      \
    X(AMP_CONFLICT_EV_EXPIRE, "expire", "the time of the permission is over")                      \
    X(AMP_CONFLICT_EV_END, "end", "one of the jobs has ended")

#define AMP_CONFLICT_FACTS(X)                                                                      \
    X(AMP_CONFLICT_IF_HOLDS, "holds", "its worker answers, or the time of its worker is over")

#define AMP_CONFLICT_EFFECTS(X)                                                                    \
    X(AMP_CONFLICT_DO_TAKE, "take", "record which worker checks it, and until when")               \
    X(AMP_CONFLICT_DO_JUDGE, "judge", "record the confidence and the reason")                      \
    X(AMP_CONFLICT_DO_MISS, "miss", "record why there is no judgement, and when to try again")     \
    X(AMP_CONFLICT_DO_ASK, "ask", "record the question")                                           \
    X(AMP_CONFLICT_DO_DECIDE, "decide", "record who decided what, why, and until when")            \
    X(AMP_CONFLICT_DO_FORGET, "forget", "forget the decision")                                     \
    X(AMP_CONFLICT_DO_REMOVE, "remove", "remove the record")

AMP_FSM_ENUMS(AMP_CONFLICT);
extern const struct amp_fsm amp_conflict_fsm;

#define AMP_BREAKER_STATES(X)                                                                      \
    X(AMP_BREAKER_CLOSED, "CLOSED", "the command is started")                                      \
    X(AMP_BREAKER_OPEN, "OPEN", "it failed too often: it is not started for a time")               \
    X(AMP_BREAKER_TRIAL, "TRIAL", "that time is over: one start shows whether it works")

#define AMP_BREAKER_EVENTS(X)                                                                      \
    X(AMP_BREAKER_EV_TRY, "try", "a worker wants to start it")                                     \
    X(AMP_BREAKER_EV_SUCCESS, "success", "it gave a valid answer")                                 \
    X(AMP_BREAKER_EV_FAILURE, "failure", "it did not")

#define AMP_BREAKER_FACTS(X)                                                                       \
    X(AMP_BREAKER_IF_SPENT, "spent", "the limit of failures in a row is reached")                  \
    X(AMP_BREAKER_IF_DUE, "due", "the time of the pause, or of the trial, is over")

#define AMP_BREAKER_EFFECTS(X)                                                                     \
    X(AMP_BREAKER_DO_START, "start", "start the command")                                          \
    X(AMP_BREAKER_DO_COUNT, "count", "count the failure")                                          \
    X(AMP_BREAKER_DO_PAUSE, "pause", "record until when it is not started")                        \
    X(AMP_BREAKER_DO_RESET, "reset", "forget the failures")

AMP_FSM_ENUMS(AMP_BREAKER);
extern const struct amp_fsm amp_breaker_fsm;

#endif
