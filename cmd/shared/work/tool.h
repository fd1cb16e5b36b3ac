/*
 * The options of every verb of the tools that carry out work: task-dispatch, task-queue,
 * agent-handoff, aop-session, aof-board. Their values are here, so that other files of cli/work use
 * them.
 */
#ifndef CLI_WORK_TOOL_H
#define CLI_WORK_TOOL_H

#include <limits.h>

#include <jansson.h>

#include "shared/identity.h"
#include "shared/state.h"

extern const char *amp_tool_state, *amp_tool_config;
extern int64_t amp_tool_lock_timeout;
extern struct amp_identity_cli amp_tool_identity;
extern const struct amp_opt amp_tool_opts[];
extern const int amp_tool_statuses[];

/* The list of patterns at section.key[.inner] of amp.json; *out is unchanged if there is none.
 * CONFIG bad_value. */
int amp_tool_patterns(const json_t *config, const char *section, const char *key, const char *inner,
                      const char *const **out, struct amp_error *err);
void amp_tool_patterns_free(const char *const *v);

/* The repository in which this process was started; else the directory. */
int amp_tool_here(char out[PATH_MAX], struct amp_error *err);

#endif
