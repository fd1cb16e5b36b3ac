/* task-dispatch queue accounts: the usage limits of accounts, and their end by a person. */
#include <stdlib.h>
#include <unistd.h>

#include <amp/base/clock.h>
#include <amp/json/writer.h>

#include "../verbs.h"
#include "cli/table.h"
#include "cli/time.h"
#include "desk.h"
#include "flow/identity/person.h"
#include "queue.h"

static bool lift, json;

const struct amp_opt queue_accounts_opts[] = {
    {0, "lift", AMP_OPT_FLAG, &lift, NULL, "end the limits of the named accounts"},
    {0, "json", AMP_OPT_FLAG, &json, NULL, "print one JSON object per account"},
    AMP_OPT_END,
};

static int account_print(void *ctx, const struct amp_account *a, struct amp_error *err)
{
    AMP_BUF struct amp_buf line = {.max = 4096};
    char since[AMP_TIME_MAX], until[AMP_TIME_MAX];
    struct amp_jw w;

    if (!json) {
        amp_time_format(a->since_ms, since);
        amp_time_format(a->until_ms, until);
        const struct amp_span cells[] = {amp_span_str(a->name), amp_span_str(until),
                                         amp_span_str(since), amp_span_str(a->agent)};
        return amp_table_row(ctx, cells, sizeof cells / sizeof *cells, err);
    }
    amp_jw_init(&w, &line);
    amp_jw_open(&w, '{');
    amp_jw_member_text(&w, "account", a->name);
    amp_time_member(&w, "until", a->until_ms);
    amp_time_member(&w, "since", a->since_ms);
    amp_jw_member_text(&w, "agent", a->agent);
    amp_jw_close(&w, '}');
    return amp_jw_end_line(&w, err) < 0 ? -1 : amp_out(amp_buf_span(&line), err);
}

static int accounts_lift(struct queue_desk *d, char **names, struct amp_error *err)
{
    for (int i = 0; names[i]; i++) {
        int rc = amp_account_lift(d->store, &d->set, names[i], amp_cli_login("operator"),
                                  amp_now_ms(), err);
        if (rc < 0)
            return -1;
        if (rc == 0)
            return amp_fail(err, AMP_NO, "unknown_account", "the account %s has no usage limit",
                            names[i]);
    }
    return amp_store_sync(d->store, err);
}

static int accounts_list(struct queue_desk *d, struct amp_error *err)
{
    static const char *const head[] = {"ACCOUNT", "UNTIL", "SINCE", "AGENT"};
    struct amp_table table;

    amp_table_init(&table, head, sizeof head / sizeof *head);
    table.fit = amp_page_columns(STDOUT_FILENO);
    int rc = amp_accounts_each(d->store, amp_now_ms(), account_print, &table, err);
    if (rc == 0 && !json && d->accounts.n)
        rc = amp_table_print(&table, err);
    else if (rc == 0 && !json)
        amp_note("no account in %s has a usage limit", task_state);
    amp_table_release(&table);
    return rc;
}

int queue_accounts(int argc, char **argv)
{
    struct queue_desk d = {0};
    struct amp_error err;
    int rc;

    if (lift != (argc > 0))
        amp_die_usage(lift ? "no account: give its name" : "names are only for --lift");
    if (lift &&
        amp_flow_person_only(task_state, amp_cli_name(), environ, "lift usage limits", &err) < 0)
        return amp_complain(&err);
    rc = queue_desk_open(&d, lift, &err) < 0 ? -1
         : lift                              ? accounts_lift(&d, argv, &err)
                                             : accounts_list(&d, &err);
    queue_desk_close(&d);
    return rc < 0 ? amp_complain(&err) : AMP_OK;
}
