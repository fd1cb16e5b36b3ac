/*
 * What our programs need and valgrind 3.19 lacks, for tests/valgrind/run:
 * - pidfd_open: a thread waits for the child, without reaping it, and makes an eventfd readable.
 * - RLIMIT_AS, ITIMER_PROF: limits of a program on itself would be limits on valgrind.
 * - CLOCK_MONOTONIC goes SLOW times slower, so that time limits are longer by as much.
 * The preload ends in our programs: those that they start do not inherit it.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { SLOW = 20 };

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

__attribute__((constructor)) static void end_preload(void)
{
    char exe[4096];
    ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
    exe[n > 0 ? n : 0] = '\0';
    if (strstr(exe, "/tests/valgrind/")) /* not yet in the shell, nor in valgrind's launcher */
        unsetenv("LD_PRELOAD");
}

int setrlimit(__rlimit_resource_t resource, const struct rlimit *limit)
{
    return resource == RLIMIT_AS ? 0 : REAL(setrlimit)(resource, limit);
}

int setitimer(__itimer_which_t which, const struct itimerval *when, struct itimerval *old)
{
    return which == ITIMER_PROF ? 0 : REAL(setitimer)(which, when, old);
}

int clock_gettime(clockid_t clock, struct timespec *out)
{
    int rc = REAL(clock_gettime)(clock, out);
    if (rc == 0 && clock == CLOCK_MONOTONIC) {
        int64_t ns = (out->tv_sec * INT64_C(1000000000) + out->tv_nsec) / SLOW;
        *out = (struct timespec){ns / 1000000000, ns % 1000000000};
    }
    return rc;
}

struct watch {
    pid_t pid;
    int fd; /* the thread's own: the caller may close his at any time */
};

static void *wait_for(void *arg)
{
    struct watch w = *(struct watch *)arg;
    const uint64_t one = 1;
    siginfo_t info;
    free(arg);
    waitid(P_PID, (id_t)w.pid, &info, WEXITED | WNOWAIT);
    ssize_t n = write(w.fd, &one, sizeof one);
    (void)n;
    close(w.fd);
    return NULL;
}

static long open_pidfd(pid_t pid)
{
    struct watch *w = malloc(sizeof *w);
    pthread_t thread;
    sigset_t all, before;
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (!w || fd < 0)
        return -1;
    *w = (struct watch){pid, fcntl(fd, F_DUPFD_CLOEXEC, 3)};
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(&thread, NULL, wait_for, w);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc != 0)
        return -1;
    pthread_detach(thread);
    return fd;
}

long syscall(long number, ...)
{
    long a[6];
    va_list ap;
    va_start(ap, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(ap, long);
    va_end(ap);
    if (number == SYS_pidfd_open)
        return open_pidfd((pid_t)a[0]);
    return REAL(syscall)(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
