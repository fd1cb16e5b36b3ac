/* The inside of a port: what kinds.c, the kinds and what they share use of it. */
#ifndef AMP_PORT_PRIVATE_H
#define AMP_PORT_PRIVATE_H

#include <amp/base/child.h>
#include <amp/base/pipe.h>

#include "port/port.h"
#include "port/queue.h"

#define AMP_PORT_FEED ((size_t)256 << 10) /* pending in a descriptor's output */

struct amp_helper;
struct amp_spool;
struct amp_tries;

/* A kind of port. What is NULL has nothing to do. */
struct amp_port_ops {
    const char *word; /* before the colon, or alone */
    bool takes_arg;
    unsigned traits; /* enum amp_port_trait */
    int (*open)(struct amp_port *p, struct amp_error *err);
    int (*offer)(struct amp_port *p, struct amp_span id, struct amp_span line, uint64_t tag,
                 int64_t since_ms, struct amp_error *err);
    void (*step)(struct amp_port *p, amp_port_done_fn done, void *ctx);
    /* Fills descriptors and returns how long to wait at most, -1 for ever. */
    int64_t (*watch)(const struct amp_port *p, struct pollfd *fds);
    int (*finish)(struct amp_port *p, struct amp_error *err); /* nothing waits any more */
    void (*close)(struct amp_port *p); /* also where open failed, or was not called */
    const struct amp_stream *stream;   /* of a kind that writes to one descriptor, or NULL */
};
extern const struct amp_port_ops amp_port_fifo, amp_port_file, amp_port_spool, amp_port_command,
    amp_port_unix, amp_port_each, amp_port_http, amp_port_https, amp_port_stdout;

/* What the streams differ in (stream.c has what they share). */
struct amp_stream {
    int (*connect)(struct amp_port *p, int *fd, struct amp_error *err); /* 1, 0 not now, -1 never */
    int64_t retry_ms; /* before it is tried again */
    bool borrowed;    /* the descriptor is not closed, and a reader that left is the end */
    bool early;       /* it is opened before there is anything to write */
    short gone;       /* poll: its reader left; 0: that is not to be seen */
    /* Before anything is written: looks at what is at the other end. */
    void (*look)(struct amp_port *p, int64_t now_ms);
    /* Bytes that lie unread; NULL: what the pipe says. */
    uint64_t (*unread)(const struct amp_port *p);
    int (*sync)(struct amp_port *p, struct amp_error *err);
    /* 1: it said all there is to wait for; 0: what holds for every stream counts. */
    int (*watch)(const struct amp_port *p, struct pollfd *fds, int64_t *wait_ms);
    int (*finish)(struct amp_port *p, struct amp_error *err); /* NULL: as every stream */
};
int amp_stream_open(struct amp_port *p, struct amp_error *err);
int amp_stream_offer(struct amp_port *p, struct amp_span id, struct amp_span line, uint64_t tag,
                     int64_t since_ms, struct amp_error *err);
void amp_stream_step(struct amp_port *p, amp_port_done_fn done, void *ctx);
int64_t amp_stream_watch(const struct amp_port *p, struct pollfd *fds);
int amp_stream_finish(struct amp_port *p, struct amp_error *err);
void amp_stream_close(struct amp_port *p);
#define AMP_STREAM_OPS                                                                             \
    .open = amp_stream_open, .offer = amp_stream_offer, .step = amp_stream_step,                   \
    .watch = amp_stream_watch, .finish = amp_stream_finish, .close = amp_stream_close

struct amp_port {
    char *spec;
    const char *arg; /* what stands behind the colon, within spec */
    struct amp_port_options opt;
    struct amp_queue queue;
    const struct amp_port_ops *ops;
    struct amp_tries *tries;
    struct amp_helper *helper;
    bool network; /* leads to another machine */
    int ends;     /* epoll on the ends of processes, -1 none */

    /* The descriptor side. Of the queue the first `out` lines are written but may lie unread in
     * the pipe, and the first `fed` ones (those and more) were given to outq. */
    struct amp_outq outq;
    bool open, was_open;
    uint32_t out, fed;
    size_t out_bytes, fed_bytes;
    bool regular;      /* a file in a file system: writing it does not wait for anybody */
    size_t keep;       /* bytes that the pipe may hold unread; 0: it is no pipe */
    uint64_t popped;   /* bytes of this outq whose lines left the queue */
    uint64_t taken;    /* of a socket: what its reader is known to have read */
    int64_t look_ms;   /* when to look again how much that is, */
    int64_t look_gap;  /* and how long after the last time */
    bool half;         /* the socket's reader will say nothing more */
    uint64_t synced;   /* outq.written when the file was last synced */
    int64_t born_ms;   /* when we began to look for a reader */
    int64_t finish_ms; /* when the end was asked for first */
    int64_t down_ms;   /* when the reader went away; 0: it did not */
    int64_t retry_ms;  /* when to try to open again */

    struct amp_spool *spool; /* spool.c */

    char **argv;
    struct amp_child child;
    int64_t crashes[3]; /* when the command died before its time, newest last */

    bool finishing;
    bool lost;               /* its reader, and the caller was not heard about it */
    struct amp_span failing; /* the line that it is called about, of tag 0 */
    uint64_t telling;        /* the number of the line that done is called about */
    bool failed;             /* `why` holds for all that comes */
    struct amp_error why;
};

/* Bytes of ours that lie unread in the pipe or socket, as far as that is known. */
uint64_t amp_port_unread(const struct amp_port *p);
/* Gives up the descriptor. The lines that were not written stay in the queue; with `reader_gone`
 * also those that lie unread in the pipe, otherwise the reader will have them. */
void amp_port_disconnect(struct amp_port *p, bool reader_gone);
/* The same, and notes that the reader left. */
void amp_port_lost_reader(struct amp_port *p, int64_t now_ms);

#endif
