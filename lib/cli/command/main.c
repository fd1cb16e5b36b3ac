/* Runs a tool: parses the arguments, runs the verb, flushes the output, returns the exit status. */
#include "base/late.h"
#include "cli/config.h"
#include "cli/list.h"
#include "cli/private.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/codes.h"

/* Opens /dev/null for closed descriptors from 0 to 2, or the next opened file would become stdout.
 * It is opened for the wrong direction, so that using it still fails. */
static void take_standard_fds(void)
{
    for (int fd = 0; fd <= 2; fd++) {
        if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF)
            continue;
        int got = open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY);
        (void)got; /* the lowest free number is fd itself */
    }
}

static int usage_complain(const struct amp_error *err)
{
    int status = amp_complain(err);
    if (err->status == AMP_USAGE)
        amp_note("try '%s --help'", cli_tool->name);
    return status;
}

const struct amp_tool *cli_tool;
const struct amp_verb *cli_verbs[CLI_MAX_VERBS + 1];

static void verbs_gather(void)
{
    size_t n = 0;
    for (const struct amp_verb *const *table = cli_tool->verbs; *table; table++)
        for (const struct amp_verb *v = *table; v->run && n < CLI_MAX_VERBS; v++)
            cli_verbs[n++] = v;
}

/* Carries out --help and the like; -1 without such an option. */
static int standard_run(const struct amp_verb *verb, const char *group, const struct cli_parse *p)
{
    struct amp_error err;
    int rc;
    if (cli_standard.help) {
        rc = cli_help(verb, group, p, &err);
    } else if (cli_standard.version) {
        char line[160];
        snprintf(line, sizeof line, "%s %s\n", cli_tool->name, AMP_VERSION);
        rc = amp_out(amp_span_str(line), &err);
    } else if (cli_standard.options) {
        rc = cli_list_options(verb, p, &err);
    } else if (cli_standard.values) {
        rc = cli_values(p, &err);
    } else if (cli_standard.machine && cli_tool->machines) {
        rc = cli_machines(cli_standard.machine, &err);
    } else {
        return -1;
    }
    return rc ? amp_complain(&err) : 0;
}

static bool typed_patterns; /* --redact is given */

/* Sets the patterns for redaction, before any output. */
static int patterns_set(struct amp_error *err)
{
    struct amp_error why;
    if (!cli_tool->redact ||
        cli_tool->redact((const char *const *)cli_standard.redact.v, &why) == 0)
        return 0;
    if (typed_patterns || why.status != AMP_USAGE)
        return amp_fail_text(err, why.status, why.code, "--redact: %s", why.what);
    return amp_fail_text(err, AMP_CONFIG, why.code, "redact.patterns in amp.json: %s", why.what);
}

static int pattern_add(void *arg, const char *text, struct amp_error *err)
{
    return cli_list_add(arg, text, err);
}

int amp_cli_state(const char *state_dir, struct amp_error *err)
{
    struct amp_list *l = &cli_standard.redact;
    if (cli_config_local(state_dir, err))
        return -1;
    if (!cli_tool->redact || l->n > 0)
        return 0;
    if (amp_config_values(NULL, state_dir, cli_redact_opts[0].config, pattern_add, l, err))
        return -1;
    return patterns_set(err);
}

static int list_run(struct amp_command *c, struct amp_error *err)
{
    struct amp_listing list;

    amp_listing_init(&list, c->lists);
    c->list = &list;
    int rc = amp_listing_end(&list, c->verb->run(c, err), err);
    if (rc >= 0 && !list.rows && !amp_listing_json && c->none)
        amp_note("%s", c->none);
    return rc;
}

