/* Handing the messages of an inbox to its agent: the loop (inbox_loop.c), one message (handover.c)
 * and its acknowledgements (acks.c). */
#ifndef AMP_MESSAGE_ROUTE_HANDOVER_HANDOVER_H
#define AMP_MESSAGE_ROUTE_HANDOVER_HANDOVER_H

#include <poll.h>

#include <amp/base/pipe.h>

#include "base/process/runner.h"
#include "message/delivery/inbox/bell.h"
#include "message/delivery/inbox/inbox.h"
#include "message/delivery/inbox/lane.h"
#include "message/metrics/metrics.h"
#include "message/pause/watch.h"
#include "message/port/port.h"
#include "message/route/run.h"

struct amp_handover_options {
    const struct amp_route_voice *voice;
    volatile const int *stop; /* a signal came */
    /* Appends a text of a message, made safe for a terminal. */
    int (*safe)(struct amp_span text, int width, struct amp_buf *out, struct amp_error *err);
    const char *format;                /* line, text or wrap */
    const char *const *argv;           /* the command for each message; NULL: lines on the output */
    const struct amp_child_wrap *wrap; /* of this command; or NULL */
    int64_t attempt_timeout_ms;
    const char *out_path;
    int64_t open_timeout_ms; /* the longest wait for a FIFO's reader */

    struct amp_span agent;
    const char *name; /* the agent's */
    const struct amp_lane_rules *lanes;
    bool follow;           /* waits for more messages until a signal */
    bool between;          /* waits while the agent is busy; a message makes it busy, */
    int64_t lease_ms;      /* at most this long */
    int64_t max_messages;  /* 0: any number */
    int64_t attempts;      /* of a message, while its command fails temporarily */
    bool fulfill;          /* success of the command is FULFILLED */
    const char *acks_port; /* the port for acknowledgements; NULL: none */
    struct amp_metrics_options metrics;
};

#define AMP_SWEEPER "amp-ack.sweep" /* its outbox has the answers to failures without --acks */

/* Acknowledgements of messages that were handed over, written to a port. */
#define AMP_ACKS_AWAY 64
struct amp_acks {
    const struct amp_handover_options *o;
    struct amp_store *store;
    const char *spec;      /* of the port; NULL: there are no acknowledgements */
    struct amp_port *port; /* NULL: another agent's inbox */
    struct amp_reader *reader;
    char outbox[AMP_INBOX_AGENT_MAX + 8];
    const char *actor; /* outbox, or AMP_SWEEPER if there are none */
    struct amp_store_entry_id away[AMP_ACKS_AWAY],
        closed[AMP_ACKS_AWAY * 2]; /* away: n 0 is free */
    enum { AMP_ACKS_GOES, AMP_ACKS_FAILED, AMP_ACKS_REFUSED } held[AMP_ACKS_AWAY];
    struct amp_buf line;    /* the one that goes to the port, signed */
    struct amp_buf refused; /* entries that the port refused: not sent again in this run */
    uint32_t n_away, n_closed;
    uint64_t n_gone; /* closed or refused so far */
    bool more;       /* the outbox has more than there is room for */
    bool rang;       /* an entry went into the other agent's inbox */
};
/* The caller has set the options and the store. */
int amp_acks_open(struct amp_acks *a, struct amp_error *err);
void amp_acks_close(struct amp_acks *a);
/* Record that the message is READ, or its work done, with the acknowledgement of that. */
int amp_acks_read(struct amp_acks *a, const struct amp_inbox_msg *m, int64_t now_ms,
                  struct amp_error *err);
int amp_acks_fulfilled(struct amp_acks *a, const struct amp_inbox_msg *m, int64_t now_ms,
                       struct amp_error *err);
/* After a sync: gives the open entries to the port. */
int amp_acks_turn(struct amp_acks *a, struct amp_error *err);
int amp_acks_step(struct amp_acks *a, struct amp_error *err);
void amp_acks_watch(const struct amp_acks *a, struct pollfd fds[AMP_PORT_FDS], int64_t *timeout_ms);
/* Waits until the port has written all. UNAVAILABLE no_reader after open_timeout_ms. */
int amp_acks_finish(struct amp_acks *a, struct amp_error *err);

/* The result file of a command, by which it answers the message (amp-route-inbox(1)); only with
 * --acks (a NULL: there are none). */
struct amp_outcome_file {
    char dir[1024], path[1040]; /* "": there is none */
    bool used;                  /* the command left one: it is dropped after a sync */
    bool left;                  /* by a hand-over that was killed: the command is not run again */
};
int amp_outcome_prepare(struct amp_acks *a, const struct amp_inbox_msg *m,
                        struct amp_outcome_file *f, struct amp_error *err);
/* After the command: records the answer in the file, if there is one, and that the message is READ.
 * failed: by its exit status. DATAERR bad_answer; NO, a code of work/attempt/reply/reply.h: nothing
 * was recorded. */
int amp_outcome_answer(struct amp_acks *a, const struct amp_inbox_msg *m,
                       struct amp_outcome_file *f, bool failed, bool *answered,
                       struct amp_error *err);
/* After the sync of what is recorded, and before the command is run again. */
void amp_outcome_drop(struct amp_outcome_file *f);

/* The way to the agent: a line on an output, or a command for each message. */
struct amp_handover {
    const struct amp_handover_options *o;
    struct amp_outq out;
    bool fifo, file;      /* the kind of output */
    struct amp_error why; /* why the command did not take the message */
    struct amp_pause_watch *pauses;
    struct amp_reader *reader;
    bool paused;                     /* the last command was ended, because a person suspended it */
    struct amp_acks *acks;           /* written during waits; or NULL */
    struct amp_outcome_file outcome; /* of the current message's command */
};
int amp_handover_open(struct amp_handover *h, struct amp_error *err);
void amp_handover_close(struct amp_handover *h);
/* Returns when the agent has the message: on a pipe, when its reader has read it. */
int amp_handover(struct amp_handover *h, const struct amp_inbox_msg *m, enum amp_run_verdict *how,
                 struct amp_error *err);
/* poll of at most three descriptors, which misses no signal: INTERRUPTED after one. */
int amp_handover_wait(struct amp_handover *h, struct pollfd *fds, unsigned n, int64_t timeout_ms,
                      struct amp_error *err);
/* Waits all of that time, and writes acknowledgements. */
int amp_handover_pause(struct amp_handover *h, int64_t ms, struct amp_error *err);

/* ---- inbox_loop.c ---- */

struct amp_inbox_end {
    uint64_t handed, refused;
};
/* The caller holds the agent's lock (amp_inbox_lock). Returns when no message waits (not with
 * `follow`), after max_messages, after a failure, or after a signal, INTERRUPTED. */
int amp_inbox_loop(struct amp_store *store, const struct amp_handover_options *o,
                   struct amp_inbox_end *end, struct amp_error *err);

#endif
