/*
 * Agents: the lifecycle machine (SW4RM §8, appendix C), the registry (key "agent.<name>") and the
 * jobs that an agent took (key "job.<consumer>.<msg_id>").
 *
 * A registry record: {"role","task","last_task","state","last_seen","pid","limit_ms"?,"code"?,
 * "suspended":null|{"ref","task","since"}}, times in milliseconds; limit_ms: when the state's time
 * limit passes; code: of the time limit that passed. `task` is empty while it has none; `last_task`
 * stays: a critical escalation of a task suspends the agents that had it last. Starting work is a
 * compare-and-set of this record and loses to a suspension.
 */
#ifndef AMP_AGENT_AGENT_H
#define AMP_AGENT_AGENT_H

#include <amp/fsm/fsm.h>

#include "store/store.h"

#define AMP_AGENT_STATES(X)                                                                        \
    X(AMP_AGENT_INITIALIZING, "INITIALIZING", "sets itself up; takes no work")                     \
    X(AMP_AGENT_RUNNABLE, "RUNNABLE", "idle, ready for work")                                      \
    X(AMP_AGENT_SCHEDULED, "SCHEDULED", "has a task, has not begun")                               \
    X(AMP_AGENT_RUNNING, "RUNNING", "executes its task")                                           \
    X(AMP_AGENT_WAITING, "WAITING", "waits for an outside event, keeps its task")                  \
    X(AMP_AGENT_WAITING_RESOURCES, "WAITING_RESOURCES", "waits for a resource or a usage limit")   \
    X(AMP_AGENT_SUSPENDED, "SUSPENDED", "paused by request, state kept")                           \
    X(AMP_AGENT_RESUMED, "RESUMED", "rebuilds its state before it goes on")                        \
    X(AMP_AGENT_COMPLETED, "COMPLETED", "finished its task; reports and cleans up")                \
    X(AMP_AGENT_FAILED, "FAILED", "met an error it could not handle")                              \
    X(AMP_AGENT_SHUTTING_DOWN, "SHUTTING_DOWN", "ends; gets no new work")                          \
    X(AMP_AGENT_RECOVERING, "RECOVERING", "tries to recover from a failure")

#define AMP_AGENT_EVENTS(X)                                                                        \
    X(AMP_AGENT_EV_READY, "ready", "set-up or recovery succeeded, or the report is out")           \
    X(AMP_AGENT_EV_ASSIGN, "assign", "a task was assigned")                                        \
    X(AMP_AGENT_EV_START, "start", "execution begins or goes on")                                  \
    X(AMP_AGENT_EV_WAIT, "wait", "needs an outside event")                                         \
    X(AMP_AGENT_EV_LACK, "lack", "a resource is unavailable")                                      \
    X(AMP_AGENT_EV_SUSPEND, "suspend", "asked to pause")                                           \
    X(AMP_AGENT_EV_RESUME, "resume", "asked to go on")                                             \
    X(AMP_AGENT_EV_COMPLETE, "complete", "the task is done")                                       \
    X(AMP_AGENT_EV_FAIL, "fail", "the run failed")                                                 \
    X(AMP_AGENT_EV_RECOVER, "recover", "recovery begins")                                          \
    X(AMP_AGENT_EV_SHUTDOWN, "shutdown", "asked to end")                                           \
    X(AMP_AGENT_EV_TIMEOUT, "timeout", "the state's time limit passed")                            \
    X(AMP_AGENT_EV_BEGIN, "begin", "a process begins to act as it")                                \
    X(AMP_AGENT_EV_EXIT, "exit", "its process has ended what it had to end")

#define AMP_AGENT_FACTS(X) X(AMP_AGENT_IF_SUSPENDED, "suspended", "an escalation suspends it")

#define AMP_AGENT_EFFECTS(X)                                                                       \
    X(AMP_AGENT_DO_BEGIN, "begin", "record its role and process")                                  \
    X(AMP_AGENT_DO_ARM, "arm", "arm the state's time limit")                                       \
    X(AMP_AGENT_DO_TAKE, "take", "the task is its own")                                            \
    X(AMP_AGENT_DO_CLEAN, "clean", "give the task back")

