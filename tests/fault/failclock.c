/*
 * A clock that is wrong: FAIL_CLOCK_SHIFT seconds are added to the wall's clock, FAIL_CLOCK_JUMP
 * milliseconds more at each look; FAIL_CLOCK_SYNC=0 says that it is not synchronised, 1 that it is.
 * FAIL_CLOCK_FAST=N: both clocks run N times as fast from the start on, but waits are not shorter.
 * FAIL_CLOCK_FILE names a file with seconds to add besides, read at the start and again at each
 * SIGUSR1: the clock is set then. Timers of the wall's clock (timerfd) go by it, and one that is to
 * be cancelled when the clock is set is: its read fails with ECANCELED, and it fires no more.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/timerfd.h>
#include <sys/timex.h>
#include <time.h>
#include <unistd.h>

static struct {
    bool wall, cancels, cancelled;
} timers[1024];
static volatile long set_by; /* seconds, of the file */

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static long setting(const char *name)
{
    const char *text = getenv(name);
    return text ? atol(text) : 0;
}

static void read_file(void)
{
    char text[32] = "";
    const char *path = getenv("FAIL_CLOCK_FILE");
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    if (REAL(read)(fd, text, sizeof(text) - 1) > 0)
        set_by = atol(text);
    close(fd);
}

/* Each timer that wants to know becomes readable. */
static void on_set(int sig)
{
    struct itimerspec now = {.it_value = {.tv_nsec = 1}};
    int saved = errno;
    (void)sig;
    read_file();
    for (int fd = 0; fd < 1024; fd++)
        if (timers[fd].wall && timers[fd].cancels) {
            timers[fd].cancelled = true;
            REAL(timerfd_settime)(fd, 0, &now, NULL);
        }
    errno = saved;
}

__attribute__((constructor)) static void begin(void)
{
    struct sigaction sa = {.sa_handler = on_set, .sa_flags = SA_RESTART};
    if (!getenv("FAIL_CLOCK_FILE"))
        return;
    read_file();
    sigaction(SIGUSR1, &sa, NULL);
}

static void run_fast(clockid_t id, struct timespec *ts)
{
    static long long began[2];
    long fast = setting("FAIL_CLOCK_FAST");
    if (fast <= 1 || (id != CLOCK_REALTIME && id != CLOCK_MONOTONIC))
        return;
    long long now = ts->tv_sec * 1000000000LL + ts->tv_nsec, *from = &began[id == CLOCK_MONOTONIC];
    if (*from == 0)
        *from = now;
    now = *from + (now - *from) * fast;
    ts->tv_sec = now / 1000000000;
    ts->tv_nsec = now % 1000000000;
}

int clock_gettime(clockid_t id, struct timespec *ts)
{
    static int (*real)(clockid_t, struct timespec *);
    static long looks;
    if (!real)
        real = REAL(clock_gettime);
    int rc = real(id, ts);
    if (rc == 0)
        run_fast(id, ts);
    if (rc != 0 || id != CLOCK_REALTIME)
        return rc;
    long ms = setting("FAIL_CLOCK_JUMP") * looks++;
    ts->tv_sec += set_by + setting("FAIL_CLOCK_SHIFT") + ms / 1000;
    return 0;
}

int timerfd_create(int clock, int flags)
{
    int fd = REAL(timerfd_create)(clock, flags);
    if (fd >= 0 && fd < 1024)
        timers[fd].wall = clock == CLOCK_REALTIME;
    return fd;
}

int timerfd_settime(int fd, int flags, const struct itimerspec *new, struct itimerspec *old)
{
    struct itimerspec at = *new;
    if (fd >= 0 && fd < 1024 && timers[fd].wall) {
        timers[fd].cancels = (flags & TFD_TIMER_CANCEL_ON_SET) != 0;
        timers[fd].cancelled = false;
        if (flags & TFD_TIMER_ABSTIME && at.it_value.tv_sec > 0) {
            at.it_value.tv_sec -= set_by + setting("FAIL_CLOCK_SHIFT");
            if (at.it_value.tv_sec < 1)
                at.it_value.tv_sec = 1;
        }
    }
    return REAL(timerfd_settime)(fd, flags, &at, old);
}

ssize_t read(int fd, void *buf, size_t n)
{
    ssize_t rc = REAL(read)(fd, buf, n);
    if (fd < 0 || fd >= 1024 || !timers[fd].wall || !timers[fd].cancelled || rc < 0)
        return rc;
    timers[fd].cancelled = false;
    errno = ECANCELED;
    return -1;
}

int adjtimex(struct timex *tx)
{
    tx->status = setting("FAIL_CLOCK_SYNC") ? 0 : STA_UNSYNC;
    return setting("FAIL_CLOCK_SYNC") ? TIME_OK : TIME_ERROR;
}
