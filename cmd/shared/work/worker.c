/* The agent's command: its options, walls and limits, and the pool that runs it. */
#include "shared/work/worker.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/child.h>
#include <amp/base/id.h>
#include <amp/base/num.h>

#include "base/process/quote.h"
#include "cli/config.h"
#include "shared/finding.h"
#include "shared/work/tool.h"
#include "work/confine/confinement.h"
#include "work/loop/pool/pool.h"
#include "work/loop/run/run.h"

/* Most options are members of this; amp_tool_worker_settle fills the rest. */
struct amp_worker_options amp_tool_worker = {.timeout_ms = 3600000,
                                             .grace_ms = 10000,
                                             .pause_ms = 30000,
                                             .retries = 2,
                                             .open_timeout_ms = AMP_OPEN_TIMEOUT_MS,
                                             .output_bytes = 8 << 20,
                                             .prepare = {AMP_PREPARE_DEFAULTS}};
struct amp_runtime_options amp_tool_runtime = {.eta_ms = AMP_RUNTIME_ETA_MS,
                                               .update_ms = AMP_RUNTIME_UPDATE_MS};
struct amp_confine_cli amp_tool_walls;
struct amp_list amp_tool_exec;
const char *amp_tool_trusted_in;
static struct amp_confine_policy policy;
static struct amp_confine_report report;

static void progress_ignore(const char *fmt, ...)
{
}

/* Resolves the command relative to the current directory, not to the worktree in which it will run.
 */
static int command_find(const char *option, const char **word, struct amp_error *err)
{
    char found[PATH_MAX];
    struct amp_error why;
    char *path;

    if (amp_child_find(*word, environ, found, sizeof found, &why) < 0)
        return amp_fail_text(err, AMP_USAGE, why.code, "%s: %s", option, why.what);
    if (!strchr(*word, '/') || **word == '/')
        return 0;
    if (!(path = realpath(*word, NULL)))
        return amp_fail_errno(err, AMP_USAGE, "%s", *word);
    *word = path;
    return 0;
}

static int walls_choose(struct amp_error *err)
{
    const struct amp_confinement_args args = AMP_CONFINEMENT_ARGS(amp_tool_walls);
    amp_tool_worker.policy = &policy;
    amp_tool_worker.confine = &report;
    return amp_confinement_choose(&args, amp_note, &policy, &report, err);
}

static void limits_read(const json_t *config)
{
    const json_t *q = json_object_get(config, "quarantine");

    amp_tool_worker.take = (struct amp_git_take_limits){
        .objects = json_integer_value(json_object_get(q, "objects")),
        .bytes = json_integer_value(json_object_get(q, "bytes")),
        .object_bytes = json_integer_value(json_object_get(q, "object_bytes")),
        .tree_paths = json_integer_value(json_object_get(q, "tree_paths")),
        .tree_bytes = json_integer_value(json_object_get(q, "tree_bytes")),
    };
}

/* True if a provider of TASKs has a command in the settings. */
static bool has_provider(const json_t *config)
{
    const char *name;
    json_t *one;

    json_object_foreach (json_object_get(config, "providers"), name, one)
        if (json_array_size(json_object_get(one, "command")) > 0)
            return true;
    return false;
}

int amp_tool_worker_settle(enum amp_tool_command need, json_t **config, struct amp_error *err)
{
    if (!amp_tool_exec.n && need == AMP_TOOL_COMMAND_NEEDED)
        amp_die_usage("the agent's command is needed: --exec COMMAND…");
    amp_tool_worker.tool = amp_cli_name();
    amp_tool_worker.envp = environ;
    amp_tool_worker.note = amp_note;
    amp_tool_worker.prepare.note = amp_note;
    amp_tool_worker.prepare.stop = &amp_stop;
    amp_tool_worker.progress = amp_progress_wanted() ? amp_note : progress_ignore;
    amp_tool_worker.say = amp_finding_print;
    if ((amp_tool_exec.n && command_find("--exec", &amp_tool_exec.v[0], err) < 0) ||
        walls_choose(err) < 0 ||
        amp_config_load(amp_tool_config, amp_tool_state, config, err) < 0 ||
        amp_tool_patterns(*config, "branches", "protected", NULL, &amp_tool_worker.protected_,
                          err) < 0)
        return -1;
    if (!amp_tool_exec.n && need == AMP_TOOL_COMMAND_OR_PROVIDER && !has_provider(*config))
        amp_die_usage("the agent's command is needed: --exec COMMAND…, or for TASKs of sessions "
                      "providers.NAME.command in amp.json");
    limits_read(*config);
    amp_notice_limits(*config, &amp_tool_worker.activity);
    amp_tool_worker.argv = amp_tool_exec.n ? amp_tool_exec.v : NULL;
    return 0;
}

int amp_tool_forbid_load(const json_t *config, struct amp_run_options *opt, struct amp_error *err)
{
    int rc = 0;

    for (int i = AMP_RISK_LOW; !rc && i <= AMP_RISK_HIGH; i++)
        rc = amp_tool_patterns(config, "risk", amp_risk_name((enum amp_risk)i), "forbid",
                               &opt->forbid[i], err);
    return rc;
}