static int verb_run(const struct amp_verb *verb, const struct cli_parse *p, int argc, char **argv)
{
    struct amp_error err = {0};
    struct amp_command c = {.verb = verb,
                            .argc = argc,
                            .argv = argv,
                            .opens = verb->opens,
                            .act = verb->act,
                            .lists = verb->lists,
                            .none = verb->none,
                            .state = cli_text_of(p, "state")};
    const struct amp_opt *wait = cli_opt_at(p, cli_opt_find(p, 0, AMP_SPAN("lock-timeout")));
    if (wait)
        c.lock_timeout_ms = *(const int64_t *)wait->dest;
    if (argc < verb->least || (verb->most && argc > verb->most))
        amp_die_usage("%s", verb->usage);
    if (verb->signals)
        amp_signals_install();
    int rc = c.act ? cli_tool->refuse(&c, &err) : 0;
    if (rc == 0 && verb->check)
        rc = verb->check(&c, &err);
    if (rc == 0 && c.act && c.act != verb->act)
        rc = cli_tool->refuse(&c, &err);
    if (rc == 0 && cli_tool->open)
        rc = cli_tool->open(&c, &err);
    if (rc == 0)
        rc = c.lists ? list_run(&c, &err) : verb->run(&c, &err);
    if (cli_tool->close)
        cli_tool->close(&c);
    return rc < 0 ? amp_complain(&err) : rc;
}

/* "--help all" and "help all": all is no verb. */
static bool all_take(char **args, bool help)
{
    char **at = help ? args : args + 1;
    if (!args[0] || (!help && strcmp(args[0], "--help") != 0 && strcmp(args[0], "-h") != 0) ||
        !*at || strcmp(*at, "all") != 0 || at[1])
        return false;
    *at = NULL;
    return true;
}

static int tool_run(char **args)
{
    struct amp_error err;
    const struct amp_tool *tool = cli_tool;
    /* "TOOL help VERB" is "TOOL VERB --help". */
    bool help = args[0] && strcmp(args[0], "help") == 0 && cli_verbs[0] && cli_verbs[1];
    args += help;
    cli_standard.all = all_take(args, help);
    struct cli_command c = cli_find_verb(args);
    const struct amp_verb *verb = c.verb;
    const char *group = cli_verb_group(&c);
    static struct cli_parse p; /* its operands live as long as the program */
    p = (struct cli_parse){.tables = {cli_standard_opts, tool->machines ? cli_machine_opts : NULL,
                                      tool->redact ? cli_redact_opts : NULL,
                                      tool->values ? cli_values_opts : NULL, tool->opts,
                                      verb ? verb->opts : NULL}};
    if (cli_opt_at(&p, CLI_MAX_OPTS)) {
        amp_fail(&err, AMP_INTERNAL, too_many_options, "more than %d options", CLI_MAX_OPTS);
        return amp_complain(&err);
    }
    /* An unknown verb is reported before its options. A group without a verb may have --help. */
    if (!group && c.at && cli_check_verb(&c, &err))
        return usage_complain(&err);
    if (cli_parse_args(&p, args, c.words, &err)) {
        if (group)
            cli_check_verb(&c, &err);
        return usage_complain(&err);
    }
    cli_standard.help |= help;
    int status = standard_run(verb, group, &p);
    if (status >= 0)
        return status;
    if (cli_check_verb(&c, &err) || cli_check_operands(verb, &p.operands, &err))
        return usage_complain(&err);
    typed_patterns = cli_standard.redact.n > 0;
    if (cli_parse_rest(&p, verb->finds_state, &err) || patterns_set(&err) || cli_settings(&p, &err))
        return usage_complain(&err);
    static char *none[] = {NULL};
    char **operands = none;
    if (p.operands.n)
        memcpy(&operands, &p.operands.v, sizeof operands);
    return verb_run(verb, &p, p.operands.n, operands);
}

int amp_cli_main(const struct amp_tool *tool, int argc, char **argv)
{
    cli_tool = tool;
    verbs_gather();
    cli_summary_start();
    take_standard_fds();
    signal(SIGPIPE, SIG_IGN);
    static char *none[] = {NULL};
    int status = tool_run(argc > 0 ? argv + 1 : none);
    struct amp_error err;
    if (amp_out_flush(&err) < 0 || amp_late_failure(&err)) {
        if (!cli_complained(&err))
            amp_complain(&err);
        status = (int)amp_status_worse((enum amp_status)status, err.status);
    }
    status = (int)amp_status_worse((enum amp_status)status, (enum amp_status)cli_noted_status());
    /* Not after an output error: it is reported, or the reader has closed the output. */
    if (status != AMP_IOERR)
        cli_print_refused();
    cli_progress_clear();
    cli_summary_print();
    return status;
}
