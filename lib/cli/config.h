/*
 * amp.json. The user's file may hold every setting. The state directory's file may hold only what
 * the tool allows there (state_may_set of struct amp_tool).
 */
#ifndef AMP_CLI_CONFIG_H
#define AMP_CLI_CONFIG_H

#include <amp/base/buf.h>

/* Calls set for the value under a dotted key of amp.json, for each element of an array. The value
 * comes from the user's file, else from the state directory's where the tool allows it there. */
typedef int amp_config_fn(const char *explicit_path, const char *state_dir, const char *key,
                          int (*set)(void *arg, const char *text, struct amp_error *err), void *arg,
                          struct amp_error *err);
amp_config_fn amp_config_values;

/* The user's amp.json, the first that exists: explicit_path, AMP_CONFIG,
 * $XDG_CONFIG_HOME/amp/amp.json, ~/.config/amp/amp.json. Read once; *out is jansson's json_t
 * (borrowed), NULL when there is none. The first two must exist when named. It never has anything
 * of the state directory's amp.json, which whoever writes messages may be able to write. Programs
 * that do not call this do not link jansson: options get their values without it, the paths being
 * those of the tool's options "config" and "state". */
struct json_t;
int amp_config_load(const char *explicit_path, const char *state_dir, struct json_t **out,
                    struct amp_error *err);

/* Reads it again, for programs that live long: with a failure it stays as it was. Values that were
 * taken from it before stay valid; amp_config_load gives what it gave. */
int amp_config_reload(const char *explicit_path, const char *state_dir, struct amp_error *err);

/* The files as they were read, for reports; valid until the next reload. */
struct amp_config_files {
    const char *user_path, *state_path; /* where the file is or would be; "" where unknown */
    struct amp_span user, state;        /* their bytes; empty where there is none */
    struct amp_span ignored; /* of the state directory's: "qa.lock_after, route.routes" */
};
struct amp_config_files amp_config_files(void);

#endif
