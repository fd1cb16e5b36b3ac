/*
 * Recorded files as a commit on top of HEAD, under refs/amp/snapshots/ (AOP §7, GIT_STASH and
 * DIFF): HEAD's tree with the recorded paths as the record has them, byte for byte. It is made from
 * the record only, so nothing in the workspace has an effect on it.
 * HEAD, the index, the files and the list of stashes are not touched. Errors: see git.h.
 */
#ifndef AMP_WORK_GIT_REPOSITORY_SNAPSHOT_H
#define AMP_WORK_GIT_REPOSITORY_SNAPSHOT_H

#include "work/git/repository/git.h"

struct amp_git_snapshot {
    const char *repo;         /* as in git.h */
    const char *ref;          /* refs/amp/snapshots/…; replaced if it exists */
    const char *dir;          /* has `tree` (work/git/snapshot/tree.h) and contents/SUM */
    const char *prefix;       /* of the tree's paths in the repository: "", or "DIR/" */
    const char *patch;        /* a file to be written: the difference to HEAD */
    const char *name, *email; /* who makes the commit */
};
int amp_git_snapshot_save(struct amp_git *g, const struct amp_git_snapshot *s,
                          char oid[AMP_OID_MAX], struct amp_error *err);
/* Removes the ref; does nothing if there is none. */
int amp_git_snapshot_drop(struct amp_git *g, const char *repo, const char *ref,
                          struct amp_error *err);

#endif
