/* unix:PATH — a listening socket file, connected again for the next reader. */
#include "message/port/private.h"

#include <errno.h>
#include <linux/sockios.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <amp/base/clock.h>

#include "base/backoff.h"
#include "base/codes.h"

#define RETRY_MS 50

static const struct amp_backoff looks = {.first_ms = 2, .most_ms = 500};

static int unix_address(const struct amp_port *p, struct sockaddr_un *a, struct amp_error *err)
{
    size_t n = strlen(p->arg);
    *a = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (n >= sizeof(a->sun_path))
        return amp_fail(err, AMP_USAGE, bad_port,
                        "a socket's path must have less than %zu bytes: %s", sizeof(a->sun_path),
                        p->arg);
    memcpy(a->sun_path, p->arg, n);
    return 0;
}

static int unix_connect(struct amp_port *p, int *fd, struct amp_error *err)
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
        return amp_fail(err, AMP_CANTCREAT, not_a_socket, "%s is not a socket", p->arg);
    int s = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (s < 0)
        return amp_fail_errno(err, AMP_IOERR, "cannot make a socket for %s", p->spec);
    if (connect(s, (const struct sockaddr *)&a, sizeof(a)) == 0) {
        *fd = s;
        return 1;
    }
    /* No process listens, or the queue of connections is full: try again. */
    int rc = errno == ENOENT || errno == ECONNREFUSED || errno == EAGAIN || errno == EINTR
                 ? 0
                 : amp_fail_errno(err, AMP_CANTCREAT, "cannot open the port %s", p->spec);
    close(s);
    return rc;
}

/* Checks how much the reader has read, and whether it is still there. */
static void unix_look(struct amp_port *p, int64_t now_ms)
{
    if (!p->open)
        return;
    char said[4096];
    ssize_t n;
    int held = 0;
    /* Discards the reader's output; a reader whose output is not read would block. */
    while ((n = recv(p->outq.fd, said, sizeof(said), MSG_DONTWAIT)) > 0)
        continue;
    p->half = n == 0;
    /* Before the poll: when the reader hangs up, the system drops the unread bytes. */
    bool empty = ioctl(p->outq.fd, SIOCOUTQ, &held) == 0 && held == 0;
    struct pollfd fd = {.fd = p->outq.fd};
    if (poll(&fd, 1, 0) == 1 && (fd.revents & (POLLHUP | POLLERR))) {
        amp_port_lost_reader(p, now_ms);
        return;
    }
    if (empty) {
        p->taken = p->outq.written;
        p->look_gap = 0;
    } else if (now_ms >= p->look_ms) {
        p->look_gap = amp_backoff_next(&looks, p->look_gap);
        p->look_ms = now_ms + p->look_gap;
    }
}

static uint64_t unix_unread(const struct amp_port *p)
{
    return p->outq.written - p->taken;
}

static int unix_watch(const struct amp_port *p, struct pollfd *fds, int64_t *wait_ms)
{
    short events = p->open ? amp_outq_events(&p->outq) : 0;
    if (!p->open || (p->queue.n > p->out && !events))
        return 0;
    fds[0] = (struct pollfd){.fd = p->outq.fd, .events = events};
    fds[0].events |= p->half ? 0 : POLLIN;
    if (p->taken != p->outq.written)
        *wait_ms = p->look_ms > amp_mono_ms() ? p->look_ms - amp_mono_ms() : 0;
    return 1;
}

static const struct amp_stream stream = {.connect = unix_connect,
                                         .retry_ms = RETRY_MS,
                                         .gone = POLLHUP,
                                         .look = unix_look,
                                         .unread = unix_unread,
                                         .watch = unix_watch};

const struct amp_port_ops amp_port_unix = {
    .word = "unix", .takes_arg = true, .traits = AMP_PORT_PIPED, .stream = &stream, AMP_STREAM_OPS};
