/* The status of a task in its folder (AOF/1). The table is in aof_task_fsm.c. */
#ifndef AMP_WORK_AOF_MACHINE_H
#define AMP_WORK_AOF_MACHINE_H

#include <amp/fsm/fsm.h>

/* The names are those of the folders under tasks/. */
#define AMP_AOF_TASK_STATES(X)                                                                     \
    X(AMP_AOF_BACKLOG, "backlog", "is not released yet")                                           \
    X(AMP_AOF_READY, "ready", "waits for an agent")                                                \
    X(AMP_AOF_IN_PROGRESS, "in-progress", "an agent has its lease")                                \
    X(AMP_AOF_BLOCKED, "blocked", "cannot go on without help")                                     \
    X(AMP_AOF_REVIEW, "review", "waits for a review")                                              \
    X(AMP_AOF_DONE, "done", "is complete")                                                         \
    X(AMP_AOF_CANCELLED, "cancelled", "was given up")                                              \
    X(AMP_AOF_DEADLETTER, "deadletter", "failed too often")

/* The first events are wishes for a status, in the order of the states. */
#define AMP_AOF_TASK_EVENTS(X)                                                                     \
    X(AMP_AOF_TASK_EV_SHELVE, "backlog", "it is wanted in backlog")                                \
    X(AMP_AOF_TASK_EV_READY, "ready", "it is released, or given back")                             \
    X(AMP_AOF_TASK_EV_START, "in-progress", "it is wanted at work")                                \
    X(AMP_AOF_TASK_EV_BLOCK, "blocked", "its agent is blocked")                                    \
    X(AMP_AOF_TASK_EV_REVIEW, "review", "its work is to be reviewed")                              \
    X(AMP_AOF_TASK_EV_DONE, "done", "its review is positive")                                      \
    X(AMP_AOF_TASK_EV_CANCEL, "cancelled", "it is given up")                                       \
    X(AMP_AOF_TASK_EV_BURY, "deadletter", "it failed too often")                                   \
    X(AMP_AOF_TASK_EV_DISPATCH, "dispatch", "an executor gets it for its agent")                   \
    X(AMP_AOF_TASK_EV_COMPLETE, "complete", "its agent reports the outcome done")

#define AMP_AOF_TASK_FACTS(X)                                                                      \
    X(AMP_AOF_TASK_IF_STOPS, "stops_at_review", "work that is done waits for a reviewer")

#define AMP_AOF_TASK_EFFECTS(X)                                                                    \
    X(AMP_AOF_TASK_DO_LEASE, "lease", "run.json and a first heartbeat are written")                \
    X(AMP_AOF_TASK_DO_FREE, "free", "the lease is removed from the task")                          \
    X(AMP_AOF_TASK_DO_END, "end", "run.json says that the run has ended")                          \
    X(AMP_AOF_TASK_DO_NOTIFY, "notify", "people are notified")                                     \
    X(AMP_AOF_TASK_DO_GO_ON, "go_on", "the same event is raised in the new status")

AMP_FSM_ENUMS(AMP_AOF_TASK);
extern const struct amp_fsm amp_aof_task_fsm;

#endif
