/* Moving a task's folder to another file system. */
#ifndef AMP_AOF_TREE_H
#define AMP_AOF_TREE_H

#include <amp/base/file.h>

/* Copies the directory `from` beside `to`, synced, renames the copy and removes `from`. Regular
 * files, directories and links are copied with their modes; other files (FIFOs, devices) are left
 * out. Can be repeated after a kill. Both are paths below dir. */
int amp_aof_tree_move(int dir, const char *from, const char *to, struct amp_error *err);

#endif
