/* The registry: who works, at what, since when, and who may not. Key "agent.<name>". */
#ifndef AMP_AGENT_REGISTRY_H
#define AMP_AGENT_REGISTRY_H

#include "agent/agent.h"

#define AMP_AGENT_SILENCE_MS (30 * 60 * 1000) /* without a sign of life: heartbeat_timeout */

struct amp_agent_status {
    bool found, suspended;
    uint8_t state; /* of amp_agent_fsm */
    char role[32], task[128], last_task[128];
    char ref[256], cause[256]; /* the escalation that suspends it, and its task */
    int64_t last_seen_ms;
};
int amp_agent_status(struct amp_store *s, const char *name, struct amp_agent_status *out,
                     struct amp_error *err);

/* A process starts to act as this agent: a new life in INITIALIZING, until the event READY; the
 * last task and the suspension of an earlier life stay. */
int amp_agent_register(struct amp_store *s, const char *name, const char *role, int64_t now_ms,
                       struct amp_error *err);
/* One step of the lifecycle. ASSIGN and RESUME name the task and are refused with NO "suspended"
 * while the agent is suspended. Where a task is held the record comes due when it is silent too
 * long. */
int amp_agent_step(struct amp_store *s, const char *name, uint8_t event, const char *task,
                   int64_t now_ms, struct amp_error *err);
/* WAIT or LACK: until that time the limit of the state does not count; 0: from now on. */
int amp_agent_wait(struct amp_store *s, const char *name, uint8_t event, int64_t until_ms,
                   int64_t now_ms, struct amp_error *err);

/* When the next time limit of a state passes, 0: none is armed. */
int amp_agent_next_limit(struct amp_store *s, int64_t *ms, struct amp_error *err);
/* Fails each agent whose state lasts for longer than its limit (SW4RM §8.3). `tell` composes the
 * line that leaves with it, into the outbox of `actor`; *done counts them. */
struct amp_agent_overdue {
    const char *name, *state, *code; /* code: init_timeout, resource_timeout … */
    int64_t limit_ms;                /* when it passed */
};
typedef int (*amp_agent_tell_fn)(void *ctx, const struct amp_agent_overdue *o,
                                 struct amp_store_emit *emit, struct amp_error *err);
int amp_agent_expire(struct amp_store *s, int64_t now_ms, const char *actor, amp_agent_tell_fn tell,
                     void *ctx, uint32_t *done, struct amp_error *err);
/* A sign of life. */
int amp_agent_seen(struct amp_store *s, const char *name, int64_t now_ms, struct amp_error *err);

/* Suspends (creating the record of an agent never seen) or lifts. lift: only the suspension by this
 * ref, an empty ref lifts any. *changed (may be NULL) tells whether anything did. */
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
typedef int (*amp_agent_fn)(void *ctx, const char *name, const struct amp_agent_status *st);
int amp_agent_each(struct amp_store *s, struct amp_span task, amp_agent_fn fn, void *ctx,
                   struct amp_error *err);

#endif
