/*
 * Agents: the machines of an agent's work (SW4RM §8, appendix C) and of its reachability (§14).
 * record.h has their record.
 */
#ifndef AMP_WORK_AGENT_AGENT_H
#define AMP_WORK_AGENT_AGENT_H

#include <amp/fsm/fsm.h>

#define AMP_AGENT_STATES(X)                                                                        \
    X(AMP_AGENT_INITIALIZING, "INITIALIZING", "sets itself up; takes no work")                     \
    X(AMP_AGENT_RUNNABLE, "RUNNABLE", "idle, ready for work")                                      \
    X(AMP_AGENT_SCHEDULED, "SCHEDULED", "has a task and has not started it")                       \
    X(AMP_AGENT_RUNNING, "RUNNING", "executes its task")                                           \
    X(AMP_AGENT_WAITING, "WAITING", "waits for an outside event, keeps its task")                  \
    X(AMP_AGENT_WAITING_RESOURCES, "WAITING_RESOURCES", "waits for a resource or a usage limit")   \
    X(AMP_AGENT_SUSPENDED, "SUSPENDED", "paused by request, state kept")                           \
    X(AMP_AGENT_RESUMED, "RESUMED", "rebuilds its state before it continues")                      \
    X(AMP_AGENT_COMPLETED, "COMPLETED", "finished its task; reports and cleans up")                \
    X(AMP_AGENT_FAILED, "FAILED", "failed with an error that it could not handle")                 \
    X(AMP_AGENT_SHUTTING_DOWN, "SHUTTING_DOWN", "is ending; gets no new work")                     \
    X(AMP_AGENT_RECOVERING, "RECOVERING", "tries to recover from a failure")

#define AMP_AGENT_EVENTS(X)                                                                        \
    X(AMP_AGENT_EV_READY, "ready", "setup or recovery succeeded, or the report was sent")          \
    X(AMP_AGENT_EV_ASSIGN, "assign", "a task was assigned")                                        \
    X(AMP_AGENT_EV_START, "start", "execution starts or continues")                                \
    X(AMP_AGENT_EV_WAIT, "wait", "needs an outside event")                                         \
    X(AMP_AGENT_EV_LACK, "lack", "a resource is unavailable")                                      \
    X(AMP_AGENT_EV_SUSPEND, "suspend", "asked to pause")                                           \
    X(AMP_AGENT_EV_RESUME, "resume", "asked to continue")                                          \
    X(AMP_AGENT_EV_COMPLETE, "complete", "the task is done")                                       \
    X(AMP_AGENT_EV_FAIL, "fail", "the run failed")                                                 \
    X(AMP_AGENT_EV_RECOVER, "recover", "recovery begins")                                          \
    X(AMP_AGENT_EV_SHUTDOWN, "shutdown", "asked to shut down")                                     \
    X(AMP_AGENT_EV_TIMEOUT, "timeout", "the state's time limit passed")                            \
    X(AMP_AGENT_EV_BEGIN, "begin", "a process starts to act as this agent")                        \
    X(AMP_AGENT_EV_EXIT, "exit", "its process has finished the shutdown")                          \
    X(AMP_AGENT_EV_LOSE, "lose", "its process was killed")

#define AMP_AGENT_FACTS(X) X(AMP_AGENT_IF_SUSPENDED, "suspended", "an escalation suspends it")

#define AMP_AGENT_EFFECTS(X)                                                                       \
    X(AMP_AGENT_DO_BEGIN, "begin", "record its role and process")                                  \
    X(AMP_AGENT_DO_ARM, "arm", "arm the state's time limit")                                       \
    X(AMP_AGENT_DO_TAKE, "take", "record the task as its own")                                     \
    X(AMP_AGENT_DO_CLEAN, "clean", "remove the task")

AMP_FSM_ENUMS(AMP_AGENT);
extern const struct amp_fsm amp_agent_fsm;

/* Milliseconds that a state may last (SW4RM §8.3), 0 for no limit. */
int64_t amp_agent_limit_ms(uint8_t state);

/* The reachability of a registered agent (SW4RM §14). */
#define AMP_REACH_STATES(X)                                                                        \
    X(AMP_REACH_ABSENT, "ABSENT", "never registered")                                              \
    X(AMP_REACH_REACHABLE, "REACHABLE", "registered and answering")                                \
    X(AMP_REACH_LATE, "LATE", "missed fewer heartbeats than the limit")                            \
    X(AMP_REACH_UNREACHABLE, "UNREACHABLE", "missed too many heartbeats; still registered")        \
    X(AMP_REACH_LEFT, "LEFT", "was deregistered")

#define AMP_REACH_EVENTS(X)                                                                        \
    X(AMP_REACH_EV_REGISTER, "register", "a registration arrived")                                 \
    X(AMP_REACH_EV_BEAT, "beat", "a sign of life arrived")                                         \
    X(AMP_REACH_EV_MISS, "miss", "no sign of life arrived in time")                                \
    X(AMP_REACH_EV_DEREGISTER, "deregister", "it was deregistered")                                \
    X(AMP_REACH_EV_ASK, "ask", "a heartbeat is due")

#define AMP_REACH_FACTS(X)                                                                         \
    X(AMP_REACH_IF_SPENT, "spent", "the number of misses in a row has reached the limit")

#define AMP_REACH_EFFECTS(X)                                                                       \
    X(AMP_REACH_DO_JOIN, "join", "notify the participants that it joined")                         \
    X(AMP_REACH_DO_LEAVE, "leave", "notify them that it left")                                     \
    X(AMP_REACH_DO_LOST, "lost", "notify them that it is unreachable")                             \
    X(AMP_REACH_DO_BACK, "back", "notify them that it answers again")                              \
    X(AMP_REACH_DO_ASK, "ask", "send it a heartbeat")

AMP_FSM_ENUMS(AMP_REACH);
extern const struct amp_fsm amp_reach_fsm;

/* Whether the agent may be a recipient: it is registered and not unreachable. */
static inline bool amp_reach_active(uint8_t state)
{
    return state == AMP_REACH_REACHABLE || state == AMP_REACH_LATE;
}

#endif
