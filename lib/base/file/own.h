/* Opening a path from a person, which may name a descriptor of this process. */
#ifndef AMP_BASE_FILE_OWN_H
#define AMP_BASE_FILE_OWN_H

#include <sys/types.h>

/* Like open(2), with O_CLOEXEC and O_NOCTTY. "-" for reading is standard input, as /dev/stdin is: a
 * duplicate of descriptor 0. Another name of an own descriptor, such as /dev/stdout or /dev/fd/3,
 * is a duplicate if that is a socket, which open(2) refuses; programs written for node or bun give
 * sockets to the commands that they start. A duplicate keeps the flags of its descriptor. */
int amp_own_open(const char *path, int flags, mode_t mode);

#endif
