/*
 * egress-gate: the only way out of a confined command with the network policy EGRESS_RESTRICTED
 * (SW4RM §18.5.2). A proxy for HTTP: CONNECT for TLS, and http:// URIs. It connects only to hosts
 * and ports of its list.
 *
 * usage: egress-gate [OPTION VALUE]... HOST:PORT...
 *   --control FD   a socket from which it takes descriptors (SCM_RIGHTS): listening sockets, or
 *                  connections. It ends at the end of this socket. Default: 3
 *   --listen FD    a listening socket; then there is no control socket by default
 *   --client NAME  a name for the records: the agent or the task
 *   stdout: a record for each decision, one a line (schemas/records/egress.json)
 *
 * One process without a state. It ends with its parent, at the end of the control socket, on INT
 * and TERM (0), and if its log cannot be written (74) or is full (75).
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <amp/base/clock.h>
#include <amp/base/num.h>

#include "base/codes.h"
#include "gate.h"

enum {
    CONNECTIONS_MAX = 512,
    LISTENERS_MAX = 4,
    ACCEPT_TURN = 16, /* connections that are accepted before others are served */
    PAUSE_MS = 100,   /* after a failure to accept */
    LOG_PENDING = 256 << 10,
    PLACES = 2 * (CONNECTIONS_MAX + GATE_SPARE) + LISTENERS_MAX + 3,
};

struct sources {
    int64_t control; /* -1: none */
    int listener[LISTENERS_MAX];
    unsigned n;
    int64_t pause_until_ms; /* no connection is accepted before */
};

static volatile int stopped;

static void on_stop(int sig)
{
    stopped = sig;
}

static int gate_complain(const struct amp_error *err)
{
    fprintf(stderr, "egress-gate: error: %s: %s\n", err->code, err->what);
    return err->status;
}

/* ---- descriptors ---- */

static int socket_take(struct gate *g, struct sources *s, int fd, struct amp_error *err)
{
    int listens = 0, type = 0;
    socklen_t n = sizeof listens, m = sizeof type;
    if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &m) < 0 || type != SOCK_STREAM ||
        getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &n) < 0 ||
        fcntl(fd, F_SETFL, O_NONBLOCK) < 0) {
        close(fd);
        return amp_fail(err, AMP_USAGE, not_a_socket,
                        "a descriptor is not a stream socket (listening or connected)");
    }
    if (!listens)
        return gate_accept(g, fd, err);
    if (s->n == LISTENERS_MAX) {
        close(fd);
        return amp_fail(err, AMP_USAGE, too_many_listeners, "more than %d listening sockets",
                        LISTENERS_MAX);
    }
    s->listener[s->n++] = fd;
    return 0;
}

/* Takes the descriptors of one message. 0: the end of the control socket; 1: continue. */
static int control_read(struct gate *g, struct sources *s, struct amp_error *err)
{
    char byte[16];
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof(int) * LISTENERS_MAX)];
    } control;
    struct iovec iov = {byte, sizeof byte};
    struct msghdr m = {.msg_iov = &iov,
                       .msg_iovlen = 1,
                       .msg_control = &control,
                       .msg_controllen = sizeof control};
    ssize_t n = recvmsg((int)s->control, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 1;
    if (n <= 0)
        return 0;
    int rc = 1;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < count; i++) {
            int fd;
            memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
            if (socket_take(g, s, fd, err) < 0)
                rc = -1;
        }
    }
    return rc;
}

static int connections_accept(struct gate *g, struct sources *s, int listener,
                              struct amp_error *err)
{
    for (int i = 0; i < ACCEPT_TURN; i++) {
        int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0) {
            if (gate_accept(g, fd, err) < 0)
                return -1;
        } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            /* The connection stays in the queue: without a pause the loop would not wait. */
            s->pause_until_ms = amp_mono_ms() + PAUSE_MS;
            return 0;
        } else if (errno != ECONNABORTED && errno != EINTR) {
            return 0;
        }
    }
    return 0;
}

/* ---- the loop ---- */

/* One turn; 1: continue, 0: the end. */
static int gate_turn(struct gate *g, struct sources *s, struct amp_error *err)
{
    static struct pollfd places[PLACES];
    struct gate_answer answer;
    struct pollfd *at[LISTENERS_MAX] = {NULL};
    struct amp_loop turn = amp_loop_turn(places, PLACES, &stopped, NULL);
    /* While its log is behind, the gate makes no decision. */
    bool behind = amp_outq_pending(&g->log.out) > LOG_PENDING;
    int64_t pause = s->pause_until_ms - amp_mono_ms();
    struct pollfd *control = amp_loop_add(&turn, (int)s->control, POLLIN);
    amp_loop_add(&turn, amp_outq_pending(&g->log.out) ? g->log.out.fd : -1,
                 amp_outq_events(&g->log.out));
    amp_loop_within(&turn, amp_outq_timeout(&g->log.out));
    if (!behind) {
        amp_loop_add(&turn, gate_resolver_fd(g->resolver), POLLIN);
        for (unsigned i = 0; i < s->n && pause <= 0; i++)
            at[i] = amp_loop_add(&turn, s->listener[i], POLLIN);
        if (pause > 0)
            amp_loop_within(&turn, pause);
        gate_watch(g, &turn);
    }
    if (amp_loop_wait(&turn, err) < 0)
        return -1;
    if (stopped)
        return 0;
    if (amp_outq_flush(&g->log.out, err) < 0)
        return -1;
    if (behind)
        return control->revents & (POLLHUP | POLLERR) ? 0 : 1;
    while (gate_resolver_next(g->resolver, &answer))
        if (gate_answer(g, &answer, err) < 0)
            return -1;
    if (gate_work(g, err) < 0)
        return -1;
    for (unsigned i = 0; i < s->n; i++)
        if (at[i] && at[i]->revents && connections_accept(g, s, s->listener[i], err) < 0)
            return -1;
    if (g->log.full)
        return amp_fail(err, AMP_TEMPFAIL, log_full, "the log has its limit of %llu bytes",
                        (unsigned long long)g->log.most);
    return control->revents ? control_read(g, s, err) : 1;
}

