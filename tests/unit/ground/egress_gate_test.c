/* egress-gate as a process: its client and its servers are in this test, on the loopback interface.
 * Addresses beyond it are in tests/bats/work/egress.bats. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../hello.h"
#include "../tap.h"

#define WAIT_MS 20000 /* no test waits that long unless it fails */

struct gate {
    pid_t pid;
    int control, log, port;
};

static struct amp_span text(const char *s)
{
    return amp_span_str(s);
}

/* A listening socket on the loopback interface and its port. */
static int listener(int *port)
{
    struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof sa;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&sa, sizeof sa) || listen(fd, 100) ||
        getsockname(fd, (struct sockaddr *)&sa, &n))
        exit(1);
    *port = ntohs(sa.sin_port);
    return fd;
}

static void control_send(int control, int fd)
{
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof(int))];
    } c = {0};
    struct iovec iov = {(char[]){"L"}, 1};
    struct msghdr m = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &c, .msg_controllen = sizeof c};
    c.head.cmsg_level = SOL_SOCKET;
    c.head.cmsg_type = SCM_RIGHTS;
    c.head.cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(&c.head), &fd, sizeof fd);
    sendmsg(control, &m, MSG_NOSIGNAL); /* a gate that refused its arguments is gone */
}

/* Starts the gate with these arguments and a listening socket. */
static struct gate gate_start(const char *const *args)
{
    char program[PATH_MAX], *argv[40];
    int pair[2], n = 0;
    struct gate g;
    ssize_t len = readlink("/proc/self/exe", program, sizeof program - 1);
    program[len < 0 ? 0 : len] = '\0';
    for (int i = 0; i < 3; i++)
        *strrchr(program, '/') = '\0';
    strcat(program, "/libexec/amp/egress-gate");
    argv[n++] = program;
    for (; *args; args++)
        argv[n++] = strdup(*args);
    argv[n] = NULL;
    g.log = memfd_create("log", MFD_CLOEXEC);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
        exit(1);
    g.pid = fork();
    if (g.pid == 0) {
        dup2(g.log, 1);
        if (dup2(pair[1], 3) == pair[1])
            fcntl(3, F_SETFD, 0);
        execv(program, argv);
        _exit(127);
    }
    for (int i = 1; i < n; i++)
        free(argv[i]);
    close(pair[1]);
    g.control = pair[0];
    int fd = listener(&g.port);
    control_send(g.control, fd);
    close(fd);
    return g;
}

/* Closes the control socket; the exit status, or -1 if the gate does not end. */
static int gate_stop(struct gate *g)
{
    int status;
    close(g->control);
    g->control = -1;
    for (int i = 0; i < WAIT_MS / 5; i++) {
        if (waitpid(g->pid, &status, WNOHANG) == g->pid)
            return WIFEXITED(status) ? WEXITSTATUS(status) : -2;
        poll(NULL, 0, 5);
    }
    kill(g->pid, SIGKILL);
    return -1;
}

/* Whether the log has a line with all of the texts (NULL-terminated); waits for it. */
static bool logged(const struct gate *g, const char *const *parts)
{
    static char log[1 << 20];
    for (int i = 0; i < WAIT_MS / 5; i++) {
        ssize_t n = pread(g->log, log, sizeof log - 1, 0);
        log[n < 0 ? 0 : n] = '\0';
        for (char *line = log, *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
            *end = '\0';
            const char *const *p = parts;
            while (*p && strstr(line, *p))
                p++;
            if (!*p)
                return true;
        }
        poll(NULL, 0, 5);
    }
    printf("# the log:\n# %s\n", log);
    return false;
}
#define LOGGED(g, ...) logged((g), (const char *const[]){__VA_ARGS__, NULL})

static int dial(int port)
{
    struct sockaddr_in sa = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&sa, sizeof sa))
        exit(1);
    return fd;
}

static void put(int fd, struct amp_span s)
{
    while (s.n) {
        ssize_t n = send(fd, s.p, s.n, MSG_NOSIGNAL);
        if (n <= 0)
            return;
        s.p += n;
        s.n -= (size_t)n;
    }
}

/* Reads until the text has come or the end; "" if nothing came. */
static const char *get(int fd, const char *until)
{
    static char got[1 << 17];
    size_t n = 0;
    got[0] = '\0';
    while (n < sizeof got - 1 && !(until && strstr(got, until))) {
        struct pollfd p = {fd, POLLIN, 0};
        if (poll(&p, 1, WAIT_MS) <= 0)
            return "timeout";
        ssize_t r = read(fd, got + n, sizeof got - 1 - n);
        if (r <= 0)
            break;
        n += (size_t)r;
        got[n] = '\0';
    }
    return got;
}

