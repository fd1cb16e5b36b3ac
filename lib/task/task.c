/* The questions and the small changes of task.h, each one compare-and-set. */
#include "task/task.h"

#include <stdio.h>
#include <string.h>

#include <amp/base/clock.h>

#include "task/record.h"

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
    struct amp_task t;
    struct amp_task_status n = {0};
    if (amp_task_load(s, task_id, &t, &n.found, err) < 0)
        return -1;
    n.state = t.state;
    n.suspended = amp_task_is_suspended(&t);
    n.terminal = amp_task_ended(t.state);
    n.ci_failed = json_is_true(json_object_get(t.ci, "failed"));
    n.reject_count = t.reject_count;
    n.since_ms = t.suspended.since_ms;
    amp_span_copy(amp_span_str(t.suspended.ref), n.ref, sizeof n.ref);
    amp_task_release(&t);
    *out = n;
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
    struct amp_task t;
    bool found;
    if (amp_task_load(s, task_id, &t, &found, err) < 0)
        return -1;
    int has = amp_task_part(&t, subtask_id) != NULL;
    amp_task_release(&t);
    return has;
}

int amp_task_each_agent(struct amp_store *s, struct amp_span task_id,
                        int (*fn)(void *ctx, const char *agent, struct amp_error *err), void *ctx,
                        struct amp_error *err)
{
    struct amp_task t;
    bool found;
    if (amp_task_load(s, task_id, &t, &found, err) < 0)
        return -1;
    int rc = 0;
    for (size_t i = 0; i < json_array_size(t.agents) && rc == 0; i++)
        if (json_is_string(json_array_get(t.agents, i)))
            rc = fn(ctx, json_string_value(json_array_get(t.agents, i)), err);
    amp_task_release(&t);
    return rc < 0 ? -1 : 0;
}

/* One update of a task's record by a function on the struct. */
struct change {
    int (*apply)(struct amp_task *t, const void *arg, bool *changed, struct amp_error *err);
    const void *arg;
    struct amp_span id;
    const char *event, *actor;
    int64_t now_ms;
    struct amp_buf json;
};

static int change_cb(void *ctx, const struct amp_store_rec *now, struct amp_store_change *out,
                     struct amp_error *err)
{
    struct change *c = ctx;
    struct amp_task t;
    bool changed = false;
    if (amp_task_read(&t, now, c->id, err) < 0)
        return -1;
    int rc = c->apply(&t, c->arg, &changed, err);
    if (rc == 0 && !changed)
        rc = 1;
    if (rc == 0) {
        if (!t.created_ms)
            t.created_ms = c->now_ms;
        t.updated_ms = c->now_ms;
        amp_buf_reset(&c->json);
        rc = amp_task_write(&t, &c->json, err);
        out->event = c->event;
        out->to = amp_task_fsm.states[t.state].name;
        out->json = amp_buf_span(&c->json);
        out->actor = c->actor;
    }
    amp_task_release(&t);
    return rc;
}

static int task_update(struct amp_store *s, struct change *c, bool *committed,
                       struct amp_error *err)
{
    enum amp_store_outcome outcome;
    amp_buf_init(&c->json, RECORD_MAX);
    int rc = amp_store_update(s, AMP_KEY(AMP_TASK_KIND, c->id), NULL, change_cb, c, &outcome, err);
    amp_buf_release(&c->json);
    if (rc == 0)
        *committed = outcome == AMP_STORE_COMMITTED;
    return rc;
}

static int task_step(struct amp_task *t, uint8_t event, uint32_t facts, struct amp_error *err)
{
    struct amp_fsm_result r;
    if (amp_fsm_step(&amp_task_fsm, t->state, event, facts, &r, err) < 0)
        return -1;
    t->state = r.to;
    return 0;
}

static int suspend_apply(struct amp_task *t, const void *arg, bool *changed, struct amp_error *err)
{
    const struct amp_task_suspension *a = arg;
    char ref[AMP_TASK_REF_MAX];
    if (amp_task_ended(t->state))
        return 0;
    if (!amp_span_copy(a->ref, ref, sizeof ref) || !*ref)
        return amp_fail(err, AMP_DATAERR, "bad_value", "a suspension needs its escalation's id");
    size_t before = json_array_size(t->open);
    if (amp_task_open_escalation(t, ref, a->type ? a->type : "unknown", "critical", a->now_ms,
                                 err) < 0)
        return -1;
    *changed = json_array_size(t->open) != before;
    return *changed ? task_step(t, AMP_TASK_EV_SUSPEND, 0, err) : 0;
}

static int change_and_file(struct amp_store *s, struct change *c, struct amp_error *err)
{
    bool committed = false;
    if (task_update(s, c, &committed, err) < 0)
        return -1;
    if (!committed)
        return 0;
    if (amp_store_sync(s, err) < 0)
        return -1;
    return amp_task_file(s, c->id, err);
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
    return change_and_file(s, &c, err);
}

static bool is_current(const struct amp_task *t, struct amp_span dispatch)
{
    for (size_t i = 0; i < t->n_parts; i++)
        if (amp_span_is(dispatch, t->parts[i].dispatch_ref))
            return true;
    return amp_span_is(dispatch, t->source_ref);
}

static int claim_apply(struct amp_task *t, const void *arg, bool *changed, struct amp_error *err)
{
    const struct amp_task_claim *a = arg;
    if (amp_task_is_suspended(t))
        return amp_fail(err, AMP_NO, "suspended", "task %s is suspended by %s", t->id,
                        t->suspended.ref);
    if (t->n_parts == 0)
        return 0;
    if (amp_task_ended(t->state))
        return amp_fail(err, AMP_NO, "terminal", "task %s is %s", t->id,
                        amp_task_fsm.states[t->state].name);
    if (a->dispatch_ref.n && !is_current(t, a->dispatch_ref))
        return amp_fail(err, AMP_NO, "stale_dispatch",
                        "task %s has a newer dispatch than the one taken", t->id);
    if (amp_task_lists(t->agents, a->agent))
        return 0;
    if (json_array_append_new(t->agents, json_string(a->agent)) < 0)
        return amp_fail_memory(err);
    *changed = true;
    return 0;
}

int amp_task_claim(struct amp_store *s, const struct amp_task_claim *a, struct amp_error *err)
{
    struct change c = {.apply = claim_apply,
                       .arg = a,
                       .id = a->task_id,
                       .event = "claim",
                       .actor = a->agent,
                       .now_ms = a->now_ms};
    bool committed;
    return task_update(s, &c, &committed, err);
}

/* First match: what happened to the task, given what its subtask did. */
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
    return -1;
}
