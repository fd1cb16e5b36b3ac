/*
 * One turn of an event loop. For each turn the caller adds the descriptors and the time limits,
 * then waits once. INT, TERM and HUP are blocked except during the wait itself, and the flags that
 * their handlers set are checked while they are blocked. So no signal is missed, and no loop has to
 * wake up only to check.
 */
#ifndef AMP_BASE_LOOP_H
#define AMP_BASE_LOOP_H

#include <poll.h>
#include <stdint.h>

#include <amp/base/error.h>

struct amp_loop {
    struct pollfd *fds; /* the caller's */
    unsigned n, most;
    int64_t wait_ms; /* the nearest limit; < 0: none */
    volatile const int *stop, *hangup;
};

/* A turn that waits for nothing yet, with room for `most` descriptors. stop and hangup are set by
 * the handlers of signals; either may be NULL. */
struct amp_loop amp_loop_turn(struct pollfd *fds, unsigned most, volatile const int *stop,
                              volatile const int *hangup);
/* Adds a descriptor; -1 is ignored. After the wait, revents of the returned place is set. */
struct pollfd *amp_loop_add(struct amp_loop *l, int fd, short events);
/* Adds n places, which are ignored until the caller fills them. */
struct pollfd *amp_loop_places(struct amp_loop *l, unsigned n);
/* Wakes up after wait_ms at the latest; < 0: no limit. */
void amp_loop_within(struct amp_loop *l, int64_t wait_ms);

enum amp_loop_end {
    AMP_LOOP_READY = 1, /* a descriptor is ready */
    AMP_LOOP_LATE,      /* the time limit passed */
    AMP_LOOP_SIGNAL,    /* *stop or *hangup is set, or a signal was handled */
};
/* One of these, or -1. Unless it is READY, revents of all places is 0. */
int amp_loop_wait(struct amp_loop *l, struct amp_error *err);

#endif
