/*
 * The agent's command of a verb, with its walls and settings: run, review, task-queue work. The
 * options of the verb are members of these; amp_tool_worker_settle completes them.
 */
#ifndef CLI_WORK_WORKER_H
#define CLI_WORK_WORKER_H

#include <jansson.h>

#include "cli/rows.h"
#include "work/attempt/worker.h"

#define AMP_TOOL_DAY_MS 86400000

/* These options set how run and work carry out tasks of the Runtime Protocol. */
struct amp_runtime_options;
extern struct amp_runtime_options amp_tool_runtime;
#define AMP_TOOL_RUNTIME_OPTS                                                                      \
    {0,                                                                                            \
     "default-eta",                                                                                \
     AMP_OPT_DURATION,                                                                             \
     &amp_tool_runtime.eta_ms,                                                                     \
     "TIME",                                                                                       \
     .doc = "estimate of a task whose capabilities have none (Runtime Protocol)",                  \
     .min = 1000,                                                                                  \
     .max = 14 * AMP_TOOL_DAY_MS,                                                                  \
     .config = "runtime.eta"},                                                                     \
        {0,                                                                                        \
         "update-every",                                                                           \
         AMP_OPT_DURATION,                                                                         \
         &amp_tool_runtime.update_ms,                                                              \
         "TIME",                                                                                   \
         .doc = "shortest time between two reports of progress of a task",                         \
         .min = 0,                                                                                 \
         .max = AMP_TOOL_DAY_MS,                                                                   \
         .config = "runtime.update_every"},                                                        \
        {0,                                                                                        \
         "routing-policy",                                                                         \
         AMP_OPT_STRING,                                                                           \
         &amp_tool_runtime.routing,                                                                \
         "VERSION",                                                                                \
         .doc = "refuse tasks that another version of the routing policy routed",                  \
         .config = "runtime.routing_policy"},                                                      \
    {                                                                                              \
        0, "contracts", AMP_OPT_DIR, &amp_tool_runtime.schemas, "DIR",                             \
            .doc = "check results with the contract schemas in DIR", .config = "runtime.contracts" \
    }
#define AMP_TOOL_COMMAND_HINT "the agent's command follows --exec"
struct amp_run_options;
extern struct amp_worker_options amp_tool_worker;
extern struct amp_list amp_tool_exec;
extern struct amp_confine_cli amp_tool_walls;
extern const char *amp_tool_trusted_in;

/* The options of a verb that reads messages for one agent, with the role as its default name. */
/* clang-format off */
#define AMP_TOOL_WORKER_OPTS(role)                                                                          \
    {'i', "in", AMP_OPT_PATH, &amp_tool_worker.in, "PATH", "read messages from PATH instead of stdin"},     \
    {0, "trust-in", AMP_OPT_PATH, &amp_tool_trusted_in, "PATH",                                             \
     "the same; unsigned messages count, as those of stdin"},                                      \
    {'o', "out", AMP_OPT_PATH, &amp_tool_worker.out, "PATH", "write to PATH instead of stdout"},            \
    {0, "agent", AMP_OPT_STRING, &amp_tool_worker.agent, "NAME", "the agent's name, by default " role, .values = "agent"},     \
    {0, "as", AMP_OPT_STRING, &amp_tool_worker.consumer, "NAME", "name in the state directory"},            \
    {'t', "timeout", AMP_OPT_DURATION, &amp_tool_worker.timeout_ms, "TIME",                                 \
     "time limit of one attempt, 0 for none", 0, 365LL * AMP_TOOL_DAY_MS},                                  \
    {0, "grace", AMP_OPT_DURATION, &amp_tool_worker.grace_ms, "TIME",                                       \
     "time between TERM and KILL", 0, AMP_TOOL_DAY_MS},                                                     \
    {0, "retries", AMP_OPT_INT, &amp_tool_worker.retries, "N",                                              \
     "how often an attempt is repeated that crashed or timed out", 0, 1000},                       \
    {0, "pause", AMP_OPT_DURATION, &amp_tool_worker.pause_ms, "TIME",                                       \
     "pause before an attempt that the agent asked to repeat", 0, AMP_TOOL_DAY_MS},                         \
    AMP_OPT_UNCONFINED(amp_tool_walls),                                                                     \
    AMP_OPT_CONFINE(amp_tool_walls),                                                                        \
    AMP_OPT_PREPARE(amp_tool_worker.prepare),                                                               \
    AMP_OPT_OPEN_TIMEOUT(amp_tool_worker.open_timeout_ms),                                                  \
    {0, "max-output", AMP_OPT_SIZE, &amp_tool_worker.output_bytes, "BYTES",                                 \
     "how much of the agent's stdout and stderr is kept", 0, 1 << 30},                             \
    {'x', "exec", AMP_OPT_REST, &amp_tool_exec, "COMMAND", "the agent's command and its arguments"}
/* clang-format on */

enum amp_tool_command {
    AMP_TOOL_COMMAND_NEEDED,
    AMP_TOOL_COMMAND_OR_PROVIDER, /* the configuration may have one, for TASKs of sessions */
    AMP_TOOL_COMMAND_OPTIONAL,
};
/* Completes amp_tool_worker and loads the configuration. A missing command ends the program with
 * USAGE. release frees what it made, also after a failure. */
int amp_tool_worker_settle(enum amp_tool_command need, json_t **config, struct amp_error *err);
void amp_tool_worker_release(void);
/* check settles a verb with AMP_TOOL_WORKER_OPTS for a role; `verb` is the beginning of the
 * consumer's name. identify opens the identities of the role. */
int amp_tool_worker_check(const char *role, const char *verb, enum amp_tool_command need,
                          json_t **config, struct amp_error *err);
int amp_tool_worker_identify(struct amp_error *err);
/* The agents of several types, and the commands of some of them. */
#define AMP_TOOL_TYPE_OPTS(types, commands, doc_commands)                                          \
    {0, "type", AMP_OPT_LIST, &(types), "TYPE=N", "N agents of a type; may be repeated"},          \
    {                                                                                              \
        0, "command", AMP_OPT_LIST, &(commands), "TYPE=COMMAND", doc_commands                      \
    }
struct amp_pool_type;
/* Fills the types.n rows of out (AMP_POOL_TYPES), whose texts live as long as the process. A wrong
 * value ends the program with USAGE. */
void amp_tool_types_read(const struct amp_list *types, struct amp_pool_type *out);
/* The command in a value of --command, and its type in *type, an index. */
const char *amp_tool_type_command(const char *text, const struct amp_pool_type *types, int n,
                                  int *type);
/* Gives the types their commands, as words of a shell in which nothing is expanded. */
int amp_tool_commands_read(const struct amp_list *commands, struct amp_pool_type *types, int n,
                           struct amp_error *err);
/* The patterns of risk.LEVEL.forbid. */
int amp_tool_forbid_load(const json_t *config, struct amp_run_options *opt, struct amp_error *err);
void amp_tool_forbid_free(struct amp_run_options *opt);

/* Runs a pool with amp_tool_worker and the settings of the queue. opt has the rest but worker,
 * queue (but judge), budgets, stop and identify. */
struct amp_pool_options;
int amp_tool_pool_run(struct amp_store *store, struct amp_pool_options *opt, const json_t *config,
                      enum amp_status *status, struct amp_error *err);

#endif
