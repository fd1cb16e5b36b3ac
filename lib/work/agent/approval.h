/*
 * Approvals of tasks by people. A task that requires a published capability of the riskClass "high"
 * is accepted only after a person approved it (approval_required). Key "task_approval.<task>".
 */
#ifndef AMP_WORK_AGENT_APPROVAL_H
#define AMP_WORK_AGENT_APPROVAL_H

#include "message/store/store.h"

struct amp_task_approval {
    struct amp_span task;
    const char *person, *why;
    int64_t now_ms;
};
/* Commits the approval; the last one counts. The caller syncs. */
int amp_approval_give(struct amp_store *s, const struct amp_task_approval *a, const char *actor,
                      struct amp_error *err);

/* Whether a task with these capabilities may be accepted. NO approval_required. */
int amp_approval_check(struct amp_store *s, struct amp_span task, const struct amp_span *capability,
                       uint32_t n, struct amp_error *err);

#endif
