/* Budgets and the limits of accounts: their records, the warning, the change of the day. */
#include <string.h>

#include "../scratch.h"
#include "../tap.h"
#include "work/item/claim/account.h"
#include "work/loop/pool/budget.h"

#define DAY INT64_C(86400000)

static struct amp_store *s;
static struct amp_error err;

enum { WARNS_DAY = 1 << AMP_BUDGET_DAY, SPENT_DAY = 1 << (AMP_BUDGET_DAY + 8) };

static unsigned spend(const struct amp_budgets *b, const char *agent, int64_t tokens, int64_t now)
{
    const struct amp_worker_usage used = {.input_tokens = tokens - 1, .output_tokens = 1};
    unsigned crossed = 99;

    return amp_budget_spend(s, b, "T-1", agent, &used, now, &crossed, &err) < 0 ? 99 : crossed;
}

static int allows(const struct amp_budgets *b, const char *task, const char *agent, int64_t now)
{
    enum amp_budget_of of = AMP_BUDGET_COUNT;

    int rc = amp_budget_allows(s, b, task, agent, now, &of, &err);
    return rc == 0 ? 10 + (int)of : rc;
}

static void test_budgets(void)
{
    const struct amp_budgets b = {
        .day = {.tokens = 1000}, .agent = {.tokens = 5000}, .warn_percent = 80};
    const int64_t last = 20 * DAY - 1;

    TAP_INT(spend(&b, "a", 799, last), 0, "below the warning");
    TAP_INT(spend(&b, "b", 1, last), WARNS_DAY, "80 % are reached: the warning");
    TAP_INT(spend(&b, "a", 100, last), 0, "the warning is given once");
    TAP_INT(allows(&b, NULL, NULL, last), 1, "90 % allow new work");
    TAP_INT(spend(&b, "a", 100, last), SPENT_DAY, "exactly 100 %: spent");
    TAP_INT(spend(&b, "a", 100, last), 0, "the end is reported once");
    TAP_INT(allows(&b, NULL, NULL, last), 10 + AMP_BUDGET_DAY, "no new work");
    TAP_INT(amp_budget_next_day(last), 20 * DAY, "until the next day of UTC");
    TAP_INT(allows(&b, NULL, NULL, 20 * DAY), 1, "which begins with a budget of its own");
    TAP_INT(spend(&b, "a", 800, 20 * DAY), WARNS_DAY, "and a warning of its own");

    const struct amp_budgets of = {
        .task = {.tokens = 1900}, .agent = {.tokens = 800}, .warn_percent = 80};
    TAP_INT(allows(&of, "T-1", NULL, 21 * DAY), 10 + AMP_BUDGET_TASK,
            "a task has one budget for all days");
    TAP_INT(allows(&of, "T-2", "a", 20 * DAY), 10 + AMP_BUDGET_AGENT,
            "an agent has one of the day");
    TAP_INT(allows(&of, "T-2", "b", 20 * DAY), 1, "of its own");
    TAP_INT(allows(&of, "T-2", "a", 21 * DAY), 1, "and a new one on the next day");
    const struct amp_budgets usd = {.day = {.micros = 1500000}, .warn_percent = 80};
    const struct amp_worker_usage cost = {.cost_micros = 1500000};
    unsigned crossed;
    TAP_INT(amp_budget_spend(s, &usd, "T-3", "c", &cost, 30 * DAY, &crossed, &err), 0, "a cost");
    TAP_INT(crossed, WARNS_DAY | SPENT_DAY, "both at once");
}

static void test_accounts(void)
{
    json_auto_t *types = json_pack("{s:{s:s}, s:{s:s}, s:{}}", "builder", "account", "plan",
                                   "tester", "account", "plan", "painter");
    const struct amp_queue_settings set = {.types = types};
    struct amp_accounts known = {.set = &set};
    struct amp_account limit = {"plan", "builder-1", 1000, 5000};
    int64_t until = -1;

    TAP_INT(amp_account_limit(s, &limit, &err), 1, "a limit");
    limit.until_ms = 4000;
    TAP_INT(amp_account_limit(s, &limit, &err), 0, "one that ends earlier changes nothing");
    TAP_INT(amp_accounts_load(&known, s, 2000, &err), 0, "known");
    TAP_INT(amp_accounts_closed(&known, AMP_SPAN("tester")), 5000,
            "it is of all types of the account");
    TAP_INT(amp_accounts_closed(&known, AMP_SPAN("painter")), 0, "and of no other");
    TAP_INT(amp_accounts_closed(&known, AMP_SPAN("plan")), 5000,
            "a type of that name is of the account");
    TAP_INT(amp_account_until(s, AMP_SPAN("plan"), 5000, &until, &err), 0, "its end");
    TAP_INT(until, 0, "has come");
    TAP_INT(amp_account_lift(s, &set, "plan", "ann", 3000, &err), 1, "lifted");
    TAP_INT(amp_account_lift(s, &set, "plan", "ann", 3000, &err), 0, "once");
    TAP_INT(amp_accounts_load(&known, s, 3000, &err), 0, "known");
    TAP_INT(amp_accounts_closed(&known, AMP_SPAN("builder")), 0, "open");
}

int main(void)
{
    if (amp_store_open(scratch(), NULL, &s, &err) < 0) {
        printf("Bail out! %s\n", err.what);
        return 1;
    }
    test_budgets();
    test_accounts();
    amp_store_close(s);
    return tap_done();
}
