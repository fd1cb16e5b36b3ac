/*
 * Inputs and outputs that may be FIFOs, for filters in a cycle: opening and writing never block,
 * and lines of several writers are never mixed.
 */
#ifndef AMP_BASE_PIPE_H
#define AMP_BASE_PIPE_H

#include <stdbool.h>
#include <stdint.h>

#include <amp/base/api.h>
#include <amp/base/buf.h>

AMP_API_BEGIN

/*
 * An input. Wait with poll(POLLIN) on fd, and read only if poll reports POLLIN or POLLHUP: then a
 * read of 0 is the end of file. (Before its first writer, a FIFO is not ready in poll, but a read
 * returns 0.)
 */
struct amp_input {
    int fd;
    int hold; /* an own write end of a FIFO, which prevents the end of file; -1: none */
    bool fifo;
};

/* "-" is standard input. A FIFO is opened without waiting for a writer. Fails if the file does not
 * exist. */
int amp_input_open(const char *path, bool hold, struct amp_input *out, struct amp_error *err);
void amp_input_close(struct amp_input *in);

/* The result of one read of a descriptor. */
enum amp_read { AMP_READ_FAILED = -1, AMP_READ_END, AMP_READ_BYTES, AMP_READ_WOULD_BLOCK };

/* Reads up to n bytes to the end of b. FAILED: `what` cannot be read, or b is full. */
enum amp_read amp_read_more(int fd, struct amp_buf *b, size_t n, const char *what,
                            struct amp_error *err);

/* poll(2) that INT and TERM end, also if they arrive just before the call: -1 with errno EINTR if
 * *stop is non-zero or a signal was handled. The program's handlers set *stop; stop may be NULL. */
struct pollfd;
int amp_poll(struct pollfd *fds, unsigned n, int64_t timeout_ms, volatile const int *stop);

/* Writes all of data to a terminal or standard error and waits for room. INTERRUPTED "interrupted"
 * if there is no room and *stop is non-zero. */
int amp_write_until(int fd, struct amp_span data, volatile const int *stop, struct amp_error *err);

/* Enlarges a pipe's buffer, which reduces context switches between its two ends (a fifth of a
 * filter's time). Does nothing if fd is not a pipe or the system refuses. */
void amp_pipe_widen(int fd);

/* Opens an existing FIFO, file (to append) or device for output, O_NONBLOCK and close-on-exec. A
 * FIFO without a reader is tried again until timeout_ms have passed (< 0: no limit, 0: one try;
 * then UNAVAILABLE "no_reader") or *cancel becomes non-zero (INTERRUPTED "interrupted"; may be
 * NULL). Returns 1 with *fd -1 if `input`, a pipe (-1: none), ends without a byte in the meantime:
 * when a cycle ends, the reader may close the FIFO before this writer opens it. */
int amp_output_open(const char *path, int64_t timeout_ms, int input, volatile const int *cancel,
                    int *fd, struct amp_error *err);

/* Whether other writers may add lines on fd after ours: true except for a regular file that was not
 * opened for appending. If true, a filter that passes bytes on adds a missing line end at the end
 * of its input. */
bool amp_output_shared(int fd);

/*
 * Pending output of complete lines on one descriptor. A FIFO or pipe is written under a lock on it,
 * which is released only between lines. After a writer was killed within a line, the next writer
 * ends the line.
 */
struct amp_outq {
    int fd;
    bool owned, fifo, lead;
    bool locked, marked;
    bool middle;        /* the last byte written does not end a line: the lock is kept */
    unsigned mode;      /* permission bits of the FIFO */
    int64_t retry_ms;   /* when to try to lock again; 0: no other process holds the lock */
    struct amp_buf buf; /* pending from buf.data + at on */
    size_t at;
    uint64_t added, written; /* bytes since the start: bytes up to a value of `added` are
                                written when `written` has reached it */
};

/* max limits the pending bytes. own: the queue owns fd (from amp_output_open) and closes it.
 * Otherwise the caller owns fd, and the queue opens its own file description of it. */
int amp_outq_open(struct amp_outq *q, int fd, bool own, size_t max, struct amp_error *err);
/* Discards pending bytes. Does not close an fd that the caller owns. */
void amp_outq_close(struct amp_outq *q);

/* Adds complete lines with their line ends, all or none; "buffer_full" past the limit. After bytes
 * without a line end, the lock on a FIFO is kept until the rest of the line is written. */
int amp_outq_add(struct amp_outq *q, struct amp_span lines, struct amp_error *err);
size_t amp_outq_pending(const struct amp_outq *q);
/* Removes the last n pending bytes, which must be complete lines of which nothing is written. */
void amp_outq_retract(struct amp_outq *q, size_t n);

/* Writes complete lines after the pending bytes, without copying them if nothing is pending; like
 * amp_outq_drain without a timeout. On failure the unwritten bytes are pending. */
int amp_outq_through(struct amp_outq *q, struct amp_span lines, volatile const int *cancel,
                     struct amp_error *err);

/* For the poll loop: POLLOUT or 0, and the longest wait in ms (-1: no limit). */
short amp_outq_events(const struct amp_outq *q);
int amp_outq_timeout(const struct amp_outq *q);

/* Writes as much as possible without blocking. 1: nothing is pending; 0: bytes are pending; -1:
 * failed ("closed_pipe" if there is no reader). SIGPIPE must be ignored. */
int amp_outq_flush(struct amp_outq *q, struct amp_error *err);

/* Waits until nothing is pending; TEMPFAIL "output_timeout" after timeout_ms (< 0: no timeout). If
 * *cancel is non-zero, only the current line is completed, within a second: INTERRUPTED
 * "interrupted". */
int amp_outq_drain(struct amp_outq *q, int64_t timeout_ms, volatile const int *cancel,
                   struct amp_error *err);

AMP_API_END

#endif
