/* Queries and updates of tasks; each update is one compare-and-set. */
#include "work/task/task.h"

#include <string.h>

#include "base/codes.h"
#include "work/task/record.h"

#define RECORD_MAX ((size_t)16 << 20)

bool amp_task_ended(uint8_t state)
{
    return amp_task_fsm.terminal >> state & 1;
}

bool amp_task_is_open(uint8_t state)
{
    return !amp_task_ended(state) && state != AMP_TASK_NEW;
}

int amp_task_status(struct amp_store *s, struct amp_span task_id, struct amp_task_status *out,
                    struct amp_error *err)
{
    AMP_TASK struct amp_task t = {0};
    struct amp_store_rec rec;
    if (amp_store_get(s, AMP_KEY(AMP_TASK_KIND, task_id), &rec, err) < 0)
        return -1;
    if (!rec.found) { /* nothing to read: the router asks for each message */
        *out = (struct amp_task_status){.state = AMP_TASK_NEW};
        return 0;
    }
    if (amp_task_read(&t, &rec, task_id, err) < 0)
        return -1;
    *out = (struct amp_task_status){.found = true,
                                    .suspended = amp_task_is_suspended(&t),
                                    .terminal = amp_task_ended(t.state),
                                    .ci_failed = json_is_true(json_object_get(t.ci, "failed")),
                                    .state = t.state,
                                    .reject_count = t.reject_count};
    amp_span_copy(amp_span_str(t.suspended.ref), out->ref, sizeof out->ref);
    return 0;
}

int amp_task_suspended(struct amp_store *s, struct amp_span task_id, struct amp_error *err)
{
    struct amp_task_status st;
    return amp_task_status(s, task_id, &st, err) < 0 ? -1 : st.suspended;
}

int amp_task_has_subtask(struct amp_store *s, struct amp_span task_id, struct amp_span subtask_id,
                         struct amp_error *err)
{
    AMP_TASK struct amp_task t = {0};
    if (amp_task_load(s, task_id, &t, NULL, err) < 0)
        return -1;
    return amp_task_part(&t, subtask_id) != NULL;
}

int amp_task_each_agent(struct amp_store *s, struct amp_span task_id,
                        int (*fn)(void *ctx, const char *agent, struct amp_error *err), void *ctx,
                        struct amp_error *err)
{
    AMP_TASK struct amp_task t = {0};
    size_t i;
    json_t *agent;
    if (amp_task_load(s, task_id, &t, NULL, err) < 0)
        return -1;
    json_array_foreach (t.agents, i, agent)
        if (json_is_string(agent) && fn(ctx, json_string_value(agent), err) < 0)
            return -1;
    return 0;
}

/* One update of a task's record. apply: 0 changed, 1 unchanged, -1 failure. */
struct change {
    int (*apply)(struct amp_task *t, const void *arg, struct amp_error *err);
    const void *arg;
    struct amp_span id;
    const char *event, *actor;
    int64_t now_ms;
    struct amp_buf json;
};

static int change_apply(void *ctx, const struct amp_store_rec *now, struct amp_store_change *out,
                        struct amp_error *err)
{
    struct change *c = ctx;
    AMP_TASK struct amp_task t = {0};
    if (amp_task_read(&t, now, c->id, err) < 0)
        return -1;
    int rc = c->apply(&t, c->arg, err);
    if (rc != 0)
        return rc;
    if (!t.created_ms)
        t.created_ms = c->now_ms;
    t.updated_ms = c->now_ms;
    amp_buf_reset(&c->json);
    if (amp_task_write(&t, &c->json, err) < 0)
        return -1;
    out->event = c->event;
    out->to = amp_task_fsm.states[t.state].name;
    out->json = amp_buf_span(&c->json);
    out->actor = c->actor;
    return 0;
}

static int task_update(struct amp_store *s, struct change *c, enum amp_store_outcome *outcome,
                       struct amp_error *err)
{
    amp_buf_init(&c->json, RECORD_MAX);
    int rc =
        amp_store_update(s, AMP_KEY(AMP_TASK_KIND, c->id), NULL, change_apply, c, outcome, err);
    amp_buf_release(&c->json);
    return rc;
}

