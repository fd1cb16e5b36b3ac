/*
 * Suspensions by AMP/1.0 escalations. A critical escalation suspends its task and all agents of the
 * task, a warning the party that triggered it, an info nothing. A suspended agent takes no work of
 * any task; the setting suspension.scope limits a critical escalation to its task. If amp.json does
 * not set it, the environment's AMP_SUSPENSION does: a loop sets it for its filters.
 */
#ifndef AMP_WORK_TASK_SUSPEND_H
#define AMP_WORK_TASK_SUSPEND_H

#include <amp/protocol/protocol.h>

#include "message/store/store.h"

#define AMP_SUSPENSION_ENV "AMP_SUSPENSION" /* task, or another value for agents */

/* Sets suspension.scope of amp.json for the process: "agents" (the default without
 * AMP_SUSPENSION_ENV) or "task". arg is ignored. USAGE bad_value. */
int amp_suspend_set_scope(void *arg, const char *text, struct amp_error *err);
#define AMP_SUSPEND_SETTINGS                                                                       \
    {                                                                                              \
        "suspension.scope", amp_suspend_set_scope                                                  \
    }

struct amp_suspend {
    struct amp_span task_id, ref; /* ref: the escalation's msg_id */
    const char *type, *triggered_by;
    enum amp_level level;
    const char *by; /* the actor, for the log */
    /* Reports the agents that are suspended and the task that causes it; may be NULL. */
    void (*say)(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
    const char *agent; /* also related, although it claimed nothing; or NULL */
    int64_t now_ms;
};
/* Idempotent. Related agents are those that claimed work of the task and those whose last task it
 * was. Call amp_store_sync before reporting the suspension. */
int amp_suspend_task(struct amp_store *s, const struct amp_suspend *a, struct amp_error *err);
/* Suspends by the view of an escalation; uses only by, say and now_ms of `how`. */
int amp_suspend_view(struct amp_store *s, const struct amp_view *escalation,
                     const struct amp_suspend *how, struct amp_error *err);

/* After a decision: lifts the suspensions of the task's agents by `ref` (empty: by any escalation
 * of the task). The coordinator lifts the task's own suspension. */
int amp_task_lift_agents(struct amp_store *s, struct amp_span task_id, struct amp_span ref,
                         int64_t now_ms, struct amp_error *err);

#endif
