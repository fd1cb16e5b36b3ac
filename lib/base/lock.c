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

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

/* After so many turns that did not wait there is no crowd any more; who left it may be dead. */
enum { CALM = 16 };

static int set_lock(int fd, int how, short type)
{
    struct flock fl = {.l_type = type, .l_whence = SEEK_SET};
    return fcntl(fd, how, &fl);
}

/*
 * Waiting for a lock with a limit. The kernel has no timed lock; trying again and again loses one's
 * place in its queue. So the wait is the blocking call, and a timer interrupts it: a signal to this
 * thread alone, again and again from the deadline on, in case the first came before the call.
 */
struct alarm {
    timer_t timer;
    struct sigaction old;
    sigset_t old_mask;
};

#define ALARM_SIGNAL (SIGRTMIN + 11)

static void on_alarm(int sig)
{
    (void)sig; /* its only work is the EINTR */
}

static int alarm_set(struct alarm *a, int64_t ms, struct amp_error *err)
{
    struct sigaction sa = {.sa_handler = on_alarm};
    struct sigevent ev = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = ALARM_SIGNAL};
    ev.sigev_notify_thread_id = (int)syscall(SYS_gettid);
    struct itimerspec when = {
        .it_value = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000},
        .it_interval = {.tv_nsec = 10000000},
    };
    sigset_t mask;
    sigemptyset(&mask);
    sigaddset(&mask, ALARM_SIGNAL);
    if (timer_create(CLOCK_MONOTONIC, &ev, &a->timer))
        return amp_fail_errno(err, AMP_INTERNAL, "cannot make a timer");
    sigaction(ALARM_SIGNAL, &sa, &a->old);
    pthread_sigmask(SIG_UNBLOCK, &mask, &a->old_mask);
    if (timer_settime(a->timer, 0, &when, NULL))
        return amp_fail_errno(err, AMP_INTERNAL, "cannot set a timer");
    return 0;
}

static void alarm_clear(struct alarm *a)
{
    timer_delete(a->timer);
    /* One that is already pending must not meet the default action, which would end us. */
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigaction(ALARM_SIGNAL, &ignore, NULL);
    sigaction(ALARM_SIGNAL, &a->old, NULL);
    pthread_sigmask(SIG_SETMASK, &a->old_mask, NULL);
}

int amp_lock(int fd, int64_t timeout_ms, struct amp_error *err)
{
    int rc;
    do
        rc = set_lock(fd, timeout_ms < 0 ? F_OFD_SETLKW : F_OFD_SETLK, F_WRLCK);
    while (rc && errno == EINTR);
    if (rc == 0)
        return 0;
    if (errno != EAGAIN && errno != EACCES)
        return amp_fail_errno(err, AMP_IOERR, "cannot lock");
    if (timeout_ms > 0) {
        int64_t until = amp_mono_ms() + timeout_ms;
        struct alarm a;
        if (alarm_set(&a, timeout_ms, err))
            return -1;
        do
            rc = set_lock(fd, F_OFD_SETLKW, F_WRLCK);
        while (rc && errno == EINTR && amp_mono_ms() < until);
        int saved = errno;
        alarm_clear(&a);
        errno = saved;
        if (rc == 0)
            return 0;
        if (errno != EINTR)
            return amp_fail_errno(err, AMP_IOERR, "cannot lock");
    }
    return amp_fail(err, AMP_TEMPFAIL, "lock_timeout", "somebody else holds the lock");
}

void amp_unlock(int fd)
{
    set_lock(fd, F_OFD_SETLK, F_UNLCK);
}

/* The lock, without a wait if that can be; else *crowded, and the word says so before it. */
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
    if (line_up(t, t->next, timeout_ms, &crowded, err))
        return -1;
    if (timeout_ms > 0) {
        timeout_ms -= amp_mono_ms() - start;
        if (timeout_ms < 0)
            timeout_ms = 0;
    }
    int rc = line_up(t, t->main, timeout_ms, &crowded, err);
    t->calm = crowded ? 0 : t->calm + 1;
    if (t->crowd && t->calm >= CALM) {
        /* Before `next` is free: who waits for it then finds main taken, and says so again. */
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
