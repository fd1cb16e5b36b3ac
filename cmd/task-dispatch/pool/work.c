/* task-dispatch work: a pool of agents on the queue. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <amp/base/id.h>
#include <amp/base/num.h>

#include "../verbs.h"
#include "base/values.h"
#include "cli/rows.h"
#include "flow/pool/pool.h"
#include "pool.h"
#include "port/port.h"

#define DAY_MS 86400000

static struct amp_list types;
static const char *name = "pool", *conflict_exec;
static int64_t safe_ms = 30000, shutdown_ms = 30000;
static bool drain, by_exit;

/* clang-format off */
static const struct amp_opt pool_work_opts[] = {
    {0, "type", AMP_OPT_LIST, &types, "TYPE=N", "N agents of a type; may be repeated"},
    {0, "name", AMP_OPT_STRING, &name, "NAME", "the pool's name in the state directory"},
    {0, "drain", AMP_OPT_FLAG, &drain, NULL, "end when no job of the types is left"},
    {0, "safe-point", AMP_OPT_DURATION, &safe_ms, "TIME",
     "how long an agent may take to reach a safe point, and to end there", 0, DAY_MS, .config = "pool.safe_point"},
    {0, "shutdown", AMP_OPT_DURATION, &shutdown_ms, "TIME",
     "grace period of a shutdown", 0, DAY_MS, .config = "pool.shutdown"},
    {'t', "timeout", AMP_OPT_DURATION, &task_worker.timeout_ms, "TIME",
     "time limit of one attempt, 0 for none", 0, 365LL * DAY_MS},
    {0, "grace", AMP_OPT_DURATION, &task_worker.grace_ms, "TIME",
     "time between TERM and KILL", 0, DAY_MS},
    {0, "resource-timeout", AMP_OPT_DURATION, &task_worker.resource_ms, "TIME",
     "how long an agent may wait for a resource (default: 300s)", 0, DAY_MS,
     .config = "pool.resource_timeout"},
    {0, "retries", AMP_OPT_INT, &task_worker.retries, "N",
     "how often an attempt is repeated that crashed or timed out", 0, 1000},
    {0, "pause", AMP_OPT_DURATION, &task_worker.pause_ms, "TIME",
     "pause before an attempt that the agent asked to repeat", 0, DAY_MS},
    TASK_RUNTIME_OPTS,
    {0, "verdict-by-exit", AMP_OPT_FLAG, &by_exit, NULL,
     "without a reviewer's answer use the exit status: 0 approves, others reject"},
    {0, "conflict-exec", AMP_OPT_STRING, &conflict_exec, "COMMAND",
     "judges whether two jobs with a common scope may run side by side"},
    AMP_OPT_UNCONFINED(task_walls),
    AMP_OPT_CONFINE(task_walls),
    AMP_OPT_PREPARE(task_worker.prepare),
    {0, "max-output", AMP_OPT_SIZE, &task_worker.output_bytes, "BYTES",
     "how much of the agent's stdout and stderr is kept", 0, 1 << 30},
    {'x', "exec", AMP_OPT_REST, &task_exec, "COMMAND",
     "the agents' command and its arguments; AMP_AGENT_TYPE has the type; TASKs of sessions may do "
     "without it"},
    AMP_OPT_END
};
/* clang-format on */

static void type_add(struct amp_pool_type *t, const char *text, char *mem)
{
    const char *eq = strchr(text, '=');
    size_t n = eq ? (size_t)(eq - text) : strlen(text);

    snprintf(mem, AMP_QUEUE_TYPE_MAX, "%.*s", (int)n, text);
    t->name = mem;
    t->count = 1;
    if (n >= AMP_QUEUE_TYPE_MAX || !amp_id_is_safe(amp_span_str(mem)))
        amp_die_usage("--type: invalid type \"%.*s\" (letters, digits, '.', '-', '_')", (int)n,
                      text);
    if (eq && amp_num_parse(amp_span_str(eq + 1), 1, AMP_POOL_AGENTS, &t->count, NULL) < 0)
        amp_die_usage("--type %s: expected TYPE=N with N from 1 to %d", text, AMP_POOL_AGENTS);
}

/* The keys that sign an agent's lines. */
static int agent_identify(void *ctx, const char *principal, struct amp_identities **out,
                          struct amp_error *err)
{
    bool *quiet = ctx;
    const struct amp_identity_tool who = {
        .state = task_state, .config = task_config, .principal = principal, .quiet = *quiet};

    *quiet = true;
    return amp_identity_cli_open(&task_identity, &who, out, err);
}

int pool_run(struct amp_store *store, struct amp_pool_options *opt, const json_t *config,
             enum amp_status *status, struct amp_error *err)
{
    bool quiet = opt->input != NULL; /* the input's identities were opened before */
    char *const *judge_argv = opt->queue.judge;

    opt->worker = task_worker;
    opt->stop = &amp_stop;
    opt->identify = agent_identify;
    opt->identify_ctx = &quiet;
    amp_queue_settings_default(&opt->queue);
    opt->queue.judge = judge_argv;
    return amp_queue_settings_load(&opt->queue, config, err) < 0 ||
                   amp_budgets_load(&opt->budgets, config, err) < 0
               ? -1
               : amp_pool_run(store, opt, status, err);
}

static struct amp_pool_type list[AMP_POOL_TYPES];
static json_t *settings;
static char here[PATH_MAX];

static int work_check(struct amp_command *c, struct amp_error *err)
{
    static char mem[AMP_POOL_TYPES][AMP_QUEUE_TYPE_MAX];

    (void)c;
    if (types.n == 0)
        amp_die_usage("no agents: give --type TYPE=N");
    if (types.n > AMP_POOL_TYPES)
        amp_die_usage("--type: at most %d types", AMP_POOL_TYPES);
    if (!amp_id_is_safe(amp_span_str(name)))
        amp_die_usage("--name: invalid name \"%s\" (letters, digits, '.', '-', '_')", name);
    for (int i = 0; i < types.n; i++)
        type_add(&list[i], types.v[i], mem[i]);
    return task_worker_settle(true, &settings, err) < 0 ? -1 : task_here(here, err);
}

static int pool_work(struct amp_command *c, struct amp_error *err)
{
    struct amp_run_options run = {.runtime = task_runtime};
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
    int rc = task_forbid_load(settings, &run, err) < 0
                 ? -1
                 : pool_run(c->store, &opt, settings, &status, err);
    if (judge)
        amp_argv_free(judge);
    task_forbid_free(&run);
    return rc < 0 ? -1 : (int)status;
}

const struct amp_verb pool_work_verbs[] = {
    {"work", "", "run a pool of agents on the queue", pool_work_opts, pool_work, TASK_COMMAND_HINT,
     .check = work_check, .opens = AMP_OPENS_MADE, .act = "start agents", .signals = true,
     .who = AMP_WHO_PERSON},
    {0},
};
