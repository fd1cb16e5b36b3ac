/* The states of a job in the queue. Its table is in queue_fsm.c. */
#ifndef AMP_WORK_ITEM_MACHINE_H
#define AMP_WORK_ITEM_MACHINE_H

#include <amp/fsm/fsm.h>

#define AMP_QUEUE_STATES(X)                                                                        \
    X(AMP_QUEUE_QUEUED, "QUEUED", "waits for a worker")                                            \
    X(AMP_QUEUE_CLAIMED, "CLAIMED", "a worker has it and prepares an agent")                       \
    X(AMP_QUEUE_RUNNING, "RUNNING", "an agent works on it")                                        \
    X(AMP_QUEUE_PREEMPTING, "PREEMPTING", "its worker is asked to end the attempt")                \
    X(AMP_QUEUE_PARKED, "PARKED", "waits until a time, such as a usage limit's reset")             \
    X(AMP_QUEUE_DONE, "DONE", "the work was done")                                                 \
    X(AMP_QUEUE_FAILED, "FAILED", "the work failed; its code says why")                            \
    X(AMP_QUEUE_CANCELLED, "CANCELLED", "a person or its sender cancelled it")

#define AMP_QUEUE_EVENTS(X)                                                                        \
    X(AMP_QUEUE_EV_SUBMIT, "submit", "it was submitted")                                           \
    X(AMP_QUEUE_EV_CLAIM, "claim", "a worker takes it")                                            \
    X(AMP_QUEUE_EV_START, "start", "an attempt begins")                                            \
    X(AMP_QUEUE_EV_RELEASE, "release", "the worker gives it back, such as at its shutdown")        \
    X(AMP_QUEUE_EV_LOSE, "lose", "the worker's heartbeat ended")                                   \
    X(AMP_QUEUE_EV_PREEMPT, "preempt", "more urgent work or a person asks for its place")          \
    X(AMP_QUEUE_EV_YIELD, "yield", "the agent reached a safe point and was suspended")             \
    X(AMP_QUEUE_EV_FORCE, "force", "the agent was ended by force")                                 \
    X(AMP_QUEUE_EV_PARK, "park", "it can go on at a later time")                                   \
    X(AMP_QUEUE_EV_WAKE, "wake", "that time has come, or a person resumes it")                     \
    X(AMP_QUEUE_EV_DONE, "done", "the agent did the work")                                         \
    X(AMP_QUEUE_EV_FAIL, "fail", "the agent failed")                                               \
    X(AMP_QUEUE_EV_EXPIRE, "expire", "its deadline passed before an agent started")                \
    X(AMP_QUEUE_EV_CANCEL, "cancel", "a person or its sender cancels it")                          \
    X(AMP_QUEUE_EV_RANK, "rank", "its priority changes")                                           \
    X(AMP_QUEUE_EV_READ, "read", "its worker acknowledges the message")                            \
    X(AMP_QUEUE_EV_SAY, "say", "its agent asks or reports while it works")                         \
    X(AMP_QUEUE_EV_BREAK, "break", "a crash, a kill or the time limit ended the attempt")          \
    X(AMP_QUEUE_EV_NEXT, "next", "one subtask was answered, others are left")                      \
    X(AMP_QUEUE_EV_HALT, "halt", "the attempt was stopped, and its worker keeps the job")

#define AMP_QUEUE_FACTS(X)                                                                         \
    X(AMP_QUEUE_IF_CANCELLED, "cancelled", "it was cancelled while an agent worked on it")         \
    X(AMP_QUEUE_IF_AGAIN, "again", "a person allows it to run again")                              \
    X(AMP_QUEUE_IF_OWN, "own", "one worker took its message from its input: it is of that one")

#define AMP_QUEUE_EFFECTS(X)                                                                       \
    X(AMP_QUEUE_DO_ENTER, "enter", "record the submission and its place")                          \
    X(AMP_QUEUE_DO_TAKE, "take", "record the worker, count the attempt")                           \
    X(AMP_QUEUE_DO_START, "start", "record when the agent started")                                \
    X(AMP_QUEUE_DO_FREE, "free", "it has no worker any more; it keeps its place")                  \
    X(AMP_QUEUE_DO_LOSS, "loss", "count the lost worker")                                          \
    X(AMP_QUEUE_DO_ASK, "ask", "record who wants its place and why")                               \
    X(AMP_QUEUE_DO_CANCEL, "cancel", "record that it was cancelled")                               \
    X(AMP_QUEUE_DO_WAIT, "wait", "record until when it waits")                                     \
    X(AMP_QUEUE_DO_RANK, "rank", "record the new priority")                                        \
    X(AMP_QUEUE_DO_END, "end", "record the end and its code")                                      \
    X(AMP_QUEUE_DO_READ, "read", "record that its message was acknowledged")                       \
    X(AMP_QUEUE_DO_TRY, "try", "count the attempt")                                                \
    X(AMP_QUEUE_DO_REST, "rest", "record that no attempt runs, and whether the next one goes on")  \
    X(AMP_QUEUE_DO_BREAK, "break", "count a crash, a kill or a timeout")                           \
    X(AMP_QUEUE_DO_NEXT, "next", "go on with the next subtask, whose attempts start at zero")

AMP_FSM_ENUMS(AMP_QUEUE);
extern const struct amp_fsm amp_queue_fsm;

#endif
