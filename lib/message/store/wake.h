/*
 * Waits until a time of the wall clock (also when the clock is set), a write of another process to
 * the log of a state directory, or a signal. It does not poll: until then there is no system call.
 */
#ifndef AMP_MESSAGE_STORE_WAKE_H
#define AMP_MESSAGE_STORE_WAKE_H

#include <stdbool.h>
#include <stdint.h>

#include <amp/base/buf.h>

struct amp_wake {
    int log, timer; /* inotify of the log directory, timerfd; -1 */
    int64_t at_ms;  /* the timer's alarm; 0: none */
};

/* state_dir must be an existing state directory. UNAVAILABLE "no_inotify": the system's limit on
 * watches is reached (fs.inotify.max_user_instances). */
int amp_wake_open(struct amp_wake *w, const char *state_dir, struct amp_error *err);
void amp_wake_close(struct amp_wake *w);
/* Sets the alarm to a time of the wall clock; 0: none. */
int amp_wake_at(struct amp_wake *w, int64_t at_ms, struct amp_error *err);

enum {
    AMP_WAKE_TIME = 1,   /* the alarm, or the clock was set */
    AMP_WAKE_LOG = 2,    /* another process wrote */
    AMP_WAKE_OUT = 4,    /* out_fd has lost its reader */
    AMP_WAKE_SIGNAL = 8, /* *stop is set, or a signal was handled */
    AMP_WAKE_LATE = 16,  /* timeout_ms passed */
};
/* Events to wait for in addition to the alarm. */
struct amp_wake_for {
    bool log;
    int out_fd;               /* a pipe whose reader may close it; -1: none */
    int64_t timeout_ms;       /* < 0: none */
    volatile const int *stop; /* set by the handlers of INT and TERM */
};
/* Waits and returns the events in *why. A signal is never missed. IOERR state_gone: the state
 * directory was removed or renamed. */
int amp_wake_wait(struct amp_wake *w, const struct amp_wake_for *f, unsigned *why,
                  struct amp_error *err);
/* Discards pending events of the log without waiting, before the log is read. 1: another process
 * wrote, 0: none did, -1: failure, also IOERR state_gone. */
int amp_wake_drain(struct amp_wake *w, struct amp_error *err);

#endif
