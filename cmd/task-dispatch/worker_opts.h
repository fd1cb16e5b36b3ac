/* The options that run and review share. */
#ifndef TASK_DISPATCH_WORKER_OPTS_H
#define TASK_DISPATCH_WORKER_OPTS_H

#include <jansson.h>

#include "cli/rows.h"
#include "flow/work/worker.h"

struct worker_opts {
    const char *in, *out, *agent, *as, *progress;
    struct amp_list exec;
    int64_t timeout_ms, grace_ms, pause_ms, retries, open_timeout_ms, output_bytes;
};
#define DAY_MS 86400000
extern const char *const worker_progress[];

/* clang-format off */
#define WORKER_OPTS_DEFAULT                                                                        \
    {.progress = "auto", .timeout_ms = 3600000, .grace_ms = 10000, .pause_ms = 30000, .retries = 2,                    \
     .open_timeout_ms = AMP_OPEN_TIMEOUT_MS, .output_bytes = 8 << 20}

#define OPT(letter, name, kind, field, arg, doc, ...)                                              \
    {letter, name, AMP_OPT_##kind, &o.field, arg, doc, __VA_ARGS__}
/* For a static struct worker_opts o. */
#define WORKER_OPT_TABLE(who)                                                                      \
    OPT('i', "in", PATH, in, "PATH", "read messages from PATH instead of stdin", 0),               \
    OPT('o', "out", PATH, out, "PATH", "write to PATH instead of stdout", 0),                      \
    OPT(0, "agent", STRING, agent, "NAME", "the agent's name, by default " who, 0),              \
    OPT(0, "as", STRING, as, "NAME", "name in the state directory", 0),       \
    OPT('t', "timeout", DURATION, timeout_ms, "TIME", "time limit of one attempt, 0 for none",     \
        0, 365LL * DAY_MS),                                                                        \
    OPT(0, "grace", DURATION, grace_ms, "TIME", "time between TERM and KILL", 0, DAY_MS),               \
    OPT(0, "retries", INT, retries, "N",                                                           \
        "how often an attempt is repeated that crashed or timed out", 0, 1000),                   \
    OPT(0, "pause", DURATION, pause_ms, "TIME",                                                    \
        "pause before an attempt that the agent asked to repeat", 0, DAY_MS),                            \
    AMP_OPT_OPEN_TIMEOUT(o.open_timeout_ms),                                                       \
    OPT(0, "max-output", SIZE, output_bytes, "BYTES",                                              \
        "how much of the agent's stdout and stderr is kept", 0, 1 << 30),                       \
    OPT(0, "progress", CHOICE, progress, "WHEN", "print progress on stderr", 0, 0,              \
        worker_progress),                                                                          \
    OPT('x', "exec", REST, exec, "COMMAND", "the agent's command and its arguments", 0)
/* clang-format on */

/* Opens the state and fills what the worker needs; memory lives as long as the process. role:
 * "executor" or "reviewer"; verb: for the consumer's name. */
int worker_open(struct worker_opts *o, const char *role, const char *verb,
                struct amp_worker_options *w, struct amp_store **store, json_t **config,
                struct amp_error *err);

/* The list of patterns at section.key[.inner] of amp.json; out is untouched where there is none. */
int worker_patterns(const json_t *config, const char *section, const char *key, const char *inner,
                    const char *const **out, struct amp_error *err);
void worker_patterns_free(const char *const *v);

#endif
