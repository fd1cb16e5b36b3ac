/*
 * Pending output: writes complete lines to a descriptor without blocking.
 *
 * A pipe accepts up to PIPE_BUF bytes in one piece. Longer lines need several writes, between which
 * another writer's bytes could come. So a writer of a FIFO holds an open-file-description lock on
 * it from the first byte of a line to the last. The lock ends with its holder, so a writer that was
 * killed between two pieces blocks no other, but it leaves half a line, which the next writer must
 * know about. A FIFO cannot store data, but it has mode bits. Before a piece that may be incomplete
 * the holder sets the sticky bit (which has no meaning on a FIFO), and clears it after the line. A
 * writer that takes the lock and finds the bit set starts with a line feed. If a writer is killed
 * before its first piece or after its last one, this only adds an empty line, which readers skip.
 * Only the owner of a FIFO may set the bit: if others may write too, every turn starts with a line
 * feed.
 */
#include <amp/base/pipe.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <amp/base/clock.h>

#include "base/codes.h"
#include "base/loop.h"

#define TURN       65536 /* bytes after which the lock is released */
#define LOCK_RETRY 5     /* ms */
#define MIDDLE_MS  1000  /* for the rest of a line after a signal */

static void outq_forget(struct amp_outq *q)
{
    q->fd = -1;
    q->at = 0;
    q->locked = q->marked = q->middle = q->owned = q->fifo = q->lead = false;
    q->retry_ms = 0;
}

int amp_outq_open(struct amp_outq *q, int fd, bool own, size_t max, struct amp_error *err)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return amp_fail_errno(err, AMP_IOERR, "cannot use the output");
    *q = (struct amp_outq){.fd = fd, .owned = own};
    amp_buf_init(&q->buf, max);
    if (!S_ISFIFO(st.st_mode))
        return 0;
    q->fifo = true;
    q->mode = st.st_mode & 07777 & ~(unsigned)S_ISVTX;
    uid_t me = geteuid();
    q->lead = (st.st_mode & 0022) || (me != 0 && me != st.st_uid);
    if (!own) {
        /* An inherited description may be shared with other writers: a lock on it would not exclude
         * them, and O_NONBLOCK would affect them, too. */
        char self[40];
        snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
        int mine = open(self, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
        if (mine >= 0) {
            q->fd = mine;
            q->owned = true;
        } else if (errno == ENXIO) {
            return amp_fail(err, AMP_IOERR, closed_pipe, "the reader of the output is gone");
        }
    }
    return 0;
}

static int set_lock(struct amp_outq *q, short type)
{
    struct flock fl = {.l_type = type, .l_whence = SEEK_SET, .l_len = 1};
    return fcntl(q->fd, F_OFD_SETLK, &fl);
}

static void turn_end(struct amp_outq *q)
{
    if (q->marked)
        fchmod(q->fd, q->mode);
    q->marked = false;
    if (q->locked)
        set_lock(q, F_UNLCK);
    q->locked = false;
}

void amp_outq_close(struct amp_outq *q)
{
    /* Within a line the mark stays: the next writer ends that line. */
    if (q->fd >= 0 && !q->middle)
        turn_end(q);
    if (q->fd >= 0 && q->owned)
        close(q->fd);
    amp_buf_release(&q->buf);
    outq_forget(q);
}

int amp_outq_add(struct amp_outq *q, struct amp_span lines, struct amp_error *err)
{
    if (q->fd < 0)
        return amp_fail(err, AMP_IOERR, closed_pipe, "the output is closed");
    if (q->at == q->buf.len) {
        amp_buf_reset(&q->buf);
        q->at = 0;
    } else if (q->at > TURN && (q->at > q->buf.len / 2 || lines.n > q->buf.max - q->buf.len)) {
        amp_buf_drop(&q->buf, q->at);
        q->at = 0;
    }
    if (amp_buf_add(&q->buf, lines.p, lines.n, err) < 0)
        return -1;
    q->added += lines.n;
    return 0;
}

size_t amp_outq_pending(const struct amp_outq *q)
{
    return q->buf.len - q->at;
}

short amp_outq_events(const struct amp_outq *q)
{
    return amp_outq_pending(q) && !q->retry_ms ? POLLOUT : 0;
}

int amp_outq_timeout(const struct amp_outq *q)
{
    if (!amp_outq_pending(q) || !q->retry_ms)
        return -1;
    int64_t left = q->retry_ms - amp_mono_ms();
    return left < 0 ? 0 : left > LOCK_RETRY ? LOCK_RETRY : (int)left;
}

/* Takes the lock: 1; 0: another writer has it; -1: failed. */
static int turn_begin(struct amp_outq *q, struct amp_error *err)
{
    if (set_lock(q, F_WRLCK)) {
        if (errno != EAGAIN && errno != EACCES)
            return amp_fail_errno(err, AMP_IOERR, "cannot lock the output");
        q->retry_ms = amp_mono_ms() + LOCK_RETRY;
        return 0;
    }
    q->locked = true;
    q->retry_ms = 0;
    struct stat st;
    if (fstat(q->fd, &st) < 0)
        return amp_fail_errno(err, AMP_IOERR, "cannot use the output");
    bool cut = st.st_mode & S_ISVTX;
    if (!cut && !q->lead)
        return 1;
    ssize_t n;
    do
        n = write(q->fd, "\n", 1);
    while (n < 0 && errno == EINTR);
    if (n < 0 && errno != EAGAIN)
        return errno == EPIPE
                   ? amp_fail(err, AMP_IOERR, closed_pipe, "the reader of the output is gone")
                   : amp_fail_errno(err, AMP_IOERR, "cannot write");
    if (n < 0) {
        turn_end(q);
        return 0;
    }
    if (cut)
        fchmod(q->fd, q->mode);
    return 1;
}

