/*
 * One turn of an event loop. The loop says what it waits for, anew for each turn: descriptors, and
 * how long at most. Then it waits once. INT, TERM and HUP are blocked but during the wait itself,
 * and the flags that their handlers set are looked at in between: no signal is missed, so that no
 * loop needs to wake up just to look.
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
/* Adds a descriptor; -1 is passed over. After the wait the place that is returned says what came.
 */
struct pollfd *amp_loop_add(struct amp_loop *l, int fd, short events);
/* Adds n places, which wait for nothing until the caller fills them. */
struct pollfd *amp_loop_places(struct amp_loop *l, unsigned n);
/* Wakes up after wait_ms at the latest; < 0: no limit. */
void amp_loop_within(struct amp_loop *l, int64_t wait_ms);

enum amp_loop_end {
    AMP_LOOP_READY = 1, /* a descriptor */
    AMP_LOOP_LATE,      /* the time is over */
    AMP_LOOP_SIGNAL,    /* *stop or *hangup is set, or a signal was handled */
};
/* One of these, or -1. Unless it is READY, nothing came on any descriptor. */
int amp_loop_wait(struct amp_loop *l, struct amp_error *err);

#endif
