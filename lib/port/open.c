/* What each kind of port is opened as, and how it is closed. */
#include "port/private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <amp/base/clock.h>

#define OPEN_RETRY_MS 10
#define AHEAD_MAX     ((size_t)64 << 20)

static int open_fifo(struct amp_port *p, int *fd, struct amp_error *err)
{
    struct stat st;
    struct amp_error e = {0};
    if (stat(p->arg, &st) < 0)
        return amp_fail_errno(err, AMP_CANTCREAT, "cannot open the port %s", p->spec);
    if (!S_ISFIFO(st.st_mode))
        return amp_fail(err, AMP_CANTCREAT, "not_a_fifo", "%s is not a FIFO (make one with mkfifo)",
                        p->arg);
    if (amp_output_open(p->arg, 0, NULL, fd, &e) == 0)
        return 1;
    if (strcmp(e.code, "no_reader") == 0)
        return 0;
    if (err)
        *err = e;
    return -1;
}

/* A writer that was killed may have left half a line; it is ended first. */
static int end_half_line(int fd)
{
    char last;
    off_t size = lseek(fd, 0, SEEK_END);
    if (size > 0 && pread(fd, &last, 1, size - 1) == 1 && last != '\n' && write(fd, "\n", 1) < 1)
        return -1;
    return 0;
}

static int open_file(struct amp_port *p, int *fd, struct amp_error *err)
{
    int f = open(p->arg, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0666);
    if (f < 0 && (errno == EACCES || errno == EPERM))
        f = open(p->arg, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0666);
    if (f < 0)
        return amp_fail_errno(err, AMP_CANTCREAT, "cannot open the port %s", p->spec);
    struct stat st;
    if (fstat(f, &st) == 0 && S_ISREG(st.st_mode) && end_half_line(f) < 0) {
        amp_fail_errno(err, AMP_IOERR, "cannot write to %s", p->arg);
        close(f);
        return -1;
    }
    *fd = f;
    return 1;
}

static int open_command(struct amp_port *p, int *fd, struct amp_error *err)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return amp_fail_errno(err, AMP_IOERR, "cannot make a pipe for %s", p->spec);
    struct amp_child_spec spec = {
        .argv = (const char *const *)p->argv,
        .fd_in = ends[0],
        .fd_out = STDOUT_FILENO,
        .fd_err = STDERR_FILENO,
    };
    int rc = amp_child_start(&spec, &p->child, err);
    close(ends[0]);
    if (rc < 0) {
        close(ends[1]);
        return -1;
    }
    fcntl(ends[1], F_SETFL, O_NONBLOCK);
    *fd = ends[1];
    return 1;
}

int amp_port_connect(struct amp_port *p, int64_t now_ms, struct amp_error *err)
{
    int fd = -1, rc = 1;
    switch (p->kind) {
    case AMP_PORT_FIFO:
        rc = open_fifo(p, &fd, err);
        break;
    case AMP_PORT_FILE:
        rc = open_file(p, &fd, err);
        break;
    case AMP_PORT_COMMAND:
        rc = open_command(p, &fd, err);
        break;
    case AMP_PORT_STDOUT:
        fd = STDOUT_FILENO;
        break;
    default:
        return amp_fail(err, AMP_INTERNAL, "bad_port", "%s is not opened", p->spec);
    }
    if (rc <= 0) {
        p->retry_ms = now_ms + OPEN_RETRY_MS;
        return rc;
    }
    bool own = p->kind != AMP_PORT_STDOUT;
    if (amp_outq_open(&p->outq, fd, own, AHEAD_MAX, err) < 0) {
        if (own)
            close(fd);
        return -1;
    }
    p->open = p->was_open = true;
    int pipe_size = own ? fcntl(fd, F_GETPIPE_SZ) : -1;
    p->keep = pipe_size > 0 ? (size_t)pipe_size : 0;
    p->out = p->fed = 0;
    p->out_bytes = p->fed_bytes = 0;
    p->popped = p->synced = 0;
    p->down_ms = 0;
    return 1;
}

void amp_port_disconnect(struct amp_port *p, bool reader_gone)
{
    if (!p->open)
        return;
    /* What the pipe holds unread counts as not delivered; what was read from it is done with. */
    int unread = 0;
    if (!reader_gone || p->keep == 0 || ioctl(p->outq.fd, FIONREAD, &unread) < 0)
        unread = 0;
    uint64_t taken =
        p->outq.written - ((uint64_t)unread < p->outq.written ? (uint64_t)unread : p->outq.written);
    const struct amp_queued *head;
    while (p->out > 0 && (head = amp_queue_at(&p->queue, 0)) && p->popped + head->len <= taken) {
        p->popped += head->len;
        p->out--;
        amp_queue_pop(&p->queue);
    }
    amp_outq_close(&p->outq);
    p->open = false;
    p->out = p->fed = 0;
    p->out_bytes = p->fed_bytes = 0;
}
