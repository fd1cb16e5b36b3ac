/*
 * Three programs to measure how an agent is started.
 *
 * As a library for LD_PRELOAD (-DPROBE): appends to the file MARKS "NAME NANOSECONDS" of the
 * monotonic clock when the process writes a frame of the events claim, start and done of a job
 * to the log, before and after each sync, and before each fork.
 *
 * As an agent's command (-DAGENT, linked statically): appends "agent NANOSECONDS" as its first
 * action.
 *
 * Otherwise: start N COMMAND ARGUMENTS...: starts the command N times with fork and exec, waits for
 * each of them, and marks "fork" and, after the wait, "wait".
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void mark(const char *name)
{
    static int fd = -1;
    struct timespec t;
    char line[64];

    clock_gettime(CLOCK_MONOTONIC, &t);
    const char *path = getenv("MARKS");
    if (fd < 0 && path)
        fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
    int n = snprintf(line, sizeof line, "%s %lld\n", name, t.tv_sec * 1000000000LL + t.tv_nsec);
    if (fd >= 0 && write(fd, line, (size_t)n) != n)
        abort();
}

#ifdef PROBE
#include <dlfcn.h>

#define REAL(type, name, ...)                                                                      \
    static type (*real)(__VA_ARGS__);                                                              \
    if (!real)                                                                                     \
    *(void **)&real = dlsym(RTLD_NEXT, name)

/* Several frames may be in one write. */
static void frames_mark(const char *p, size_t n)
{
    static const char *const events[] = {"claim", "start", "done"};
    char text[40];

    for (size_t i = 0; i < sizeof events / sizeof *events; i++) {
        snprintf(text, sizeof text, "\"event\":\"%s\"", events[i]);
        const char *at = memmem(p, n, text, strlen(text));
        if (at && memmem(p, n, "\"key\":\"queue.", 13))
            mark(events[i]);
    }
}

ssize_t pwrite64(int fd, const void *p, size_t n, off64_t at)
{
    REAL(ssize_t, "pwrite64", int, const void *, size_t, off64_t);
    if (n > 6 && memcmp(p, "{\"v2\":", 6) == 0)
        frames_mark(p, n);
    return real(fd, p, n, at);
}

ssize_t pwrite(int fd, const void *p, size_t n, off_t at)
{
    return pwrite64(fd, p, n, at);
}

int fdatasync(int fd)
{
    REAL(int, "fdatasync", int);
    mark("sync");
    int rc = real(fd);
    mark("synced");
    return rc;
}

pid_t fork(void)
{
    REAL(pid_t, "fork", void);
    mark("fork");
    return real();
}
#else
int main(int argc, char **argv)
{
#ifdef AGENT
    (void)argc, (void)argv;
    mark("agent");
#else
    for (int i = argc > 2 ? atoi(argv[1]) : 0; i > 0; i--) {
        int status;
        mark("fork");
        pid_t pid = fork();
        if (pid == 0) {
            execv(argv[2], argv + 2);
            _exit(127);
        }
        if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
            return 1;
        mark("wait");
    }
#endif
    return 0;
}
#endif
