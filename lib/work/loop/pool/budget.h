/*
 * Counts what the agents of a state use (tokens and cost, per task, per agent and day, and per
 * day), and has the budgets for them (section `budgets` of amp.json). Keys "expense.task/<id>",
 * "expense.agent/<name>/<day>", "expense.day/<day>"; a day is one of UTC. Agents report what they
 * used (amp-agent-control(7)): a budget stops new work, it does not end an attempt.
 */
#ifndef AMP_WORK_LOOP_POOL_BUDGET_H
#define AMP_WORK_LOOP_POOL_BUDGET_H

#include <jansson.h>

#include "work/attempt/worker.h"

#define AMP_EXPENSE_KIND "expense"

/* 0: no limit. */
struct amp_budget_limit {
    int64_t micros, tokens;
};
struct amp_budgets {
    struct amp_budget_limit task, agent, day; /* agent: each agent, a day */
    int64_t warn_percent;                     /* default 80 */
};
/* CONFIG bad_value. */
int amp_budgets_load(struct amp_budgets *out, const json_t *config, struct amp_error *err);

struct amp_expense {
    int64_t micros, tokens_in, tokens_out;
};

enum amp_budget_of { AMP_BUDGET_TASK, AMP_BUDGET_AGENT, AMP_BUDGET_DAY, AMP_BUDGET_COUNT };
const char *amp_budget_name(enum amp_budget_of of); /* "task", "agent", "day" */

/* Adds what an attempt used. crossed gets a bit for each budget that reaches its warning with this
 * attempt (1 << of), and in the upper half (1 << (of + 8)) its limit. */
int amp_budget_spend(struct amp_store *s, const struct amp_budgets *b, const char *task,
                     const char *agent, const struct amp_worker_usage *used, int64_t now_ms,
                     unsigned *crossed, struct amp_error *err);
/* Whether new work may begin: 1; 0: the budget *of is spent. task and agent may be NULL. */
int amp_budget_allows(struct amp_store *s, const struct amp_budgets *b, const char *task,
                      const char *agent, int64_t now_ms, enum amp_budget_of *of,
                      struct amp_error *err);
/* Gets what was used, for lists; name: of the task or agent, "" for the day. */
int amp_budget_used(struct amp_store *s, enum amp_budget_of of, const char *name, int64_t now_ms,
                    struct amp_expense *out, struct amp_error *err);
const struct amp_budget_limit *amp_budget_limit_of(const struct amp_budgets *b,
                                                   enum amp_budget_of of);
/* Whether `percent` of the limit is used. */
bool amp_budget_reached(const struct amp_budget_limit *l, const struct amp_expense *s,
                        int64_t percent);
/* The beginning of the next day. */
int64_t amp_budget_next_day(int64_t now_ms);

#endif
