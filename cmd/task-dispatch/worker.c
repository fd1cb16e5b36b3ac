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
#include "cli/finding.h"
#include "cli/identity.h"
#include "cli/rows.h"
#include "flow/confinement.h"
#include "flow/pool/pool.h"
#include "flow/review/review.h"
#include "flow/run/run.h"
#include "flow/work/session/session.h"
#include "pool/pool.h"
#include "protocol/work.h"
#include "verbs.h"

#define DAY_MS 86400000

/* Most options are members of this; worker_open fills the rest. */
struct amp_worker_options task_worker = {.timeout_ms = 3600000,
                                         .grace_ms = 10000,
                                         .pause_ms = 30000,
                                         .retries = 2,
                                         .open_timeout_ms = AMP_OPEN_TIMEOUT_MS,
                                         .output_bytes = 8 << 20,
                                         .prepare = {AMP_PREPARE_DEFAULTS}};
static const char *base;
struct amp_runtime_options task_runtime = {.eta_ms = AMP_RUNTIME_ETA_MS,
                                           .update_ms = AMP_RUNTIME_UPDATE_MS};
static const char *trusted_in, *protocol;
static bool by_exit;
static int64_t jobs = 1;
struct amp_confine_cli task_walls;
struct amp_list task_exec;
static struct amp_confine_policy policy;
static struct amp_confine_report report;

/* clang-format off */
#define WORKER_OPTS(role)                                                                          \
    {'i', "in", AMP_OPT_PATH, &task_worker.in, "PATH", "read messages from PATH instead of stdin"},     \
    {0, "trust-in", AMP_OPT_PATH, &trusted_in, "PATH",                                             \
     "the same; unsigned messages count, as those of stdin"},                                      \
    {'o', "out", AMP_OPT_PATH, &task_worker.out, "PATH", "write to PATH instead of stdout"},            \
    {0, "agent", AMP_OPT_STRING, &task_worker.agent, "NAME", "the agent's name, by default " role, .values = "agent"},     \
    {'j', "jobs", AMP_OPT_INT, &jobs, "N",                                                         \
     "work on N messages at a time, by the agents NAME-1 to NAME-N", 1, AMP_POOL_AGENTS},           \
    {0, "as", AMP_OPT_STRING, &task_worker.consumer, "NAME", "name in the state directory"},            \
    {'t', "timeout", AMP_OPT_DURATION, &task_worker.timeout_ms, "TIME",                                 \
     "time limit of one attempt, 0 for none", 0, 365LL * DAY_MS},                                  \
    {0, "grace", AMP_OPT_DURATION, &task_worker.grace_ms, "TIME",                                       \
     "time between TERM and KILL", 0, DAY_MS},                                                     \
    {0, "retries", AMP_OPT_INT, &task_worker.retries, "N",                                              \
     "how often an attempt is repeated that crashed or timed out", 0, 1000},                       \
    {0, "pause", AMP_OPT_DURATION, &task_worker.pause_ms, "TIME",                                       \
     "pause before an attempt that the agent asked to repeat", 0, DAY_MS},                         \
    AMP_OPT_UNCONFINED(task_walls),                                                                     \
    AMP_OPT_CONFINE(task_walls),                                                                        \
    AMP_OPT_PREPARE(task_worker.prepare),                                                               \
    AMP_OPT_OPEN_TIMEOUT(task_worker.open_timeout_ms),                                                  \
    {0, "max-output", AMP_OPT_SIZE, &task_worker.output_bytes, "BYTES",                                 \
     "how much of the agent's stdout and stderr is kept", 0, 1 << 30},                             \
    {'x', "exec", AMP_OPT_REST, &task_exec, "COMMAND", "the agent's command and its arguments"},        \
    AMP_OPT_END
/* clang-format on */

static const struct amp_opt task_run_opts[] = {
    {0, "base", AMP_OPT_STRING, &base, "REVISION", "start of a new branch whose task has no base"},
    TASK_RUNTIME_OPTS,
    {'p', "protocol", AMP_OPT_STRING, &protocol, "NAME",
     "take the TASKs of sessions only, those of --agent or of all agents (NAME: aop)"},
    WORKER_OPTS("executor"),
};
static const struct amp_opt task_review_opts[] = {
    {0, "verdict-by-exit", AMP_OPT_FLAG, &by_exit, NULL,
     "without an answer use the exit status: 0 approves, others reject"},
    WORKER_OPTS("reviewer"),
};

static void progress_ignore(const char *fmt, ...)
{
}

/* Resolves the command relative to the current directory, not to the worktree in which it will run.
 */
static int command_find(const char **word, struct amp_error *err)
{
    char found[PATH_MAX];
    struct amp_error why;
    char *path;

    if (amp_child_find(*word, environ, found, sizeof found, &why) < 0)
        return amp_fail_text(err, AMP_USAGE, why.code, "--exec: %s", why.what);
    if (!strchr(*word, '/') || **word == '/')
        return 0;
    if (!(path = realpath(*word, NULL)))
        return amp_fail_errno(err, AMP_USAGE, "%s", *word);
    *word = path;
    return 0;
}

