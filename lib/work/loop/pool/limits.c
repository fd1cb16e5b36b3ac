/* Usage limits of accounts, and budgets, keep jobs from starting. */
#include <stdio.h>
#include <string.h>

#include <amp/base/clock.h>

#include "work/loop/pool/private.h"

/* ---- usage limits ---- */

int amp_pool_limit(struct amp_slot *slot, struct amp_error *err)
{
    struct amp_pool *p = slot->pool;
    int64_t now = amp_now_ms(), until = slot->w.left.limit_ms;
    char name[AMP_QUEUE_TYPE_MAX], text[AMP_TIME_MAX];

    if (until <= now || until <= slot->account_ms)
        return 0;
    slot->account_ms = until;
    amp_span_copy(amp_account_of(&p->opt->queue, amp_span_str(slot->type->name)), name,
                  sizeof name);
    const struct amp_account a = {name, slot->agent, now, until};
    int rc = amp_account_limit(p->store, &a, err);
    if (rc <= 0)
        return rc;
    amp_time_format(until, text);
    p->opt->worker.note("usage_limit: %s reached the limit of the account %s: no new work of it "
                        "until %s",
                        slot->agent, name, text);
    p->look = true;
    return 0;
}

int amp_pool_account_closed(struct amp_pool *p, const struct amp_pool_job *job,
                            struct amp_error *err)
{
    int64_t until;

    if (amp_account_until(p->store, amp_account_of(&p->opt->queue, amp_span_str(job->type)),
                          amp_now_ms(), &until, err) < 0)
        return -1;
    if (until)
        p->look = true;
    return until > 0;
}

/* ---- budgets ---- */

static const char *task_of(const struct amp_pool_job *job)
{
    return *job->task ? job->task : job->id;
}

int amp_pool_budgets_look(struct amp_pool *p, struct amp_error *err)
{
    const struct amp_budgets *b = &p->opt->budgets;
    int64_t now = amp_now_ms();
    enum amp_budget_of of;

    int allowed = amp_budget_allows(p->store, b, NULL, NULL, now, &of, err);
    if (allowed < 0)
        return -1;
    if (!allowed && !p->blocked)
        p->opt->worker.note("budget_exceeded: the budget of the day is spent; no new work until "
                            "the next day (UTC)");
    p->blocked = !allowed;
    p->budget_ms = p->blocked ? amp_budget_next_day(now) : 0;
    for (uint32_t i = p->first; i < p->n_slots && !p->blocked; i++) {
        struct amp_slot *s = p->slot[i];
        if (s->has_job || s->counted || s->limited_ms > now)
            continue;
        allowed = amp_budget_allows(p->store, b, NULL, s->agent, now, &of, err);
        if (allowed < 0)
            return -1;
        s->counted = true;
        s->limited_ms = allowed ? 0 : amp_budget_next_day(now);
        if (!allowed)
            p->opt->worker.note("budget_exceeded: the budget of the agent %s is spent; it gets no "
                                "new work until the next day (UTC)",
                                s->agent);
    }
    return p->blocked;
}

int amp_pool_task_allows(struct amp_pool *p, const struct amp_pool_job *job, struct amp_error *err)
{
    enum amp_budget_of of;

    return amp_budget_allows(p->store, &p->opt->budgets, task_of(job), NULL, amp_now_ms(), &of,
                             err);
}

static void crossed_note(const struct amp_slot *slot, unsigned crossed)
{
    const struct amp_pool_options *o = slot->pool->opt;

    for (int of = 0; of < AMP_BUDGET_COUNT; of++) {
        const char *whose = of == AMP_BUDGET_TASK    ? task_of(&slot->job)
                            : of == AMP_BUDGET_AGENT ? slot->agent
                                                     : "today";
        if (crossed & 1u << (of + 8))
            o->worker.note("budget_exceeded: the budget of the %s %s is spent: no new work",
                           amp_budget_name((enum amp_budget_of)of), whose);
        else if (crossed & 1u << of)
            o->worker.note("budget_warning: %lld %% of the budget of the %s %s are used",
                           (long long)o->budgets.warn_percent,
                           amp_budget_name((enum amp_budget_of)of), whose);
    }
}

int amp_pool_spend(struct amp_slot *slot, struct amp_error *err)
{
    struct amp_pool *p = slot->pool;
    unsigned crossed;

    if (amp_budget_spend(p->store, &p->opt->budgets, task_of(&slot->job), slot->agent,
                         &slot->w.left.usage, amp_now_ms(), &crossed, err) < 0)
        return -1;
    slot->counted = false;
    crossed_note(slot, crossed);
    return 0;
}
