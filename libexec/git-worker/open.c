/*
 * open(2) for this program and for the library: the dynamic linker prefers a program's definition
 * to libc's. The library opens every file with a name of git (.gitignore, .git/config, HEAD, a
 * loose ref), and would block on a FIFO that an agent created there. This open never blocks, and
 * opens only regular files and directories.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "worker.h"

static char refused[4096];

const char *open_refused(void)
{
    return refused[0] ? refused : NULL;
}

void open_refused_clear(void)
{
    refused[0] = '\0';
}

/* Devices that the libraries open. */
static bool is_system(const char *path)
{
    return strcmp(path, "/dev/null") == 0 || strcmp(path, "/dev/urandom") == 0 ||
           strcmp(path, "/dev/random") == 0;
}

int worker_open(const char *path, int flags, ...) __asm__("open");
int worker_open(const char *path, int flags, ...)
{
    struct stat st;
    mode_t mode = 0;
    if (flags & (O_CREAT | __O_TMPFILE)) {
        va_list ap;
        va_start(ap, flags);
        mode = va_arg(ap, mode_t);
        va_end(ap);
    }
    int fd = (int)syscall(SYS_openat, AT_FDCWD, path, flags | O_NONBLOCK | O_NOCTTY, mode);
    if (fd < 0 && errno != ENXIO)
        return fd;
    if (fd >= 0 && fstat(fd, &st) == 0 &&
        (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode) || (flags & O_PATH) || is_system(path)))
        return fd;
    if (fd >= 0)
        close(fd);
    amp_span_copy(amp_span_str(path), refused, sizeof refused);
    errno = EINVAL;
    return -1;
}
