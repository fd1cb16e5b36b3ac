/* hitl-prompt receive: answers one request of HTTP, behind CGI, inetd or socat. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <amp/base/clock.h>
#include <amp/base/num.h>
#include <amp/base/pipe.h>

#include "base/codes.h"
#include "hitl.h"
#include "people/answer/text/receive.h"

#define REQUEST_MAX ((size_t)AMP_RECEIVE_BODY_MAX + 32768)

static const char *out;
static int64_t timeout_ms = 10000;

static const struct amp_opt receive_opts[] = {
    {'o', "out", AMP_OPT_PATH, &out, "PATH",
     "write decisions to PATH (default: the filter of the same name writes them)"},
    {'t', "timeout", AMP_OPT_DURATION, &timeout_ms, "TIME",
     "the longest time for reading the request, and for writing the response", 1, 3600000},
    AMP_OPT_END,
};

/* Reads until *want bytes are there; NULL: until the request is complete. 1: complete; 0: the
 * sender stopped, or it cannot be a request; -1: too late, or a failure. */
static int request_read(struct amp_buf *in, const size_t *want, struct amp_error *err)
{
    int64_t until = amp_mono_ms() + timeout_ms, left;
    size_t n = want ? *want : 0;

    for (;;) {
        int known = want ? 1 : amp_receive_length(amp_buf_span(in), &n);
        if (known < 0)
            return 0;
        if (known > 0 && in->len >= n)
            return 1;
        struct pollfd fd = {.fd = STDIN_FILENO, .events = POLLIN};
        if ((left = until - amp_mono_ms()) <= 0)
            return amp_fail(err, AMP_TIMEDOUT, request_timeout,
                            "no complete request within %lld ms", (long long)timeout_ms);
        if (amp_poll(&fd, 1, left, &amp_stop) < 0)
            return errno == EINTR ? amp_fail(err, AMP_INTERRUPTED, interrupted, "interrupted")
                                  : amp_fail_errno(err, AMP_IOERR, "cannot wait for the request");
        if (!fd.revents)
            continue;
        switch (amp_read_more(STDIN_FILENO, in, 8192, "the request", err)) {
        case AMP_READ_FAILED:
            return amp_code_is(err->code, buffer_full) ? 0 : -1;
        case AMP_READ_END:
            return 0;
        case AMP_READ_BYTES:
        case AMP_READ_WOULD_BLOCK:
            break;
        }
    }
}

/* The response must not wait for ever for a client that does not read. */
static int response_write(struct amp_span text, struct amp_error *err)
{
    int64_t until = amp_mono_ms() + timeout_ms, left;
    int flags = fcntl(STDOUT_FILENO, F_GETFL);

    if (flags >= 0)
        fcntl(STDOUT_FILENO, F_SETFL, flags | O_NONBLOCK);
    while (text.n) {
        ssize_t n = write(STDOUT_FILENO, text.p, text.n);
        if (n >= 0) {
            text = (struct amp_span){text.p + n, text.n - (size_t)n};
            continue;
        }
        struct pollfd fd = {.fd = STDOUT_FILENO, .events = POLLOUT};
        if (errno != EAGAIN && errno != EINTR)
            return amp_fail_errno(err, AMP_IOERR, "cannot write the response");
        if ((left = until - amp_mono_ms()) <= 0)
            return amp_fail(err, AMP_TIMEDOUT, response_timeout,
                            "the client did not read the response within %lld ms",
                            (long long)timeout_ms);
        amp_poll(&fd, 1, left, NULL);
    }
    return 0;
}

