/*
 * Checks what a TASK uses against its budgets of tokens and money (AOP §2.2, §5). The agent reports
 * it, in lines of its control FIFO and in its answer; the budgets count over all models of the
 * attempt. A number that the agent reports later never lowers what it reported before: what is
 * spent is spent.
 */
#include <stdio.h>
#include <string.h>

#include <amp/base/clock.h>

#include "base/codes.h"
#include "message/protocol/compose/json.h"
#include "message/protocol/delivery.h"
#include "message/protocol/work.h"
#include "work/aop/run/private.h"
#include "work/aop/session/admit.h"
#include "work/attempt/control.h"

#define SAVE_MS 1000 /* between two records of a run's usage */
#define MOST    AMP_USAGE_MOST

static int64_t amount_sum(int64_t a, int64_t b)
{
    return a > MOST - b ? MOST : a + b;
}

static bool at_least(int64_t *to, int64_t n)
{
    if (n > MOST)
        n = MOST;
    if (n <= *to)
        return false;
    *to = n;
    return true;
}

static struct amp_session_usage total_of(const struct amp_tasking *t)
{
    struct amp_session_usage all = t->spent.ended;

    amp_session_usage_add(&all, &t->spent.now);
    return all;
}

static int64_t cost_total(const struct amp_tasking *t)
{
    return amount_sum(t->spent.cost_micros, amp_session_usage_cost(&t->spent.now));
}

static void run_end(struct amp_spending *s, const struct amp_session_usage *run)
{
    amp_session_usage_add(&s->ended, run);
    s->cost_micros = amount_sum(s->cost_micros, amp_session_usage_cost(run));
}

/* For the pool, whose budgets count what this work of the worker used: an earlier one of the same
 * attempt was counted then. */
static void pool_tell(struct amp_tasking *t)
{
    const struct amp_session_usage all = total_of(t);
    const struct amp_spending *s = &t->spent;

    t->w->left.usage =
        (struct amp_worker_usage){.input_tokens = all.tokens_in - s->earlier.tokens_in,
                                  .output_tokens = all.tokens_out - s->earlier.tokens_out,
                                  .cost_micros = cost_total(t) - s->earlier_micros};
}

static void budgets_check(struct amp_tasking *t)
{
    const struct amp_aop_policy *p = &t->policy;
    const struct amp_session_usage all = total_of(t);
    int64_t tokens = amount_sum(all.tokens_in, all.tokens_out);
    double cost = (double)cost_total(t) / 1e6;

    if (!amp_aop_within(&p->tokens, (double)tokens))
        amp_tasking_fail(t, AMP_CODE(E_COST_LIMIT_EXCEEDED), true,
                         "%lld tokens were used, the limit is %.0f", (long long)tokens,
                         p->tokens.value);
    if (!amp_aop_within(&p->cost_usd, cost))
        amp_tasking_fail(t, AMP_CODE(E_COST_LIMIT_EXCEEDED), true,
                         "%.6g USD were spent, the limit is %.6g", cost, p->cost_usd.value);
}

bool amp_expense_all(const struct amp_tasking *t)
{
    const struct amp_aop_policy *p = &t->policy;
    const struct amp_session_usage all = total_of(t);
    int64_t tokens = amount_sum(all.tokens_in, all.tokens_out), cost = cost_total(t);

    /* A budget of 0 from which nothing was spent is not used up: a local model costs nothing. */
    return (p->tokens.limited && tokens > 0 && (double)tokens >= p->tokens.value) ||
           (p->cost_usd.limited && cost > 0 && (double)cost / 1e6 >= p->cost_usd.value);
}

void amp_expense_used(const struct amp_tasking *t, struct amp_session_usage *out)
{
    const struct amp_session_usage *before = &t->spent.before;

    *out = total_of(t);
    out->tokens_in -= before->tokens_in;
    out->tokens_out -= before->tokens_out;
    out->micros -= before->micros;
    out->estimated -= before->estimated;
}

/* ---- the record ---- */

/* Loads what this attempt used before this process was started. */
static int earlier_load(struct amp_tasking *t, struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {.max = 1u << 22};
    struct amp_session_task rec;
    int found =
        amp_session_task_find(t->w->store, amp_span_str(t->session), t->v->task, &mem, &rec, err);

    for (uint32_t i = 0; found > 0 && i < rec.n_tries; i++)
        if (rec.tries[i].attempt == amp_attempt_of(t->v))
            run_end(&t->spent, &rec.tries[i].used);
    return found < 0 ? -1 : 0;
}