static int walls_choose(struct amp_error *err)
{
    const struct amp_confinement_args args = AMP_CONFINEMENT_ARGS(task_walls);
    task_worker.policy = &policy;
    task_worker.confine = &report;
    return amp_confinement_choose(&args, amp_note, &policy, &report, err);
}

static void limits_read(const json_t *config)
{
    const json_t *q = json_object_get(config, "quarantine");

    task_worker.take = (struct amp_git_take_limits){
        .objects = json_integer_value(json_object_get(q, "objects")),
        .bytes = json_integer_value(json_object_get(q, "bytes")),
        .object_bytes = json_integer_value(json_object_get(q, "object_bytes")),
        .tree_paths = json_integer_value(json_object_get(q, "tree_paths")),
        .tree_bytes = json_integer_value(json_object_get(q, "tree_bytes")),
    };
}

/* Whether a provider of TASKs has a command in the settings. */
static bool has_provider(const json_t *config)
{
    const char *name;
    json_t *one;

    json_object_foreach (json_object_get(config, "providers"), name, one)
        if (json_array_size(json_object_get(one, "command")) > 0)
            return true;
    return false;
}

int task_worker_settle(bool in_sessions, json_t **config, struct amp_error *err)
{
    if (!task_exec.n && !in_sessions)
        amp_die_usage("the agent's command is needed: --exec COMMAND…");
    task_worker.tool = amp_cli_name();
    task_worker.envp = environ;
    task_worker.note = amp_note;
    task_worker.prepare.note = amp_note;
    task_worker.prepare.stop = &amp_stop;
    task_worker.progress = amp_progress_wanted() ? amp_note : progress_ignore;
    task_worker.say = amp_finding_print;
    if ((task_exec.n && command_find(&task_exec.v[0], err) < 0) || walls_choose(err) < 0 ||
        amp_config_load(task_config, task_state, config, err) < 0 ||
        task_patterns(*config, "branches", "protected", NULL, &task_worker.protected_, err) < 0)
        return -1;
    if (!task_exec.n && !protocol && !has_provider(*config))
        amp_die_usage("the agent's command is needed: --exec COMMAND…, or for TASKs of sessions "
                      "providers.NAME.command in amp.json");
    limits_read(*config);
    amp_flow_activity_limits(*config, &task_worker.activity);
    task_worker.argv = task_exec.n ? task_exec.v : NULL;
    return 0;
}

int task_forbid_load(const json_t *config, struct amp_run_options *opt, struct amp_error *err)
{
    static const char *const levels[] = {
        [AMP_RISK_LOW] = "low", [AMP_RISK_MEDIUM] = "medium", [AMP_RISK_HIGH] = "high"};
    int rc = 0;

    for (int i = AMP_RISK_LOW; !rc && i <= AMP_RISK_HIGH; i++)
        rc = task_patterns(config, "risk", levels[i], "forbid", &opt->forbid[i], err);
    return rc;
}

void task_forbid_free(struct amp_run_options *opt)
{
    amp_confine_policy_release(&policy);
    task_patterns_free(task_worker.protected_);
    for (int i = AMP_RISK_LOW; i <= AMP_RISK_HIGH; i++)
        task_patterns_free(opt->forbid[i]);
}

static json_t *config;

/* Completes `worker`. verb: for the consumer's name. */
static int worker_check(const char *role, const char *verb, struct amp_error *err)
{
    static char consumer[256];

    if (!task_worker.agent)
        task_worker.agent = role;
    if (!amp_id_is_safe(amp_span_str(task_worker.agent)))
        amp_die_usage("--agent: invalid name \"%s\" (letters, digits, '.', '-', '_')",
                      task_worker.agent);
    snprintf(consumer, sizeof consumer, "task-dispatch.%s.%s", verb, task_worker.agent);
    if (!task_worker.consumer)
        task_worker.consumer = consumer;
    task_worker.role = role;
    task_worker.stop = &amp_stop;
    if (task_worker_settle(protocol != NULL, &config, err) < 0)
        return -1;
    if (trusted_in && task_worker.in)
        amp_die_usage("--in and --trust-in exclude each other");
    task_worker.trusted = trusted_in || amp_input_is_trusted(task_worker.in);
    task_worker.in = trusted_in ? trusted_in : task_worker.in;
    amp_note_terminal(task_worker.in);
    return 0;
}

/* Opens the identities of `worker`. */
static int worker_open(struct amp_error *err)
{
    static char principal[AMP_PRINCIPAL_MAX];
    const struct amp_identity_tool who = {
        .state = task_state, .config = task_config, .principal = principal};

    snprintf(principal, sizeof principal, "%s/%.100s", task_worker.role, task_worker.agent);
    return amp_identity_cli_open(&task_identity, &who, &task_worker.ids, err);
}

