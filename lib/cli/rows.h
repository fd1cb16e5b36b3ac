/* Option rows that several tools have: the same words, the same meaning. d is what they set. */
#ifndef CLI_ROWS_H
#define CLI_ROWS_H

#include "cli/cli.h"

/* Defaults of the waits that several tools have, in milliseconds. */
#define AMP_LOCK_TIMEOUT_MS 60000
#define AMP_OPEN_TIMEOUT_MS 60000

/* A row of a macro that has several rows. */
#define AMP_OPT_ROW(letter, name, kind, dest, arg, text, ...)                                      \
    {                                                                                              \
        letter, name, kind, dest, arg, .doc = text, __VA_ARGS__                                    \
    }

#define AMP_OPT_STATE(d)                                                                           \
    {                                                                                              \
        's', "state", AMP_OPT_DIR, &(d), "DIR", .doc = "the state directory", .env = "AMP_STATE"   \
    }
#define AMP_OPT_CONFIG(d)                                                                          \
    {                                                                                              \
        'c', "config", AMP_OPT_PATH, &(d), "FILE", .doc = "amp.json to read", .env = "AMP_CONFIG"  \
    }
#define AMP_OPT_REPO(d)                                                                            \
    {                                                                                              \
        'C', "repo", AMP_OPT_DIR, &(d), "DIR",                                                     \
            .doc = "the repository (default: the current directory)"                               \
    }
#define AMP_OPT_LOCK_TIMEOUT(d)                                                                    \
    {                                                                                              \
        0, "lock-timeout", AMP_OPT_DURATION, &(d), "TIME",                                         \
            .doc = "how long to wait for the state's lock", .max = 86400000                        \
    }
#define AMP_OPT_OPEN_TIMEOUT(d)                                                                    \
    {                                                                                              \
        0, "open-timeout", AMP_OPT_DURATION, &(d), "TIME",                                         \
            .doc = "how long to wait for a reader of --out", .max = 86400000                       \
    }

#endif
