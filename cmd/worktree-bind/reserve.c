/* reserve, release, reservations. */
#include "work/git/paths/reserve.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/clock.h>

#include "bind.h"
#include "work/git/person.h"

static struct amp_reserve_spec spec;

/* Refuses agents that are not the holder: the agent that calls, or the person's login; --holder
 * names another one. */
static int holder_check(const char *act, struct amp_error *err)
{
    static char name[128];
    struct amp_agent_caller caller;
    bool agent = amp_agent_calls(environ, &caller);
    snprintf(name, sizeof name, "%s", agent ? caller.name : amp_cli_login("unknown"));
    spec.person = !agent && !opt.holder;
    spec.holder = opt.holder ? opt.holder : name;
    return amp_person_or_self(environ, spec.holder, act, err);
}

struct row {
    struct amp_reservation r;
    int64_t since_ms;
    struct amp_span task; /* for people */
};

static const struct amp_column columns[] = {
    AMP_COLUMN_EVER(TEXT, struct row, "holder", "holder", r.holder),
    AMP_COLUMN(TEXT, struct row, "task_id", NULL, r.task),
    AMP_COLUMN(TEXT, struct row, NULL, "task", task),
    AMP_COLUMN_EVER(TEXT, struct row, "pattern", "pattern", r.pattern),
    AMP_COLUMN_EVER(TIME, struct row, "since", NULL, since_ms),
    {0},
};

static int reservation_print(void *ctx, const struct amp_reservation *r, int64_t since_ms,
                             struct amp_error *err)
{
    const struct row row = {*r, since_ms, r->task.n ? r->task : AMP_SPAN("-")};
    return amp_listing_row(ctx, &row, err);
}

/* Syncs the records, then writes the file that the hooks read. */
static int binder_publish(struct binder *s, struct amp_error *err)
{
    return amp_store_sync(s->store, err) < 0 ||
                   amp_reserve_publish(s->store, s->info.common, err) < 0
               ? -1
               : 0;
}

static int reserve_check(struct amp_command *c, struct amp_error *err)
{
    (void)c;
    return holder_check("reserve paths for it", err);
}

static int verb_reserve(struct amp_command *c, struct amp_error *err)
{
    spec.task = opt.task;
    spec.patterns = (const char *const *)c->argv;
    spec.n = c->argc;
    spec.now_ms = amp_now_ms();
    return amp_reserve(c->store, &spec, err) < 0 ? -1 : binder_publish(c->own, err);
}

static int release_check(struct amp_command *c, struct amp_error *err)
{
    if ((c->argc == 0) != opt.all)
        amp_die_usage("either GLOB... or --all is required");
    return holder_check("release its paths", err);
}

static int verb_release(struct amp_command *c, struct amp_error *err)
{
    uint32_t n = 0;
    spec.patterns = (const char *const *)c->argv;
    spec.n = c->argc;
    if (amp_reserve_release(c->store, &spec, &n, err) < 0 || binder_publish(c->own, err) < 0)
        return -1;
    return n > 0 || c->argc == 0 ? 0 : AMP_NO;
}

static int verb_reservations(struct amp_command *c, struct amp_error *err)
{
    c->list->tabs = true;
    return binder_publish(c->own, err) < 0
               ? -1
               : amp_reserve_each(c->store, reservation_print, c->list, err);
}

#define HOLDER                                                                                     \
    AMP_OPT_ROW(0, "holder", AMP_OPT_STRING, &opt.holder, "AGENT",                                 \
                "holder (default: the agent that calls, or your login)")

static const struct amp_opt reserve_opts[] = {
    HOLDER,
    {0, "task", AMP_OPT_STRING, &opt.task, "TASK", .doc = "task that the paths are reserved for",
     .values = "task"},
    AMP_OPT_END,
};
static const struct amp_opt release_opts[] = {
    HOLDER,
    {0, "all", AMP_OPT_FLAG, &opt.all, NULL, .doc = "all reservations of the holder"},
    AMP_OPT_END,
};

const struct amp_verb reserve_verbs[] = {
    {"reserve", "GLOB...", "reserve paths for an agent or yourself", reserve_opts, verb_reserve,
     .least = 1, .usage = "at least one GLOB is required", .check = reserve_check,
     .opens = AMP_OPENS_MADE, .group = "Reservations", .who = AMP_WHO_SELF},
    {"release", "[GLOB...]", "release reserved paths", release_opts, verb_release,
     .check = release_check, .opens = AMP_OPENS_MADE, .who = AMP_WHO_SELF},
    {"reservations", "", "print the reservations", NULL, verb_reservations, .opens = AMP_OPENS_MADE,
     .lists = columns},
    {0},
};
