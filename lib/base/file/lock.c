/* Locks between processes: open-file-description locks with a time limit, and the turnstile. */
#include <amp/base/file.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <amp/base/clock.h>

#include "base/codes.h"

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

/* After this many turns without a wait the crowd flag is cleared; its setter may be dead. */
enum { CALM = 16 };

static int set_lock(int fd, int how, short type)
{
    struct flock fl = {.l_type = type, .l_whence = SEEK_SET};
    return fcntl(fd, how, &fl);
}

/*
 * Waiting for a lock until a deadline, INT or TERM. The kernel has no timed lock, and repeated
 * attempts would lose the place in its queue. So the wait is the blocking call, and a timer
 * interrupts it with a signal to this thread, repeated from the deadline on, because the first one
 * may come before the call. During the wait INT and TERM have a handler that starts this timer at
 * once; afterwards the signal is raised again for the program's own handler. Without a handler of
 * the program the signal ends the process, even if the caller blocked it: nothing has begun yet.
 */
struct wait {
    struct sigaction alarm, stop[2];
    bool ours[2]; /* stop[i] was replaced */
    sigset_t mask;
};

#define ALARM_SIGNAL  (SIGRTMIN + 11)
#define AGAIN_NS      10000000
#define STOP_GRACE_MS 2000

static const int stops[2] = {SIGINT, SIGTERM};
static volatile sig_atomic_t stopped; /* the signal that came, or 0 */
static timer_t timer;

static void on_alarm(int sig)
{
    (void)sig; /* only interrupts the call */
}

static void on_stop(int sig)
{
    static const struct itimerspec at_once = {.it_value = {.tv_nsec = 1},
                                              .it_interval = {.tv_nsec = AGAIN_NS}};
    stopped = sig;
    timer_settime(timer, 0, &at_once, NULL);
}

static int wait_begin(struct wait *w, int64_t ms, struct amp_error *err)
{
    const struct sigaction alarm = {.sa_handler = on_alarm}, stop = {.sa_handler = on_stop};
    struct sigevent ev = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = ALARM_SIGNAL};
    ev.sigev_notify_thread_id = (int)syscall(SYS_gettid);
    struct itimerspec when = {
        .it_value = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000},
        .it_interval = {.tv_nsec = AGAIN_NS},
    };
    sigset_t open;
    sigemptyset(&open);
    sigaddset(&open, ALARM_SIGNAL);
    if (timer_create(CLOCK_MONOTONIC, &ev, &timer) < 0)
        return amp_fail_errno(err, AMP_INTERNAL, "cannot make a timer");
    if (ms >= 0 && timer_settime(timer, 0, &when, NULL)) {
        amp_fail_errno(err, AMP_INTERNAL, "cannot set a timer");
        timer_delete(timer);
        return -1;
    }
    stopped = 0;
    sigaction(ALARM_SIGNAL, &alarm, &w->alarm);
    for (int i = 0; i < 2; i++) {
        sigaction(stops[i], NULL, &w->stop[i]);
        void (*handler)(int) = w->stop[i].sa_handler;
        w->ours[i] = handler != SIG_DFL && handler != SIG_IGN;
        if (w->ours[i])
            sigaction(stops[i], &stop, NULL);
        sigaddset(&open, stops[i]);
    }
    pthread_sigmask(SIG_UNBLOCK, &open, &w->mask);
    return 0;
}

static void wait_end(const struct wait *w)
{
    timer_delete(timer);
    /* The default action for a pending signal would end the process. */
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigaction(ALARM_SIGNAL, &ignore, NULL);
    sigaction(ALARM_SIGNAL, &w->alarm, NULL);
    for (int i = 0; i < 2; i++)
        if (w->ours[i])
            sigaction(stops[i], &w->stop[i], NULL);
    pthread_sigmask(SIG_SETMASK, &w->mask, NULL);
    if (stopped)
        raise(stopped);
}

static volatile const int *program_stop;

void amp_lock_stop(volatile const int *stop)
{
    program_stop = stop;
}

static int lock_take(int fd, short type, int64_t timeout_ms, struct amp_error *err)
{
    int rc = set_lock(fd, F_OFD_SETLK, type);
    bool ending = program_stop && *program_stop;
    if (ending && (timeout_ms < 0 || timeout_ms > STOP_GRACE_MS))
        timeout_ms = STOP_GRACE_MS;
    if (rc == 0)
        return 0;
    if (errno != EAGAIN && errno != EACCES && errno != EINTR)
        return amp_fail_errno(err, AMP_IOERR, "cannot lock");
    if (timeout_ms != 0) {
        int64_t until = amp_mono_ms() + timeout_ms;
        struct wait w;
        if (wait_begin(&w, timeout_ms, err) < 0)
            return -1;
        while (rc && !stopped) {
            rc = set_lock(fd, F_OFD_SETLKW, type);
            if (rc && (errno != EINTR || (timeout_ms > 0 && amp_mono_ms() >= until)))
                break;
        }
        int saved = errno, sig = stopped;
        wait_end(&w);
        if (rc == 0)
            return 0;
        errno = saved;
        if (sig || (ending && errno == EINTR))
            return amp_fail(err, AMP_INTERRUPTED, interrupted, "interrupted");
        if (errno != EINTR)
            return amp_fail_errno(err, AMP_IOERR, "cannot lock");
    }
    return amp_fail(err, AMP_TEMPFAIL, lock_timeout, "another process holds the lock");
}

int amp_lock(int fd, int64_t timeout_ms, struct amp_error *err)
{
    return lock_take(fd, F_WRLCK, timeout_ms, err);
}

int amp_lock_shared(int fd, int64_t timeout_ms, struct amp_error *err)
{
    return lock_take(fd, F_RDLCK, timeout_ms, err);
}

void amp_unlock(int fd)
{
    set_lock(fd, F_OFD_SETLK, F_UNLCK);
}

/* Takes a lock. If it must wait, sets *crowded and the shared flag first. */
static int line_up(struct amp_turnstile *t, int fd, int64_t timeout_ms, bool *crowded,
                   struct amp_error *err)
{
    if (t->crowd) {
        if (set_lock(fd, F_OFD_SETLK, F_WRLCK) == 0)
            return 0;
        *crowded = true;
        *t->crowd = 1;
    }
    return amp_lock(fd, timeout_ms, err);
}

int amp_turnstile_enter(struct amp_turnstile *t, int64_t timeout_ms, struct amp_error *err)
{
    bool crowded = false;
    if (t->crowd && !*t->crowd && set_lock(t->main, F_OFD_SETLK, F_WRLCK) == 0)
        return 0;
    int64_t start = amp_mono_ms();
    if (line_up(t, t->next, timeout_ms, &crowded, err) < 0)
        return -1;
    if (timeout_ms > 0) {
        timeout_ms -= amp_mono_ms() - start;
        if (timeout_ms < 0)
            timeout_ms = 0;
    }
    int rc = line_up(t, t->main, timeout_ms, &crowded, err);
    t->calm = crowded ? 0 : t->calm + 1;
    if (t->crowd && t->calm >= CALM) {
        /* Before `next` is released: the next waiter finds main locked and sets the flag again. */
        t->calm = 0;
        *t->crowd = 0;
    }
    amp_unlock(t->next);
    return rc;
}

void amp_turnstile_leave(struct amp_turnstile *t)
{
    amp_unlock(t->main);
}
