/* Waits for descriptors, a time and signals. */
#include "base/loop.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

struct amp_loop amp_loop_turn(struct pollfd *fds, unsigned most, volatile const int *stop,
                              volatile const int *hangup)
{
    return (struct amp_loop){
        .fds = fds, .most = most, .wait_ms = -1, .stop = stop, .hangup = hangup};
}

struct pollfd *amp_loop_places(struct amp_loop *l, unsigned n)
{
    if (n > l->most - l->n)
        __builtin_trap(); /* the array is too small for its loop */
    struct pollfd *first = l->fds + l->n;
    for (unsigned i = 0; i < n; i++)
        first[i] = (struct pollfd){.fd = -1};
    l->n += n;
    return first;
}

struct pollfd *amp_loop_add(struct amp_loop *l, int fd, short events)
{
    struct pollfd *p = amp_loop_places(l, 1);
    *p = (struct pollfd){.fd = fd, .events = events};
    return p;
}

void amp_loop_within(struct amp_loop *l, int64_t wait_ms)
{
    if (wait_ms >= 0 && (l->wait_ms < 0 || wait_ms < l->wait_ms))
        l->wait_ms = wait_ms;
}

/* Waits for the places that have a descriptor: poll counts the others against the limit of open
 * files (RLIMIT_NOFILE), and refuses an array that is longer. */
static int wait_compact(struct amp_loop *l, const struct timespec *ts, const sigset_t *mask)
{
    struct pollfd *used = calloc(l->n, sizeof *used);
    unsigned n = 0;
    if (!used)
        return -1;
    for (unsigned i = 0; i < l->n; i++)
        if (l->fds[i].fd >= 0)
            used[n++] = l->fds[i];
    int rc = ppoll(used, n, ts, mask);
    n = 0;
    for (unsigned i = 0; i < l->n; i++)
        l->fds[i].revents = l->fds[i].fd >= 0 ? used[n++].revents : 0;
    free(used);
    return rc;
}

int amp_loop_wait(struct amp_loop *l, struct amp_error *err)
{
    struct timespec ts = {.tv_sec = l->wait_ms / 1000, .tv_nsec = l->wait_ms % 1000 * 1000000};
    const struct timespec *limit = l->wait_ms < 0 ? NULL : &ts;
    sigset_t ours, before;
    sigemptyset(&ours);
    sigaddset(&ours, SIGINT);
    sigaddset(&ours, SIGTERM);
    sigaddset(&ours, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &ours, &before);
    int rc = -1;
    errno = EINTR;
    if (!(l->stop && *l->stop) && !(l->hangup && *l->hangup)) {
        rc = ppoll(l->fds, l->n, limit, &before);
        if (rc < 0 && errno == EINVAL)
            rc = wait_compact(l, limit, &before);
    }
    int saved = errno;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc > 0)
        return AMP_LOOP_READY;
    for (unsigned i = 0; i < l->n; i++)
        l->fds[i].revents = 0;
    if (rc == 0)
        return AMP_LOOP_LATE;
    errno = saved;
    return saved == EINTR ? AMP_LOOP_SIGNAL : amp_fail_errno(err, AMP_INTERNAL, "cannot wait");
}
