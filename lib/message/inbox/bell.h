/* The files of an inbox under DIR/run: who hands over from it, and the bell that wakes him. */
#ifndef AMP_MESSAGE_INBOX_BELL_H
#define AMP_MESSAGE_INBOX_BELL_H

#include <stdbool.h>
#include <stdint.h>

#include <amp/base/buf.h>

/* One hand-over an agent: TEMPFAIL inbox_busy. timeout_ms as amp_lock. The lock goes with *fd. */
int amp_inbox_lock(const char *dir, struct amp_span agent, int64_t timeout_ms, int *fd,
                   struct amp_error *err);
/* A FIFO that is readable once somebody rang: open it before looking, empty it before looking
 * again. */
int amp_inbox_bell_open(const char *dir, struct amp_span agent, int *fd, struct amp_error *err);
void amp_inbox_bell_empty(int fd);
/* Never waits, and fails silently: without a listener there is nobody to wake. */
void amp_inbox_ring(const char *dir, struct amp_span agent);
/* Whether a process hands over the messages of the agent. */
bool amp_inbox_is_served(const char *dir, struct amp_span agent);

#endif
