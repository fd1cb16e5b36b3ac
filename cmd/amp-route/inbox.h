/* The parts of the verb inbox: inbox.c the options and the turns, hand.c how one message reaches
 * the agent, inbox_acks.c what is said of it. */
#ifndef AMP_ROUTE_INBOX_H
#define AMP_ROUTE_INBOX_H

#include <poll.h>

#include <amp/base/pipe.h>

#include "base/runner.h"
#include "cli/rows.h"
#include "message/inbox/bell.h"
#include "message/inbox/inbox.h"
#include "port/port.h"

extern const struct amp_opt inbox_opts[];
int route_inbox(int argc, char **argv);

/* Acknowledgements of what was handed over, on their way to a port. */
#define ACKS_AWAY 64
struct acks {
    struct amp_store *store;
    struct amp_span agent;
    const char *spec;      /* NULL: none are made */
    struct amp_port *port; /* NULL: another agent's inbox */
    struct amp_reader *reader;
    char outbox[AMP_INBOX_AGENT_MAX + 8];
    struct amp_store_entry_id away[ACKS_AWAY], closed[ACKS_AWAY * 2]; /* away: n 0 is free */
    enum { ACKS_GOES, ACKS_FAILED, ACKS_REFUSED } held[ACKS_AWAY];
    struct amp_buf refused; /* entries that the port will never take: not again in this run */
    uint32_t n_away, n_closed;
    uint64_t n_gone; /* closed or refused so far */
    bool more;       /* of the outbox than there is room for */
    bool rang;
};
/* store and agent are set before. spec NULL: none are made. */
int acks_open(struct acks *a, const char *spec, struct amp_error *err);
void acks_close(struct acks *a);
/* Whose outbox it is, or the other where none are made. */
const char *acks_actor(const struct acks *a, const char *otherwise);
/* The message is READ, or the work at it done: recorded, with what is said of it. */
int acks_read(struct acks *a, const struct amp_inbox_msg *m, int64_t now_ms, struct amp_error *err);
int acks_fulfilled(struct acks *a, const struct amp_inbox_msg *m, int64_t now_ms,
                   struct amp_error *err);
/* After a sync: gives the port what is open. */
int acks_turn(struct acks *a, struct amp_error *err);
int acks_step(struct acks *a, struct amp_error *err);
void acks_watch(const struct acks *a, struct pollfd fds[AMP_PORT_FDS], int64_t *timeout_ms);
/* UNAVAILABLE no_reader after that time. */
int acks_finish(struct acks *a, int64_t timeout_ms, struct amp_error *err);

/* Where messages go: a line on an output, or a command for each. */
struct hand {
    const char *format;      /* line, text or wrap */
    const char *const *argv; /* NULL: the output */
    const char *agent;
    int64_t attempt_timeout_ms;
    struct amp_outq out;
    bool fifo, file;      /* what the output is */
    struct amp_error why; /* unless the message was taken */
    struct acks *acks;    /* go on leaving while something is waited for */
};
int hand_open(struct hand *h, const char *path, int64_t open_timeout_ms, struct amp_error *err);
void hand_close(struct hand *h);
/* Returns when the agent has it: on a pipe, when its reader took it. */
int hand_over(struct hand *h, const struct amp_inbox_msg *m, enum amp_run_verdict *how,
              struct amp_error *err);
/* poll (two at most) without missing a signal: INTERRUPTED when one came. */
int hand_wait(struct hand *h, struct pollfd *fds, unsigned n, int64_t timeout_ms,
              struct amp_error *err);
/* All of that time; acknowledgements go on leaving. */
int hand_pause(struct hand *h, int64_t ms, struct amp_error *err);
/* The descriptor that says by POLLERR that the reader is gone, or -1. */
int hand_reader(const struct hand *h);

#endif
