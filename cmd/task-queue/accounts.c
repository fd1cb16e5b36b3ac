/* task-queue accounts: the usage limits of accounts, and their end by a person. */
#include <stdlib.h>
#include <unistd.h>

#include <amp/base/clock.h>
#include <amp/json/writer.h>

#include "base/codes.h"
#include "cli/list.h"
#include "desk.h"
#include "shared/work/tool.h"

static bool lift;

static const struct amp_opt queue_accounts_opts[] = {
    {0, "lift", AMP_OPT_FLAG, &lift, NULL, "end the limits of the named accounts"},
    AMP_OPT_JSON("print one JSON object per account"),
    AMP_OPT_END,
};

#define COLUMN(form, key, head, member) AMP_COLUMN_EVER(form, struct amp_account, key, head, member)
static const struct amp_column columns[] = {
    COLUMN(CSTR, "account", "ACCOUNT", name),
    COLUMN(TIME, "until", "UNTIL", until_ms),
    COLUMN(TIME, "since", "SINCE", since_ms),
    COLUMN(CSTR, "agent", "AGENT", agent),
    {0},
};

static int accounts_lift(struct queue_desk *d, char **names, struct amp_error *err)
{
    for (int i = 0; names[i]; i++) {
        int rc = amp_account_lift(d->store, &d->set, names[i], amp_cli_login("operator"),
                                  amp_now_ms(), err);
        if (rc < 0)
            return -1;
        if (rc == 0)
            return amp_fail(err, AMP_NO, unknown_account, "the account %s has no usage limit",
                            names[i]);
    }
    return amp_store_sync(d->store, err);
}

static int accounts_check(struct amp_command *c, struct amp_error *err)
{
    (void)err;
    if (lift != (c->argc > 0))
        amp_die_usage(lift ? "no account: give its name" : "names are only for --lift");
    if (lift) {
        c->opens = AMP_OPENS_MADE;
        c->act = "lift usage limits";
        c->none = NULL;
    }
    return 0;
}

static int queue_accounts(struct amp_command *c, struct amp_error *err)
{
    struct queue_desk d;
    int rc = queue_desk_open(&d, c->store, err) < 0 ? -1
             : lift                                 ? accounts_lift(&d, c->argv, err)
                    : amp_accounts_each(c->store, amp_now_ms(), amp_listing_row, c->list, err);

    queue_desk_close(&d);
    return rc;
}

const struct amp_verb queue_accounts_verbs[] = {
    {"accounts", "[ACCOUNT…]", "list the usage limits of accounts, or end them",
     queue_accounts_opts, queue_accounts, .check = accounts_check, .opens = AMP_OPENS_READ,
     .lists = columns, .none = "no account has a usage limit", .finds_state = true,
     .who = AMP_WHO_WITH("--lift")},
    {0},
};