static int take(int fd)
{
    struct pollfd p = {fd, POLLIN, 0};
    return poll(&p, 1, WAIT_MS) == 1 ? accept4(fd, NULL, NULL, SOCK_CLOEXEC) : -1;
}

static bool quiet(int fd)
{
    struct pollfd p = {fd, POLLIN, 0};
    return poll(&p, 1, 0) == 0;
}

/* One request and its complete answer. */
static const char *ask(const struct gate *g, struct amp_span request)
{
    int fd = dial(g->port);
    put(fd, request);
    const char *answer = get(fd, NULL);
    close(fd);
    return answer;
}

__attribute__((format(printf, 3, 4))) static struct amp_span fmt(char *buf, size_t size,
                                                                 const char *form, ...)
{
    va_list ap;
    va_start(ap, form);
    int n = vsnprintf(buf, size, form, ap);
    va_end(ap);
    return (struct amp_span){buf, (size_t)n};
}
#define CONNECT "CONNECT %s:%d HTTP/1.1\r\n\r\n"

/* ---- tests ---- */

static int server, server_port;

/* A tunnel for `host` with a hello for `name`, in pieces. Returns the client's socket. */
static int tunnel(const struct gate *g, const char *host, const struct hello *h, size_t piece)
{
    char line[400];
    int fd = dial(g->port);
    put(fd, fmt(line, sizeof line, CONNECT, host, server_port));
    TAP_OK(strstr(get(fd, "\r\n\r\n"), " 200 ") != NULL, "the tunnel to %s is made", host);
    for (size_t at = 0; at < h->n; at += piece) {
        size_t n = h->n - at < piece ? h->n - at : piece;
        put(fd, (struct amp_span){(const char *)h->bytes + at, n});
        if (piece < h->n)
            poll(NULL, 0, 1); /* so that it is a segment of its own */
    }
    return fd;
}

static void test_tunnel(const struct gate *g)
{
    struct hello h = hello_for("localhost"), split = hello_split(&h, 20);
    const struct hello *forms[] = {&h, &split};
    for (int i = 0; i < 2; i++) {
        int fd = tunnel(g, "localhost", forms[i], i ? 9 : 4096), peer = take(server);
        char got[4096];
        size_t n = 0;
        while (n < forms[i]->n) {
            ssize_t r = read(peer, got + n, sizeof got - n);
            if (r <= 0)
                break;
            n += (size_t)r;
        }
        TAP_OK(n == forms[i]->n && memcmp(got, forms[i]->bytes, n) == 0,
               "the server gets the hello byte for byte");
        put(peer, text("from the server"));
        TAP_STR(get(fd, "server"), "from the server", "and answers");
        shutdown(fd, SHUT_WR);
        TAP_STR(get(peer, NULL), "", "the client's end reaches the server");
        put(peer, text("the rest"));
        close(peer);
        TAP_STR(get(fd, NULL), "the rest", "which may still send");
        close(fd);
    }
    TAP_OK(LOGGED(g, "\"allowed\"", "\"host\":\"localhost\"", "\"address\":\"127.0.0.1\"",
                  "\"server_name\":\"localhost\"", "\"client\":\"T-2026-001\""),
           "the decision is logged");
    TAP_OK(LOGGED(g, "\"ended\"", "\"code\":\"closed\"", "\"bytes_in\":62"), "and the end");
}

