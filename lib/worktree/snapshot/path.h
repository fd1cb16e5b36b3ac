/* What the files of snapshot/ share about the paths of a tree. */
#ifndef AMP_WORKTREE_SNAPSHOT_PATH_H
#define AMP_WORKTREE_SNAPSHOT_PATH_H

#include <stdbool.h>

/* Whether it is "." or a path below the root without "", "." and "..". */
bool amp_tree_path_valid(const char *path);

#endif