static int suspend_apply(struct amp_task *t, const void *arg, struct amp_error *err)
{
    const struct amp_task_suspension *a = arg;
    char ref[AMP_TASK_REF_MAX];
    struct amp_fsm_result r;
    if (amp_task_ended(t->state))
        return 1;
    if (!amp_span_copy(a->ref, ref, sizeof ref) || !*ref)
        return amp_fail(err, AMP_DATAERR, bad_value, "a suspension needs its escalation's id");
    size_t before = json_array_size(t->open);
    const struct amp_task_asked asked = {
        .ref = ref, .type = a->type ? a->type : "unknown", .severity = "critical"};
    if (amp_task_open_escalation(t, &asked, a->now_ms, err) < 0)
        return -1;
    if (json_array_size(t->open) == before)
        return 1;
    if (amp_fsm_step(&amp_task_fsm, t->state, AMP_TASK_EV_SUSPEND, 0, &r, err) < 0)
        return -1;
    t->state = r.to;
    return 0;
}

int amp_task_suspend(struct amp_store *s, const struct amp_task_suspension *a,
                     struct amp_error *err)
{
    struct change c = {.apply = suspend_apply,
                       .arg = a,
                       .id = a->task_id,
                       .event = amp_task_fsm.events[AMP_TASK_EV_SUSPEND].name,
                       .actor = a->by,
                       .now_ms = a->now_ms};
    enum amp_store_outcome outcome;
    if (task_update(s, &c, &outcome, err) < 0)
        return -1;
    if (outcome != AMP_STORE_COMMITTED)
        return 0;
    return amp_store_sync(s, err) < 0 ? -1 : amp_task_file(s, c.id, err);
}

static bool is_current(const struct amp_task *t, struct amp_span dispatch)
{
    for (size_t i = 0; i < t->n_parts; i++)
        if (amp_span_is(dispatch, t->parts[i].dispatch_ref))
            return true;
    return amp_span_is(dispatch, t->source_ref);
}

static int claim_apply(struct amp_task *t, const void *arg, struct amp_error *err)
{
    const struct amp_task_claim *a = arg;
    if (amp_task_is_suspended(t))
        return amp_fail(err, AMP_NO, suspended, "task %s is suspended by %s", t->id,
                        t->suspended.ref);
    if (t->n_parts == 0)
        return 1;
    if (amp_task_ended(t->state))
        return amp_fail(err, AMP_NO, terminal, "task %s is %s", t->id,
                        amp_task_fsm.states[t->state].name);
    if (a->dispatch_ref.n && !is_current(t, a->dispatch_ref))
        return amp_fail(err, AMP_NO, stale_dispatch,
                        "task %s has a newer dispatch than the one taken", t->id);
    if (amp_task_lists(t->agents, a->agent))
        return 1;
    if (json_array_append_new(t->agents, json_string(a->agent)) < 0)
        return amp_fail_memory(err);
    return 0;
}

int amp_task_claim(struct amp_store *s, const struct amp_task_claim *a, struct amp_error *err)
{
    struct change c = {.apply = claim_apply,
                       .arg = a,
                       .id = a->task_id,
                       .event = "engage",
                       .actor = a->agent,
                       .now_ms = a->now_ms};
    enum amp_store_outcome outcome;
    return task_update(s, &c, &outcome, err);
}

/* The task's event for an effect of its subtask's step; the first match is used. */
static const struct {
    uint32_t effect;
    uint8_t event;
} task_events[] = {
    {AMP_QA_DO_FINISH, AMP_TASK_EV_FINISH}, {AMP_QA_DO_FAIL, AMP_TASK_EV_FAIL},
    {AMP_QA_DO_END, AMP_TASK_EV_TERMINATE}, {AMP_QA_DO_ESC_LOCK, AMP_TASK_EV_LOCK},
    {AMP_QA_DO_REVIEW, AMP_TASK_EV_REVIEW}, {AMP_QA_DO_NEXT, AMP_TASK_EV_DISPATCH},
};

int amp_task_event_of(const struct amp_fsm_result *r)
{
    for (unsigned i = 0; i < sizeof task_events / sizeof task_events[0]; i++)
        if (r->effects & task_events[i].effect)
            return task_events[i].event;
    if (r->effects & AMP_QA_DO_DISPATCH)
        return r->to == AMP_QA_REWORK ? AMP_TASK_EV_REWORK : AMP_TASK_EV_DISPATCH;
    if (r->to == AMP_QA_HELD && r->row->from != AMP_QA_HELD)
        return AMP_TASK_EV_HOLD;
    if (r->row->event == AMP_QA_EV_WITHDRAW && r->to != r->row->from)
        return r->to == AMP_QA_IN_REVIEW ? AMP_TASK_EV_REVIEW
               : r->to == AMP_QA_REWORK  ? AMP_TASK_EV_REWORK
                                         : AMP_TASK_EV_DISPATCH;
    return -1;
}
