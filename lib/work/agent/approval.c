/* The records of approvals. */
#include "work/agent/approval.h"

#include <string.h>

#include "base/codes.h"
#include "message/protocol/compose/json.h"
#include "message/record/subject.h"
#include "work/agent/capability.h"

static const struct amp_rec_field fields[] = {
    AMP_REC_EVER(CSTR, struct amp_task_approval, "person", person),
    AMP_REC_EVER(CSTR, struct amp_task_approval, "why", why),
    AMP_REC_EVER(TIME, struct amp_task_approval, "at", now_ms),
};
AMP_REC_TABLE(approval_rec, "the approval of a task", struct amp_task_approval, fields);

static const char *const states[] = {"APPROVED", NULL};
static const struct amp_subject approvals = {
    .kind = "task_approval", .table = &approval_rec, .states = states};

int amp_approval_give(struct amp_store *s, const struct amp_task_approval *a, const char *actor,
                      struct amp_error *err)
{
    return amp_subject_put(&approvals, s, AMP_KEY(approvals.kind, a->task), a, false, "approve",
                           actor, err);
}

int amp_approval_check(struct amp_store *s, struct amp_span task, const struct amp_span *capability,
                       uint32_t n, struct amp_error *err)
{
    bool high = false;
    uint32_t i = 0;

    for (; i < n && !high; i++) {
        struct amp_capability cap;
        if (amp_capability_find(s, capability[i], &cap, err) < 0)
            return -1;
        high = strcmp(amp_json_str(cap.catalog, "riskClass"), "high") == 0;
        amp_capability_release(&cap);
    }
    if (!high || task.n == 0)
        return 0;
    struct amp_store_rec rec;
    if (amp_store_get(s, AMP_KEY(approvals.kind, task), &rec, err) < 0)
        return -1;
    return rec.found ? 0
                     : amp_fail(err, AMP_NO, approval_required,
                                "the capability %.*s has a high risk, and no person approved the "
                                "task %.*s (agent-registry approve)",
                                AMP_CLIP(capability[i - 1], 100), AMP_CLIP(task, 100));
}
