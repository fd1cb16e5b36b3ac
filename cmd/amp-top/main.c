/* amp-top: a live view of a state directory. */
#include <string.h>
#include <unistd.h>

#include "base/codes.h"
#include "message/delivery/history/find.h"
#include "shared/config.h"
#include "shared/config_schema.h"
#include "shared/state.h"
#include "top.h"
#include "work/agent/agent.h"

const char *top_state, *top_config;
struct amp_identity_cli top_identity = AMP_IDENTITY_CLI;
static int64_t lock_timeout_ms = AMP_LOCK_TIMEOUT_MS;
static const char *format, *list;
static bool once, json;

static const char *const formats[] = {"text", "ndjson", NULL};
static const char *const lists[] = {
#define X(id, title, tab, word) word,
    TOP_PANES(X)
#undef X
        NULL};

static const struct amp_opt options[] = {
    AMP_OPT_STATE(top_state),
    {0, "once", AMP_OPT_FLAG, &once, NULL, .doc = "print the lists once, also on a terminal"},
    {0, "format", AMP_OPT_CHOICE, &format, "FORMAT", .doc = "print them once, as text or ndjson",
     .choices = formats},
    {0, "json", AMP_OPT_FLAG, &json, NULL, .doc = "the same as --format ndjson"},
    {0, "show", AMP_OPT_CHOICE, &list, "LIST", .doc = "begin with this list, or print only it",
     .choices = lists},
    AMP_OPT_CONFIG(top_config),
    AMP_OPT_LOCK_TIMEOUT(lock_timeout_ms),
    AMP_OPT_IDENTITIES(top_identity),
    AMP_OPT_END,
};

static int top_check(struct amp_command *c, struct amp_error *err);
static int top_run(struct amp_command *c, struct amp_error *err);
static const struct amp_verb verbs[] = {
    {NULL, "", "watch agents, tasks and messages", NULL, top_run, .check = top_check,
     .opens = AMP_OPENS_LOOK, .finds_state = true},
    {0},
};
static const int statuses[] = {
    AMP_OK,    AMP_USAGE,    AMP_DATAERR, AMP_UNAVAILABLE, AMP_INTERNAL,
    AMP_IOERR, AMP_TEMPFAIL, AMP_NOPERM,  AMP_CONFIG,      AMP_INTERRUPTED,
    0};
AMP_CONFIG_SUSPENDER;
static const struct amp_tool tool = {
    .name = "amp-top",
    .doc = "watch agents, tasks, messages and questions, and answer",
    .opts = options,
    .verbs = (const struct amp_verb *const[]){verbs, NULL},
    .statuses = statuses,
    AMP_STATE_OF_TOOL,
    AMP_CONFIG_OF_RECORDER,
};

/* Why this process can change nothing; NULL: it can. */
static const char *read_only_why(struct amp_error *err)
{
    char path[4200];
    snprintf(path, sizeof path, "%s/log", top_state);
    if (top_act_allowed("act in amp-top", err) < 0)
        return err->what;
    return access(path, W_OK) == 0 ? NULL : "the state directory cannot be written";
}

static enum top_pane list_find(void)
{
    int p = 0;
    while (list && p < TOP_PANE_COUNT && strcmp(list, top_pane_word((enum top_pane)p)) != 0)
        p++;
    return list ? (enum top_pane)p : TOP_PANE_COUNT;
}

static int plain_run(struct amp_store *s, struct amp_error *err)
{
    struct top_model m = {0};
    struct top_source src;
    int rc = top_source_open(&src, s, &m, err);
    if (rc == 0)
        rc = top_plain_print(&m, format && strcmp(format, "ndjson") == 0, list_find(), err);
    top_source_close(&src);
    top_model_release(&m);
    return rc;
}

static int top_check(struct amp_command *c, struct amp_error *err)
{
    (void)c, (void)err;
    if (json && format && strcmp(format, "ndjson") != 0)
        amp_die_usage("--json and --format %s exclude each other", format);
    if (json)
        format = "ndjson";
    return 0;
}

static int top_run(struct amp_command *c, struct amp_error *err)
{
    struct amp_error why;

    if (once || format || !top_screen_possible())
        return plain_run(c->store, err);
    enum top_pane first = list_find();
    amp_signals_install();
    int rc = top_loop(c->store, first == TOP_PANE_COUNT ? TOP_TASKS : first,
                      amp_color_of(STDOUT_FILENO), read_only_why(&why), err);
    return rc == 0 && amp_stop ? amp_fail(err, AMP_INTERRUPTED, interrupted, "interrupted") : rc;
}

int main(int argc, char **argv)
{
    return amp_cli_main(&tool, argc, argv);
}
