/* The directory with the FIFOs of a loop. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <amp/base/file.h>

#include "loop.h"

#define PREFIX "amp-loop."

static void note_path(const char *state, char *out, size_t size)
{
    snprintf(out, size, "%s/run/loop.fifos", state);
}

/* Removes a directory of FIFOs and nothing else: one of this user, which nobody else may enter. */
static void dir_remove(const char *dir)
{
    struct stat st;
    const char *base = strrchr(dir, '/');
    AMP_CLOSE int fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || !base || strncmp(base + 1, PREFIX, strlen(PREFIX)) != 0 || fstat(fd, &st) != 0 ||
        st.st_uid != geteuid() || (st.st_mode & 077))
        return;
    for (size_t i = 0; loop_fifos[i]; i++)
        if (fstatat(fd, loop_fifos[i], &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISFIFO(st.st_mode))
            unlinkat(fd, loop_fifos[i], 0);
    rmdir(dir);
}

void loop_fifos_remove(const char *state, const char *dir)
{
    char path[PATH_MAX + 32];
    note_path(state, path, sizeof path);
    if (*dir)
        dir_remove(dir);
    unlink(path);
}

int loop_fifos_make(const char *state, char dir[PATH_MAX], struct amp_error *err)
{
    char path[PATH_MAX + 32], old[PATH_MAX];
    const char *tmp = getenv("TMPDIR");
    note_path(state, path, sizeof path);
    ssize_t n = readlink(path, old, sizeof old - 1);
    if (n > 0) {
        old[n] = '\0';
        loop_fifos_remove(state, old);
    }
    int len = snprintf(dir, PATH_MAX, "%s/" PREFIX "XXXXXX", tmp && *tmp == '/' ? tmp : "/tmp");
    if (len < 0 || len >= PATH_MAX || !mkdtemp(dir))
        return amp_fail_errno(err, AMP_CANTCREAT, "a directory for FIFOs in %s",
                              tmp && *tmp == '/' ? tmp : "/tmp");
    /* The link may be there: a leftover that is not a link is the user's. */
    if (symlink(dir, path) != 0) {
        amp_fail_errno(err, AMP_CANTCREAT, "%s", path);
        rmdir(dir);
        return -1;
    }
    for (size_t i = 0; loop_fifos[i]; i++) {
        char fifo[PATH_MAX + 32];
        snprintf(fifo, sizeof fifo, "%s/%s", dir, loop_fifos[i]);
        if (mkfifo(fifo, 0600) != 0) {
            amp_fail_errno(err, AMP_CANTCREAT, "%s", fifo);
            loop_fifos_remove(state, dir);
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
