/* task-dispatch coordinate, also without a verb: the coordinator as a filter. */
#include "work/loop/coordinate/coordinate.h"
#include "cli/config.h"
#include "work/loop/coordinate/cancel.h"

#include <unistd.h>

#include <stdlib.h>
#include <string.h>

#include "people/question/operators/operators.h"
#include "shared/finding.h"
#include "shared/identity.h"
#include "verbs.h"

static struct amp_list inputs, trusted;
static int64_t ack_timeout;
static struct amp_coordinate_options opt = {.output = "-",
                                            .consumer = AMP_COORDINATE_CONSUMER,
                                            .open_timeout_ms = AMP_OPEN_TIMEOUT_MS,
                                            .stop = &amp_stop,
                                            .say = amp_finding_print_error,
                                            .warn = amp_warn};

static const struct amp_opt task_coordinate_opts[] = {
    {'i', "in", AMP_OPT_LIST, &inputs, "[ROLE=]PATH",
     .doc =
         "input: a file, a FIFO, or - for standard input; with ROLE it takes only what that role "
         "may say; may be repeated"},
    {0, "trust-in", AMP_OPT_LIST, &trusted, "[ROLE=]PATH",
     .doc = "an input whose unsigned messages count, as those of standard input; may be repeated"},
    {'o', "out", AMP_OPT_PATH, &opt.output, "PATH",
     .doc = "output: a file, a FIFO, or - for standard output"},
    {0, "until-done", AMP_OPT_FLAG, &opt.until_done, NULL,
     .doc = "end when a task was seen and all tasks have ended"},
    {0, "hold", AMP_OPT_FLAG, &opt.hold, NULL, .doc = "keep input FIFOs open: no end of file"},
    AMP_OPT_OPEN_TIMEOUT(opt.open_timeout_ms),
    {0, "ack-timeout", AMP_OPT_DURATION, &ack_timeout, "TIME",
     .doc = "deadline for acknowledgements of sent messages (default: the protocol's)", .min = 1000,
     .max = 31536000000},
    {0, "as", AMP_OPT_STRING, &opt.consumer, "NAME",
     .doc = "name in the state directory (default: task-dispatch.coordinate)"},
    AMP_OPT_END,
};

static int policy_load(struct amp_error *err)
{
    struct json_t *config = NULL;
    amp_task_policy_default(&opt.policy);
    if (amp_config_load(amp_tool_config, amp_tool_state, &config, err) < 0 ||
        amp_tool_patterns(config, "branches", "protected", NULL, &opt.protected_, err) < 0)
        return -1;
    /* They live as long as the process. */
    static struct amp_operators *operators;
    if (!(operators = amp_operators_new(err)) ||
        amp_config_values(amp_tool_config, amp_tool_state, "hitl.operators", amp_operators_add,
                          operators, err) < 0 ||
        amp_config_values(amp_tool_config, amp_tool_state, "hitl.approvals", amp_approvals_add,
                          operators, err) < 0)
        return -1;
    opt.operators = operators;
    return amp_task_policy_load(&opt.policy, config, err);
}

/* Adds the input [ROLE=]PATH. A path with a "=" in its first part needs a role or "./". */
static void input_add(struct amp_coordinate_input *in, const char *text, bool trust)
{
    size_t n = strcspn(text, "=/");
    *in = (struct amp_coordinate_input){.path = text, .trusted = trust};
    if (text[n] == '=') {
        if (n == 0 || n >= sizeof in->role || !text[n + 1])
            amp_die_usage("--in takes PATH or ROLE=PATH, not \"%s\"", text);
        memcpy(in->role, text, n);
        in->path = text + n + 1;
    }
    in->trusted |= amp_input_is_trusted(in->path);
}

/* They live as long as the process. */
static int inputs_make(struct amp_error *err)
{
    size_t n = (size_t)inputs.n + (size_t)trusted.n;
    static struct amp_coordinate_input *all;
    all = calloc(n + 1, sizeof *all);
    if (!all)
        return amp_fail_memory(err);
    for (int i = 0; i < inputs.n; i++)
        input_add(&all[i], inputs.v[i], false);
    for (int i = 0; i < trusted.n; i++)
        input_add(&all[inputs.n + i], trusted.v[i], true);
    if (n == 0)
        input_add(&all[n++], "-", false);
    opt.inputs = all;
    opt.n_inputs = n;
    return 0;
}

static int end_report(const struct amp_coordinate_end *end)
{
    if (end->open_tasks)
        amp_warn("%u open: %s", (unsigned)end->open_tasks, end->names.data);
    if (end->output_closed)
        amp_warn("the output was closed; the next run writes the open lines again");
    if (end->interrupted)
        return AMP_INTERRUPTED;
    if (end->open_tasks)
        return AMP_TEMPFAIL;
    if (opt.until_done && end->no_task)
        amp_warn("the input ended without a new task: %llu refused, %llu invalid lines",
                 (unsigned long long)end->refused_tasks, (unsigned long long)end->rejected);
    return end->rejected || end->refused_tasks || (opt.until_done && end->no_task) ? AMP_NO
                                                                                   : AMP_OK;
}

static int coordinate_check(struct amp_command *c, struct amp_error *err)
{
    (void)c;
    opt.tool = amp_cli_name();
    opt.ack_timeout_sec = ack_timeout / 1000;
    return policy_load(err) < 0 ? -1 : inputs_make(err);
}

static int task_coordinate(struct amp_command *c, struct amp_error *err)
{
    const struct amp_identity_tool who = {
        .state = c->state, .config = amp_tool_config, .principal = "coordinator"};
    struct amp_coordinate_end end = {0};
    for (size_t i = 0; i < opt.n_inputs; i++)
        amp_note_terminal(opt.inputs[i].path);
    int status = amp_identity_cli_open(&amp_tool_identity, &who, &opt.ids, err) < 0 ||
                         amp_coordinate(c->store, &opt, &end, err) < 0
                     ? -1
                     : end_report(&end);
    amp_buf_release(&end.names);
    amp_identities_close(opt.ids);
    return status;
}

const struct amp_verb default_verbs[] = {
    {NULL, "", "coordinate", task_coordinate_opts, task_coordinate, .check = coordinate_check,
     .opens = AMP_OPENS_MADE, .act = "coordinate tasks", .signals = true, .finds_state = true,
     .who = AMP_WHO_PERSON},
    {0},
};

const struct amp_verb coordinate_verbs[] = {
    {"coordinate", "", "dispatch tasks, request reviews, and handle verdicts", task_coordinate_opts,
     task_coordinate, "inputs are given with --in", .check = coordinate_check,
     .opens = AMP_OPENS_MADE, .act = "coordinate tasks", .signals = true, .finds_state = true,
     .group = "The loop's filters", .who = AMP_WHO_PERSON},
    {0},
};
