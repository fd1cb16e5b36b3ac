/*
 * Inputs and outputs that may be FIFOs, for filters that stand in a cycle: never block on opening,
 * never block on output, never tear a line of another writer.
 */
#ifndef AMP_BASE_PIPE_H
#define AMP_BASE_PIPE_H

#include <stdbool.h>
#include <stdint.h>

#include <amp/base/api.h>
#include <amp/base/buf.h>

AMP_API_BEGIN

/*
 * An input. Wait with poll(POLLIN) on fd and read only when poll said POLLIN or POLLHUP: then a
 * read of 0 is the end of file. (A FIFO without a first writer yet is silent in poll, but a read
 * would already say 0.)
 */
struct amp_input {
    int fd;
    int hold; /* a spare write end of a FIFO: with it there is no end of file; -1 none */
    bool fifo;
};

/* "-" is standard input. A FIFO is opened without waiting for a writer. Fails where there is no
 * such file. */
int amp_input_open(const char *path, bool hold, struct amp_input *out, struct amp_error *err);
void amp_input_close(struct amp_input *in);

/* Reads up to n bytes to the end of b: 1 read, 0 end of file, 2 it would block, -1 failed to read
 * `what`, or b is full. */
int amp_read_more(int fd, struct amp_buf *b, size_t n, const char *what, struct amp_error *err);

/* poll(2) that INT and TERM end, also one that came just before: -1 with errno EINTR where *stop is
 * non-zero or a signal was handled. stop, which the program's handlers set, may be NULL. */
struct pollfd;
int amp_poll(struct pollfd *fds, unsigned n, int64_t timeout_ms, volatile const int *stop);

/* Writes all to what a person or another program reads, waiting for room: INTERRUPTED "interrupted"
 * once *stop is non-zero and there is none. For terminals and standard error. */
int amp_write_until(int fd, struct amp_span data, volatile const int *stop, struct amp_error *err);

/* Asks for more room in a pipe, so that its two ends take turns less often: a fifth of a filter's
 * time. Nothing happens where fd is no pipe or the system refuses. */
void amp_pipe_widen(int fd);

/* Opens an existing FIFO, file (to append) or device for output, O_NONBLOCK and close-on-exec. A
 * FIFO without a reader is tried again until timeout_ms have passed (< 0: for ever, 0: once; then
 * UNAVAILABLE "no_reader") or *cancel becomes non-zero (INTERRUPTED "interrupted"; may be NULL).
 * 1 with *fd -1 where `input`, a pipe (-1: none), ends without a byte meanwhile: in a cycle that
 * ends, the reader may be gone before this writer has come. */
int amp_output_open(const char *path, int64_t timeout_ms, int input, volatile const int *cancel,
                    int *fd, struct amp_error *err);

/* Whether lines of others may come after ours on fd: on all but a regular file that was not opened
 * for appending. There a filter that passes bytes on ends its last line even if the input's last
 * line has no end. */
bool amp_output_shared(int fd);

/*
 * Pending output of whole lines on one descriptor. What is a FIFO (a pipe too) is written under a
 * lock on it that is given back between lines only; the next writer ends a line that a killed one
 * left half.
 */
struct amp_outq {
    int fd;
    bool owned, fifo, lead;
    bool locked, marked;
    bool middle;        /* the last byte written does not end a line: the turn is kept */
    unsigned mode;      /* permission bits of the FIFO */
    int64_t retry_ms;   /* when to try for the lock again; 0 when nobody else had it */
    struct amp_buf buf; /* pending from buf.data + at on */
    size_t at;
    uint64_t added, written; /* bytes since the start: what was added before `added` was noted is
                                out once written reaches it */
};

/* max bounds the pending bytes. own: fd is nobody else's and is closed with the queue (from
 * amp_output_open); otherwise fd stays the caller's and is used through a description of our own.
 */
int amp_outq_open(struct amp_outq *q, int fd, bool own, size_t max, struct amp_error *err);
/* Drops what is pending. An fd that stayed the caller's is not closed. */
void amp_outq_close(struct amp_outq *q);

/* Adds complete lines, line ends included, all or nothing; "buffer_full" past the bound. After
 * bytes without a line end the lock on a FIFO is kept until the rest of the line is written. */
int amp_outq_add(struct amp_outq *q, struct amp_span lines, struct amp_error *err);
size_t amp_outq_pending(const struct amp_outq *q);

/* Writes whole lines that come after what is pending, without copying them where nothing stands in
 * the way; like amp_outq_drain without a timeout. On failure what was not written is pending. */
int amp_outq_through(struct amp_outq *q, struct amp_span lines, volatile const int *cancel,
                     struct amp_error *err);

/* For the poll loop: POLLOUT or 0, and how long to wait at most (ms, -1 for ever). */
short amp_outq_events(const struct amp_outq *q);
int amp_outq_timeout(const struct amp_outq *q);

/* Writes what goes without blocking. 1: nothing is pending, 0: something is, -1: failed
 * ("closed_pipe" where the reader is gone). SIGPIPE must be ignored. */
int amp_outq_flush(struct amp_outq *q, struct amp_error *err);

/* Waits until nothing is pending; TEMPFAIL "output_timeout" after timeout_ms (< 0 none). When
 * *cancel is non-zero only the line under way is ended, within a second: INTERRUPTED
 * "interrupted". */
int amp_outq_drain(struct amp_outq *q, int64_t timeout_ms, volatile const int *cancel,
                   struct amp_error *err);

AMP_API_END

#endif