/* The size of one write: complete lines of about a turn's bytes, at least one line. */
static size_t chunk_size(const struct amp_outq *q)
{
    size_t n = amp_outq_pending(q);
    if (n <= TURN)
        return n;
    const char *p = q->buf.data + q->at;
    const char *end = memrchr(p, '\n', TURN);
    if (!end)
        end = memchr(p + TURN, '\n', n - TURN);
    return end ? (size_t)(end - p) + 1 : n;
}

static int write_some(struct amp_outq *q, struct amp_error *err)
{
    size_t n = chunk_size(q);
    /* Bytes without a line end count as a piece of a longer line. */
    bool piece = n > PIPE_BUF || q->buf.data[q->at + n - 1] != '\n';
    if (q->fifo && piece && !q->marked)
        q->marked = fchmod(q->fd, q->mode | S_ISVTX) == 0;
    /* A blocking pipe accepts this much after POLLOUT. */
    if (q->fifo && !q->owned && n > PIPE_BUF)
        n = PIPE_BUF;
    ssize_t k = write(q->fd, q->buf.data + q->at, n);
    if (k < 0 && errno == EINTR)
        return 1;
    if (k < 0 && errno == EAGAIN)
        return 0;
    if (k < 0 && (errno == EPIPE || errno == ECONNRESET))
        return amp_fail(err, AMP_IOERR, closed_pipe, "the reader of the output is gone");
    if (k < 0)
        return amp_fail_errno(err, AMP_IOERR, "cannot write");
    q->at += (size_t)k;
    q->written += (uint64_t)k;
    if (k > 0)
        q->middle = q->buf.data[q->at - 1] != '\n';
    return 1;
}

void amp_outq_retract(struct amp_outq *q, size_t n)
{
    size_t most = amp_outq_pending(q);
    n = n < most ? n : most;
    q->buf.len -= n;
    q->added -= n;
}

int amp_outq_flush(struct amp_outq *q, struct amp_error *err)
{
    size_t turn = 0;
    while (amp_outq_pending(q)) {
        if (q->fifo && !q->locked) {
            if (q->retry_ms && amp_mono_ms() < q->retry_ms)
                return 0;
            int rc = turn_begin(q, err);
            if (rc <= 0)
                return rc;
            turn = 0;
        }
        size_t before = q->at;
        int rc = write_some(q, err);
        if (rc < 0)
            return -1;
        turn += q->at - before;
        if (!q->middle && (rc == 0 || turn >= TURN))
            turn_end(q);
        if (rc == 0)
            return 0;
    }
    if (!q->middle)
        turn_end(q);
    return 1;
}

int amp_outq_drain(struct amp_outq *q, int64_t timeout_ms, volatile const int *cancel,
                   struct amp_error *err)
{
    int64_t start = amp_mono_ms();
    int64_t stopped = 0;
    for (;;) {
        int rc = amp_outq_flush(q, err);
        if (rc != 0)
            return rc < 0 ? -1 : 0;
        int64_t now = amp_mono_ms();
        if (cancel && *cancel) {
            if (!stopped)
                stopped = now;
            if (!q->middle || now - stopped > MIDDLE_MS)
                return amp_fail(err, AMP_INTERRUPTED, interrupted, "interrupted while writing");
        }
        if (timeout_ms >= 0 && now - start >= timeout_ms)
            return amp_fail(err, AMP_TEMPFAIL, output_timeout, "the output takes no more");
        struct pollfd fd;
        struct amp_loop turn = amp_loop_turn(&fd, 1, stopped ? NULL : cancel, NULL);
        amp_loop_add(&turn, amp_outq_events(q) ? q->fd : -1, amp_outq_events(q));
        amp_loop_within(&turn, amp_outq_timeout(q));
        if (timeout_ms >= 0)
            amp_loop_within(&turn, timeout_ms - (now - start));
        if (stopped)
            amp_loop_within(&turn, MIDDLE_MS + 1 - (now - stopped));
        if (amp_loop_wait(&turn, err) < 0)
            return -1;
    }
}

int amp_outq_through(struct amp_outq *q, struct amp_span lines, volatile const int *cancel,
                     struct amp_error *err)
{
    if (q->fd < 0 || amp_outq_pending(q) > 0) {
        if (amp_outq_add(q, lines, err) < 0)
            return -1;
        return amp_outq_drain(q, -1, cancel, err);
    }
    /* The queue's buffer is replaced by the lines while they are written. */
    struct amp_buf own = q->buf;
    q->buf = (struct amp_buf){
        .data = (char *)(uintptr_t)lines.p, .len = lines.n, .cap = lines.n, .max = lines.n};
    q->at = 0;
    int rc = amp_outq_drain(q, -1, cancel, err);
    size_t from = q->at;
    struct amp_error later;
    q->buf = own;
    amp_buf_reset(&q->buf);
    q->at = 0;
    if (from < lines.n)
        amp_buf_add(&q->buf, lines.p + from, lines.n - from, &later);
    q->added += lines.n;
    return rc;
}
