/*
 * amp.json. The user's file may have every setting, the state directory's file only those that the
 * tool allows there (state_may_set of struct amp_tool).
 */
#ifndef AMP_CLI_CONFIG_H
#define AMP_CLI_CONFIG_H

#include <amp/base/buf.h>

/* Calls set for the value of a dotted key of amp.json, or for each element of an array. The value
 * is that of the user's file, or else of the state directory's, if the tool allows it there. */
int amp_config_values(const char *explicit_path, const char *state_dir, const char *key,
                      int (*set)(void *arg, const char *text, struct amp_error *err), void *arg,
                      struct amp_error *err);

/* The user's amp.json, the first that exists: explicit_path, AMP_CONFIG,
 * $XDG_CONFIG_HOME/amp/amp.json, ~/.config/amp/amp.json. Read once; *out is jansson's json_t
 * (borrowed), NULL if there is none. The first two must exist if they are given. Settings of the
 * state directory's amp.json are not included, because senders of messages may be able to write it.
 * Only programs that call this link jansson; options get their values without it, with the paths of
 * the tool's options "config" and "state". */
struct json_t;
int amp_config_load(const char *explicit_path, const char *state_dir, struct json_t **out,
                    struct amp_error *err);

/* Reads the files again, for long-running programs; a failure changes nothing. Earlier values stay
 * valid, and amp_config_load returns the same document as before. */
int amp_config_reload(const char *explicit_path, const char *state_dir, struct amp_error *err);

/* The files as they were read, for reports; valid until the next reload. */
struct amp_config_files {
    const char *user_path, *state_path; /* also of files that do not exist; "": unknown */
    struct amp_span user, state;        /* their bytes; empty if there is no file */
    struct amp_span ignored; /* settings of the state's file: "qa.lock_after, route.routes" */
};
struct amp_config_files amp_config_files(void);

#endif
