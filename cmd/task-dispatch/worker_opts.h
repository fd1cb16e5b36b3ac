/* The options that run and review share. */
#ifndef TASK_DISPATCH_WORKER_OPTS_H
#define TASK_DISPATCH_WORKER_OPTS_H

#include <jansson.h>

#include "cli/cli.h"
#include "flow/worker.h"

struct worker_opts {
    const char *state, *in, *out, *agent, *as, *config;
    struct amp_list exec;
    int64_t timeout_ms, grace_ms, pause_ms, retries, open_timeout_ms, output_bytes;
};
#define WORKER_OPTS_DEFAULT                                                                        \
    {                                                                                              \
        .timeout_ms = 3600000, .grace_ms = 10000, .pause_ms = 30000, .retries = 2,                 \
        .open_timeout_ms = 60000, .output_bytes = 8 << 20                                          \
    }

#define WORKER_OPT_TABLE(o, who)                                                                    \
    {'s', "state", AMP_OPT_DIR, &(o).state, "DIR", "the state directory", .env = "AMP_STATE"},      \
        {'i', "in", AMP_OPT_PATH, &(o).in, "PATH", "read messages from PATH instead of stdin"},     \
        {'o', "out", AMP_OPT_PATH, &(o).out, "PATH", "write to PATH instead of stdout"},            \
        {'a', "agent", AMP_OPT_STRING, &(o).agent, "NAME", "the agent's name, by default " who},    \
        {0,       "as",   AMP_OPT_STRING,                                                           \
         &(o).as, "NAME", "the consumer under which messages are taken once"},                      \
        {'t',                                                                                       \
         "timeout",                                                                                 \
         AMP_OPT_DURATION,                                                                          \
         &(o).timeout_ms,                                                                           \
         "TIME",                                                                                    \
         "time limit of one attempt, 0 for none",                                                   \
         0,                                                                                         \
         INT64_MAX / 2},                                                                            \
        {0, "grace", AMP_OPT_DURATION, &(o).grace_ms, "TIME", "between TERM and KILL", 0, 3600000}, \
        {0,           "retries",                                                                    \
         AMP_OPT_INT, &(o).retries,                                                                 \
         "N",         "repeat an attempt that the machinery failed at most N times",                \
         0,           1000},                                                                        \
        {0,                                                                                         \
         "pause",                                                                                   \
         AMP_OPT_DURATION,                                                                          \
         &(o).pause_ms,                                                                             \
         "TIME",                                                                                    \
         "before an attempt that the agent asked to repeat",                                        \
         0,                                                                                         \
         86400000},                                                                                 \
        {0,                                                                                         \
         "open-timeout",                                                                            \
         AMP_OPT_DURATION,                                                                          \
         &(o).open_timeout_ms,                                                                      \
         "TIME",                                                                                    \
         "how long to wait for a reader of --out",                                                  \
         0,                                                                                         \
         86400000},                                                                                 \
        {0,                                                                                         \
         "max-output",                                                                              \
         AMP_OPT_SIZE,                                                                              \
         &(o).output_bytes,                                                                         \
         "BYTES",                                                                                   \
         "keep so much of the agent's stdout and of its stderr",                                    \
         0,                                                                                         \
         1 << 30},                                                                                  \
        {'c',                                                                                       \
         "config",                                                                                  \
         AMP_OPT_PATH,                                                                              \
         &(o).config,                                                                               \
         "FILE",                                                                                    \
         "the configuration, amp.json",                                                             \
         .env = "AMP_CONFIG"},                                                                      \
    {                                                                                               \
        'x', "exec", AMP_OPT_REST, &(o).exec, "COMMAND", "the agent's command and its arguments"    \
    }

/* Opens the state and fills what the worker needs; memory lives as long as the process. role:
 * "executor" or "reviewer"; verb: for the consumer's name. */
int worker_open(struct worker_opts *o, const char *role, const char *verb,
                struct amp_worker_options *w, struct amp_store **store, json_t **config,
                struct amp_error *err);

/* The list of patterns at section.key[.inner] of amp.json; out is untouched where there is none. */
int worker_patterns(const json_t *config, const char *section, const char *key, const char *inner,
                    const char *const **out, struct amp_error *err);

#endif
