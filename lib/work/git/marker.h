/* The file amp-agent in a worktree's git directory: the agent that works there. Rules and hooks
 * read it (rule.h). */
#ifndef AMP_WORK_GIT_MARKER_H
#define AMP_WORK_GIT_MARKER_H

#include <amp/base/error.h>

/* Writes the marker, with the branch that the agent may move there and its role (NULL or "": none).
 * Repeating it replaces these. NO worktree_locked: another agent has it. */
int amp_marker_put(const char *gitdir, const char *agent, const char *branch, const char *role,
                   struct amp_error *err);
/* Removes the marker if it names the agent. */
int amp_marker_drop(const char *gitdir, const char *agent, struct amp_error *err);

#endif
