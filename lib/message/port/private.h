/* The members of a port, for the kinds and the functions that they share. */
#ifndef AMP_MESSAGE_PORT_PRIVATE_H
#define AMP_MESSAGE_PORT_PRIVATE_H

#include <amp/base/child.h>
#include <amp/base/pipe.h>

#include "message/port/port.h"
#include "message/port/queue.h"

#define AMP_PORT_FEED ((size_t)256 << 10) /* pending in a descriptor's output */

struct amp_helper;
struct amp_tries;

/* A kind of port. A NULL function does nothing. */
struct amp_port_ops {
    const char *word; /* before the colon, or alone */
    bool takes_arg;
    unsigned traits; /* enum amp_port_trait */
    int (*open)(struct amp_port *p, struct amp_error *err);
    int (*offer)(struct amp_port *p, struct amp_span id, struct amp_span line, uint64_t tag,
                 int64_t since_ms, struct amp_error *err);
    void (*step)(struct amp_port *p); /* reports outcomes to p->done */
    /* Fills descriptors and returns the longest wait in ms, -1: no limit. */
    int64_t (*watch)(const struct amp_port *p, struct pollfd *fds);
    int (*finish)(struct amp_port *p, struct amp_error *err); /* when no line waits */
    void (*close)(struct amp_port *p); /* also after open failed, or without open */
    /* Takes lines of the queue's front back from the output; returns how many must stay. */
    uint32_t (*retract)(struct amp_port *p);
    const struct amp_stream *stream; /* of a kind that writes to one descriptor, or NULL */
};
extern const struct amp_port_ops amp_port_fifo, amp_port_file, amp_port_spool, amp_port_command,
    amp_port_unix, amp_port_each, amp_port_http, amp_port_https, amp_port_stdout;

/* The differences between streams; stream.c has their common code. */
struct amp_stream {
    /* 1: *fd is open; 0: not now; -1: never. */
    int (*connect)(struct amp_port *p, int *fd, struct amp_error *err);
    int64_t retry_ms; /* before the next connect */
    bool borrowed;    /* the descriptor is not closed; a lost reader is a failure of the port */
    bool early;       /* it is opened before there is a line to write */
    short gone;       /* the poll event of a lost reader; 0: there is none */
    /* Before writing: checks the other end. */
    void (*look)(struct amp_port *p, int64_t now_ms);
    /* Unread bytes; NULL: the pipe reports them. */
    uint64_t (*unread)(const struct amp_port *p);
    int (*sync)(struct amp_port *p, struct amp_error *err);
    /* 1: this is all to wait for; 0: also as for every stream. */
    int (*watch)(const struct amp_port *p, struct pollfd *fds, int64_t *wait_ms);
    int (*finish)(struct amp_port *p, struct amp_error *err); /* NULL: as every stream */
};
int amp_stream_open(struct amp_port *p, struct amp_error *err);
int amp_stream_offer(struct amp_port *p, struct amp_span id, struct amp_span line, uint64_t tag,
                     int64_t since_ms, struct amp_error *err);
void amp_stream_step(struct amp_port *p);
int64_t amp_stream_watch(const struct amp_port *p, struct pollfd *fds);
int amp_stream_finish(struct amp_port *p, struct amp_error *err);
void amp_stream_close(struct amp_port *p);
uint32_t amp_stream_retract(struct amp_port *p);
#define AMP_STREAM_OPS                                                                             \
    .open = amp_stream_open, .offer = amp_stream_offer, .step = amp_stream_step,                   \
    .watch = amp_stream_watch, .finish = amp_stream_finish, .close = amp_stream_close,             \
    .retract = amp_stream_retract

struct amp_port {
    char *spec;
    const char *arg; /* the text after the colon in spec */
    struct amp_port_options opt;
    struct amp_queue queue;
    const struct amp_port_ops *ops;
    amp_port_done_fn done; /* of the present step */
    void *done_ctx;
    struct amp_tries *tries;
    struct amp_helper *helper;
    char *http_env; /* of the helper: its URL */
    char limit[24]; /* of a request, in ms: an argument of the helper */
    bool network;   /* leads to another machine */
    int ends;       /* epoll on the ends of processes; -1: none */

    /* A stream. Of the queue the first `out` lines are written but may be unread in the pipe, and
     * the first `fed` lines (these and more) are in outq. */
    struct amp_outq outq;
    bool open, was_open;
    uint32_t out, fed;
    size_t out_bytes, fed_bytes;
    bool regular;      /* a regular file: writing does not wait for a reader */
    size_t keep;       /* bytes that the pipe can hold unread; 0: not a pipe */
    uint64_t popped;   /* bytes of this outq whose lines left the queue */
    uint64_t taken;    /* bytes that the reader of a socket is known to have read, */
    int64_t look_ms;   /* when to check this again, */
    int64_t look_gap;  /* and the time since the last check */
    bool half;         /* the socket's reader has closed its writing side */
    uint64_t synced;   /* outq.written at the last sync of the file */
    int64_t born_ms;   /* when the port was made */
    int64_t finish_ms; /* the first amp_port_finish without waiting lines */
    int64_t down_ms;   /* when the reader was lost; 0: it was not */
    int64_t retry_ms;  /* when to connect again */

    struct amp_spool *spool;

    char **argv;
    struct amp_child child;
    int64_t crashes[3]; /* when the command ended early, the newest last */

    bool finishing;
    bool lost;               /* a reader was lost, and amp_port_again was not called yet */
    struct amp_span failing; /* during `done`: the failed line of tag 0 */
    uint64_t reporting;      /* during `done`: the number of the line */
    bool failed;             /* the port has failed with `why`, and so do all lines */
    struct amp_error why;
};

/* Reports the outcome of a line to `done`; why NULL: it was delivered. */
void amp_port_report(struct amp_port *p, uint64_t tag, const struct amp_error *why);
/* A line of AMP_TRACE: an opening, a closing or a failure (why). */
void amp_port_trace(const struct amp_port *p, const char *event, const struct amp_error *why);
/* The unread bytes in the pipe or socket, as far as known. */
uint64_t amp_port_unread(const struct amp_port *p);
/* Closes the descriptor. Unwritten lines stay in the queue; with reader_gone also the unread ones,
 * otherwise the reader will get them. */
void amp_port_disconnect(struct amp_port *p, bool reader_gone);
/* Disconnects with reader_gone, and notes the loss. */
void amp_port_lost_reader(struct amp_port *p, int64_t now_ms);

/* A spool directory: new, cur, done. spool.c explains why no message is published twice. */
struct amp_spool {
    int dir, lock;    /* descriptors; -1: none */
    bool unsynced[3]; /* directories with names that may not be on disk */
};

/* Makes missing directories, and removes temporary files of killed routers. new, cur and done must
 * be directories, not links. */
int amp_spool_open(struct amp_spool *s, const char *path, struct amp_error *err);
void amp_spool_close(struct amp_spool *s);
enum amp_spooled {
    AMP_SPOOLED_FAILED = -1,
    AMP_SPOOLED_NEW, /* published and synced */
    /* The message was in new, cur or done (in done also as an empty file), and is on disk when the
     * port reports its delivery. */
    AMP_SPOOLED_BEFORE
};
/* An empty file in new is replaced. NO duplicate_msg_id: the file has another message; IOERR
 * not_a_file: it is not a regular file. line has no LF. */
enum amp_spooled amp_spool_put(struct amp_spool *s, const char *name, struct amp_span line,
                               struct amp_error *err);

#endif
