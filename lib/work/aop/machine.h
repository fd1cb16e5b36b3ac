/* The states of a session of AOP and of a TASK in it. Their tables are in session_fsm.c. */
#ifndef AMP_WORK_AOP_MACHINE_H
#define AMP_WORK_AOP_MACHINE_H

#include <amp/fsm/fsm.h>

#define AMP_SESSION_STATES(X)                                                                      \
    X(AMP_SESSION_OPEN, "OPEN", "its TASKs are carried out")                                       \
    X(AMP_SESSION_ABORTED, "ABORTED", "a TASK that aborts it has failed; the others are skipped")  \
    X(AMP_SESSION_REPORTED, "REPORTED", "all its TASKs have ended, and its report was made")

#define AMP_SESSION_EVENTS(X)                                                                      \
    X(AMP_SESSION_EV_JOIN, "join", "a TASK arrives")                                               \
    X(AMP_SESSION_EV_PLACE, "place", "the place of its audit trail is known")                      \
    X(AMP_SESSION_EV_RISK, "risk", "a TASK whose failure aborts it is about to fail")              \
    X(AMP_SESSION_EV_ABORT, "abort", "that TASK has failed")                                       \
    X(AMP_SESSION_EV_REPORT, "report", "its final report is made")                                 \
    X(AMP_SESSION_EV_STAY, "stay", "its retention is over, but a TASK has not ended")

#define AMP_SESSION_FACTS(X) X(AMP_SESSION_IF_ABORTED, "aborted", "it was aborted before")

#define AMP_SESSION_EFFECTS(X)                                                                     \
    X(AMP_SESSION_DO_ORDER, "order", "record the TASK's place in the order of arrival")            \
    X(AMP_SESSION_DO_PLACE, "place", "record the directory of the audit trail")                    \
    X(AMP_SESSION_DO_MARK, "mark", "record the TASK that is about to fail")                        \
    X(AMP_SESSION_DO_STOP, "stop", "record which TASK aborted it, when and why")                   \
    X(AMP_SESSION_DO_SUM, "sum", "record when it was reported")                                    \
    X(AMP_SESSION_DO_KEEP, "keep", "its retention begins anew")

AMP_FSM_ENUMS(AMP_SESSION);
extern const struct amp_fsm amp_session_fsm;

/* AOP, task_status.state. */
#define AMP_SESSION_TASK_STATES(X)                                                                 \
    X(AMP_SESSION_TASK_PENDING, "PENDING", "it waits")                                             \
    X(AMP_SESSION_TASK_IN_PROGRESS, "IN_PROGRESS", "an agent works on it")                         \
    X(AMP_SESSION_TASK_COMPLETED, "COMPLETED", "the work was done, or a part of it")               \
    X(AMP_SESSION_TASK_FAILED, "FAILED", "it failed or was refused; its code says why")            \
    X(AMP_SESSION_TASK_ABORTED, "ABORTED", "it was ended before the work was done")                \
    X(AMP_SESSION_TASK_SKIPPED, "SKIPPED", "what it depends on has failed; it was not begun")

#define AMP_SESSION_TASK_EVENTS(X)                                                                 \
    X(AMP_SESSION_TASK_EV_ENTER, "enter", "the TASK arrives, or a further attempt at it")          \
    X(AMP_SESSION_TASK_EV_BEGIN, "begin", "a model begins to work on it")                          \
    X(AMP_SESSION_TASK_EV_SPEND, "spend", "the model reports what it used")                        \
    X(AMP_SESSION_TASK_EV_RELEASE, "release", "the work is interrupted and goes on later")         \
    X(AMP_SESSION_TASK_EV_COMPLETE, "complete", "the work is done")                                \
    X(AMP_SESSION_TASK_EV_FAIL, "fail", "the work failed, or a rule refuses the TASK")             \
    X(AMP_SESSION_TASK_EV_ABORT, "abort", "the work is ended")                                     \
    X(AMP_SESSION_TASK_EV_SKIP, "skip", "what it depends on has failed")                           \
    X(AMP_SESSION_TASK_EV_RANK, "rank", "its priority changes")

#define AMP_SESSION_TASK_FACTS(X)                                                                  \
    X(AMP_SESSION_TASK_IF_LATER, "later", "the attempt is a later one")

#define AMP_SESSION_TASK_EFFECTS(X)                                                                \
    X(AMP_SESSION_TASK_DO_ENTER, "enter", "record the TASK, its parent and its place")             \
    X(AMP_SESSION_TASK_DO_START, "start", "record when the work began")                            \
    X(AMP_SESSION_TASK_DO_CLOSE, "close", "end the run of the last model with its error")          \
    X(AMP_SESSION_TASK_DO_TRY, "try", "record the run of a model")                                 \
    X(AMP_SESSION_TASK_DO_SPEND, "spend", "record what the run used")                              \
    X(AMP_SESSION_TASK_DO_RANK, "rank", "record the new priority")                                 \
    X(AMP_SESSION_TASK_DO_END, "end", "record the end, its signal and its code")

AMP_FSM_ENUMS(AMP_SESSION_TASK);
extern const struct amp_fsm amp_session_task_fsm;

#endif
