/*
 * Suspensions across subjects: what an escalation does to its task and to the agents that have it,
 * and how they are let go. AMP/1.0 escalation; a critical one stops the task and all its agents, a
 * warning the party that triggered it, an info nobody. A suspended agent takes no work of any task;
 * the setting suspension.scope limits a critical one to its task.
 */
#ifndef AMP_FLOW_SUSPEND_H
#define AMP_FLOW_SUSPEND_H

#include <amp/protocol/protocol.h>

#include "store/store.h"

/* suspension.scope of amp.json, for the whole process: "agents" (the default) or "task". arg is not
 * looked at. USAGE bad_value. */
int amp_suspend_set_scope(void *arg, const char *text, struct amp_error *err);
#define AMP_SUSPEND_SETTINGS                                                                       \
    {                                                                                              \
        "suspension.scope", amp_suspend_set_scope                                                  \
    }

struct amp_suspend {
    struct amp_span task_id, ref; /* ref: the escalation's msg_id */
    const char *type, *triggered_by;
    enum amp_level level;
    const char *by; /* who carries it out, for the log */
    /* Reports the agents that this suspends, with the task that causes it. */
    void (*say)(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
    const char *agent; /* one that is related though it claimed nothing; or NULL */
    int64_t now_ms;
};
/* Idempotent. Related agents are those that claimed work of the task and those that last had it.
 * Call amp_store_sync before it is reported. */
int amp_flow_suspend(struct amp_store *s, const struct amp_suspend *a, struct amp_error *err);
/* The same from the escalation itself; of `how` by, say and now_ms count. */
int amp_flow_suspend_view(struct amp_store *s, const struct amp_view *escalation,
                          const struct amp_suspend *how, struct amp_error *err);

/* After a decision: lets the task's agents go that `ref` suspends (empty: any suspension that came
 * from this task). The task's own suspension is the coordinator's to lift. */
int amp_flow_lift_agents(struct amp_store *s, struct amp_span task_id, struct amp_span ref,
                         int64_t now_ms, struct amp_error *err);

#endif