/* The repository in which this process was started; else the directory. */
int task_here(char out[PATH_MAX], struct amp_error *err)
{
    struct amp_repository repo = {0};
    struct amp_error no;

    if (!getcwd(out, PATH_MAX))
        return amp_fail_errno(err, AMP_IOERR, "the current directory");
    if (amp_repository_find(out, &repo, &no) == 0 && repo.found && *repo.top)
        snprintf(out, PATH_MAX, "%s", repo.top);
    return 0;
}

static const char *sessions_agent; /* --agent, as it was given */

/* run --protocol: the executor of sessions. */
static int sessions_run(struct amp_store *store, enum amp_status *status, struct amp_error *err)
{
    char here[PATH_MAX];

    if (task_here(here, err) < 0)
        return -1;
    const struct amp_session_options opt = {
        .worker = task_worker, .agent = sessions_agent, .config = config, .here = here};
    return amp_flow_session(store, &opt, status, err);
}

static void protocol_check(void)
{
    enum amp_protocol p = amp_protocol_find(amp_span_str(protocol));

    if (p == AMP_PROTO_NONE || !amp_work_of(p)->in_sessions)
        amp_die_usage("--protocol: \"%s\" has no sessions (expected: aop)", protocol);
}

/* More than one agent: a pool that reads the messages. opt: the options of the role. */
static int pool_start(struct amp_store *store, const struct amp_worker_role *role, void *ctx,
                      struct amp_pool_options *opt, enum amp_status *status, struct amp_error *err)
{
    const struct amp_pool_type type = {task_worker.agent, jobs};
    const struct amp_pool_input input = {.role = role,
                                         .ctx = ctx,
                                         .name = task_worker.role,
                                         .in = task_worker.in,
                                         .consumer = task_worker.consumer,
                                         .ids = task_worker.ids,
                                         .trusted = task_worker.trusted};
    const struct amp_session_options session = {.config = config};

    opt->session = &session;
    opt->name = task_worker.consumer;
    opt->types = &type;
    opt->n_types = 1;
    opt->safe_ms = opt->shutdown_ms = task_worker.grace_ms;
    opt->input = &input;
    return pool_run(store, opt, config, status, err);
}

static int run_check(struct amp_command *c, struct amp_error *err)
{
    (void)c;
    sessions_agent = task_worker.agent;
    if (protocol)
        protocol_check();
    if (protocol && jobs > 1)
        amp_die_usage("--jobs and --protocol exclude each other (task-dispatch work has TASKs of "
                      "sessions for several agents)");
    return worker_check("executor", protocol ? "sessions" : "run", err);
}

static int task_run(struct amp_command *c, struct amp_error *err)
{
    struct amp_run_options opt = {.base = base, .runtime = task_runtime};
    enum amp_status status;

    if (worker_open(err) < 0)
        return -1;
    opt.worker = task_worker;
    const struct amp_review_options review = {.worker = task_worker};
    struct amp_pool_options pool = {.run = &opt, .review = &review};
    int rc = task_forbid_load(config, &opt, err);
    if (!rc && jobs > 1)
        rc = pool_start(c->store, &amp_run_role, &opt, &pool, &status, err);
    else if (!rc)
        rc = protocol ? sessions_run(c->store, &status, err)
                      : amp_flow_run(c->store, &opt, &status, err);
    amp_identities_close(task_worker.ids);
    task_forbid_free(&opt);
    return rc ? -1 : (int)status;
}

static int review_check(struct amp_command *c, struct amp_error *err)
{
    (void)c;
    return worker_check("reviewer", "review", err);
}

static int task_review(struct amp_command *c, struct amp_error *err)
{
    struct amp_review_options opt = {.verdict_by_exit = by_exit};
    enum amp_status status;

    if (worker_open(err) < 0)
        return -1;
    opt.worker = task_worker;
    const struct amp_run_options run = {.worker = task_worker};
    struct amp_pool_options pool = {.run = &run, .review = &opt};
    int rc = jobs > 1 ? pool_start(c->store, &amp_review_role, &opt, &pool, &status, err)
                      : amp_flow_review(c->store, &opt, &status, err);
    amp_identities_close(task_worker.ids);
    amp_confine_policy_release(&policy);
    task_patterns_free(task_worker.protected_);
    return rc ? -1 : (int)status;
}

const struct amp_verb worker_verbs[] = {
    {"run", "", "run an executor in a worktree", task_run_opts, task_run, TASK_COMMAND_HINT,
     .check = run_check, .opens = AMP_OPENS_MADE, .act = "start an executor", .signals = true,
     .who = AMP_WHO_PERSON},
    {"review", "", "run a reviewer in a worktree", task_review_opts, task_review, TASK_COMMAND_HINT,
     .check = review_check, .opens = AMP_OPENS_MADE, .act = "start a reviewer", .signals = true,
     .who = AMP_WHO_PERSON},
    {0},
};
