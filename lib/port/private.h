/* The inside of a port, shared by port.c (delivery) and open.c (what each kind is opened as). */
#ifndef AMP_PORT_PRIVATE_H
#define AMP_PORT_PRIVATE_H

#include <amp/base/child.h>
#include <amp/base/pipe.h>

#include "port/port.h"
#include "port/queue.h"
#include "port/spool.h"

#define AMP_PORT_FEED ((size_t)256 << 10) /* pending in a descriptor's output */

struct amp_helper;
struct amp_tries;

/* A kind of port that is no stream of lines on one descriptor. */
struct amp_port_ops {
    int (*open)(struct amp_port *p, struct amp_error *err);
    int (*offer)(struct amp_port *p, struct amp_span id, struct amp_span line, uint64_t tag,
                 struct amp_error *err);
    void (*step)(struct amp_port *p, amp_port_done_fn done, void *ctx);
    /* Fills descriptors and returns how long to wait at most, -1 for ever. */
    int64_t (*watch)(const struct amp_port *p, struct pollfd *fds);
    void (*close)(struct amp_port *p);
};
extern const struct amp_port_ops amp_port_each, amp_port_http;

struct amp_port {
    enum amp_port_kind kind;
    char *spec;
    const char *arg; /* what stands behind the colon, within spec */
    struct amp_port_options opt;
    struct amp_queue queue;
    const struct amp_port_ops *ops; /* NULL: the descriptor side below */
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

    struct amp_spool spool;

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

/* 1 opened, 0 not now (try again at retry_ms), -1 never. Not for spools. */
int amp_port_connect(struct amp_port *p, int64_t now_ms, struct amp_error *err);
/* A socket: what its reader took, and whether it is still there (false: it went away). */
bool amp_port_look(struct amp_port *p, int64_t now_ms);
/* Bytes of ours that lie unread in the pipe or socket, as far as that is known. */
uint64_t amp_port_unread(const struct amp_port *p);
/* Gives up the descriptor. The lines that were not written stay in the queue; with `reader_gone`
 * also those that lie unread in the pipe, otherwise the reader will have them. */
void amp_port_disconnect(struct amp_port *p, bool reader_gone);

#endif
