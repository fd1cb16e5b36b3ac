/*
 * The work part of agents' records: state, task, last sign of life, suspension. Starting work is a
 * compare-and-set of the record and fails after a suspension.
 */
#ifndef AMP_WORK_AGENT_WORK_H
#define AMP_WORK_AGENT_WORK_H

#include "work/agent/record.h"

struct amp_agent_status {
    bool found, suspended;
    uint8_t state; /* of amp_agent_fsm */
    char role[32], task[128], last_task[128];
    char ref[256], cause[256]; /* the escalation that suspends it, and its task */
    int64_t last_seen_ms;
};
int amp_agent_status(struct amp_store *s, const char *name, struct amp_agent_status *out,
                     struct amp_error *err);
/* The state for people: "idle", "working", "ended". */
const char *amp_agent_word(const struct amp_agent_work *w);

/* A process starts to act as this agent: the state is INITIALIZING until the event READY. The last
 * task and the suspension are kept. */
int amp_agent_register(struct amp_store *s, const char *name, const char *role, int64_t now_ms,
                       struct amp_error *err);
/* One step of the lifecycle. ASSIGN and RESUME name the task and are refused with NO "suspended"
 * while the agent is suspended. */
int amp_agent_step(struct amp_store *s, const char *name, uint8_t event, const char *task,
                   int64_t now_ms, struct amp_error *err);
/* The events WAIT and LACK: the state's time limit begins at until_ms; 0: now. */
int amp_agent_wait(struct amp_store *s, const char *name, uint8_t event, int64_t until_ms,
                   int64_t now_ms, struct amp_error *err);

/* Does the step of amp_agent_step; the time limit of the new state, if it has one, is limit_ms. */
int amp_agent_step_within(struct amp_store *s, const char *name, uint8_t event, int64_t limit_ms,
                          int64_t now_ms, struct amp_error *err);

/* The time limit of its state has passed, as the caller measured by the monotonic clock: FAILED
 * with the limit's code. A state without a limit is left as it is: NO illegal_transition. */
int amp_agent_expire(struct amp_store *s, const char *name, int64_t now_ms, struct amp_error *err);

/* Fails an agent whose state has exceeded its time limit (SW4RM §8.3), or whose process was killed;
 * or records that it was silent at work since at_ms, its last sign of life. *changed is false if
 * none of them is true any more. */
struct amp_agent_lapse {
    struct amp_span agent;
    bool silence;
    int64_t
        lost_pid; /* the process, which was killed: FAILED, if the agent is still its; 0: none */
    int64_t at_ms, now_ms;
    const struct amp_store_emit *emit; /* the emitted line */
    const char *actor;                 /* the owner of the outbox */
};
int amp_agent_time_out(struct amp_store *s, const struct amp_agent_lapse *l, bool *changed,
                       struct amp_error *err);
/* A sign of life. */
int amp_agent_seen(struct amp_store *s, const char *name, int64_t now_ms, struct amp_error *err);

/* Suspends an agent, creating its record if necessary, or lifts its suspension: only that by ref,
 * or any if ref is empty. *changed (may be NULL): whether the record changed. */
struct amp_agent_suspension {
    const char *name;
    struct amp_span ref, task;
    int64_t now_ms;
};
int amp_agent_suspend(struct amp_store *s, const struct amp_agent_suspension *a, bool *changed,
                      struct amp_error *err);
int amp_agent_lift(struct amp_store *s, const struct amp_agent_suspension *a, bool *changed,
                   struct amp_error *err);

/* Agents whose current or last task is this one, or whose suspension came from it. */
typedef int (*amp_agent_fn)(void *ctx, const char *name, const struct amp_agent_status *st,
                            struct amp_error *err);
int amp_agent_each(struct amp_store *s, struct amp_span task, amp_agent_fn fn, void *ctx,
                   struct amp_error *err);

#endif