static int usage_save(struct amp_tasking *t, struct amp_error *err)
{
    struct amp_session_usage used;
    const struct amp_session_voice v = {t->w->store, t->w->opt->consumer, amp_now_ms()};

    amp_expense_used(t, &used);
    t->spent.unsaved = false;
    t->spent.saved_ms = amp_mono_ms();
    return amp_session_cost(&v, t->v, &used, err);
}

/* ---- a run ---- */

int amp_expense_begin(struct amp_tasking *t, struct amp_error *err)
{
    struct amp_spending *s = &t->spent;

    if (!s->loaded && earlier_load(t, err) < 0)
        return -1;
    if (!s->loaded) {
        s->earlier = s->ended;
        s->earlier_micros = s->cost_micros;
    }
    if (!s->loaded || s->model_at != t->model_at)
        s->before = s->ended;
    s->loaded = true;
    s->model_at = t->model_at;
    return 0;
}

static void usage_take(struct amp_tasking *t, const struct amp_worker_usage *u, int64_t estimated)
{
    struct amp_session_usage *now = &t->spent.now;

    bool more = at_least(&now->tokens_in, u->input_tokens);
    more |= at_least(&now->tokens_out, u->output_tokens);
    more |= at_least(&now->micros, u->cost_micros);
    more |= at_least(&now->estimated, estimated);
    t->spent.unsaved |= more;
    t->spent.reported = true;
    pool_tell(t);
    budgets_check(t);
}

int amp_expense_line(struct amp_tasking *t, const struct amp_control_line *l, struct amp_error *err)
{
    struct amp_worker_usage u;

    if (l->kind != AMP_CONTROL_USAGE)
        return 0;
    amp_usage_read(l->in, &u);
    usage_take(t, &u, 0);
    return t->failing && t->spent.unsaved ? usage_save(t, err) : 0;
}

int amp_expense_turn(struct amp_tasking *t, int64_t *wait_ms, struct amp_error *err)
{
    int64_t left = t->spent.saved_ms + SAVE_MS - amp_mono_ms();

    if (!t->spent.unsaved)
        return 0;
    if (left <= 0 || !t->spent.saved_ms)
        return usage_save(t, err);
    if (*wait_ms < 0 || *wait_ms > left)
        *wait_ms = left;
    return 0;
}

/* The answer's cost_tracking (of a RESPONSE), and its usage (of result.json). */
static void answer_take(struct amp_tasking *t)
{
    const json_t *cost = json_object_get(t->answer, "cost_tracking"),
                 *usage = json_object_get(t->answer, "usage");
    struct amp_worker_usage u;

    if (json_is_object(usage)) {
        amp_usage_read(usage, &u);
        usage_take(t, &u, 0);
    }
    if (!json_is_object(cost))
        return;
    u = (struct amp_worker_usage){
        .input_tokens = amp_amount_read(json_object_get(cost, "tokens_input"), 1),
        .output_tokens = amp_amount_read(json_object_get(cost, "tokens_output"), 1),
        .cost_micros = amp_amount_read(json_object_get(cost, "actual_cost_usd"), 1e6)};
    usage_take(t, &u, amp_amount_read(json_object_get(cost, "estimated_cost_usd"), 1e6));
    snprintf(t->spent.tier, sizeof t->spent.tier, "%s", amp_json_str(cost, "model_pricing_tier"));
}

int amp_expense_end(struct amp_tasking *t, struct amp_error *err)
{
    answer_take(t);
    if (t->spent.unsaved && usage_save(t, err) < 0)
        return -1;
    run_end(&t->spent, &t->spent.now);
    t->spent.now = (struct amp_session_usage){0};
    pool_tell(t);
    return 0;
}

/* ---- the RESPONSE ---- */

int amp_expense_report(const struct amp_tasking *t, json_t **out, struct amp_error *err)
{
    const struct amp_session_usage all = total_of(t);
    bool any = all.tokens_in || all.tokens_out || all.micros || all.estimated;

    *out = NULL;
    if (!any && !t->spent.reported)
        return 0;
    json_auto_t *cost = json_pack("{s:I, s:I}", "tokens_input", (json_int_t)all.tokens_in,
                                  "tokens_output", (json_int_t)all.tokens_out);
    if (!cost ||
        (all.estimated && json_object_set_new(cost, "estimated_cost_usd",
                                              json_real((double)all.estimated / 1e6)) < 0) ||
        ((all.micros || !all.estimated) &&
         json_object_set_new(cost, "actual_cost_usd", json_real((double)all.micros / 1e6)) < 0))
        return amp_fail_memory(err);
    json_auto_t *tier = amp_json_text(t->spent.tier);
    if (tier)
        amp_json_put(cost, "model_pricing_tier", json_string_value(tier));
    *out = json_incref(cost);
    return 0;
}
