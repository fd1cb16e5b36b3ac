/*
 * Makes files as a recorded tree has them, in one transaction: all of it or nothing.
 *
 * What has to be written is written first, into a new directory `.amp-rollback-…` beside the files
 * (one for each file system). Then each path is changed by one rename, which moves what was there
 * into that directory. Each step is noted in a journal before. The journal is in a directory that
 * only this user's tools write, so that nothing planted beside the files is believed.
 */
#ifndef AMP_WORKTREE_SNAPSHOT_RESTORE_H
#define AMP_WORKTREE_SNAPSHOT_RESTORE_H

#include "worktree/snapshot/tree.h"

#define AMP_RESTORE_STAGE ".amp-rollback-" /* the beginning of the name of that directory */

struct amp_restore_spec {
    int root;    /* the directory of the trees' paths */
    int journal; /* the directory of the journal */
    /* As in amp_tree_scan: what is neither compared nor removed. */
    bool (*skip)(void *ctx, const char *path, const struct stat *st);
    void *ctx;
    volatile const int *stop;
};
struct amp_restore;

/* Undoes what a killed process left first. */
int amp_restore_begin(const struct amp_restore_spec *spec, struct amp_restore **out,
                      struct amp_error *err);
/* Makes directories of the tree readable for their owner again, so that they can be looked at.
 * amp_restore_apply does it as well. */
int amp_restore_open(struct amp_restore *r, const struct amp_tree *want, struct amp_error *err);
/* contents: a directory of files named by their sum (amp_tree_scan.contents). Makes the files below
 * the tree's paths as the tree has them, and compares the digest. Entries of directories (DIR) that
 * the tree lacks are removed. May be called again with another tree or after a change of what
 * `skip` says. On failure the caller ends the transaction without `keep`. */
int amp_restore_apply(struct amp_restore *r, const struct amp_tree *want, int contents,
                      struct amp_error *err);
/* keep: what was replaced is removed for good. 1: all is kept, but its removal failed, and the next
 * amp_restore_begin tries again. Otherwise, and if it cannot be kept (-1), all is undone. -1
 * without `keep`: not all could be undone, and the next amp_restore_begin tries again. Frees r;
 * NULL: nothing. */
int amp_restore_end(struct amp_restore *r, bool keep, struct amp_error *err);

/* Removes name in dir and everything in it; what does not exist is no failure. Follows no link. */
int amp_restore_remove(int dir, const char *name, struct amp_error *err);
/* The same on one file system: a directory of another one is left alone, and is a failure. */
int amp_restore_remove_on(int dir, const char *name, dev_t only, struct amp_error *err);
/* Renames; EEXIST if the new name exists. On file systems without such a rename (NFS, 9p, some of
 * FUSE) it looks before. -1 with errno. */
int amp_restore_move(int from, const char *name, int to, const char *as);

#endif
