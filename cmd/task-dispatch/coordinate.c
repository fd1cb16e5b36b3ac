/* task-dispatch coordinate, also without a verb: the coordinator as a filter. */
#include "flow/coordinate/coordinate.h"
#include "cli/config.h"

#include <unistd.h>

#include "cli/finding.h"
#include "cli/rows.h"
#include "verbs.h"
#include "worktree/person.h"

static struct amp_list inputs;
static int64_t ack_timeout;
static struct amp_coordinate_options opt = {.output = "-",
                                            .consumer = "task-dispatch.coordinate",
                                            .open_timeout_ms = AMP_OPEN_TIMEOUT_MS,
                                            .stop = &amp_stop,
                                            .say = amp_finding_print_error,
                                            .warn = amp_warn};

const struct amp_opt task_coordinate_opts[] = {
    {'i', "in", AMP_OPT_LIST, &inputs, "PATH",
     .doc = "input: a file, a FIFO, or - for standard input; may be repeated"},
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
    if (amp_config_load(task_config, task_state, &config, err) < 0 ||
        task_patterns(config, "branches", "protected", NULL, &opt.protected_, err) < 0)
        return -1;
    return amp_task_policy_load(&opt.policy, config, err);
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

int task_coordinate(int argc, char **argv)
{
    static const char *const standard_input[] = {"-", NULL};
    struct amp_error err = {0};
    struct amp_store *store = NULL;
    struct amp_coordinate_end end = {0};
    opt.tool = amp_cli_name();
    opt.inputs = inputs.n ? (const char *const *)inputs.v : standard_input;
    opt.ack_timeout_sec = ack_timeout / 1000;
    if (amp_person_only(environ, "coordinate tasks", &err) || policy_load(&err) < 0 ||
        task_open(&store, &err) < 0)
        return amp_complain(&err);
    if (inputs.n == 0)
        amp_note_terminal(NULL);
    for (int i = 0; i < inputs.n; i++)
        amp_note_terminal(inputs.v[i]);
    amp_signals_install();
    int status =
        amp_coordinate(store, &opt, &end, &err) < 0 ? amp_complain(&err) : end_report(&end);
    amp_buf_release(&end.names);
    amp_store_close(store);
    return status;
}
