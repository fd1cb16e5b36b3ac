/* task-dispatch run and review: the Executor and the Reviewer around an agent's command. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/child.h>
#include <amp/base/id.h>

#include "base/file/repository.h"
#include "cli/config.h"
#include "cli/rows.h"
#include "message/protocol/work.h"
#include "shared/finding.h"
#include "shared/identity.h"
#include "shared/work/tool.h"
#include "shared/work/worker.h"
#include "verbs.h"
#include "work/aop/run/session.h"
#include "work/confine/confinement.h"
#include "work/loop/pool/pool.h"
#include "work/loop/review/review.h"
#include "work/loop/run/run.h"

#define DAY_MS 86400000

static const char *base;
static bool by_exit;
static int64_t jobs = 1;
static struct amp_list types, commands;
static struct amp_pool_type list[AMP_POOL_TYPES];

#define TASK_OPT_JOBS                                                                              \
    {                                                                                              \
        'j', "jobs", AMP_OPT_INT, &jobs, "N",                                                      \
            "work on N messages at a time, by the agents NAME-1 to NAME-N", 1, AMP_POOL_AGENTS     \
    }

static const struct amp_opt task_run_opts[] = {
    {0, "base", AMP_OPT_STRING, &base, "REVISION", "start of a new branch whose task has no base"},
    AMP_TOOL_RUNTIME_OPTS,
    TASK_OPT_JOBS,
    AMP_TOOL_TYPE_OPTS(types, commands, "the command of the agents of a type instead of --exec"),
    AMP_TOOL_WORKER_OPTS("executor"),
    AMP_OPT_END,
};
static const struct amp_opt task_review_opts[] = {
    {0, "verdict-by-exit", AMP_OPT_FLAG, &by_exit, NULL,
     "without an answer use the exit status: 0 approves, others reject"},
    TASK_OPT_JOBS,
    AMP_TOOL_WORKER_OPTS("reviewer"),
    AMP_OPT_END,
};

static json_t *config;

/* More than one agent: a pool that reads the messages. opt: the options of the role. */
static int pool_start(struct amp_store *store, const struct amp_worker_role *role, void *ctx,
                      struct amp_pool_options *opt, enum amp_status *status, struct amp_error *err)
{
    const struct amp_pool_type one = {.name = amp_tool_worker.agent, .count = jobs};
    const struct amp_pool_input input = {.role = role,
                                         .ctx = ctx,
                                         .name = amp_tool_worker.role,
                                         .in = amp_tool_worker.in,
                                         .consumer = amp_tool_worker.consumer,
                                         .ids = amp_tool_worker.ids,
                                         .trusted = amp_tool_worker.trusted};
    const struct amp_session_options session = {.config = config};

    opt->session = &session;
    opt->name = amp_tool_worker.consumer;
    opt->types = types.n ? list : &one;
    opt->n_types = types.n ? (uint32_t)types.n : 1;
    opt->safe_ms = opt->shutdown_ms = amp_tool_worker.grace_ms;
    opt->input = &input;
    return amp_tool_pool_run(store, opt, config, status, err);
}

void task_types_read(const struct amp_list *given, int64_t n_jobs, struct amp_pool_type *out)
{
    amp_tool_types_read(given, out);
    if (given->n && n_jobs > 1)
        amp_die_usage("--jobs and --type exclude each other");
    for (int i = 0; i < given->n; i++)
        if (strcmp(out[i].name, "reviewer") == 0)
            amp_die_usage("--type reviewer: the reviewers have this type");
}

static int run_check(struct amp_command *c, struct amp_error *err)
{
    (void)c;
    task_types_read(&types, jobs, list);
    return amp_tool_worker_check("executor", "task-dispatch.run", AMP_TOOL_COMMAND_NEEDED, &config,
                                 err) < 0
               ? -1
               : amp_tool_commands_read(&commands, list, types.n, err);
}

static int task_run(struct amp_command *c, struct amp_error *err)
{
    struct amp_run_options opt = {.base = base, .runtime = amp_tool_runtime};
    enum amp_status status;

    if (amp_tool_worker_identify(err) < 0)
        return -1;
    opt.worker = amp_tool_worker;
    const struct amp_review_options review = {.worker = amp_tool_worker};
    struct amp_pool_options pool = {.run = &opt, .review = &review};
    int rc = amp_tool_forbid_load(config, &opt, err) < 0 ? -1
             : jobs > 1 || types.n ? pool_start(c->store, &amp_run_role, &opt, &pool, &status, err)
                                   : amp_run_loop(c->store, &opt, &status, err);
    amp_identities_close(amp_tool_worker.ids);
    amp_tool_forbid_free(&opt);
    amp_tool_worker_release();
    return rc ? -1 : (int)status;
}

static int review_check(struct amp_command *c, struct amp_error *err)
{
    (void)c;
    return amp_tool_worker_check("reviewer", "task-dispatch.review", AMP_TOOL_COMMAND_NEEDED,
                                 &config, err);
}

static int task_review(struct amp_command *c, struct amp_error *err)
{
    struct amp_review_options opt = {.verdict_by_exit = by_exit};
    enum amp_status status;

    if (amp_tool_worker_identify(err) < 0)
        return -1;
    opt.worker = amp_tool_worker;
    const struct amp_run_options run = {.worker = amp_tool_worker};
    struct amp_pool_options pool = {.run = &run, .review = &opt};
    int rc = jobs > 1 ? pool_start(c->store, &amp_review_role, &opt, &pool, &status, err)
                      : amp_review_loop(c->store, &opt, &status, err);
    amp_identities_close(amp_tool_worker.ids);
    amp_tool_worker_release();
    return rc ? -1 : (int)status;
}

const struct amp_verb worker_verbs[] = {
    {"run", "", "run an executor in a worktree", task_run_opts, task_run, AMP_TOOL_COMMAND_HINT,
     .check = run_check, .opens = AMP_OPENS_MADE, .act = "start an executor", .signals = true,
     .who = AMP_WHO_PERSON},
    {"review", "", "run a reviewer in a worktree", task_review_opts, task_review,
     AMP_TOOL_COMMAND_HINT, .check = review_check, .opens = AMP_OPENS_MADE,
     .act = "start a reviewer", .signals = true, .who = AMP_WHO_PERSON},
    {0},
};
