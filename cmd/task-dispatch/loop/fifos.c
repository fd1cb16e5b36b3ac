/* The directory with the FIFOs of a loop. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <amp/base/file.h>

#include "base/codes.h"
#include "loop.h"

void loop_fifos_remove(const char *dir)
{
    char fifo[PATH_MAX + 32];
    for (size_t i = 0; loop_fifos[i]; i++) {
        snprintf(fifo, sizeof fifo, "%s/%s", dir, loop_fifos[i]);
        unlink(fifo);
    }
    rmdir(dir);
}

int loop_fifos_make(const char *state, char dir[PATH_MAX], struct amp_error *err)
{
    char fifo[PATH_MAX + 32];
    int n = snprintf(dir, PATH_MAX, "%s/run/loop.fifos", state);
    if (n < 0 || n >= PATH_MAX)
        return amp_fail(err, AMP_USAGE, bad_path, "%s: too long", state);
    loop_fifos_remove(dir);
    if (mkdir(dir, 0700) != 0)
        return amp_fail_errno(err, AMP_CANTCREAT, "%s", dir);
    for (size_t i = 0; loop_fifos[i]; i++) {
        snprintf(fifo, sizeof fifo, "%s/%s", dir, loop_fifos[i]);
        if (mkfifo(fifo, 0600) != 0) {
            amp_fail_errno(err, AMP_CANTCREAT, "%s", fifo);
            loop_fifos_remove(dir);
            return -1;
        }
    }
    return 0;
}

void loop_fifos_touch(const char *dir)
{
    for (size_t i = 0; loop_fifos[i]; i++) {
        char fifo[PATH_MAX + 32];
        snprintf(fifo, sizeof fifo, "%s/%s", dir, loop_fifos[i]);
        AMP_CLOSE int fd = open(fifo, O_RDWR | O_NONBLOCK | O_CLOEXEC);
        (void)fd;
    }
}
