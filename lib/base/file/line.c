/* Ends a line that a killed writer left incomplete, before the next writer adds its own. */
#include "base/file/line.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <amp/base/file.h>

int amp_line_end(int fd, struct amp_error *err)
{
    struct stat st;
    char self[40], last;
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size == 0)
        return 0;
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || (!(flags & O_APPEND) && lseek(fd, 0, SEEK_CUR) != st.st_size))
        return 0;
    /* fd may be open for writing only. */
    snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
    AMP_CLOSE int in = open(self, O_RDONLY | O_CLOEXEC);
    if (in >= 0 && pread(in, &last, 1, st.st_size - 1) == 1 && last != '\n')
        return amp_write_all(fd, AMP_SPAN("\n"), err);
    return 0;
}
