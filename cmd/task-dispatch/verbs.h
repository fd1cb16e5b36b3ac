/* The verbs of task-dispatch and what they share. */
#ifndef TASK_DISPATCH_VERBS_H
#define TASK_DISPATCH_VERBS_H

#include <limits.h>

#include <jansson.h>

#include "cli/identity.h"
#include "cli/state.h"
#include "store/store.h"

/* --state, --config, --lock-timeout and --identity are options of every verb; main.c has their
 * table. */
extern const char *task_state, *task_config;
extern int64_t task_lock_timeout;
extern struct amp_identity_cli task_identity;
#define TASK_NOTES AMP_PROOF_NOTES /* of bundles beside commits */
/* The policy of the configuration. */
struct amp_task_policy;
int task_policy(struct amp_task_policy *out, struct amp_error *err);
/* The list of patterns at section.key[.inner] of amp.json; *out is unchanged if there is none.
 * CONFIG bad_value. */
int task_patterns(const json_t *config, const char *section, const char *key, const char *inner,
                  const char *const **out, struct amp_error *err);
void task_patterns_free(const char *const *v);

/* new.c: creates a task from a document of task/new.h, or sends it again if it has the id of an
 * open task. text: the file that says the same, for its record, or empty. 1: it was refused, and a
 * warning said why. */
int task_send(struct amp_store *store, json_t *task, struct amp_span text, struct amp_error *err);

/* The repository in which this process was started; else the directory. */
int task_here(char out[PATH_MAX], struct amp_error *err);

/* These options set how run and work carry out tasks of the Runtime Protocol. */
struct amp_runtime_options;
extern struct amp_runtime_options task_runtime;
#define TASK_RUNTIME_OPTS                                                                          \
    {0,                                                                                            \
     "default-eta",                                                                                \
     AMP_OPT_DURATION,                                                                             \
     &task_runtime.eta_ms,                                                                         \
     "TIME",                                                                                       \
     .doc = "estimate of a task whose capabilities have none (Runtime Protocol)",                  \
     .min = 1000,                                                                                  \
     .max = 14 * DAY_MS,                                                                           \
     .config = "runtime.eta"},                                                                     \
        {0,                                                                                        \
         "update-every",                                                                           \
         AMP_OPT_DURATION,                                                                         \
         &task_runtime.update_ms,                                                                  \
         "TIME",                                                                                   \
         .doc = "shortest time between two reports of progress of a task",                         \
         .min = 0,                                                                                 \
         .max = DAY_MS,                                                                            \
         .config = "runtime.update_every"},                                                        \
        {0,                                                                                        \
         "routing-policy",                                                                         \
         AMP_OPT_STRING,                                                                           \
         &task_runtime.routing,                                                                    \
         "VERSION",                                                                                \
         .doc = "refuse tasks that another version of the routing policy routed",                  \
         .config = "runtime.routing_policy"},                                                      \
    {                                                                                              \
        0, "contracts", AMP_OPT_DIR, &task_runtime.schemas, "DIR",                                 \
            .doc = "check results with the contract schemas in DIR", .config = "runtime.contracts" \
    }
/* worker.c: the agent's command and its walls, for the verbs that start one. settle completes
 * task_worker and loads the configuration; a missing command is wrong usage, unless in_sessions
 * (work on TASKs of sessions is possible) and the configuration has a provider's. */
#define TASK_COMMAND_HINT "the agent's command follows --exec"
struct amp_run_options;
extern struct amp_worker_options task_worker;
extern struct amp_list task_exec;
extern struct amp_confine_cli task_walls;
int task_worker_settle(bool in_sessions, json_t **config, struct amp_error *err);
/* The patterns of risk.LEVEL.forbid; free also releases what settle made. */
int task_forbid_load(const json_t *config, struct amp_run_options *opt, struct amp_error *err);
void task_forbid_free(struct amp_run_options *opt);

/* verify.c: checks by a bundle whether the tree of a commit was approved. 1: out is filled, without
 * a verdict; 0: it was not, and the reason was printed; -1: failure. commit NULL: every proof of
 * the bundle. */
struct amp_git;
struct amp_verified;
struct task_bundle {
    const char *repo, *file; /* file: "-" is standard input */
    bool note;               /* the note of the commit instead of the file */
    bool self_signed;
};
int task_bundle_verify(struct amp_git *git, const struct task_bundle *how, const char *commit,
                       struct amp_verified *out, struct amp_error *err);

/* export.c: appends the bundle with the proof of a task in a repository, without LF. NO
 * missing_commit: it is not approved. */
int task_bundle_text(struct amp_store *store, struct amp_git *git, const char *in, const char *id,
                     struct amp_buf *out, struct amp_error *err);

#endif
