/* The records of approvals. */
#include "agent/approval.h"

#include <string.h>

#include "agent/capability.h"
#include "base/codes.h"
#include "protocol/compose/json.h"
#include "json/record.h"

#define KIND "task_approval"

static const struct amp_rec_field fields[] = {
    AMP_REC_EVER(CSTR, struct amp_task_approval, "person", person),
    AMP_REC_EVER(CSTR, struct amp_task_approval, "why", why),
    AMP_REC_EVER(TIME, struct amp_task_approval, "at", now_ms),
};
AMP_REC_TABLE(approval_rec, "the approval of a task", struct amp_task_approval, fields);

struct giving {
    const struct amp_task_approval *a;
    const char *actor;
    struct amp_buf json;
};

static int on_give(void *ctx, const struct amp_store_rec *now, struct amp_store_change *c,
                   struct amp_error *err)
{
    struct giving *g = ctx;

    (void)now;
    amp_buf_reset(&g->json);
    if (amp_rec_write(&approval_rec, g->a, &g->json, err) < 0)
        return -1;
    c->event = "approve";
    c->to = "APPROVED";
    c->actor = g->actor;
    c->json = amp_buf_span(&g->json);
    return 0;
}

int amp_approval_give(struct amp_store *s, const struct amp_task_approval *a, const char *actor,
                      struct amp_error *err)
{
    struct giving g = {a, actor, {.max = AMP_REC_MAX}};
    int rc = amp_store_update(s, AMP_KEY(KIND, a->task), NULL, on_give, &g, NULL, err);

    amp_buf_release(&g.json);
    return rc < 0 ? -1 : 0;
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
    if (amp_store_get(s, AMP_KEY(KIND, task), &rec, err) < 0)
        return -1;
    return rec.found ? 0
                     : amp_fail(err, AMP_NO, approval_required,
                                "the capability %.*s has a high risk, and no person approved the "
                                "task %.*s (agent-registry approve)",
                                AMP_CLIP(capability[i - 1], 100), AMP_CLIP(task, 100));
}
