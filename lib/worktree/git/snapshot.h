/*
 * Snapshots of a repository's files, its HEAD and its index, in the repository itself (AOP §7,
 * GIT_STASH and DIFF): a commit under refs/amp/snapshots/. The list of stashes is not touched.
 *
 * `dir` is a directory of the caller's with the files
 *     tree           the list of the files (worktree/snapshot/tree.h)
 *     contents/SUM   their contents
 *     repositories   paths below the workspace of the repositories in it, each with a NUL
 *     ignored        written by amp_git_snapshot_ignored: paths, each with a NUL, those of
 *                    directories with a '/' before it
 * Errors: see git.h; NO snapshot_damaged.
 */
#ifndef AMP_WORKTREE_GIT_SNAPSHOT_H
#define AMP_WORKTREE_GIT_SNAPSHOT_H

#include <amp/base/id.h>

#include "worktree/git/git.h"

struct amp_git_snapshot {
    const char *gitdir; /* of the workspace's repository (amp_git_info) */
    const char *place;  /* the workspace, the top of its files */
    const char *ref;    /* refs/amp/snapshots/… */
    const char *dir;
    const char *name, *email; /* who makes commits and moves refs */
    const char *keep;         /* reset: the start of the names of new refs for commits that no ref
                                 would reach */
};

/* all: everything, for GIT_STASH; otherwise only the contents that are in HEAD, for DIFF. Replaces
 * the ref. Removes the contents that the commit has from `dir`. digest, of `all`: as _state. */
int amp_git_snapshot_save(struct amp_git *g, const struct amp_git_snapshot *s, bool all,
                          char oid[AMP_OID_MAX], char digest[AMP_SHA256_MAX],
                          struct amp_error *err);
/* Writes the contents back to `dir`. */
int amp_git_snapshot_load(struct amp_git *g, const struct amp_git_snapshot *s,
                          struct amp_error *err);
/* The digest of HEAD (the branch's name and the commit) and of the index (modes, objects, stages,
 * flags, paths) of the workspace's repository and those in it. */
int amp_git_snapshot_state(struct amp_git *g, const struct amp_git_snapshot *s,
                           char digest[AMP_SHA256_MAX], struct amp_error *err);
int amp_git_snapshot_ignored(struct amp_git *g, const struct amp_git_snapshot *s,
                             struct amp_error *err);
/* Puts HEAD, its branch and the index of each repository back, all or nothing. Not the files.
 * NOPERM branch_violation: a protected branch has moved. */
int amp_git_snapshot_reset(struct amp_git *g, const struct amp_git_snapshot *s,
                           struct amp_error *err);
/* Removes the ref; does nothing if there is none. */
int amp_git_snapshot_drop(struct amp_git *g, const struct amp_git_snapshot *s,
                          struct amp_error *err);

#endif
