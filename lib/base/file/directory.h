/* Moving a directory to another file system. */
#ifndef AMP_BASE_FILE_DIRECTORY_H
#define AMP_BASE_FILE_DIRECTORY_H

#include <amp/base/file.h>

/* Copies the directory `from` beside `to`, synced, renames the copy and removes `from`. Regular
 * files, directories, links and FIFOs are copied with their modes. NO "special_file" (devices and
 * sockets), "too_deep": nothing is moved; "folder_differs": `to` is there, or something wrote to
 * `from` during the copy: both stay. Can be repeated after a kill. Both are paths below dir. */
int amp_directory_move(int dir, const char *from, const char *to, struct amp_error *err);

#endif