static int gate_serve(struct gate *g, struct sources *s)
{
    struct amp_error err = {0};
    int rc;
    do
        rc = gate_turn(g, s, &err);
    while (rc > 0);
    if (rc < 0)
        gate_complain(&err);
    gate_end(g);
    if (amp_outq_drain(&g->log.out, 2000, NULL, NULL) < 0 && rc == 0)
        return AMP_IOERR;
    return rc < 0 ? (int)err.status : 0;
}

/* ---- the start ---- */

enum value { VALUE_NUMBER, VALUE_SIZE, VALUE_DURATION };

static int options_read(int argc, char **argv, struct gate *g, struct sources *s,
                        struct amp_error *err)
{
    int64_t listener = -1;
    struct gate_limits *l = &g->limits;
    const struct {
        const char *name;
        enum value kind;
        int64_t min, max, *to;
    } table[] = {
        {"--control", VALUE_NUMBER, 3, 65535, &s->control},
        {"--listen", VALUE_NUMBER, 0, 65535, &listener},
        {"--connections", VALUE_NUMBER, 1, CONNECTIONS_MAX, &l->connections},
        {"--header-bytes", VALUE_SIZE, 256, 32768, &l->header_bytes},
        {"--header-timeout", VALUE_DURATION, 1, 3600000, &l->header_ms},
        {"--connect-timeout", VALUE_DURATION, 1, 3600000, &l->connect_ms},
        {"--idle-timeout", VALUE_DURATION, 1, 86400000, &l->idle_ms},
        {"--log-bytes", VALUE_SIZE, 4096, INT64_C(1) << 40, &l->log_bytes},
    };
    s->control = -1;
    int i = 1;
    for (; i < argc && strncmp(argv[i], "--", 2) == 0; i += 2) {
        struct amp_span value = amp_span_str(i + 1 < argc ? argv[i + 1] : NULL);
        bool client = strcmp(argv[i], "--client") == 0;
        size_t k = 0;
        while (k < sizeof table / sizeof *table && strcmp(table[k].name, argv[i]) != 0)
            k++;
        if (!value.p || (!client && k == sizeof table / sizeof *table))
            return amp_fail(err, AMP_USAGE, usage, "unknown option or no value: %s", argv[i]);
        int rc = 0;
        if (client)
            g->log.client = argv[i + 1];
        else if (table[k].kind == VALUE_NUMBER)
            rc = amp_num_parse(value, table[k].min, table[k].max, table[k].to, err);
        else if (table[k].kind == VALUE_SIZE)
            rc = amp_num_size(value, table[k].min, table[k].max, table[k].to, err);
        else
            rc = amp_num_duration(value, table[k].min, table[k].max, table[k].to, err);
        if (rc < 0)
            return amp_fail_again(err, AMP_USAGE, argv[i], err);
    }
    if (argc - i > AMP_NET_RULES_MAX)
        return amp_fail(err, AMP_USAGE, too_many_hosts, "more than %d hosts", AMP_NET_RULES_MAX);
    for (; i < argc; i++)
        if (amp_net_rule_parse(amp_span_str(argv[i]), &g->rules[g->n_rules++], err) < 0)
            return amp_fail_again(err, AMP_USAGE, "the list of hosts", err);
    if (s->control < 0 && listener < 0)
        s->control = 3;
    return listener < 0 ? 0 : socket_take(g, s, (int)listener, err);
}

/* Gives the process what it needs and no more, because it reads bytes of a confined command. */
static void process_prepare(const struct gate_limits *l)
{
    struct rlimit none = {0, 0}, files;
    struct sigaction sa = {.sa_handler = on_stop};
    rlim_t want = (rlim_t)(2 * (l->connections + GATE_SPARE) + 64);
    sigaction(SIGTERM, &sa, NULL);
    sigaction(SIGINT, &sa, NULL);
    signal(SIGPIPE, SIG_IGN);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    setrlimit(RLIMIT_CORE, &none);
    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < want) {
        files.rlim_cur = files.rlim_max < want ? files.rlim_max : want;
        setrlimit(RLIMIT_NOFILE, &files);
    }
}

int main(int argc, char **argv)
{
    static struct gate gate = {
        .limits = {.connections = 64,
                   .header_bytes = 16384,
                   .header_ms = 10000,
                   .connect_ms = 10000,
                   .idle_ms = 600000,
                   .log_bytes = 64 << 20},
    };
    struct sources sources = {0};
    struct amp_error err = {0};
    if (argc == 2 && strcmp(argv[1], "--version") == 0)
        return puts("egress-gate " AMP_VERSION) < 0 ? AMP_IOERR : 0;
    if (options_read(argc, argv, &gate, &sources, &err) < 0)
        return gate_complain(&err);
    process_prepare(&gate.limits);
    gate.log.most = (uint64_t)gate.limits.log_bytes;
    if (amp_outq_open(&gate.log.out, STDOUT_FILENO, false, 4 << 20, &err) < 0 ||
        gate_resolver_new(&gate.resolver, &err) < 0)
        return gate_complain(&err);
    return gate_serve(&gate, &sources);
}
