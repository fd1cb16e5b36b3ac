/* The files of an inbox under DIR/run: the lock of the reader that hands over, and the bell, a FIFO
 * that wakes it. */
#ifndef AMP_MESSAGE_DELIVERY_INBOX_BELL_H
#define AMP_MESSAGE_DELIVERY_INBOX_BELL_H

#include <stdbool.h>
#include <stdint.h>

#include <amp/base/buf.h>

/* Takes the lock of an agent's reader; TEMPFAIL inbox_busy: another process has it. timeout_ms as
 * in amp_lock. Closing *fd releases the lock. */
int amp_inbox_lock(const char *dir, struct amp_span agent, int64_t timeout_ms, int *fd,
                   struct amp_error *err);
/* Opens the bell, which is readable after amp_inbox_ring. Open it before the first amp_inbox_offer,
 * and empty it before each later one. */
int amp_inbox_bell_open(const char *dir, struct amp_span agent, int *fd, struct amp_error *err);
void amp_inbox_bell_empty(int fd);
/* Wakes the reader. Never waits; does nothing if there is no reader. */
void amp_inbox_ring(const char *dir, struct amp_span agent);
/* Whether a process hands over the messages of the agent. */
bool amp_inbox_is_served(const char *dir, struct amp_span agent);

#endif
