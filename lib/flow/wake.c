/* Sleeping: inotify, a timerfd, and ppoll, which lets signals in only while it waits. */
#include "flow/wake.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

int amp_wake_open(struct amp_wake *w, const char *state_dir, struct amp_error *err)
{
    char path[4096];
    *w = (struct amp_wake){.log = -1, .timer = -1};
    if (snprintf(path, sizeof(path), "%s/log", state_dir) >= (int)sizeof(path))
        return amp_fail(err, AMP_CANTCREAT, "name_too_long", "the state directory's name");
    w->log = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (w->log < 0 ||
        inotify_add_watch(w->log, path,
                          IN_MODIFY | IN_CREATE | IN_MOVED_TO | IN_MOVE_SELF | IN_DELETE_SELF |
                              IN_ONLYDIR) < 0 ||
        /* A directory that is held open tells of its end only to the one that it was in. */
        inotify_add_watch(w->log, state_dir,
                          IN_DELETE | IN_MOVED_FROM | IN_MOVE_SELF | IN_DELETE_SELF | IN_ONLYDIR) <
            0) {
        bool limit = errno == EMFILE || errno == ENOSPC;
        amp_fail_errno(err, limit ? AMP_UNAVAILABLE : AMP_IOERR, "cannot watch %s", path);
        if (limit && err)
            snprintf(err->code, sizeof(err->code), "no_inotify");
    } else {
        w->timer = timerfd_create(CLOCK_REALTIME, TFD_NONBLOCK | TFD_CLOEXEC);
        if (w->timer >= 0)
            return 0;
        amp_fail_errno(err, AMP_INTERNAL, "cannot make a timer");
    }
    amp_wake_close(w);
    return -1;
}

void amp_wake_close(struct amp_wake *w)
{
    if (w->log >= 0)
        close(w->log);
    if (w->timer >= 0)
        close(w->timer);
    w->log = w->timer = -1;
}

int amp_wake_at(struct amp_wake *w, int64_t at_ms, struct amp_error *err)
{
    struct itimerspec when = {0};
    if (at_ms == w->at_ms)
        return 0;
    if (at_ms > 0)
        when.it_value =
            (struct timespec){.tv_sec = at_ms / 1000, .tv_nsec = at_ms % 1000 * 1000000};
    if (timerfd_settime(w->timer, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &when, NULL) < 0)
        return amp_fail_errno(err, AMP_INTERNAL, "cannot set a timer");
    w->at_ms = at_ms;
    return 0;
}

static unsigned reason(const struct inotify_event *e)
{
    if (e->mask & (IN_MOVE_SELF | IN_DELETE_SELF | IN_IGNORED | IN_UNMOUNT))
        return AMP_WAKE_LOG | AMP_WAKE_GONE;
    if (!(e->mask & (IN_DELETE | IN_MOVED_FROM)))
        return AMP_WAKE_LOG;
    return e->len > 0 && strcmp(e->name, "log") == 0 ? AMP_WAKE_LOG | AMP_WAKE_GONE : 0;
}

int amp_wake_drain(struct amp_wake *w, unsigned *why, struct amp_error *err)
{
    _Alignas(struct inotify_event) char buf[4096];
    ssize_t n;
    while ((n = read(w->log, buf, sizeof(buf))) > 0) {
        for (char *p = buf; p < buf + n;) {
            const struct inotify_event *e = (const void *)p;
            *why |= reason(e);
            p += sizeof(*e) + e->len;
        }
    }
    if (n < 0 && errno != EAGAIN && errno != EINTR)
        return amp_fail_errno(err, AMP_IOERR, "cannot watch the log");
    return 0;
}

/* The alarm that came is no longer set, and neither is one that the setting of the clock ended. */
static void take_time(struct amp_wake *w, unsigned *why)
{
    uint64_t times;
    ssize_t n = read(w->timer, &times, sizeof(times));
    if (n < 0 && errno != ECANCELED)
        return;
    w->at_ms = 0;
    *why |= AMP_WAKE_TIME;
}

int amp_wake_wait(struct amp_wake *w, const struct amp_wake_for *f, unsigned *why,
                  struct amp_error *err)
{
    struct pollfd fds[] = {{.fd = w->timer, .events = POLLIN},
                           {.fd = f->log ? w->log : -1, .events = POLLIN},
                           {.fd = f->out_fd}};
    struct timespec ts = {.tv_sec = f->timeout_ms / 1000,
                          .tv_nsec = f->timeout_ms % 1000 * 1000000};
    sigset_t mine, old;
    sigemptyset(&mine);
    sigaddset(&mine, SIGTERM);
    sigaddset(&mine, SIGINT);
    *why = 0;
    sigprocmask(SIG_BLOCK, &mine, &old);
    int rc = 0;
    bool stopped = f->stop && *f->stop;
    if (!stopped)
        rc = ppoll(fds, 3, f->timeout_ms < 0 ? NULL : &ts, &old);
    int saved = errno;
    sigprocmask(SIG_SETMASK, &old, NULL);
    errno = saved;
    if (stopped || (rc < 0 && errno == EINTR)) {
        *why = AMP_WAKE_SIGNAL;
        return 0;
    }
    if (rc < 0)
        return amp_fail_errno(err, AMP_INTERNAL, "cannot wait");
    if (rc == 0)
        *why |= AMP_WAKE_LATE;
    if (fds[2].revents & (POLLERR | POLLHUP | POLLNVAL))
        *why |= AMP_WAKE_OUT;
    if (fds[0].revents)
        take_time(w, why);
    if (fds[1].revents && amp_wake_drain(w, why, err) < 0)
        return -1;
    return 0;
}
