/* The files of snapshot/ share this: paths of a tree, and copies of its files. */
#ifndef AMP_WORK_GIT_SNAPSHOT_PATH_H
#define AMP_WORK_GIT_SNAPSHOT_PATH_H

#include "work/git/snapshot/tree.h"

/* Whether it is "." or a path below the root without "", "." and "..". */
bool amp_tree_path_valid(const char *path);
/* Whether the path is `dir`, or is in it; "." has all. */
bool amp_tree_is_in(const char *path, const char *dir);
/* Opens the directory above `path` (not ".") and returns where its last component begins. -1 with
 * errno: NULL. */
const char *amp_tree_above(int root, const char *path, int *fd);

/* Hashes a file from its beginning, up to the first 64 KiB after `most` bytes, so that a file that
 * grows all the time has an end. Unless `to` is -1, a new file open for reading and writing becomes
 * a copy: a clone where the file system can, otherwise parts that are only NULs become holes. -1
 * with errno; EINTR: by stop. */
int amp_tree_copy(int from, int to, int64_t most, volatile const int *stop, int64_t *size,
                  char sum[AMP_TREE_SUM_MAX]);

#endif
