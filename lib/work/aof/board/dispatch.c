/* Dispatch (AOF/1, Protocol 1): leases, heartbeats, and the tasks that executors get. */
#include <stdio.h>
#include <string.h>

#include <amp/base/clock.h>
#include <amp/base/num.h>

#include "work/aof/board/private.h"

/* ---- the lease ---- */

static int beat_put(struct amp_aof_work *w, const char *id, const char *agent, int64_t ttl_ms,
                    int64_t count, struct amp_error *err)
{
    AMP_BUF struct amp_buf out = {0};
    char path[AMP_AOF_PATH_MAX];
    const struct amp_aof_beat beat = {.task = amp_span_str(id),
                                      .agent = amp_span_str(agent),
                                      .at_ms = w->c.now_ms,
                                      .expires_ms = w->c.now_ms + ttl_ms,
                                      .count = count};
    amp_buf_init(&out, 65536);
    amp_aof_run_path(path, id, "run_heartbeat.json");
    return amp_aof_beat_write(&beat, &out, err) < 0
               ? -1
               : amp_aof_put(&w->c, path, amp_buf_span(&out), err);
}

int amp_aof_run_begin(struct amp_aof_work *w, const struct amp_aof_task *t, struct amp_error *err)
{
    AMP_BUF struct amp_buf out = {0};
    char path[AMP_AOF_PATH_MAX];
    const struct amp_aof_run run = {.task = amp_span_str(t->id),
                                    .agent = amp_span_str(w->agent),
                                    .status = "running",
                                    .started_ms = w->c.now_ms};
    amp_buf_init(&out, 65536);
    amp_aof_run_path(path, t->id, "run_result.json");
    if (amp_aof_drop(&w->c, path, err) < 0 || amp_aof_run_write(&run, AMP_SPAN(""), &out, err) < 0)
        return -1;
    amp_aof_run_path(path, t->id, "run.json");
    return amp_aof_put(&w->c, path, amp_buf_span(&out), err) < 0
               ? -1
               : beat_put(w, t->id, w->agent, w->lease->beat_ms, 0, err);
}

static int agent_event(struct amp_aof_work *w, const char *type, const char *id,
                       struct amp_span agent, struct amp_error *err)
{
    AMP_BUF struct amp_buf payload = {0};
    struct amp_jw j;
    amp_buf_init(&payload, 65536);
    amp_jw_init(&j, &payload);
    amp_jw_open(&j, '{');
    amp_jw_member_str(&j, "agent", agent);
    amp_jw_close(&j, '}');
    return amp_jw_end(&j, err) < 0
               ? -1
               : amp_aof_event_add(&w->c, type, amp_span_str(id), amp_buf_span(&payload), err);
}

int amp_aof_assigned_event(struct amp_aof_work *w, const char *id, struct amp_span agent,
                           struct amp_error *err)
{
    return agent_event(w, "task.assigned", id, agent, err);
}

/* The events before and after the move of a task that an executor gets. */
static int match_events(struct amp_aof_work *w, const struct amp_aof_task *t, struct amp_error *err)
{
    struct amp_span agent = amp_span_str(w->agent);
    return (t->agent.n == 0 && agent_event(w, "dispatch.fallback", t->id, agent, err) < 0) ||
                   agent_event(w, "dispatch.matched", t->id, agent, err) < 0 ||
                   amp_aof_assigned_event(w, t->id, agent, err) < 0
               ? -1
               : 0;
}

/* The change of a dispatch. 1; -1. */
static int task_give(struct amp_aof_work *w, const struct amp_aof_task *t,
                     struct amp_aof_given *out, struct amp_error *err)
{
    enum amp_aof_moved moved;
    struct amp_span agent = t->agent.n > 0 ? t->agent : amp_span_str(w->lease->agent);
    amp_span_copy(agent, out->agent, sizeof out->agent);
    w->agent = out->agent;
    if (match_events(w, t, err) < 0 ||
        amp_aof_transition(w, t, AMP_AOF_TASK_EV_DISPATCH, AMP_SPAN("dispatched"), "", &moved,
                           err) < 0 ||
        agent_event(w, "lease.acquired", t->id, agent, err) < 0)
        return -1;
    snprintf(out->id, sizeof out->id, "%s", t->id);
    out->since_ms = w->c.now_ms;
    amp_buf_reset(&out->text);
    return amp_buf_add(&out->text, t->text.data, t->text.len, err) < 0 ? -1 : 1;
}

int amp_aof_dispatch(struct amp_aof_router *r, const struct amp_aof_lease *how,
                     struct amp_aof_given *out, struct amp_error *err)
{
    for (;;) {
        AMP_AOF_WORK struct amp_aof_work w = {0};
        AMP_AOF_TASK struct amp_aof_task t = {0};
        amp_aof_task_init(&t);
        if (amp_aof_work_begin(r, &w, err) < 0)
            return -1;
        w.lease = how;
        int found = amp_aof_choose(&w, how, &t, err);
        int given = found > 0 ? task_give(&w, &t, out, err) : found;
        if (given < 0)
            return -1;
        if (amp_aof_work_commit(&w, err) < 0)
            return -1;
        /* A person who moved it at the same moment keeps it. */
        if (found == 0 || (given > 0 && !w.cut))
            return given;
    }
}