enum { AMP_AGENT_STATES(AMP_FSM_ENUM) AMP_AGENT_STATE_COUNT };
enum { AMP_AGENT_EVENTS(AMP_FSM_ENUM) AMP_AGENT_EVENT_COUNT };
enum { AMP_AGENT_FACTS(AMP_FSM_BIT) AMP_AGENT_FACT_COUNT };
enum { AMP_AGENT_FACTS(AMP_FSM_FLAG) };
enum { AMP_AGENT_EFFECTS(AMP_FSM_BIT) AMP_AGENT_EFFECT_COUNT };
enum { AMP_AGENT_EFFECTS(AMP_FSM_FLAG) };
extern const struct amp_fsm amp_agent_fsm;

/* Milliseconds that a state may last (SW4RM §8.3), 0 for no limit. */
int64_t amp_agent_limit_ms(uint8_t state);

/* How a job goes: a message that an agent took and must answer. */
#define AMP_JOB_STATES(X)                                                                          \
    X(AMP_JOB_QUEUED, "QUEUED", "taken and acknowledged, not begun")                               \
    X(AMP_JOB_RUNNING, "RUNNING", "an agent works on it")                                          \
    X(AMP_JOB_PARKED, "PARKED", "waits for a usage limit or a pause before the next attempt")      \
    X(AMP_JOB_DONE, "DONE", "answered")                                                            \
    X(AMP_JOB_REFUSED, "REFUSED", "answered with a refusal")                                       \
    X(AMP_JOB_FAILED, "FAILED", "the machinery failed too often")

#define AMP_JOB_EVENTS(X)                                                                          \
    X(AMP_JOB_EV_TAKE, "take", "the message was taken")                                            \
    X(AMP_JOB_EV_START, "start", "an attempt begins")                                              \
    X(AMP_JOB_EV_STEP, "step", "one subtask was answered, others are left")                        \
    X(AMP_JOB_EV_ANSWER, "answer", "all that was asked was answered")                              \
    X(AMP_JOB_EV_REFUSE, "refuse", "a rule refuses it")                                            \
    X(AMP_JOB_EV_BREAK, "break", "the machinery failed: crash, kill, time limit")                  \
    X(AMP_JOB_EV_PARK, "park", "a usage limit, or the agent asked to repeat later")                \
    X(AMP_JOB_EV_STOP, "stop", "interrupted by us or suspended")                                   \
    X(AMP_JOB_EV_WAKE, "wake", "the time to wait is over")

#define AMP_JOB_FACTS(X) X(AMP_JOB_IF_SPENT, "spent", "no attempts are left")

#define AMP_JOB_EFFECTS(X)                                                                         \
    X(AMP_JOB_DO_ATTEMPT, "attempt", "count an attempt")                                           \
    X(AMP_JOB_DO_BREAK, "break", "count a failure of the machinery")                               \
    X(AMP_JOB_DO_NEXT, "next", "go on to the next subtask, whose attempts count from zero")        \
    X(AMP_JOB_DO_WAIT, "wait", "wait until the given time")                                        \
    X(AMP_JOB_DO_EMIT, "emit", "commit the lines that leave with the step")

enum { AMP_JOB_STATES(AMP_FSM_ENUM) AMP_JOB_STATE_COUNT };
enum { AMP_JOB_EVENTS(AMP_FSM_ENUM) AMP_JOB_EVENT_COUNT };
enum { AMP_JOB_FACTS(AMP_FSM_BIT) AMP_JOB_FACT_COUNT };
enum { AMP_JOB_FACTS(AMP_FSM_FLAG) };
enum { AMP_JOB_EFFECTS(AMP_FSM_BIT) AMP_JOB_EFFECT_COUNT };
enum { AMP_JOB_EFFECTS(AMP_FSM_FLAG) };
extern const struct amp_fsm amp_job_fsm;

#endif