void amp_tool_forbid_free(struct amp_run_options *opt)
{
    for (int i = AMP_RISK_LOW; i <= AMP_RISK_HIGH; i++)
        amp_tool_patterns_free(opt->forbid[i]);
}

int amp_tool_worker_check(const char *role, const char *verb, enum amp_tool_command need,
                          json_t **config, struct amp_error *err)
{
    static char consumer[256];

    if (!amp_tool_worker.agent)
        amp_tool_worker.agent = role;
    if (!amp_id_is_safe(amp_span_str(amp_tool_worker.agent)))
        amp_die_usage("--agent: invalid name \"%s\" (letters, digits, '.', '-', '_')",
                      amp_tool_worker.agent);
    snprintf(consumer, sizeof consumer, "%s.%s", verb, amp_tool_worker.agent);
    if (!amp_tool_worker.consumer)
        amp_tool_worker.consumer = consumer;
    amp_tool_worker.role = role;
    amp_tool_worker.stop = &amp_stop;
    if (amp_tool_worker_settle(need, config, err) < 0)
        return -1;
    if (amp_tool_trusted_in && amp_tool_worker.in)
        amp_die_usage("--in and --trust-in exclude each other");
    amp_tool_worker.trusted = amp_tool_trusted_in || amp_input_is_trusted(amp_tool_worker.in);
    amp_tool_worker.in = amp_tool_trusted_in ? amp_tool_trusted_in : amp_tool_worker.in;
    amp_note_terminal(amp_tool_worker.in);
    return 0;
}

int amp_tool_worker_identify(struct amp_error *err)
{
    static char principal[AMP_PRINCIPAL_MAX];
    const struct amp_identity_tool who = {
        .state = amp_tool_state, .config = amp_tool_config, .principal = principal};

    snprintf(principal, sizeof principal, "%s/%.100s", amp_tool_worker.role, amp_tool_worker.agent);
    return amp_identity_cli_open(&amp_tool_identity, &who, &amp_tool_worker.ids, err);
}

void amp_tool_worker_release(void)
{
    amp_confine_policy_release(&policy);
    amp_tool_patterns_free(amp_tool_worker.protected_);
}

void amp_tool_types_read(const struct amp_list *types, struct amp_pool_type *out)
{
    static char names[AMP_POOL_TYPES][AMP_QUEUE_TYPE_MAX];

    if (types->n > AMP_POOL_TYPES)
        amp_die_usage("--type: at most %d types", AMP_POOL_TYPES);
    for (int i = 0; i < types->n; i++) {
        const char *text = types->v[i];
        size_t n = strcspn(text, "=");
        snprintf(names[i], sizeof names[i], "%.*s", (int)n, text);
        out[i] = (struct amp_pool_type){.name = names[i], .count = 1};
        if (n >= sizeof names[i] || !amp_id_is_safe(amp_span_str(names[i])))
            amp_die_usage("--type: invalid type \"%.*s\" (letters, digits, '.', '-', '_')", (int)n,
                          text);
        if (text[n] &&
            amp_num_parse(amp_span_str(text + n + 1), 1, AMP_POOL_AGENTS, &out[i].count, NULL) < 0)
            amp_die_usage("--type %s: expected TYPE=N with N from 1 to %d", text, AMP_POOL_AGENTS);
    }
}

const char *amp_tool_type_command(const char *text, const struct amp_pool_type *types, int n,
                                  int *type)
{
    size_t len = strcspn(text, "=");

    for (*type = 0; text[len] && *type < n; ++*type)
        if (amp_span_is((struct amp_span){text, len}, types[*type].name))
            return text + len + 1;
    amp_die_usage("--command %s: expected TYPE=COMMAND with a TYPE of --type", text);
}

int amp_tool_commands_read(const struct amp_list *commands, struct amp_pool_type *types, int n,
                           struct amp_error *err)
{
    for (int i = 0; i < commands->n; i++) {
        struct amp_shell_split words; /* for the process's life */
        int type;
        const char *text = amp_tool_type_command(commands->v[i], types, n, &type);
        if (amp_shell_split(amp_span_str(text), &words, err) < 0) {
            struct amp_error why = *err;
            return amp_fail_text(err, AMP_USAGE, why.code, "--command: %s", why.what);
        }
        const char **argv = calloc(words.n + 1, sizeof *argv);
        for (size_t k = 0; argv && k < words.n; k++)
            argv[k] = words.v[k];
        if (!argv)
            return amp_fail_memory(err);
        types[type].argv = argv;
        if (command_find("--command", &argv[0], err) < 0)
            return -1;
    }
    return 0;
}

/* The keys that sign an agent's lines. */
static int agent_identify(void *ctx, const char *principal, struct amp_identities **out,
                          struct amp_error *err)
{
    bool *quiet = ctx;
    const struct amp_identity_tool who = {.state = amp_tool_state,
                                          .config = amp_tool_config,
                                          .principal = principal,
                                          .quiet = *quiet};

    *quiet = true;
    return amp_identity_cli_open(&amp_tool_identity, &who, out, err);
}

int amp_tool_pool_run(struct amp_store *store, struct amp_pool_options *opt, const json_t *config,
                      enum amp_status *status, struct amp_error *err)
{
    bool quiet = opt->input != NULL; /* the input's identities were opened before */
    char *const *judge_argv = opt->queue.judge;

    opt->worker = amp_tool_worker;
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
