/*
 * Ports that are opened by a path: fifo:PATH, opened when it has a reader, and again for the next
 * one; file:PATH, to which lines are appended. And stdout. Lines that are written to the last two
 * have arrived.
 */
#include "message/port/private.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/codes.h"
#include "base/file/line.h"
#include "base/file/own.h"

#define RETRY_MS 10

/* ---- fifo ---- */

static int fifo_connect(struct amp_port *p, int *fd, struct amp_error *err)
{
    struct stat st;
    struct amp_error e = {0};
    if (stat(p->arg, &st) < 0)
        return amp_fail_errno(err, AMP_CANTCREAT, "cannot open the port %s", p->spec);
    if (!S_ISFIFO(st.st_mode))
        return amp_fail(err, AMP_CANTCREAT, not_a_fifo, "%s is not a FIFO (make one with mkfifo)",
                        p->arg);
    if (amp_output_open(p->arg, 0, -1, NULL, fd, &e) == 0)
        return 1;
    if (amp_code_is(e.code, no_reader))
        return 0;
    if (err)
        *err = e;
    return -1;
}

static const struct amp_stream fifo = {
    .connect = fifo_connect, .retry_ms = RETRY_MS, .early = true, .gone = POLLERR};

const struct amp_port_ops amp_port_fifo = {
    .word = "fifo", .takes_arg = true, .traits = AMP_PORT_PIPED, .stream = &fifo, AMP_STREAM_OPS};

/* ---- file ---- */

static int file_connect(struct amp_port *p, int *fd, struct amp_error *err)
{
    p->regular = false;
    int f = amp_own_open(p->arg, O_RDWR | O_CREAT | O_APPEND | O_NONBLOCK, 0666);
    if (f < 0 && (errno == EACCES || errno == EPERM))
        f = amp_own_open(p->arg, O_WRONLY | O_CREAT | O_APPEND | O_NONBLOCK, 0666);
    if (f < 0)
        return amp_fail_errno(err, AMP_CANTCREAT, "cannot open the port %s", p->spec);
    struct stat st;
    p->regular = fstat(f, &st) == 0 && S_ISREG(st.st_mode);
    if (S_ISFIFO(st.st_mode)) {
        close(f);
        return amp_fail(err, AMP_CANTCREAT, not_a_file, "%s is a FIFO (use fifo:%s)", p->arg,
                        p->arg);
    }
    if (amp_line_end(f, NULL) < 0) {
        amp_fail_errno(err, AMP_IOERR, "cannot write to %s", p->arg);
        close(f);
        return -1;
    }
    *fd = f;
    return 1;
}

/* Lines of a file count when they are on the disk. A device that cannot be synced is no error. */
static int file_sync(struct amp_port *p, struct amp_error *err)
{
    if (!p->opt.durable || p->outq.written == p->synced)
        return 0;
    if (fdatasync(p->outq.fd) < 0 && errno != EINVAL && errno != EROFS)
        return amp_fail_errno(err, AMP_IOERR, "cannot sync %s", p->arg);
    p->synced = p->outq.written;
    return 0;
}

static const struct amp_stream file = {
    .connect = file_connect, .retry_ms = RETRY_MS, .sync = file_sync};

const struct amp_port_ops amp_port_file = {
    .word = "file", .takes_arg = true, .traits = AMP_PORT_PROMPT, .stream = &file, AMP_STREAM_OPS};

/* ---- stdout ---- */

static int stdout_connect(struct amp_port *p, int *fd, struct amp_error *err)
{
    (void)p;
    *fd = STDOUT_FILENO;
    return amp_line_end(*fd, err) < 0 ? -1 : 1;
}

static const struct amp_stream output = {.connect = stdout_connect, .borrowed = true};

const struct amp_port_ops amp_port_stdout = {.word = "stdout",
                                             .traits = AMP_PORT_PROMPT | AMP_PORT_OUTPUT,
                                             .stream = &output,
                                             AMP_STREAM_OPS};
