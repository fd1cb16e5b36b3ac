/* Suspends the task first, then each agent. If the process dies in between, the next one that reads
 * the escalation suspends the rest. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/codes.h"
#include "message/protocol/amp/compose.h"
#include "work/agent/work.h"
#include "work/task/record.h"
#include "work/task/suspend.h"
#include "work/task/task.h"

static const char *scope; /* NULL: amp.json has none */

int amp_suspend_set_scope(void *arg, const char *text, struct amp_error *err)
{
    (void)arg;
    if (strcmp(text, "task") != 0 && strcmp(text, "agents") != 0)
        return amp_fail(err, AMP_USAGE, bad_value, "\"%s\": expected agents or task", text);
    scope = strcmp(text, "task") == 0 ? "task" : "agents";
    return 0;
}

static bool is_task_only(void)
{
    const char *set = scope ? scope : getenv(AMP_SUSPENSION_ENV);
    return set && strcmp(set, "task") == 0;
}

struct walk {
    struct amp_store *s;
    const struct amp_suspend *a;
    char names[400]; /* of the agents that it suspended */
    unsigned n;
};

static void name_remember(struct walk *w, const char *name)
{
    size_t used = strlen(w->names);
    if (used + strlen(name) + 8 < sizeof w->names)
        snprintf(w->names + used, sizeof w->names - used, "%s%s", used ? ", " : "", name);
    else if (used && w->names[used - 1] != '.')
        snprintf(w->names + used, sizeof w->names - used, ", ...");
    w->n++;
}

/* The callback of amp_task_each_agent. */
static int on_claimant(void *ctx, const char *name, struct amp_error *err)
{
    struct walk *w = ctx;
    const struct amp_agent_suspension one = {name, w->a->ref, w->a->task_id, w->a->now_ms};
    struct amp_agent_status st;

    if (w->a->level == AMP_LEVEL_WARNING) {
        if (amp_agent_status(w->s, name, &st, err) < 0)
            return -1;
        if (!st.found || strcmp(st.role, w->a->triggered_by))
            return 0;
    }
    bool changed;
    if (amp_agent_suspend(w->s, &one, &changed, err) < 0)
        return -1;
    if (changed)
        name_remember(w, name);
    return 0;
}

static int on_agent(void *ctx, const char *name, const struct amp_agent_status *st,
                    struct amp_error *err)
{
    return on_claimant(ctx, name, err);
}

static int is_withdrawn(struct amp_store *s, const struct amp_suspend *a, bool *yes,
                        struct amp_error *err)
{
    AMP_TASK struct amp_task t = {0};
    char ref[AMP_MSG_ID_MAX] = "";
    if (amp_task_load(s, a->task_id, &t, NULL, err) < 0)
        return -1;
    amp_span_copy(a->ref, ref, sizeof ref);
    *yes = amp_task_lists(t.withdrawn, ref);
    return 0;
}

int amp_suspend_task(struct amp_store *s, const struct amp_suspend *a, struct amp_error *err)
{
    struct walk w = {.s = s, .a = a};
    const struct amp_task_suspension t = {a->task_id, a->ref, a->type, a->by, a->now_ms};
    struct amp_task_status st;

    if (a->level == AMP_LEVEL_INFO || amp_span_is(a->task_id, AMP_TASK_NONE))
        return 0;
    if (amp_task_status(s, a->task_id, &st, err))
        return -1;
    if (st.terminal) /* no decision would lift the suspension */
        return 0;
    if (a->level == AMP_LEVEL_CRITICAL && amp_task_suspend(s, &t, err))
        return -1;
    /* Lifts suspensions that were made under the other setting. */
    if (a->level == AMP_LEVEL_CRITICAL && is_task_only())
        return amp_task_lift_agents(s, a->task_id, a->ref, a->now_ms, err);
    if (amp_task_each_agent(s, a->task_id, on_claimant, &w, err) ||
        amp_agent_each(s, a->task_id, on_agent, &w, err))
        return -1;
    const struct amp_agent_suspension one = {a->agent, a->ref, a->task_id, a->now_ms};
    bool changed = false;
    if (a->agent && amp_agent_suspend(s, &one, &changed, err))
        return -1;
    if (changed)
        name_remember(&w, a->agent);
    /* The agent may have withdrawn its question meanwhile; who lifts the suspension came too early.
     */
    if (a->level == AMP_LEVEL_WARNING) {
        bool gone;
        if (is_withdrawn(s, a, &gone, err) < 0)
            return -1;
        if (gone)
            return amp_task_lift_agents(s, a->task_id, a->ref, a->now_ms, err);
    }
    if (w.n && a->say)
        a->say("task %.*s suspends its %s %s because of %.*s: work on all other tasks also waits "
               "until the admin decides%s",
               (int)(a->task_id.n < 200 ? a->task_id.n : 200), a->task_id.p,
               w.n == 1 ? "agent" : "agents", w.names, (int)(a->ref.n < 200 ? a->ref.n : 200),
               a->ref.p,
               a->level == AMP_LEVEL_CRITICAL ? " (suspension.scope: task limits it to the task)"
                                              : "");
    return 0;
}

int amp_suspend_view(struct amp_store *s, const struct amp_view *v, const struct amp_suspend *how,
                     struct amp_error *err)
{
    char type[64], party[32];
    const struct amp_suspend a = {
        .task_id = v->task,
        .ref = v->id,
        .type = type,
        .triggered_by = party,
        .level = v->body.escalation.severity,
        .by = how->by,
        .say = how->say,
        .now_ms = how->now_ms,
    };

    amp_span_copy(v->body.escalation.type, type, sizeof type);
    amp_span_copy(v->body.escalation.triggered_by, party, sizeof party);
    return amp_suspend_task(s, &a, err);
}

struct lift {
    struct amp_store *s;
    struct amp_span ref;
    int64_t now_ms;
};

static int on_lift(void *ctx, const char *name, const struct amp_agent_status *st,
                   struct amp_error *err)
{
    struct lift *l = ctx;
    const struct amp_agent_suspension one = {name, l->ref, {NULL, 0}, l->now_ms};

    return st->suspended ? amp_agent_lift(l->s, &one, NULL, err) : 0;
}

int amp_task_lift_agents(struct amp_store *s, struct amp_span task_id, struct amp_span ref,
                         int64_t now_ms, struct amp_error *err)
{
    struct lift l = {s, ref, now_ms};
    return amp_agent_each(s, task_id, on_lift, &l, err);
}
