/* How one message of an inbox reaches its agent, and what is said of that (acks.c). */
#ifndef AMP_ROUTE_HANDOVER_H
#define AMP_ROUTE_HANDOVER_H

#include <poll.h>

#include <amp/base/pipe.h>

#include "base/process/runner.h"
#include "message/inbox/bell.h"
#include "message/inbox/inbox.h"
#include "port/port.h"
#include "route/run.h"

/* Acknowledgements of what was handed over, on their way to a port. */
#define AMP_ACKS_AWAY 64
struct amp_acks {
    const struct amp_route_voice *voice;
    volatile const int *stop; /* a signal came */
    struct amp_store *store;
    struct amp_span agent;
    const char *spec;      /* NULL: none are made */
    struct amp_port *port; /* NULL: another agent's inbox */
    struct amp_reader *reader;
    char outbox[AMP_INBOX_AGENT_MAX + 8];
    struct amp_store_entry_id away[AMP_ACKS_AWAY],
        closed[AMP_ACKS_AWAY * 2]; /* away: n 0 is free */
    enum { AMP_ACKS_GOES, AMP_ACKS_FAILED, AMP_ACKS_REFUSED } held[AMP_ACKS_AWAY];
    struct amp_buf refused; /* entries that the port will never take: not again in this run */
    uint32_t n_away, n_closed;
    uint64_t n_gone; /* closed or refused so far */
    bool more;       /* of the outbox than there is room for */
    bool rang;
};
/* voice, stop, store and agent are set before. spec NULL: none are made. */
int amp_acks_open(struct amp_acks *a, const char *spec, struct amp_error *err);
void amp_acks_close(struct amp_acks *a);
/* Whose outbox it is, or the other where none are made. */
const char *amp_acks_actor(const struct amp_acks *a, const char *otherwise);
/* The message is READ, or the work at it done: recorded, with what is said of it. */
int amp_acks_read(struct amp_acks *a, const struct amp_inbox_msg *m, int64_t now_ms,
                  struct amp_error *err);
int amp_acks_fulfilled(struct amp_acks *a, const struct amp_inbox_msg *m, int64_t now_ms,
                       struct amp_error *err);
/* After a sync: gives the port what is open. */
int amp_acks_turn(struct amp_acks *a, struct amp_error *err);
int amp_acks_step(struct amp_acks *a, struct amp_error *err);
void amp_acks_watch(const struct amp_acks *a, struct pollfd fds[AMP_PORT_FDS], int64_t *timeout_ms);
/* UNAVAILABLE no_reader after that time. */
int amp_acks_finish(struct amp_acks *a, int64_t timeout_ms, struct amp_error *err);

/* Where messages go: a line on an output, or a command for each. */
struct amp_handover {
    volatile const int *stop; /* a signal came */
    /* Text of others, made harmless for a terminal, is appended. */
    int (*safe)(struct amp_span text, int width, struct amp_buf *out, struct amp_error *err);
    const char *format;      /* line, text or wrap */
    const char *const *argv; /* NULL: the output */
    const char *agent;
    int64_t attempt_timeout_ms;
    struct amp_outq out;
    bool fifo, file;       /* what the output is */
    struct amp_error why;  /* unless the message was taken */
    struct amp_acks *acks; /* go on leaving while something is waited for */
};
int amp_handover_open(struct amp_handover *h, const char *path, int64_t open_timeout_ms,
                      struct amp_error *err);
void amp_handover_close(struct amp_handover *h);
/* Returns when the agent has it: on a pipe, when its reader took it. */
int amp_handover(struct amp_handover *h, const struct amp_inbox_msg *m, enum amp_run_verdict *how,
                 struct amp_error *err);
/* poll (two at most) without missing a signal: INTERRUPTED when one came. */
int amp_handover_wait(struct amp_handover *h, struct pollfd *fds, unsigned n, int64_t timeout_ms,
                      struct amp_error *err);
/* All of that time; acknowledgements go on leaving. */
int amp_handover_pause(struct amp_handover *h, int64_t ms, struct amp_error *err);
/* The descriptor that says by POLLERR that the reader is gone, or -1. */
int amp_handover_reader(const struct amp_handover *h);

#endif
