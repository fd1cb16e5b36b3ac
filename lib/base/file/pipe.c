/* Opens inputs and outputs that may be FIFOs. */
#include <amp/base/pipe.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <amp/base/clock.h>

#include "base/codes.h"
#include "base/file/own.h"
#include "base/loop.h"

#define RETRY_MS 10

static bool is_fifo(int fd)
{
    struct stat st;
    return fstat(fd, &st) == 0 && S_ISFIFO(st.st_mode);
}

void amp_pipe_widen(int fd)
{
    enum { WIDE = 256 << 10 };
    int size = is_fifo(fd) ? fcntl(fd, F_GETPIPE_SZ) : -1;
    if (size > 0 && size < WIDE)
        fcntl(fd, F_SETPIPE_SZ, WIDE); /* a failure is harmless */
}

int amp_poll(struct pollfd *fds, unsigned n, int64_t timeout_ms, volatile const int *stop)
{
    struct amp_loop turn = {.fds = fds, .n = n, .most = n, .wait_ms = timeout_ms, .stop = stop};
    int ended = amp_loop_wait(&turn, NULL);
    return ended == AMP_LOOP_READY ? 1 : ended == AMP_LOOP_LATE ? 0 : -1;
}

int amp_write_until(int fd, struct amp_span data, volatile const int *stop, struct amp_error *err)
{
    struct stat st;
    /* The most that a ready pipe or terminal accepts without blocking. */
    size_t most = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? SIZE_MAX : PIPE_BUF;
    while (data.n > 0) {
        struct pollfd p = {.fd = fd, .events = POLLOUT};
        bool stopping = stop && *stop;
        int rc = stopping ? poll(&p, 1, 0) : amp_poll(&p, 1, -1, stop);
        if (rc < 0 && errno != EINTR)
            return amp_fail_errno(err, AMP_IOERR, "cannot wait for output");
        if (rc == 0)
            return amp_fail(err, AMP_INTERRUPTED, interrupted, "interrupted while writing");
        if (rc < 0)
            continue;
        ssize_t n = write(fd, data.p, data.n < most ? data.n : most);
        if (n < 0 && errno != EINTR && errno != EAGAIN)
            return amp_fail_errno(err, AMP_IOERR, "cannot write");
        if (n > 0) {
            data.p += n;
            data.n -= (size_t)n;
        }
    }
    return 0;
}

bool amp_output_shared(int fd)
{
    struct stat st;
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return true;
    int flags = fcntl(fd, F_GETFL);
    return flags < 0 || (flags & O_APPEND);
}

int amp_input_open(const char *path, bool hold, struct amp_input *out, struct amp_error *err)
{
    struct amp_input in = {.fd = 0, .hold = -1};
    if (strcmp(path, "-") != 0) {
        in.fd = amp_own_open(path, O_RDONLY | O_NONBLOCK, 0);
        if (in.fd < 0)
            return amp_fail_errno(err, AMP_DATAERR, "cannot open %s", path);
    }
    in.fifo = is_fifo(in.fd);
    if (hold && in.fifo) {
        char self[40];
        snprintf(self, sizeof self, "/proc/self/fd/%d", in.fd);
        in.hold = open(self, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
        if (in.hold < 0) {
            amp_fail_errno(err, AMP_IOERR, "cannot hold %s open", path);
            amp_input_close(&in);
            return -1;
        }
    }
    *out = in;
    return 0;
}

enum amp_read amp_read_more(int fd, struct amp_buf *b, size_t n, const char *what,
                            struct amp_error *err)
{
    if (amp_buf_reserve(b, n, err) < 0)
        return AMP_READ_FAILED;
    ssize_t got;
    do
        got = read(fd, b->data + b->len, n);
    while (got < 0 && errno == EINTR);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        return AMP_READ_WOULD_BLOCK;
    if (got < 0) {
        amp_fail_errno(err, AMP_IOERR, "cannot read %s", what);
        return AMP_READ_FAILED;
    }
    b->len += (size_t)got;
    return got > 0 ? AMP_READ_BYTES : AMP_READ_END;
}

void amp_input_close(struct amp_input *in)
{
    if (in->hold >= 0)
        close(in->hold);
    if (in->fd > 0)
        close(in->fd);
    *in = (struct amp_input){.fd = -1, .hold = -1};
}

static bool is_ended_empty(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    return poll(&p, 1, 0) == 1 && p.revents == POLLHUP;
}

int amp_output_open(const char *path, int64_t timeout_ms, int input, volatile const int *cancel,
                    int *fd, struct amp_error *err)
{
    int64_t start = amp_mono_ms();
    for (;;) {
        int f = amp_own_open(path, O_WRONLY | O_NONBLOCK | O_APPEND, 0);
        if (f >= 0) {
            *fd = f;
            return 0;
        }
        if (errno != ENXIO && errno != EINTR)
            return amp_fail_errno(err, AMP_CANTCREAT, "cannot open %s", path);
        if (cancel && *cancel)
            return amp_fail(err, AMP_INTERRUPTED, interrupted, "interrupted while %s has no reader",
                            path);
        if (is_ended_empty(input)) {
            *fd = -1;
            return 1;
        }
        int64_t gone = amp_mono_ms() - start;
        if (timeout_ms >= 0 && gone >= timeout_ms)
            return amp_fail(err, AMP_UNAVAILABLE, no_reader, "%s has no reader", path);
        int64_t left = timeout_ms < 0 ? RETRY_MS : timeout_ms - gone;
        poll(NULL, 0, (int)(left < RETRY_MS ? left : RETRY_MS));
    }
}
