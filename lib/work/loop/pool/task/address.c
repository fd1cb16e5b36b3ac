/* Tasks of the Runtime Protocol for other agents than the one that got the job. */
#include <stdio.h>
#include <string.h>

#include <amp/base/clock.h>

#include "base/codes.h"
#include "work/agent/work.h"
#include "work/loop/pool/private.h"
#include "work/rtp/run/runtime.h"

/* An agent of the pool whose task it is. 1, 0, or -1: failure. */
static int slot_find(const struct amp_slot *slot, const struct amp_view *v,
                     const struct amp_slot **out, struct amp_error *err)
{
    const struct amp_pool *p = slot->pool;

    for (uint32_t i = 0; i < p->n_slots; i++) {
        const struct amp_slot *s = p->slot[i];
        if (s == slot || s->type != slot->type || s->quit)
            continue;
        int rc = amp_runtime_is_ours(&s->w, v, err);
        if (rc > 0)
            *out = s;
        if (rc != 0)
            return rc;
    }
    return 0;
}

/* Whether an agent of another pool that works now is named. */
static int is_elsewhere(const struct amp_slot *slot, const struct amp_view *v,
                        struct amp_error *err)
{
    char name[AMP_QUEUE_WORKER_MAX];
    struct amp_agent_status st;

    for (uint32_t i = 0; i < v->n_to; i++) {
        if (!amp_span_copy(v->to[i], name, sizeof name))
            continue;
        if (amp_agent_status(slot->w.store, name, &st, err) < 0)
            return -1;
        if (st.found && st.state != AMP_AGENT_SHUTTING_DOWN && strcmp(name, slot->agent) != 0)
            return 1;
    }
    return 0;
}

int amp_pool_misdirected(struct amp_slot *slot, const struct amp_view *v,
                         struct amp_pool_outcome *out, struct amp_error *err)
{
    const struct amp_slot *s = NULL;
    int found = slot_find(slot, v, &s, err);

    if (found == 0)
        found = is_elsewhere(slot, v, err);
    if (found < 0)
        return -1;
    if (!found) {
        out->end = AMP_POOL_FAILED;
        snprintf(out->code, sizeof out->code, AMP_CODE(not_assignee));
        snprintf(out->why, sizeof out->why,
                 "the task names other agents, and none of them is here");
        slot->w.opt->note("%s: not_assignee: %s", slot->job.id, out->why);
        return 0;
    }
    out->end = AMP_POOL_PARKED;
    int64_t now = amp_now_ms();
    bool is_free = s && !s->has_job && s->limited_ms <= now;
    out->until_ms = now + (is_free ? 1 : slot->opt.pause_ms);
    snprintf(out->code, sizeof out->code, AMP_CODE(not_assignee));
    snprintf(out->why, sizeof out->why, "for another agent%s%s", s ? ": " : "", s ? s->agent : "");
    snprintf(out->agent, sizeof out->agent, "%s", s ? s->agent : "?");
    return 0;
}
