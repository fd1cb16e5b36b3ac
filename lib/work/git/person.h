/*
 * Actions that only people may do. This refuses an agent that does one by accident; it does not
 * recognise a process that hides its origin.
 */
#ifndef AMP_WORK_GIT_PERSON_H
#define AMP_WORK_GIT_PERSON_H

#include <stdbool.h>
#include <stddef.h>

#include <amp/base/error.h>

/* The sign by which an agent was recognised. */
struct amp_agent_caller {
    char name[128]; /* "unknown" if it has none */
    char how[256];  /* "AMP_AGENT is set in the environment" */
};
/* Whether an agent runs this process: AMP_AGENT (even empty) or AMP_RESULT is in envp, or in the
 * initial environment of an ancestor or of the leader of the process group or session; or the work
 * directory of this process or of one of those is in a worktree whose git directory has the file
 * amp-agent. */
bool amp_agent_calls(char *const *envp, struct amp_agent_caller *out);

/* Only the initial environments of this process's ancestors, process group and session leader, for
 * a hook: a person may run git in an agent's worktree. */
bool amp_agent_started(struct amp_agent_caller *out);

/* 0 for a person; NOPERM permission_denied for an agent. act completes "only people may …". A
 * refusal is reported to the worker that started the agent, through the FIFO that AMP_CONTROL of
 * the agent's environment names (amp-agent-control(7)). SIGPIPE must be ignored. */
int amp_person_only(char *const *envp, const char *act, struct amp_error *err);
/* Does the same for what belongs to the agent `name` (NAME or ROLE/NAME), which may do it as well.
 */
int amp_person_or_self(char *const *envp, const char *name, const char *act, struct amp_error *err);

#endif
