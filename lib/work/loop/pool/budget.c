/* The records of what was used, and the budgets. */
#include "work/loop/pool/budget.h"

#include <stdio.h>
#include <string.h>

#include <amp/base/clock.h>

#include "base/codes.h"
#include "json/record.h"

#define DAY_MS INT64_C(86400000)

static const struct amp_rec_field fields[] = {
    AMP_REC_EVER(INT, struct amp_expense, "cost_micros", micros),
    AMP_REC_EVER(INT, struct amp_expense, "input_tokens", tokens_in),
    AMP_REC_EVER(INT, struct amp_expense, "output_tokens", tokens_out),
};
AMP_REC_TABLE(spent_rec, "a record of what was used", struct amp_expense, fields);

const char *amp_budget_name(enum amp_budget_of of)
{
    static const char *const names[] = {"task", "agent", "day"};
    return names[of];
}

/* ---- settings ---- */

static int limit_load(struct amp_budget_limit *l, const json_t *section, const char *name,
                      struct amp_error *err)
{
    const json_t *in = json_object_get(section, name);
    const json_t *usd = json_object_get(in, "usd"), *tokens = json_object_get(in, "tokens");
    double micros = json_number_value(usd) * 1e6;

    if ((usd && (!json_is_number(usd) || micros < 0 || micros > 1e15)) ||
        (tokens && (!json_is_integer(tokens) || json_integer_value(tokens) < 0)))
        return amp_fail(err, AMP_CONFIG, bad_value,
                        "budgets.%s: expected {\"usd\": number, \"tokens\": integer}", name);
    l->micros = (int64_t)(micros + 0.5);
    l->tokens = json_integer_value(tokens);
    return 0;
}

int amp_budgets_load(struct amp_budgets *out, const json_t *config, struct amp_error *err)
{
    const json_t *b = json_object_get(config, "budgets");
    const json_t *warn = json_object_get(b, "warn_percent");

    *out = (struct amp_budgets){.warn_percent = warn ? json_integer_value(warn) : 80};
    if (out->warn_percent < 1 || out->warn_percent > 100)
        return amp_fail(err, AMP_CONFIG, bad_value, "budgets.warn_percent: expected 1 to 100");
    return limit_load(&out->task, b, "task", err) < 0 ||
                   limit_load(&out->agent, b, "agent", err) < 0 ||
                   limit_load(&out->day, b, "day", err) < 0
               ? -1
               : 0;
}

const struct amp_budget_limit *amp_budget_limit_of(const struct amp_budgets *b,
                                                   enum amp_budget_of of)
{
    return of == AMP_BUDGET_TASK ? &b->task : of == AMP_BUDGET_AGENT ? &b->agent : &b->day;
}

bool amp_budget_reached(const struct amp_budget_limit *l, const struct amp_expense *s,
                        int64_t percent)
{
    int64_t tokens = s->tokens_in + s->tokens_out;

    return (l->micros > 0 && (double)s->micros * 100 >= (double)l->micros * (double)percent) ||
           (l->tokens > 0 && (double)tokens * 100 >= (double)l->tokens * (double)percent);
}

/* ---- records ---- */

static struct amp_key key_of(enum amp_budget_of of, const char *name, int64_t now_ms, char day[24])
{
    struct amp_span what = amp_span_str(amp_budget_name(of));

    snprintf(day, 24, "%lld", (long long)(now_ms / DAY_MS));
    if (of == AMP_BUDGET_TASK)
        return AMP_KEY(AMP_EXPENSE_KIND, what, amp_span_str(name));
    if (of == AMP_BUDGET_DAY)
        return AMP_KEY(AMP_EXPENSE_KIND, what, amp_span_str(day));
    return AMP_KEY(AMP_EXPENSE_KIND, what, amp_span_str(name), amp_span_str(day));
}

struct adding {
    const struct amp_worker_usage *used;
    struct amp_expense before, after;
    struct amp_buf mem, json;
};

static int on_add(void *ctx, const struct amp_store_rec *now, struct amp_store_change *c,
                  struct amp_error *err)
{
    struct adding *a = ctx;

    a->before = (struct amp_expense){0};
    if (now->found && amp_rec_parse(&spent_rec, now->json, &a->mem, &a->before, err) < 0)
        return -1;
    a->after = (struct amp_expense){a->before.micros + a->used->cost_micros,
                                    a->before.tokens_in + a->used->input_tokens,
                                    a->before.tokens_out + a->used->output_tokens};
    amp_buf_reset(&a->json);
    int rc = amp_rec_write(&spent_rec, &a->after, &a->json, err);
    c->event = "spend";
    c->to = "KNOWN";
    c->json = amp_buf_span(&a->json);
    return rc;
}

int amp_budget_spend(struct amp_store *s, const struct amp_budgets *b, const char *task,
                     const char *agent, const struct amp_worker_usage *used, int64_t now_ms,
                     unsigned *crossed, struct amp_error *err)
{
    const char *const names[] = {task, agent, NULL};
    struct adding a = {.used = used};
    char day[24];
    int rc = 0;

    *crossed = 0;
    if (!used->cost_micros && !used->input_tokens && !used->output_tokens)
        return 0;
    amp_buf_init(&a.mem, AMP_REC_MAX);
    amp_buf_init(&a.json, AMP_REC_MAX);
    for (int of = 0; of < AMP_BUDGET_COUNT && rc == 0; of++) {
        const struct amp_budget_limit *l = amp_budget_limit_of(b, (enum amp_budget_of)of);
        rc = amp_store_update(s, key_of((enum amp_budget_of)of, names[of], now_ms, day), NULL,
                              on_add, &a, NULL, err);
        if (rc < 0)
            break;
        if (amp_budget_reached(l, &a.after, b->warn_percent) &&
            !amp_budget_reached(l, &a.before, b->warn_percent))
            *crossed |= 1u << of;
        if (amp_budget_reached(l, &a.after, 100) && !amp_budget_reached(l, &a.before, 100))
            *crossed |= 1u << (of + 8);
    }
    amp_buf_release(&a.mem);
    amp_buf_release(&a.json);
    return rc;
}

int amp_budget_used(struct amp_store *s, enum amp_budget_of of, const char *name, int64_t now_ms,
                    struct amp_expense *out, struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {0};
    struct amp_store_rec rec;
    char day[24];

    *out = (struct amp_expense){0};
    amp_buf_init(&mem, AMP_REC_MAX);
    if (amp_store_get(s, key_of(of, name, now_ms, day), &rec, err) < 0)
        return -1;
    return rec.found ? amp_rec_parse(&spent_rec, rec.json, &mem, out, err) : 0;
}

int amp_budget_allows(struct amp_store *s, const struct amp_budgets *b, const char *task,
                      const char *agent, int64_t now_ms, enum amp_budget_of *of,
                      struct amp_error *err)
{
    const char *const names[] = {task, agent, ""};

    for (int i = 0; i < AMP_BUDGET_COUNT; i++) {
        const struct amp_budget_limit *l = amp_budget_limit_of(b, (enum amp_budget_of)i);
        struct amp_expense spent;
        if (!names[i] || (!l->micros && !l->tokens))
            continue;
        if (amp_budget_used(s, (enum amp_budget_of)i, names[i], now_ms, &spent, err) < 0)
            return -1;
        if (amp_budget_reached(l, &spent, 100)) {
            *of = (enum amp_budget_of)i;
            return 0;
        }
    }
    return 1;
}

int64_t amp_budget_next_day(int64_t now_ms)
{
    return (now_ms / DAY_MS + 1) * DAY_MS;
}
