/*
 * Acts that belong to people. An agent that carries one out by accident is refused; a process that
 * hides what started it is not recognised, so this is a rail and no wall.
 */
#ifndef AMP_WORKTREE_PERSON_H
#define AMP_WORKTREE_PERSON_H

#include <stdbool.h>
#include <stddef.h>

#include <amp/base/error.h>

/* How an agent was recognised. */
struct amp_agent_caller {
    char name[128]; /* "unknown" where it has none */
    char how[256];  /* "AMP_AGENT is set in the environment" */
};
/* Whether an agent runs this process: AMP_AGENT (also an empty one) or AMP_RESULT is in envp, or in
 * the environment with which an ancestor, the leader of the process group or of the session was
 * started; or the work directory is in a worktree whose git directory holds the file amp-agent. */
bool amp_agent_calls(char *const *envp, struct amp_agent_caller *out);

/* 0 for a person; NOPERM permission_denied for an agent. act completes "only people may …". */
int amp_person_only(char *const *envp, const char *act, struct amp_error *err);

#endif
