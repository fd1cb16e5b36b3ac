/* Opens a path from a person, which may name a descriptor of this process. */
#include "base/file/own.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <amp/base/num.h>

/* Returns the descriptor that the path names, or -1. */
static int descriptor_of(const char *path)
{
    static const char *const names[] = {"/dev/stdin", "/dev/stdout", "/dev/stderr"};
    static const char *const folders[] = {"/dev/fd/", "/proc/self/fd/"};
    int64_t fd;
    for (int i = 0; i < 3; i++)
        if (strcmp(path, names[i]) == 0)
            return i;
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        size_t n = strlen(folders[i]);
        if (strncmp(path, folders[i], n) == 0 &&
            amp_num_parse(amp_span_str(path + n), 0, 1 << 20, &fd, NULL) == 0)
            return (int)fd;
    }
    return -1;
}

int amp_own_open(const char *path, int flags, mode_t mode)
{
    struct stat st;
    if ((flags & O_ACCMODE) == O_RDONLY &&
        (strcmp(path, "-") == 0 || strcmp(path, "/dev/stdin") == 0))
        return fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
    int fd = open(path, flags | O_CLOEXEC | O_NOCTTY, mode);
    if (fd >= 0 || errno != ENXIO)
        return fd;
    int own = descriptor_of(path);
    if (own >= 0 && fstat(own, &st) == 0 && S_ISSOCK(st.st_mode))
        return fcntl(own, F_DUPFD_CLOEXEC, 3);
    errno = ENXIO;
    return -1;
}
