/* Shared by the files of this folder. */
#ifndef AMP_WORK_CONFINE_PRIVATE_H
#define AMP_WORK_CONFINE_PRIVATE_H

#include "work/confine/confine.h"

#define CONFINE_HELPER    "confine"
#define CONFINE_HELPER_MS 20000 /* for the helper's own work */

/* Reads a pipe to its end, at most size - 1 bytes, and adds a NUL. Returns their number. */
size_t confine_pipe_read(int fd, char *out, size_t size);

#endif
