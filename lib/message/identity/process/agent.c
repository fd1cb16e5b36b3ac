/* A client of ssh-agent. Each request is answered before the next one is sent. */
#include "message/identity/process/agent.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <amp/base/clock.h>
#include <amp/base/pipe.h>

#include "base/codes.h"
#include "message/identity/wire.h"

enum {
    REQUEST_IDENTITIES = 11,
    IDENTITIES_ANSWER = 12,
    SIGN_REQUEST = 13,
    SIGN_RESPONSE = 14,
    FLAG_RSA_SHA512 = 4,
    ANSWER_MOST = 256 << 10, /* OpenSSH's limit */
    ANSWER_MS = 120000,      /* the person may have to touch the key */
};

static int agent_broken(struct amp_error *err, const char *why)
{
    return amp_fail(err, AMP_UNAVAILABLE, agent_unavailable, "ssh-agent: %s", why);
}

int identity_agent_connect(const char *socket_path, int *fd, struct amp_error *err)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    if (!socket_path || !*socket_path)
        return agent_broken(err, "SSH_AUTH_SOCK is not set");
    if (strlen(socket_path) >= sizeof to.sun_path)
        return agent_broken(err, "the path of its socket is too long");
    memcpy(to.sun_path, socket_path, strlen(socket_path));
    AMP_CLOSE int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (s < 0 || connect(s, (struct sockaddr *)&to, sizeof to) < 0)
        return amp_fail(err, AMP_UNAVAILABLE, agent_unavailable,
                        "cannot connect to ssh-agent at %s: %s", socket_path, strerror(errno));
    *fd = s;
    s = -1;
    return 0;
}

static int send_all(int fd, struct amp_span data, struct amp_error *err)
{
    while (data.n > 0) {
        ssize_t n = send(fd, data.p, data.n, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return agent_broken(err, "it closed the connection");
        data.p += n;
        data.n -= (size_t)n;
    }
    return 0;
}

/* Receives until `in` has n bytes. */
static int reply_receive(int fd, struct amp_buf *in, size_t n, int64_t until_ms,
                         struct amp_error *err)
{
    if (in->len < n && amp_buf_reserve(in, n - in->len, err) < 0)
        return -1;
    while (in->len < n) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        int64_t left = until_ms - amp_mono_ms();
        if (left <= 0)
            return agent_broken(err, "no answer within 120 s");
        if (amp_poll(&p, 1, left, NULL) < 0)
            return amp_fail(err, AMP_INTERRUPTED, interrupted, "interrupted");
        ssize_t got = recv(fd, in->data + in->len, n - in->len, MSG_DONTWAIT);
        if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
            return agent_broken(err, "it closed the connection");
        if (got > 0)
            in->len += (size_t)got;
    }
    return 0;
}

/* Sends a request of one type and gets the answer's body. */
static int agent_ask(int fd, unsigned char type, struct amp_span body, unsigned char want,
                     struct amp_buf *in, struct amp_error *err)
{
    AMP_BUF struct amp_buf out = {0};
    unsigned char head[5];
    uint32_t n;
    amp_buf_init(&out, ANSWER_MOST);
    wire_put_u32(head, (uint32_t)body.n + 1);
    head[4] = type;
    amp_buf_init(in, ANSWER_MOST + 16);
    int64_t until = amp_mono_ms() + ANSWER_MS;
    if (amp_buf_add(&out, head, sizeof head, err) < 0 ||
        amp_buf_add(&out, body.p, body.n, err) < 0 || send_all(fd, amp_buf_span(&out), err) < 0 ||
        reply_receive(fd, in, 5, until, err) < 0)
        return -1;
    struct amp_span header = {in->data, 4};
    wire_u32(&header, &n);
    if (n == 0 || n > ANSWER_MOST)
        return agent_broken(err, "the answer is malformed");
    if (reply_receive(fd, in, 4 + (size_t)n, until, err) < 0)
        return -1;
    if ((unsigned char)in->data[4] != want)
        return amp_fail(err, AMP_UNAVAILABLE, agent_refused, "ssh-agent refused the request");
    amp_buf_drop(in, 5);
    return 0;
}

int identity_agent_find(int fd, struct amp_span fingerprint, struct amp_pubkey *out,
                        struct amp_error *err)
{
    AMP_BUF struct amp_buf in = {0};
    uint32_t n;
    if (agent_ask(fd, REQUEST_IDENTITIES, AMP_SPAN(""), IDENTITIES_ANSWER, &in, err) < 0)
        return -1;
    struct amp_span rest = amp_buf_span(&in), blob, comment;
    if (!wire_u32(&rest, &n))
        return agent_broken(err, "the answer is malformed");
    for (uint32_t i = 0; i < n; i++) {
        struct amp_pubkey key;
        struct amp_error why;
        if (!wire_string(&rest, &blob) || !wire_string(&rest, &comment))
            return agent_broken(err, "the answer is malformed");
        if (amp_pubkey_from_blob(blob, &key, &why) == 0 &&
            amp_span_is(fingerprint, key.fingerprint)) {
            *out = key;
            return 0;
        }
    }
    return amp_fail(err, AMP_NO, key_not_found, "ssh-agent has no key %.*s",
                    AMP_CLIP(fingerprint, 64));
}

int identity_agent_sign(int fd, const struct amp_pubkey *key, struct amp_span data,
                        struct amp_buf *blob, struct amp_error *err)
{
    AMP_BUF struct amp_buf body = {0};
    AMP_BUF struct amp_buf in = {0};
    unsigned char flags[4];
    struct amp_span sig;
    amp_buf_init(&body, ANSWER_MOST);
    wire_put_u32(flags, !strcmp(key->type, "ssh-rsa") ? FLAG_RSA_SHA512 : 0);
    if (wire_add(&body, key->blob, key->n, err) < 0 || wire_add(&body, data.p, data.n, err) < 0 ||
        amp_buf_add(&body, flags, sizeof flags, err) < 0 ||
        agent_ask(fd, SIGN_REQUEST, amp_buf_span(&body), SIGN_RESPONSE, &in, err) < 0)
        return -1;
    struct amp_span rest = amp_buf_span(&in);
    if (!wire_string(&rest, &sig))
        return agent_broken(err, "the answer is malformed");
    return amp_buf_add(blob, sig.p, sig.n, err);
}
