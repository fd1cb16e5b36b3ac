/*
 * Git refuses the pushes of agents' worktrees, also without the agent's environment: the file
 * <git-common-dir>/amp/agents.gitconfig, which the repository's configuration includes, has a
 * section for each such worktree,
 *
 *     [includeIf "gitdir:GITDIR"]
 *         path = no-push.gitconfig
 *
 * and no-push.gitconfig sends every push to a scheme that does not exist. Git looks for a helper of
 * the scheme, and finds an alias that prints AMP_PUSH_REFUSAL. `worktree-bind hooks install` writes
 * that file, the include, and the sections of the worktrees that are bound already; without it,
 * nothing here has an effect. The file amp-push in a worktree's git directory records that its
 * agent may push.
 */
#ifndef AMP_WORK_GIT_PUSH_H
#define AMP_WORK_GIT_PUSH_H

#include <limits.h>
#include <stdbool.h>

#include <amp/base/error.h>

#define AMP_PUSH_SETTINGS "no-push.gitconfig" /* below <common>/amp */
#define AMP_PUSH_SECTIONS "agents.gitconfig"
#define AMP_PUSH_CODE     "push_refused"
/* The command of the alias, which git runs with sh. */
#define AMP_PUSH_REFUSAL                                                                           \
    "!set -f; echo amp: error: agents do not push from their worktrees, commit on your branch "    \
    "and say what has to be pushed: a person lands or pushes it [" AMP_PUSH_CODE                   \
    "] >&2; exit 1; :"

/* Lets git refuse the pushes of the linked worktree at path, or permits them. Repeating it is not
 * an error. */
int amp_push_set(const char *worktree, bool allowed, struct amp_error *err);
/* Removes what amp_push_set has written, when no agent has the worktree any more. */
int amp_push_end(const char *gitdir, struct amp_error *err);
/* Whether git refuses the pushes of every worktree that has an agent's marker and no permission. If
 * not, out is a git directory, or the configuration without the include. */
int amp_push_check(const char *common, char out[PATH_MAX], struct amp_error *err);

enum amp_push_change { AMP_PUSH_FAILED = -1, AMP_PUSH_CHANGED, AMP_PUSH_UNCHANGED };
/* Writes no-push.gitconfig, the sections of worktrees that have an agent, and the include in
 * <common>/config. UNCHANGED: it was there already. CONFIG git_locked: config.lock exists. */
enum amp_push_change amp_push_install(const char *common, struct amp_error *err);
/* Removes the files and the include. UNCHANGED: there was none. */
enum amp_push_change amp_push_uninstall(const char *common, struct amp_error *err);

#endif