/* The sender's address: of the socket, or what CGI or socat say. */
static void sender_name(char where[160])
{
    struct sockaddr_storage a;
    socklen_t len = sizeof a;
    char text[INET6_ADDRSTRLEN] = "";
    const char *said = getenv("REMOTE_ADDR");

    if (!said)
        said = getenv("SOCAT_PEERADDR");
    if (getpeername(STDIN_FILENO, (struct sockaddr *)&a, &len) == 0) {
        if (a.ss_family == AF_INET)
            inet_ntop(AF_INET, &((struct sockaddr_in *)&a)->sin_addr, text, sizeof text);
        else if (a.ss_family == AF_INET6)
            inet_ntop(AF_INET6, &((struct sockaddr_in6 *)&a)->sin6_addr, text, sizeof text);
    }
    snprintf(where, 160, "receive from %.100s", *text ? text : said ? said : "a local client");
    for (char *p = where; *p; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            *p = '?';
}

static struct amp_span variable(const char *name)
{
    return amp_span_str(getenv(name));
}

/* A request of CGI: its head is in the environment. */
static int cgi_answer(const struct amp_receive *r, struct amp_receive_response *resp,
                      struct amp_error *err)
{
    AMP_BUF struct amp_buf body = {0};
    struct amp_receive_request in = {.method = variable("REQUEST_METHOD"),
                                     .query = variable("QUERY_STRING"),
                                     .type = variable("CONTENT_TYPE")};
    int64_t length = 0;
    struct amp_span text = variable("CONTENT_LENGTH");

    amp_buf_init(&body, REQUEST_MAX);
    if (text.n && amp_num_parse(text, 0, INT64_MAX, &length, NULL) < 0)
        return amp_receive_refuse(resp, 400, err);
    if (length > AMP_RECEIVE_BODY_MAX)
        return amp_receive_refuse(resp, 413, err);
    size_t want = (size_t)length;
    int rc = request_read(&body, &want, err);
    if (rc < 0)
        return -1;
    if (rc == 0)
        return amp_receive_refuse(resp, 400, err);
    in.body = (struct amp_span){body.len ? body.data : "", want};
    return amp_receive_answer(r, &in, resp, err);
}

static int plain_answer(const struct amp_receive *r, struct amp_receive_response *resp,
                        struct amp_error *err)
{
    AMP_BUF struct amp_buf in = {0};

    amp_buf_init(&in, REQUEST_MAX);
    return request_read(&in, NULL, err) < 0 ? -1
                                            : amp_receive_bytes(r, amp_buf_span(&in), resp, err);
}

static int decisions_write(struct hitl *h, struct amp_error *err)
{
    AMP_CLOSE int fd = -1;

    if (!out)
        return 0;
    if (amp_output_open(out, AMP_OPEN_TIMEOUT_MS, -1, &amp_stop, &fd, err) < 0)
        return -1;
    return amp_decider_flush(&h->d, fd, err);
}

static int hitl_receive(struct amp_command *c, struct amp_error *err)
{
    struct hitl *h = c->own;
    char where[160];
    AMP_BUF struct amp_buf text = {0};
    struct amp_receive r = {.decider = &h->d, .where = where};
    AMP_CLEANUP(amp_receive_release) struct amp_receive_response resp = {0};
    bool cgi = getenv("GATEWAY_INTERFACE") != NULL;
    enum amp_status late = AMP_OK;

    sender_name(where);
    if (hitl_token_answers(&r.tokens, err) < 0)
        return -1;
    int rc = cgi ? cgi_answer(&r, &resp, err) : plain_answer(&r, &resp, err);
    if (rc < 0 && err->status == AMP_TIMEDOUT) {
        late = err->status;
        rc = amp_receive_refuse(&resp, 408, err);
    }
    amp_buf_init(&text, 2 * REQUEST_MAX + (1u << 20));
    if (rc < 0 || amp_receive_write(&resp, cgi, &text, err) < 0 ||
        response_write(amp_buf_span(&text), err) < 0 || decisions_write(h, err) < 0)
        return -1;
    return (int)late;
}

const struct amp_verb receive_verbs[] = {
    {"receive", "", "answer one HTTP request with an answer in it", receive_opts, hitl_receive,
     .opens = HITL_OPENS_QUESTIONS, .act = "answer escalations", .signals = true,
     .who = AMP_WHO_PERSON},
    {0},
};
