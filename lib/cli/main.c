/* A tool's life: parse, dispatch, flush, exit status. */
#include "cli/private.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

/* Descriptors 0 to 2 must be taken, or a file that we open would become stdout. What was closed
 * gets /dev/null opened the wrong way round, so that using it still fails. */
static void take_standard_fds(void)
{
    for (int fd = 0; fd <= 2; fd++) {
        if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF)
            continue;
        int got = open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY);
        (void)got; /* the lowest free number is fd itself */
    }
}

static int usage(const struct amp_tool *tool, const struct amp_error *err)
{
    int status = amp_complain(err);
    if (err->status == AMP_USAGE)
        amp_note("try '%s --help'", tool->name);
    return status;
}

/* The options that answer about the tool itself; -1 when there was none. */
static int standard(const struct amp_tool *tool, const struct amp_verb *verb, const char *group,
                    const struct cli_parse *p)
{
    struct amp_error err;
    int rc;
    if (cli_standard.help) {
        rc = cli_help(tool, verb, group, p, &err);
    } else if (cli_standard.version) {
        char line[160];
        snprintf(line, sizeof line, "%s %s\n", tool->name, AMP_VERSION);
        rc = amp_out(amp_span_str(line), &err);
    } else if (cli_standard.options) {
        rc = cli_list_options(tool, verb, p, &err);
    } else if (cli_standard.machine && tool->machines) {
        rc = cli_machines(tool, cli_standard.machine, &err);
    } else {
        return -1;
    }
    return rc ? amp_complain(&err) : 0;
}

static const struct amp_tool *running;
static bool typed_patterns;

/* Before anything could be written. */
static int take_patterns(struct amp_error *err)
{
    struct amp_error why;
    if (!running->redact || running->redact((const char *const *)cli_standard.redact.v, &why) == 0)
        return 0;
    if (typed_patterns || why.status != AMP_USAGE)
        return amp_fail(err, why.status, why.code, "--redact: %s", why.what);
    return amp_fail(err, AMP_CONFIG, why.code, "redact.patterns in amp.json: %s", why.what);
}

static int add_pattern(void *arg, const char *text, struct amp_error *err)
{
    return cli_list_add(arg, text, err);
}

int amp_cli_state(const char *state_dir, struct amp_error *err)
{
    struct amp_list *l = &cli_standard.redact;
    if (cli_config_local(state_dir, err))
        return -1;
    if (!running->redact || l->n > 0)
        return 0;
    if (amp_config_values(NULL, state_dir, cli_redact_opts[0].config, add_pattern, l, err))
        return -1;
    return take_patterns(err);
}

static int run(const struct amp_tool *tool, char **args)
{
    struct amp_error err;
    struct cli_command c = cli_find_verb(tool, args);
    const struct amp_verb *verb = c.verb;
    const char *group = cli_verb_group(tool, &c);
    static struct cli_parse p; /* its operands live as long as the program */
    p = (struct cli_parse){.tool = tool,
                           .tables = {cli_standard_opts, tool->machines ? cli_machine_opts : NULL,
                                      tool->redact ? cli_redact_opts : NULL, tool->opts,
                                      verb ? verb->opts : NULL}};
    if (cli_opt_at(&p, CLI_MAX_OPTS)) {
        amp_fail(&err, AMP_INTERNAL, "too_many_options", "more than %d options", CLI_MAX_OPTS);
        return amp_complain(&err);
    }
    /* An unknown verb is reported before its options, which would be unknown too. A group without
     * a verb may ask for help. */
    if (!group && c.at && cli_check_verb(tool, &c, &err))
        return usage(tool, &err);
    if (cli_parse_args(&p, args, c.words, &err)) {
        if (group)
            cli_check_verb(tool, &c, &err);
        return usage(tool, &err);
    }
    int status = standard(tool, verb, group, &p);
    if (status >= 0)
        return status;
    if (cli_check_verb(tool, &c, &err) || cli_check_operands(tool, verb, &p.operands, &err))
        return usage(tool, &err);
    typed_patterns = cli_standard.redact.n > 0;
    if (cli_parse_rest(&p, tool->config, &err) || take_patterns(&err) ||
        cli_settings(&p, tool, &err))
        return usage(tool, &err);
    static char *none[] = {NULL};
    char **operands = none;
    if (p.operands.n)
        memcpy(&operands, &p.operands.v, sizeof operands);
    return verb->run(p.operands.n, operands);
}

int (*cli_check_config)(struct amp_span text, struct amp_error *err);
bool (*cli_state_may_set)(struct amp_span key);

int amp_cli_main(const struct amp_tool *tool, int argc, char **argv)
{
    cli_set_name(tool->name);
    cli_check_config = tool->check_config;
    cli_state_may_set = tool->state_may_set;
    running = tool;
    take_standard_fds();
    signal(SIGPIPE, SIG_IGN);
    static char *none[] = {NULL};
    int status = run(tool, argc > 0 ? argv + 1 : none);
    struct amp_error err;
    if (amp_out_flush(&err) < 0) {
        if (!cli_complained(&err))
            amp_complain(&err);
        status = (int)amp_status_worse((enum amp_status)status, err.status);
    }
    status = (int)amp_status_worse((enum amp_status)status, (enum amp_status)cli_noted_status());
    /* A reader of the output that leaves gets a quiet end; other output errors were reported. */
    if (status != AMP_IOERR)
        cli_tell_refused();
    return status;
}