static void test_names(const struct gate *g)
{
    struct hello exts = {0}, ech;
    const char *name = "localhost";
    hello_names(&exts, &name, 1);
    hello_put(&exts, 0xfe0d, 2);
    hello_put(&exts, 0, 2);
    ech = hello_of(&exts, 0);
    const struct {
        struct hello hello;
        const char *code;
    } cases[] = {
        {hello_for("evil.example"), "\"server_name_mismatch\""},
        {hello_for(NULL), "\"server_name_missing\""},
        {ech, "\"server_name_hidden\""},
        {hello_for("127.0.0.1"), "\"bad_hello\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int fd = tunnel(g, "localhost", &cases[i].hello, 4096), peer = take(server);
        const char *alert = get(fd, NULL);
        TAP_OK(alert[0] == 0x15 && alert[6] == 112, "a wrong hello gets an alert");
        TAP_STR(get(peer, NULL), "", "and the server gets no byte");
        TAP_OK(LOGGED(g, "\"refused\"", cases[i].code), "%s", cases[i].code);
        close(peer);
        close(fd);
    }
    struct hello ssh = {0};
    hello_text(&ssh, "SSH-2.0-x\r\n", 11);
    int fd = tunnel(g, "localhost", &ssh, 4096), peer = take(server);
    get(fd, NULL);
    TAP_STR(get(peer, NULL), "", "bytes that are not TLS do not pass");
    TAP_OK(LOGGED(g, "\"not_tls\""), "not_tls");
    close(peer);
    close(fd);
    struct hello none = hello_for(NULL);
    fd = tunnel(g, "127.0.0.1", &none, 4096);
    peer = take(server);
    put(peer, text("hello to an address"));
    TAP_STR(get(fd, "address"), "hello to an address", "an address needs no name");
    close(peer);
    close(fd);
}

static void test_http(const struct gate *g)
{
    char request[600];
    int fd = dial(g->port), peer;
    put(fd, fmt(request, sizeof request,
                "POST http://%s:%d/path?q HTTP/1.1\r\nProxy-Authorization: x\r\n"
                "Content-Length: 5\r\n\r\nhelloGET /second HTTP/1.1\r\nHost: evil\r\n\r\n",
                "localhost", server_port));
    peer = take(server);
    const char *got = get(peer, "hello");
    TAP_OK(strstr(got, "POST /path?q HTTP/1.1\r\nHost: localhost:") == got, "a request is sent on");
    TAP_OK(!strstr(got, "Proxy-") && strstr(got, "Connection: close\r\n\r\nhello"),
           "without the fields for the proxy");
    put(peer, text("HTTP/1.1 204 No Content\r\n\r\n"));
    close(peer);
    TAP_STR(get(fd, NULL), "HTTP/1.1 204 No Content\r\n\r\n", "its response comes back");
    TAP_OK(LOGGED(g, "\"ended\"", "\"closed\"", "\"bytes_in\":27"), "and is counted");
    close(fd);
    /* A body that fills the buffer while the name is looked up. */
    enum { BODY = 300000 };
    char *large = malloc(BODY);
    memset(large, 'b', BODY);
    fd = dial(g->port);
    put(fd,
        fmt(request, sizeof request, "POST http://%s:%d/ HTTP/1.1\r\nContent-Length: %d\r\n\r\n",
            "localhost", server_port, BODY));
    if (fork() == 0) {
        put(fd, (struct amp_span){large, BODY});
        _exit(0);
    }
    peer = take(server);
    size_t bytes = 0;
    for (ssize_t n; bytes < BODY && (n = read(peer, large, BODY)) > 0;)
        bytes += (size_t)n;
    wait(NULL);
    TAP_OK(bytes > BODY, "a large body is sent on: %zu bytes", bytes);
    put(peer, text("HTTP/1.1 200 OK\r\n\r\n"));
    close(peer);
    TAP_STR(get(fd, NULL), "HTTP/1.1 200 OK\r\n\r\n", "and answered");
    close(fd);
    free(large);
    /* A second request on the connection could be for another host. */
    fd = dial(g->port);
    put(fd, fmt(request, sizeof request,
                "GET http://%s:%d/ HTTP/1.1\r\n\r\nGET /second HTTP/1.1\r\nHost: evil\r\n\r\n",
                "localhost", server_port));
    peer = take(server);
    get(peer, "\r\n\r\n");
    put(fd, text("GET /third HTTP/1.1\r\n\r\n"));
    put(peer, text("HTTP/1.1 200 OK\r\n\r\nx"));
    get(fd, "x");
    TAP_OK(quiet(peer), "only the first request of a connection is sent on");
    close(peer);
    close(fd);
}

static void test_refusals(const struct gate *g)
{
    char line[600], large[5000];
    const struct {
        const char *request, *status, *code;
    } cases[] = {
        {"CONNECT evil.example:443 HTTP/1.1\r\n\r\n", " 403 ", "host_refused"},
        {"CONNECT localhost:1 HTTP/1.1\r\n\r\n", " 403 ", "host_refused"},
        {"CONNECT 127.0.0.2:443 HTTP/1.1\r\n\r\n", " 403 ", "host_refused"},
        {"CONNECT localhost:9 HTTP/1.1\r\n\r\n", " 403 ", "address_refused"},
        {"GET http://localhost/ HTTP/1.1\r\n\r\n", " 403 ", "host_refused"},
        {"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", " 400 ", "not_proxied"},
        {"GET http://localhost/ HTTP/1.1\nHost: a\n\n", " 400 ", "bad_request"},
        {"CONNECT 0x7f.1:443 HTTP/1.1\r\n\r\n", " 400 ", "bad_host"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *answer = ask(g, text(cases[i].request));
        TAP_OK(strstr(answer, cases[i].status) && strstr(answer, cases[i].code), "%s",
               cases[i].code);
        snprintf(line, sizeof line, "\"code\":\"%s\"", cases[i].code);
        TAP_OK(LOGGED(g, "\"refused\"", line), "is logged");
    }
    memset(large, 'a', sizeof large);
    TAP_OK(strstr(ask(g, (struct amp_span){large, sizeof large}), "header_too_large") != NULL,
           "header_too_large");
    TAP_OK(LOGGED(g, "\"header_too_large\""), "is logged");
    close(dial(g->port));
    TAP_OK(LOGGED(g, "\"request_incomplete\""), "a client that asks for nothing");
}

static void test_failures(void)
{
    int dead;
    char rule[64], literal[64], request[600];
    close(listener(&dead));
    snprintf(rule, sizeof rule, "localhost:%d", dead);
    snprintf(literal, sizeof literal, "127.0.0.1:%d", dead);
    struct gate g = gate_start((const char *const[]){"--header-timeout", "100ms", "--idle-timeout",
                                                     "150ms", "--connections", "2", rule, literal,
                                                     "nowhere.invalid:443", NULL});
    TAP_OK(strstr(ask(&g, fmt(request, sizeof request, CONNECT, "127.0.0.1", dead)),
                  "connect_failed") != NULL,
           "connect_failed");
    TAP_OK(LOGGED(&g, "\"connect_failed\"", "\"address\":\"127.0.0.1\""), "is logged");
    TAP_OK(strstr(ask(&g, text("CONNECT nowhere.invalid:443 HTTP/1.1\r\n\r\n")), "name_unknown") !=
               NULL,
           "name_unknown");
    TAP_OK(LOGGED(&g, "\"name_unknown\"", "\"host\":\"nowhere.invalid\""), "is logged");
    int slow = dial(g.port);
    TAP_OK(strstr(get(slow, NULL), " 408 ") != NULL, "a client that sends nothing is answered");
    TAP_OK(LOGGED(&g, "\"refused\"", "\"header_timeout\""), "header_timeout");
    close(slow);
    int many[8], refused = 0;
    for (int i = 0; i < 8; i++)
        many[i] = dial(g.port);
    for (int i = 0; i < 8; i++) {
        refused += strstr(get(many[i], NULL), "too_many_connections") != NULL;
        close(many[i]);
    }
    TAP_OK(refused == 6, "too_many_connections: %d of 8", refused);
    TAP_OK(LOGGED(&g, "\"too_many_connections\""), "is logged");
    TAP_INT(gate_stop(&g), 0, "the gate ends with its control socket");
    close(g.log);
}

static void test_idle(void)
{
    char rule[64], name[64];
    snprintf(rule, sizeof rule, "127.0.0.1:%d", server_port);
    snprintf(name, sizeof name, "localhost:%d", server_port);
    struct hello h = hello_for("localhost");
    struct gate g = gate_start((const char *const[]){"--idle-timeout", "60ms", "--header-timeout",
                                                     "80ms", rule, name, NULL});
    int fd = tunnel(&g, "localhost", &h, 4096), peer = take(server);
    TAP_STR(get(fd, NULL), "", "an idle tunnel ends");
    TAP_OK(LOGGED(&g, "\"ended\"", "\"idle_timeout\""), "idle_timeout");
    close(peer);
    close(fd);
    char line[200];
    fd = dial(g.port);
    put(fd, fmt(line, sizeof line, CONNECT, "localhost", server_port));
    peer = take(server);
    get(fd, NULL);
    TAP_OK(LOGGED(&g, "\"refused\"", "\"hello_timeout\""), "hello_timeout");
    close(peer);
    close(fd);
    /* Open at the end. */
    fd = tunnel(&g, "localhost", &h, 4096);
    peer = take(server);
    kill(g.pid, SIGTERM);
    TAP_INT(gate_stop(&g), 0, "TERM ends it");
    TAP_OK(LOGGED(&g, "\"ended\"", "\"stopped\"") || LOGGED(&g, "\"idle_timeout\""), "stopped");
    close(peer);
    close(fd);
    close(g.log);
}

/* A client that does not read must not delay others, and its server is slowed down. */
static void test_slow_reader(const struct gate *g)
{
    struct hello h = hello_for("localhost");
    int fd = tunnel(g, "localhost", &h, 4096), peer = take(server);
    static char block[1 << 16];
    uint64_t sent = 0, got = 0;
    memset(block, 'x', sizeof block);
    for (uint64_t n = 0; n < h.n;) {
        ssize_t r = read(peer, block, sizeof block);
        if (r <= 0)
            break;
        n += (uint64_t)r;
    }
    fcntl(peer, F_SETFL, O_NONBLOCK);
    for (int idle = 0; idle < 20;) {
        ssize_t n = write(peer, block, sizeof block);
        if (n > 0) {
            sent += (uint64_t)n;
            idle = 0;
        } else {
            idle++;
            poll(NULL, 0, 5);
        }
    }
    TAP_OK(sent < 64u << 20, "a server is slowed down: %llu bytes", (unsigned long long)sent);
    TAP_OK(strstr(ask(g, text("CONNECT evil.example:443 HTTP/1.1\r\n\r\n")), " 403 ") != NULL,
           "others are served meanwhile");
    close(peer);
    ssize_t n;
    while ((n = read(fd, block, sizeof block)) > 0)
        got += (uint64_t)n;
    TAP_OK(got == sent, "no byte is lost: %llu", (unsigned long long)got);
    close(fd);
}

static void test_log_limit(void)
{
    struct gate g = gate_start((const char *const[]){"--log-bytes", "4096", "a.example:443", NULL});
    for (int i = 0; i < 40; i++) {
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        struct sockaddr_in sa = {.sin_family = AF_INET,
                                 .sin_port = htons((uint16_t)g.port),
                                 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        if (connect(fd, (struct sockaddr *)&sa, sizeof sa) == 0) {
            put(fd, text("CONNECT evil.example:443 HTTP/1.1\r\n\r\n"));
            get(fd, NULL);
        }
        close(fd);
    }
    TAP_OK(LOGGED(&g, "\"log_full\""), "the last record is log_full");
    TAP_INT(gate_stop(&g), 75, "the gate ends when its log is full");
    TAP_OK(lseek(g.log, 0, SEEK_END) <= 4096 + 300, "the log stays within its limit");
    close(g.log);
}

static void test_connections_by_control(void)
{
    struct gate g = gate_start((const char *const[]){"a.example:443", NULL});
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
        exit(1);
    control_send(g.control, pair[1]);
    close(pair[1]);
    put(pair[0], text("CONNECT evil.example:443 HTTP/1.1\r\n\r\n"));
    TAP_OK(strstr(get(pair[0], NULL), "host_refused") != NULL, "a connection by SCM_RIGHTS");
    close(pair[0]);
    int file = open("/dev/null", O_RDONLY | O_CLOEXEC);
    control_send(g.control, file);
    close(file);
    TAP_INT(gate_stop(&g), 64, "a descriptor that is not a socket ends the gate");
    close(g.log);
}

static int status_of(const char *const *args)
{
    struct gate g = gate_start(args);
    int status;
    waitpid(g.pid, &status, 0);
    close(g.control);
    close(g.log);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void test_usage(void)
{
    static const char *const wrong[][3] = {
        {"--nonsense", "1", NULL}, {"--connections", "0", NULL}, {"--connections", NULL},
        {"*:443", NULL},           {"a.example", NULL},          {"--idle-timeout", "x", NULL},
        {"--listen", "0", NULL},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        TAP_INT(status_of(wrong[i]), 64, wrong[i][0]);
}

int main(void)
{
    char rule[64], literal[64];
    signal(SIGPIPE, SIG_IGN);
    server = listener(&server_port);
    snprintf(rule, sizeof rule, "localhost:%d", server_port);
    snprintf(literal, sizeof literal, "127.0.0.1:%d", server_port);
    struct gate g = gate_start((const char *const[]){"--client", "T-2026-001", "--header-bytes",
                                                     "4096", rule, literal, "localhost:9", NULL});
    test_tunnel(&g);
    test_names(&g);
    test_http(&g);
    test_refusals(&g);
    test_slow_reader(&g);
    TAP_INT(gate_stop(&g), 0, "the gate ends");
    test_failures();
    test_idle();
    test_log_limit();
    test_connections_by_control();
    test_usage();
    return tap_done();
}
