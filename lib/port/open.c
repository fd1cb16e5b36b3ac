/* What each kind of port is opened as, and how it is closed. */
#include "port/private.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <amp/base/clock.h>

#include "base/backoff.h"

#define OPEN_RETRY_MS    10
#define CONNECT_RETRY_MS 50
#define AHEAD_MAX        ((size_t)64 << 20)

static const struct amp_backoff looks = {.first_ms = 2, .most_ms = 500};

static int open_fifo(struct amp_port *p, int *fd, struct amp_error *err)
{
    struct stat st;
    struct amp_error e = {0};
    if (stat(p->arg, &st) < 0)
        return amp_fail_errno(err, AMP_CANTCREAT, "cannot open the port %s", p->spec);
    if (!S_ISFIFO(st.st_mode))
        return amp_fail(err, AMP_CANTCREAT, "not_a_fifo", "%s is not a FIFO (make one with mkfifo)",
                        p->arg);
    if (amp_output_open(p->arg, 0, -1, NULL, fd, &e) == 0)
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
    p->regular = false;
    int f = open(p->arg, O_RDWR | O_CREAT | O_APPEND | O_NONBLOCK | O_CLOEXEC | O_NOCTTY, 0666);
    if (f < 0 && (errno == EACCES || errno == EPERM))
        f = open(p->arg, O_WRONLY | O_CREAT | O_APPEND | O_NONBLOCK | O_CLOEXEC | O_NOCTTY, 0666);
    if (f < 0)
        return amp_fail_errno(err, AMP_CANTCREAT, "cannot open the port %s", p->spec);
    struct stat st;
    p->regular = fstat(f, &st) == 0 && S_ISREG(st.st_mode);
    if (S_ISFIFO(st.st_mode)) {
        close(f);
        return amp_fail(err, AMP_CANTCREAT, "not_a_file", "%s is a FIFO (use fifo:%s)", p->arg,
                        p->arg);
    }
    if (p->regular && end_half_line(f) < 0) {
        amp_fail_errno(err, AMP_IOERR, "cannot write to %s", p->arg);
        close(f);
        return -1;
    }
    *fd = f;
    return 1;
}

static int unix_address(const struct amp_port *p, struct sockaddr_un *a, struct amp_error *err)
{
    size_t n = strlen(p->arg);
    *a = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (n >= sizeof(a->sun_path))
        return amp_fail(err, AMP_USAGE, "bad_port", "a socket's path has less than %zu bytes: %s",
                        sizeof(a->sun_path), p->arg);
    memcpy(a->sun_path, p->arg, n);
    return 0;
}

static int open_unix(struct amp_port *p, int *fd, struct amp_error *err)
{
    struct sockaddr_un a;
    struct stat st;
    if (unix_address(p, &a, err) < 0)
        return -1;
    if (stat(p->arg, &st) < 0)
        return errno == ENOENT
                   ? 0
                   : amp_fail_errno(err, AMP_CANTCREAT, "cannot open the port %s", p->spec);
    if (!S_ISSOCK(st.st_mode))
        return amp_fail(err, AMP_CANTCREAT, "not_a_socket", "%s is not a socket", p->arg);
    int s = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (s < 0)
        return amp_fail_errno(err, AMP_IOERR, "cannot make a socket for %s", p->spec);
    if (connect(s, (const struct sockaddr *)&a, sizeof(a)) == 0) {
        *fd = s;
        return 1;
    }
    /* Nobody listens (any more), or more wait to be accepted than it lets. */
    int rc = errno == ENOENT || errno == ECONNREFUSED || errno == EAGAIN || errno == EINTR
                 ? 0
                 : amp_fail_errno(err, AMP_CANTCREAT, "cannot open the port %s", p->spec);
    close(s);
    return rc;
}

/* What a pipe or a socket may hold unread. */
static size_t held_most(int fd, bool is_socket)
{
    int n = 0;
    socklen_t len = sizeof(n);
    if (!is_socket)
        n = fcntl(fd, F_GETPIPE_SZ);
    else if (getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &n, &len) < 0)
        n = 0;
    return n > 0 ? (size_t)n : 0;
}

bool amp_port_look(struct amp_port *p, int64_t now_ms)
{
    char said[4096];
    ssize_t n;
    int held = 0;
    /* What it says is of no use; a reader whose words nobody took would stop at some time. */
    while ((n = recv(p->outq.fd, said, sizeof(said), MSG_DONTWAIT)) > 0)
        continue;
    p->half = n == 0;
    /* The order matters: what a reader that goes away left unread is dropped after it hung up. */
    bool empty = ioctl(p->outq.fd, SIOCOUTQ, &held) == 0 && held == 0;
    struct pollfd fd = {.fd = p->outq.fd};
    if (poll(&fd, 1, 0) == 1 && (fd.revents & (POLLHUP | POLLERR)))
        return false;
    if (empty) {
        p->taken = p->outq.written;
        p->look_gap = 0;
    } else if (now_ms >= p->look_ms) {
        p->look_gap = amp_backoff_next(&looks, p->look_gap);
        p->look_ms = now_ms + p->look_gap;
    }
    return true;
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
    case AMP_PORT_UNIX:
        rc = open_unix(p, &fd, err);
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
        p->retry_ms = now_ms + (p->kind == AMP_PORT_UNIX ? CONNECT_RETRY_MS : OPEN_RETRY_MS);
        return rc;
    }
    bool own = p->kind != AMP_PORT_STDOUT;
    if (amp_outq_open(&p->outq, fd, own, AHEAD_MAX, err) < 0) {
        if (own)
            close(fd);
        return -1;
    }
    p->open = p->was_open = true;
    p->keep = own ? held_most(fd, p->kind == AMP_PORT_UNIX) : 0;
    p->taken = 0;
    p->look_ms = p->look_gap = 0;
    p->half = false;
    p->out = p->fed = 0;
    p->out_bytes = p->fed_bytes = 0;
    p->popped = p->synced = 0;
    p->down_ms = 0;
    return 1;
}

uint64_t amp_port_unread(const struct amp_port *p)
{
    int unread = 0;
    if (!p->open || p->keep == 0)
        return 0;
    if (p->kind == AMP_PORT_UNIX)
        return p->outq.written - p->taken;
    return ioctl(p->outq.fd, FIONREAD, &unread) < 0 || unread < 0 ? 0 : (uint64_t)unread;
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
    if (reader_gone && p->kind == AMP_PORT_UNIX)
        taken = p->taken; /* perhaps more: a socket does not tell afterwards */
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
