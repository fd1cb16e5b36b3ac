/* Attempts to use more than the limits of the tests' policy: 100 processes, 512 MiB, files of 8
 * MiB, 256 descriptors. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "escape.h"

static int processes(const struct world *w, char *proof)
{
    enum { MANY = 200 };
    pid_t pid[MANY];
    int n = 0, rc = 0;
    (void)w;
    (void)proof;
    for (; n < MANY; n++) {
        pid[n] = fork();
        if (pid[n] < 0) {
            rc = -errno;
            break;
        }
        if (pid[n] == 0)
            for (;;)
                pause();
    }
    for (int i = 0; i < n; i++)
        kill(pid[i], SIGKILL);
    for (int i = 0; i < n; i++)
        waitpid(pid[i], NULL, 0);
    return rc;
}

static int memory(const struct world *w, char *proof)
{
    size_t n = (size_t)1 << 30;
    (void)w;
    (void)proof;
    char *p =
        mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED)
        return -errno;
    munmap(p, n);
    return 0;
}

static int file_size(const struct world *w, char *proof)
{
    const char *path = at(w->tree, "large");
    int rc = 0;
    (void)proof;
    signal(SIGXFSZ, SIG_IGN);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    if (pwrite(fd, "x", 1, 16 << 20) < 0)
        rc = -errno;
    close(fd);
    unlink(path);
    return rc;
}

static int descriptors(const struct world *w, char *proof)
{
    int rc = 0, n = 0, fd[400];
    (void)w;
    (void)proof;
    for (; n < 400 && rc == 0; n++)
        if ((fd[n] = dup(1)) < 0)
            rc = -errno;
    for (int i = 0; i < n; i++)
        if (fd[i] >= 0)
            close(fd[i]);
    return rc;
}

static int raise_limits(const struct world *w, char *proof)
{
    const struct rlimit more = {4096, 4096};
    (void)w;
    (void)proof;
    return setrlimit(RLIMIT_NOFILE, &more) == 0 && sysconf(_SC_OPEN_MAX) == 4096
               ? descriptors(w, proof)
               : -EPERM;
}

const struct attempt limit_attempts[] = {
    {"processes", "more processes", processes, NULL, FULL, false},
    {"memory", "more memory", memory, NULL, BOTH, false},
    {"file_size", "a larger file", file_size, NULL, BOTH, false},
    {"descriptors", "more descriptors", descriptors, NULL, BOTH, false},
    {"raise_limits", "raise its limits", raise_limits, NULL, BOTH, false},
    {0},
};
