/* Waits with inotify and a timerfd in an event loop. */
#include "message/store/wake.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/codes.h"
#include "base/loop.h"

int amp_wake_open(struct amp_wake *w, const char *state_dir, struct amp_error *err)
{
    char path[4096];
    *w = (struct amp_wake){.log = -1, .timer = -1};
    if (snprintf(path, sizeof(path), "%s/log", state_dir) >= (int)sizeof(path))
        return amp_fail(err, AMP_CANTCREAT, name_too_long, "the state directory's name");
    w->log = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (w->log < 0 ||
        inotify_add_watch(w->log, path,
                          IN_MODIFY | IN_CREATE | IN_MOVED_TO | IN_MOVE_SELF | IN_DELETE_SELF |
                              IN_ONLYDIR) < 0 ||
        /* The removal of an open directory is an event of its parent only. */
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

/* 1: another process wrote, 0: ignored, -1: the log was removed or renamed. */
static int event_read(const struct inotify_event *e, struct amp_error *err)
{
    bool part = e->mask & (IN_DELETE | IN_MOVED_FROM);
    if (e->mask & (IN_MOVE_SELF | IN_DELETE_SELF | IN_IGNORED | IN_UNMOUNT) ||
        (part && e->len > 0 && strcmp(e->name, "log") == 0))
        return amp_fail(err, AMP_IOERR, state_gone, "the state directory was removed or renamed");
    return !part;
}

int amp_wake_drain(struct amp_wake *w, struct amp_error *err)
{
    _Alignas(struct inotify_event) char buf[4096];
    ssize_t n;
    int written = 0;
    while ((n = read(w->log, buf, sizeof(buf))) > 0) {
        for (char *p = buf; p < buf + n;) {
            const struct inotify_event *e = (const void *)p;
            int rc = event_read(e, err);
            if (rc < 0)
                return -1;
            written |= rc;
            p += sizeof(*e) + e->len;
        }
    }
    if (n < 0 && errno != EAGAIN && errno != EINTR)
        return amp_fail_errno(err, AMP_IOERR, "cannot watch the log");
    return written;
}

/* An expired alarm is no longer set; neither is one that was cancelled by setting the clock. */
static void alarm_take(struct amp_wake *w, unsigned *why)
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
    struct pollfd fds[3];
    struct amp_loop turn = amp_loop_turn(fds, 3, f->stop, NULL);
    const struct pollfd *timer = amp_loop_add(&turn, w->timer, POLLIN);
    const struct pollfd *log = amp_loop_add(&turn, f->log ? w->log : -1, POLLIN);
    const struct pollfd *out = amp_loop_add(&turn, f->out_fd, 0);
    amp_loop_within(&turn, f->timeout_ms);
    int ended = amp_loop_wait(&turn, err);
    if (ended < 0)
        return -1;
    *why = ended == AMP_LOOP_SIGNAL ? AMP_WAKE_SIGNAL : ended == AMP_LOOP_LATE ? AMP_WAKE_LATE : 0;
    if (out->revents & (POLLERR | POLLHUP | POLLNVAL))
        *why |= AMP_WAKE_OUT;
    if (timer->revents)
        alarm_take(w, why);
    int written = log->revents ? amp_wake_drain(w, err) : 0;
    if (written < 0)
        return -1;
    *why |= written ? AMP_WAKE_LOG : 0;
    return 0;
}
