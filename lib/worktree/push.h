/*
 * Git refuses the pushes of a worktree, also without the agent's environment: the file
 * <git-common-dir>/amp/agents.gitconfig, which the repository's configuration includes, has a
 * section for each such worktree,
 *
 *     [includeIf "gitdir:GITDIR"]
 *         path = no-push.gitconfig
 *
 * and no-push.gitconfig sends every push to a scheme that does not exist. `worktree-bind hooks
 * install` writes that file and the include; without it, nothing here has an effect.
 */
#ifndef AMP_WORKTREE_PUSH_H
#define AMP_WORKTREE_PUSH_H

#include <amp/base/error.h>

#define AMP_PUSH_SETTINGS "no-push.gitconfig" /* below <common>/amp */
#define AMP_PUSH_SECTIONS "agents.gitconfig"

/* Adds the section of the linked worktree at path, or removes that of a git directory. Repeating it
 * is not an error. */
int amp_push_refuse(const char *worktree, struct amp_error *err);
int amp_push_allow(const char *gitdir, struct amp_error *err);

/* Writes no-push.gitconfig and the include in <common>/config. 1: it was there already. CONFIG
 * git_locked: config.lock exists. */
int amp_push_install(const char *common, struct amp_error *err);
/* Removes the files and the include. 1: there was none. */
int amp_push_uninstall(const char *common, struct amp_error *err);

#endif