/* Returns how long before its end a lease is renewed: at the last beat but one. */
static int64_t renewal_ms(const struct amp_aof_lease *how)
{
    return 2 * amp_aof_beat_every(how);
}

int64_t amp_aof_beat_every(const struct amp_aof_lease *how)
{
    int64_t beat = how->beat_ms / 3, lease = how->lease_ms / 4;
    return beat < lease ? beat : lease;
}

/* Whether the task is still in progress with the lease that it was given out with; a person may
 * have removed its time. */
static bool is_leased(const struct amp_aof_task *t, const struct amp_aof_given *g)
{
    return t->status == AMP_AOF_IN_PROGRESS && amp_span_is(t->lease, g->agent) &&
           (t->lease_since_ms == 0 || t->lease_since_ms == g->since_ms);
}

int amp_aof_heartbeat(struct amp_aof_router *r, const struct amp_aof_given *g,
                      const struct amp_aof_lease *how, int64_t count, struct amp_error *err)
{
    AMP_AOF_WORK struct amp_aof_work w = {0};
    AMP_AOF_TASK struct amp_aof_task t = {0};
    char expires[AMP_TIME_MAX], number[24];
    struct amp_error why;
    amp_aof_task_init(&t);
    if (amp_aof_work_begin(r, &w, err) < 0)
        return -1;
    int rc = amp_aof_load(&r->data, g->id, &t, &why);
    if ((rc = amp_aof_if_usable(rc, &why, err)) < 0)
        return -1;
    if (rc == 0 || !is_leased(&t, g))
        return 0;
    int64_t left = t.lease_expires_ms - w.c.now_ms;
    if (t.renewals >= how->renewals && left <= 0)
        return 1;
    if (beat_put(&w, g->id, g->agent, how->beat_ms, count, err) < 0)
        return -1;
    if (t.renewals < how->renewals && left < renewal_ms(how)) {
        amp_time_format(w.c.now_ms + how->lease_ms, expires);
        snprintf(number, sizeof number, "%lld", (long long)t.renewals + 1);
        const struct amp_aof_set set[] = {{"lease.expiresAt", amp_span_str(expires)},
                                          {"lease.renewCount", amp_span_str(number)}};
        if (amp_aof_edit(&w.c, g->id, t.status, set, 2, AMP_SPAN(""), err) < 0 ||
            agent_event(&w, "lease.renewed", g->id, amp_span_str(g->agent), err) < 0)
            return -1;
    }
    return amp_aof_work_commit(&w, err);
}

int amp_aof_dispatch_error(struct amp_aof_router *r, const struct amp_aof_given *g,
                           const char *reason, const char *what, bool back, struct amp_error *err)
{
    AMP_AOF_WORK struct amp_aof_work w = {0};
    AMP_AOF_TASK struct amp_aof_task t = {0};
    const struct amp_aof_why why = {.reason = reason, .errors = what};
    enum amp_aof_moved moved;
    struct amp_error none;
    amp_aof_task_init(&t);
    if (amp_aof_work_begin(r, &w, err) < 0 ||
        amp_aof_why_event(&w, "dispatch.error", amp_span_str(g->id), &why, err) < 0)
        return -1;
    w.expired = strcmp(reason, AMP_AOF_LEASE_EXPIRED) == 0;
    int rc = back ? amp_aof_load(&r->data, g->id, &t, &none) : 0;
    if (back && (rc = amp_aof_if_usable(rc, &none, err)) < 0)
        return -1;
    if (rc > 0 && is_leased(&t, g) &&
        (amp_aof_run_end(&w, g->id, reason, err) < 0 ||
         amp_aof_transition(&w, &t, AMP_AOF_TASK_EV_READY, amp_span_str(reason), "", &moved, err) <
             0))
        return -1;
    return amp_aof_work_commit(&w, err);
}

int amp_aof_system(struct amp_aof_router *r, const char *type, struct amp_error *err)
{
    AMP_AOF_WORK struct amp_aof_work w = {0};
    return amp_aof_work_begin(r, &w, err) < 0 ||
                   amp_aof_event_add(&w.c, type, AMP_SPAN(""), AMP_SPAN("{}"), err) < 0
               ? -1
               : amp_aof_work_commit(&w, err);
}

int amp_aof_action(struct amp_aof_router *r, const struct amp_aof_given *g, const char *type,
                   const char *action, const char *result, struct amp_error *err)
{
    AMP_AOF_WORK struct amp_aof_work w = {0};
    AMP_BUF struct amp_buf payload = {0};
    struct amp_jw j;
    amp_buf_init(&payload, 65536);
    amp_jw_init(&j, &payload);
    amp_jw_open(&j, '{');
    amp_jw_member_text(&j, "action", action);
    amp_jw_member_text(&j, "agent", g->agent);
    amp_jw_some_str(&j, "result", amp_span_str(result));
    amp_jw_close(&j, '}');
    return amp_jw_end(&j, err) < 0 || amp_aof_work_begin(r, &w, err) < 0 ||
                   amp_aof_event_add(&w.c, type, amp_span_str(g->id), amp_buf_span(&payload), err) <
                       0
               ? -1
               : amp_aof_work_commit(&w, err);
}
