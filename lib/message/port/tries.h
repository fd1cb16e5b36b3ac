/*
 * Messages that need an attempt each (a process, a request). A bounded number of attempts run at
 * the same time. A temporary failure is tried again after a random, growing pause. The other
 * messages wait in the port's queue.
 */
#ifndef AMP_MESSAGE_PORT_TRIES_H
#define AMP_MESSAGE_PORT_TRIES_H

#include "base/process/runner.h"

#include "message/port/port.h"

#define AMP_TRIES_MAX 64

struct amp_try {
    bool used, running;
    bool paused;  /* is being ended, to be taken back */
    bool unknown; /* the receiver may have it, by any of the attempts */
    uint64_t tag;
    char *text; /* the id, then the line */
    size_t id_len, n;
    uint32_t begun; /* attempts so far */
    int64_t due_ms; /* of the next attempt, if none runs */
    struct amp_runner run;
};

struct amp_tries {
    struct amp_try v[AMP_TRIES_MAX];
    uint32_t n, window;
    size_t bytes;
};

int amp_tries_offer(struct amp_port *p, struct amp_span id, struct amp_span line, uint64_t tag,
                    int64_t since_ms, struct amp_error *err);
/* Moves messages from the queue to the free places of the window. */
void amp_tries_take(struct amp_port *p, int64_t now_ms);
struct amp_span amp_try_id(const struct amp_try *t);
struct amp_span amp_try_line(const struct amp_try *t); /* with its LF */
/* An attempt ended; why is NULL if the message was delivered. With `again` the message is tried
 * again while attempts are left, not before after_ms. */
void amp_try_ended(struct amp_port *p, struct amp_try *t, const struct amp_error *why, bool again,
                   int64_t after_ms);
/* Takes messages without a running attempt back (amp_port_withdraw). */
void amp_tries_withdraw(struct amp_port *p, const struct amp_port_recall *r);
/* Fails all messages, except those of running attempts. */
void amp_tries_fail(struct amp_port *p, const struct amp_error *why);
/* Milliseconds until the next attempt is due; -1: none waits. */
int64_t amp_tries_wait(const struct amp_port *p, int64_t now_ms);
void amp_tries_free(struct amp_port *p);

#endif
