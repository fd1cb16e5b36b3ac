/* task-queue work: a pool of agents on the queue. */
#include <stdio.h>
#include <stdlib.h>

#include <amp/base/id.h>

#include "base/values.h"
#include "cli/rows.h"
#include "message/port/port.h"
#include "shared/work/tool.h"
#include "shared/work/worker.h"
#include "work/loop/pool/pool.h"

#define DAY_MS 86400000

static struct amp_list types, commands;
static const char *name = "pool", *conflict_exec;
static int64_t safe_ms = 30000, shutdown_ms = 30000;
static bool drain, by_exit;

/* clang-format off */
static const struct amp_opt pool_work_opts[] = {
    AMP_TOOL_TYPE_OPTS(types, commands, "the command of the agents of a type instead of --exec"),
    {0, "name", AMP_OPT_STRING, &name, "NAME", "the pool's name in the state directory"},
    {0, "drain", AMP_OPT_FLAG, &drain, NULL, "end when no job of the types is left"},
    {0, "safe-point", AMP_OPT_DURATION, &safe_ms, "TIME",
     "how long an agent may take to reach a safe point, and to end there", 0, DAY_MS, .config = "pool.safe_point"},
    {0, "shutdown", AMP_OPT_DURATION, &shutdown_ms, "TIME",
     "grace period of a shutdown", 0, DAY_MS, .config = "pool.shutdown"},
    {'t', "timeout", AMP_OPT_DURATION, &amp_tool_worker.timeout_ms, "TIME",
     "time limit of one attempt, 0 for none", 0, 365LL * DAY_MS},
    {0, "grace", AMP_OPT_DURATION, &amp_tool_worker.grace_ms, "TIME",
     "time between TERM and KILL", 0, DAY_MS},
    {0, "resource-timeout", AMP_OPT_DURATION, &amp_tool_worker.resource_ms, "TIME",
     "how long an agent may wait for a resource (default: 300s)", 0, DAY_MS,
     .config = "pool.resource_timeout"},
    {0, "retries", AMP_OPT_INT, &amp_tool_worker.retries, "N",
     "how often an attempt is repeated that crashed or timed out", 0, 1000},
    {0, "pause", AMP_OPT_DURATION, &amp_tool_worker.pause_ms, "TIME",
     "pause before an attempt that the agent asked to repeat", 0, DAY_MS},
    AMP_TOOL_RUNTIME_OPTS,
    {0, "verdict-by-exit", AMP_OPT_FLAG, &by_exit, NULL,
     "without a reviewer's answer use the exit status: 0 approves, others reject"},
    {0, "conflict-exec", AMP_OPT_STRING, &conflict_exec, "COMMAND",
     "judges whether two jobs with a common scope may run side by side"},
    AMP_OPT_UNCONFINED(amp_tool_walls),
    AMP_OPT_CONFINE(amp_tool_walls),
    AMP_OPT_PREPARE(amp_tool_worker.prepare),
    {0, "max-output", AMP_OPT_SIZE, &amp_tool_worker.output_bytes, "BYTES",
     "how much of the agent's stdout and stderr is kept", 0, 1 << 30},
    {'x', "exec", AMP_OPT_REST, &amp_tool_exec, "COMMAND",
     "the agents' command and its arguments; AMP_AGENT_TYPE has the type; TASKs of sessions may do "
     "without it"},
    AMP_OPT_END
};
/* clang-format on */

static struct amp_pool_type list[AMP_POOL_TYPES];
static json_t *settings;
static char here[PATH_MAX];

static int work_check(struct amp_command *c, struct amp_error *err)
{
    (void)c;
    if (types.n == 0)
        amp_die_usage("no agents: give --type TYPE=N");
    if (!amp_id_is_safe(amp_span_str(name)))
        amp_die_usage("--name: invalid name \"%s\" (letters, digits, '.', '-', '_')", name);
    amp_tool_types_read(&types, list);
    return amp_tool_worker_settle(AMP_TOOL_COMMAND_OR_PROVIDER, &settings, err) < 0 ||
                   amp_tool_commands_read(&commands, list, types.n, err) < 0
               ? -1
               : amp_tool_here(here, err);
}

static int pool_work(struct amp_command *c, struct amp_error *err)
{
    struct amp_run_options run = {.runtime = amp_tool_runtime};
    struct amp_review_options review = {.verdict_by_exit = by_exit};
    struct amp_session_options session = {.config = settings, .here = here};
    struct amp_pool_options opt = {.run = &run,
                                   .review = &review,
                                   .session = &session,
                                   .name = name,
                                   .types = list,
                                   .n_types = (uint32_t)types.n,
                                   .safe_ms = safe_ms,
                                   .shutdown_ms = shutdown_ms,
                                   .drain = drain};
    char **judge = NULL;
    enum amp_status status = AMP_OK;

    if (conflict_exec && (amp_argv_split(conflict_exec, &judge, err) < 0 || !judge[0]))
        amp_die_usage("--conflict-exec: not a command: \"%s\"", conflict_exec);
    opt.queue.judge = judge;
    amp_signals_hangup();
    int rc = amp_tool_forbid_load(settings, &run, err) < 0
                 ? -1
                 : amp_tool_pool_run(c->store, &opt, settings, &status, err);
    if (judge)
        amp_argv_free(judge);
    amp_tool_forbid_free(&run);
    amp_tool_worker_release();
    return rc < 0 ? -1 : (int)status;
}

const struct amp_verb pool_work_verbs[] = {
    {"work", "", "run a pool of agents on the queue", pool_work_opts, pool_work,
     AMP_TOOL_COMMAND_HINT, .check = work_check, .opens = AMP_OPENS_MADE, .act = "start agents",
     .signals = true, .who = AMP_WHO_PERSON},
    {0},
};
