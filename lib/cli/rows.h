/* Option rows of several tools, with the same names and meanings. d is the variable that they set.
 */
#ifndef AMP_CLI_ROWS_H
#define AMP_CLI_ROWS_H

#include "cli/cli.h"

/* Defaults of waits, in milliseconds. */
#define AMP_LOCK_TIMEOUT_MS 60000
#define AMP_OPEN_TIMEOUT_MS 60000

/* One row, for macros of rows. */
#define AMP_OPT_ROW(letter, name, kind, dest, arg, text, ...)                                      \
    {                                                                                              \
        letter, name, kind, dest, arg, .doc = text, __VA_ARGS__                                    \
    }

#define AMP_OPT_STATE(d)                                                                           \
    AMP_OPT_ROW('s', "state", AMP_OPT_DIR, &(d), "DIR", "the state directory", .env = "AMP_STATE")
#define AMP_OPT_CONFIG(d)                                                                          \
    AMP_OPT_ROW('c', "config", AMP_OPT_PATH, &(d), "FILE", "amp.json to read", .env = "AMP_CONFIG")
#define AMP_OPT_REPO(d)                                                                            \
    AMP_OPT_ROW('C', "repo", AMP_OPT_DIR, &(d), "DIR",                                             \
                "the repository (default: the current directory)")
#define AMP_OPT_LOCK_TIMEOUT(d)                                                                    \
    AMP_OPT_ROW(0, "lock-timeout", AMP_OPT_DURATION, &(d), "TIME",                                 \
                "how long to wait for the state's lock", .max = 86400000)
#define AMP_OPT_OPEN_TIMEOUT(d)                                                                    \
    AMP_OPT_ROW(0, "open-timeout", AMP_OPT_DURATION, &(d), "TIME",                                 \
                "how long to wait for a reader of --out", .max = 86400000)

/* Identity: which messages must be signed, and the keys from outside the state directory. */
#define AMP_OPT_IDENTITY(d)                                                                        \
    AMP_OPT_ROW(0, "identity", AMP_OPT_CHOICE, &(d), "WORD", "which messages must be signed",      \
                .choices = (const char *const[]){"local", "all", "off", NULL},                     \
                .env = "AMP_IDENTITY", .config = "identity.require")
#define AMP_OPT_ALLOWED_SIGNERS(d)                                                                 \
    AMP_OPT_ROW(0, "allowed-signers", AMP_OPT_PATH, &(d), "FILE",                                  \
                "trusted keys, in the format of ssh-keygen(1)",                                    \
                .config = "identity.allowed_signers")
#define AMP_OPT_SKEW(d)                                                                            \
    AMP_OPT_ROW(0, "skew", AMP_OPT_DURATION, &(d), "TIME",                                         \
                "how far a signature's time may be in the future", .max = 86400000,                \
                .config = "identity.skew")
#define AMP_OPT_MAX_AGE(d)                                                                         \
    AMP_OPT_ROW(0, "max-age", AMP_OPT_DURATION, &(d), "TIME",                                      \
                "how far it may be in the past (0: no limit)", .max = (int64_t)3650 * 86400000,    \
                .config = "identity.max_age")

/* The options of confinement; o is a static struct amp_confine_cli. amp_confinement_choose
 * (work/confine/confinement.h) carries them out. */
struct amp_confine_cli {
    bool require, best_effort, unconfined;
    const char *policy, *network;
    struct amp_list read, write;
};
extern const char *const amp_opt_networks[];
#define AMP_OPT_UNCONFINED(o)                                                                      \
    AMP_OPT_ROW(0, "unconfined", AMP_OPT_FLAG, &(o).unconfined, NULL, "do not confine the command")
#define AMP_OPT_CONFINE(o)                                                                         \
    AMP_OPT_ROW(0, "require", AMP_OPT_FLAG, &(o).require, NULL,                                    \
                "refuse to start unless the whole policy can be enforced (the default)"),          \
        AMP_OPT_ROW(0, "best-effort", AMP_OPT_FLAG, &(o).best_effort, NULL,                        \
                    "start with what can be enforced, and report the rest"),                       \
        AMP_OPT_ROW(0, "policy", AMP_OPT_PATH, &(o).policy, "FILE", "read the policy from FILE"),  \
        AMP_OPT_ROW(0, "network", AMP_OPT_CHOICE, &(o).network, "POLICY",                          \
                    "network access (default: the policy's, DENY_ALL without one)",                \
                    .choices = amp_opt_networks),                                                  \
        AMP_OPT_ROW(0, "read", AMP_OPT_LIST, &(o).read, "GLOB", "paths that may be read"),         \
        AMP_OPT_ROW(0, "write", AMP_OPT_LIST, &(o).write, "GLOB", "paths that may be written")

/* These options set what a worktree gets before its agent is bound; o is a static struct
 * amp_prepare (work/git/prepare.h). */
#define AMP_OPT_PREPARE(o)                                                                         \
    AMP_OPT_ROW(0, "include", AMP_OPT_FLAG, &(o).include, NULL,                                    \
                "copy the ignored files that .worktreeinclude names",                              \
                .config = "worktree.include"),                                                     \
        AMP_OPT_ROW(0, "include-bytes", AMP_OPT_SIZE, &(o).include_bytes, "SIZE",                  \
                    "limit of the copied files (default: 64M)", .min = 1, .max = INT64_C(1) << 40, \
                    .config = "worktree.include_bytes"),                                           \
        AMP_OPT_ROW(0, "post-create", AMP_OPT_STRING, &(o).command, "COMMAND",                     \
                    "shell command to run once in the worktree",                                   \
                    .config = "worktree.post_create"),                                             \
        AMP_OPT_ROW(0, "post-create-timeout", AMP_OPT_DURATION, &(o).command_ms, "TIME",           \
                    "time limit of that command (default: 10m)", .min = 1, .max = 86400000,        \
                    .config = "worktree.post_create_timeout")

#endif
