/*
 * Makes files as a recorded tree has them: contents, permissions, times of files and links, links,
 * and which names exist. Unchanged files are not touched.
 *
 * Files that differ are written first, into directories named `stage` beside the files; if that
 * fails, nothing has changed but permissions of directories that were not accessible. Then each
 * path is replaced by one rename, or, on a file system that cannot exchange two names, by two. Then
 * the names that the tree lacks are removed. Nothing is undone. A restore that failed or was killed
 * is repeated with the same `stage`, and has the same end: it removes the stages first, which are
 * directly in the root or in a directory of the tree.
 */
#ifndef AMP_WORK_GIT_SNAPSHOT_RESTORE_H
#define AMP_WORK_GIT_SNAPSHOT_RESTORE_H

#include "work/git/snapshot/tree.h"

struct amp_restore_spec {
    int root;          /* the directory of the tree's paths */
    int contents;      /* a directory of files named by their sum (amp_tree_scan.contents) */
    const char *stage; /* a name that nothing else has */
    /* As in amp_tree_scan, it selects what is neither compared nor removed. */
    enum amp_tree_skip (*skip)(void *ctx, const char *path, const struct stat *st);
    void *ctx;
    volatile const int *stop;
};

/* NO snapshot_damaged: a file of `contents` does not have its sum. INTERRUPTED by stop. */
int amp_restore(const struct amp_restore_spec *s, const struct amp_tree *want,
                struct amp_error *err);
/* Whether what is at the path now, and below it, is as the tree has it. -1: it cannot be read. */
int amp_restore_same(const struct amp_restore_spec *s, const struct amp_tree *want,
                     const char *path, struct amp_error *err);

/* Makes the entry at the path, and what is below it, as the new name `as` in dir, with permissions
 * within `mask`. */
int amp_restore_make(const struct amp_tree *t, const char *path, int contents, unsigned mask,
                     int dir, const char *as, struct amp_error *err);

/* remove.c. Removes name in dir and everything in it; a missing name is no failure. Follows no
 * link. */
int amp_restore_remove(int dir, const char *name, struct amp_error *err);
/* Stays on one file system: a directory of another one is left alone, and is a failure. */
int amp_restore_remove_on(int dir, const char *name, dev_t only, struct amp_error *err);
/* Renames; EEXIST if the new name exists. On file systems without such a rename (NFS, 9p, some of
 * FUSE) it looks before. -1 with errno. */
int amp_restore_move(int from, const char *name, int to, const char *as);
/* Sets the permissions of what is no link. -1 with errno. */
int amp_restore_mode(int dir, const char *name, unsigned mode);

#endif
