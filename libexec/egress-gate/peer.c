/*
 * Connections: each is read up to its request, decided on, connected, and relayed.
 *
 * HEAD → RESOLVE → CONNECT → HELLO → RELAY, or from any of them → REFUSED. Nothing but the
 * handshake of TCP reaches the server before the last check: of CONNECT the name in the client's
 * first message of TLS.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/clock.h>
#include <amp/json/writer.h>

#include "base/codes.h"
#include "gate.h"
#include "net/hello.h"
#include "net/request.h"

#define LINGER_MS 2000 /* for the client to take the reason of a refusal */

/* ---- the log: a record for each decision ---- */

static int record_write(struct gate_log *log, const struct gate_record *r, struct amp_buf *line,
                        struct amp_error *err)
{
    char time[AMP_TIME_MAX], address[INET6_ADDRSTRLEN];
    struct amp_jw w;
    amp_time_format(amp_now_ms(), time);
    amp_jw_init(&w, line);
    amp_jw_open(&w, '{');
    amp_jw_member_text(&w, "time", time);
    amp_jw_member_text(&w, "tool", "egress-gate");
    amp_jw_some_str(&w, "client", amp_span_str(log->client));
    amp_jw_some_int(&w, "connection", (int64_t)r->connection);
    if (r->host) {
        amp_jw_member_text(&w, "host", r->host->name);
        amp_jw_member_int(&w, "port", r->host->port);
    }
    if (r->address) {
        amp_net_address_text(r->address, address);
        amp_jw_member_text(&w, "address", address);
    }
    amp_jw_some_str(&w, "server_name", amp_span_str(r->server_name));
    amp_jw_member_text(&w, "decision", r->decision);
    amp_jw_some_str(&w, "code", amp_span_str(r->code));
    amp_jw_some_str(&w, "what", amp_span_str(r->why));
    if (strcmp(r->decision, "ended") == 0) {
        amp_jw_member_uint(&w, "bytes_out", r->bytes_out);
        amp_jw_member_uint(&w, "bytes_in", r->bytes_in);
        amp_jw_member_int(&w, "ms", r->ms);
    }
    amp_jw_close(&w, '}');
    return amp_jw_end_line(&w, err);
}

/* Fails if the log cannot be written or too much of it is pending: then no further decision may be
 * made. */
static int record_add(struct gate_log *log, const struct gate_record *r, struct amp_error *err)
{
    AMP_BUF struct amp_buf line = {0};
    amp_buf_init(&line, 8192);
    if (log->full)
        return 0;
    if (record_write(log, r, &line, err) < 0)
        return -1;
    if (log->out.added + line.len > log->most) {
        static const struct gate_record full = {.decision = "refused",
                                                .code = AMP_CODE(log_full),
                                                .why = "no further connections are made"};
        amp_buf_reset(&line);
        log->full = true;
        if (record_write(log, &full, &line, err) < 0)
            return -1;
    }
    if (amp_outq_add(&log->out, amp_buf_span(&line), err) < 0)
        return -1;
    return amp_outq_flush(&log->out, err) < 0 ? -1 : 0;
}

/* ---- connections ---- */

enum stage {
    STAGE_HEAD,    /* reads the request */
    STAGE_RESOLVE, /* waits for the addresses of the host */
    STAGE_CONNECT, /* waits for the server */
    STAGE_HELLO,   /* reads the first message of TLS */
    STAGE_RELAY,   /* copies in both directions */
    STAGE_REFUSED, /* writes the reason, then waits for the client's end */
    STAGE_OVER,    /* is freed after this turn */
};

struct peer {
    struct peer *next;
    uint64_t connection;
    enum stage stage;
    int client, server;
    struct pollfd *at_client, *at_server; /* of this turn */
    struct way out, in;                   /* to the server, to the client */
    struct amp_net_request request;
    struct amp_net_name name;
    struct gate_address address[GATE_ADDRESSES];
    unsigned n_addresses, next_address;
    bool known;                 /* the request was read: its host is valid */
    int64_t start_ms, until_ms; /* until_ms: the limit of its stage */
    int64_t connect_until_ms;   /* for all addresses together */
};

static const struct sockaddr *peer_address(const struct peer *p)
{
    return p->next_address ? (const struct sockaddr *)&p->address[p->next_address - 1].sa : NULL;
}

static int peer_log(struct gate *g, struct peer *p, const char *decision, const char *code,
                    const char *why, struct amp_error *err)
{
    const struct gate_record r = {
        .decision = decision,
        .code = code,
        .why = why,
        .connection = p->connection,
        .host = p->known ? &p->request.host : NULL,
        .address = peer_address(p),
        .server_name = p->name.name,
        .bytes_out = p->out.bytes,
        .bytes_in = p->in.bytes,
        .ms = amp_mono_ms() - p->start_ms,
    };
    return record_add(&g->log, &r, err);
}

static void peer_close(struct peer *p)
{
    if (p->client >= 0)
        close(p->client);
    if (p->server >= 0)
        close(p->server);
    p->client = p->server = -1;
    p->stage = STAGE_OVER;
}

static void peer_free(struct peer *p)
{
    amp_buf_release(&p->out.buf);
    amp_buf_release(&p->in.buf);
    free(p);
}

/* Ends a connection, also one that ends before a decision. */
static int peer_end(struct gate *g, struct peer *p, const char *code, struct amp_error *err)
{
    peer_close(p);
    return peer_log(g, p, "ended", code, NULL, err);
}

/* Refuses: a record, and the answer to the client. Before the request was answered this is a
 * response of HTTP, after it an alert of TLS ("unrecognized_name"). */
static int peer_refuse(struct gate *g, struct peer *p, int status, const char *phrase,
                       const struct amp_error *why, struct amp_error *err)
{
    static const char alert[] = {0x15, 3, 3, 0, 2, 2, 112};
    int rc;
    if (p->server >= 0)
        close(p->server);
    p->server = -1;
    if (p->stage == STAGE_HELLO)
        rc = amp_buf_add(&p->in.buf, alert, sizeof alert, err);
    else
        rc = amp_buf_fmt(&p->in.buf, err,
                         "HTTP/1.1 %d %s\r\nContent-Type: text/plain; charset=utf-8\r\n"
                         "Content-Length: %zu\r\nConnection: close\r\n\r\n"
                         "egress-gate: %s: %s\n",
                         status, phrase,
                         strlen("egress-gate: : \n") + strlen(why->code) + strlen(why->what),
                         why->code, why->what);
    if (rc < 0)
        return -1;
    p->stage = STAGE_REFUSED;
    p->until_ms = amp_mono_ms() + LINGER_MS;
    return peer_log(g, p, "refused", why->code, why->what, err);
}

static int peer_forbid(struct gate *g, struct peer *p, const struct amp_error *why,
                       struct amp_error *err)
{
    return peer_refuse(g, p, 403, "Forbidden", why, err);
}

/* ---- connecting ---- */

static bool address_is_own(const struct gate_address *a)
{
    /* The kernel chooses the same address as source for a destination on this machine. */
    AMP_CLOSE int fd = socket(a->sa.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct sockaddr_storage me = {0};
    socklen_t n = sizeof me;
    char ours[INET6_ADDRSTRLEN], theirs[INET6_ADDRSTRLEN];
    if (fd < 0 || connect(fd, (const struct sockaddr *)&a->sa, a->len) != 0 ||
        getsockname(fd, (struct sockaddr *)&me, &n) != 0)
        return false; /* no route: the connection fails too */
    amp_net_address_text((struct sockaddr *)&me, ours);
    amp_net_address_text((const struct sockaddr *)&a->sa, theirs);
    return strcmp(ours, theirs) == 0;
}

/* Whether the connection may go to the address: it is public and of another machine, or the list
 * has it literally with this port. */
static bool address_allowed(const struct gate *g, const struct peer *p,
                            const struct gate_address *a, struct amp_error *why)
{
    const struct sockaddr *sa = (const struct sockaddr *)&a->sa;
    enum amp_net_kind kind = amp_net_address_kind(sa);
    bool own = kind == AMP_NET_PUBLIC && address_is_own(a);
    struct amp_net_host literal = {.literal = true, .port = p->request.host.port};
    amp_net_address_text(sa, literal.name);
    if ((kind == AMP_NET_PUBLIC && !own) || amp_net_rules_match(g->rules, g->n_rules, &literal))
        return true;
    amp_fail(why, AMP_NOPERM, address_refused,
             "%s has the address %s (%s), which the list does not name with port %u",
             p->request.host.name, literal.name, own ? "of this machine" : amp_net_kind_name(kind),
             (unsigned)literal.port);
    return false;
}

/* Connects to the next address that may be used. */
static int peer_connect(struct gate *g, struct peer *p, struct amp_error *err)
{
    struct amp_error why;
    amp_fail(&why, AMP_UNAVAILABLE, connect_failed, "cannot connect to %s", p->request.host.name);
    if (p->server >= 0)
        close(p->server);
    p->server = -1;
    while (p->next_address < p->n_addresses) {
        const struct gate_address *a = &p->address[p->next_address++];
        if (!address_allowed(g, p, a, &why))
            continue;
        p->server = socket(a->sa.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (p->server < 0)
            continue;
        if (connect(p->server, (const struct sockaddr *)&a->sa, a->len) == 0 ||
            errno == EINPROGRESS) {
            int64_t now = amp_mono_ms(), rest = p->connect_until_ms - now;
            p->stage = STAGE_CONNECT;
            p->until_ms = now + rest / (p->n_addresses - p->next_address + 1);
            return 0;
        }
        close(p->server);
        p->server = -1;
    }
    if (amp_code_is(why.code, address_refused))
        return peer_forbid(g, p, &why, err);
    return peer_refuse(g, p, 502, "Bad Gateway", &why, err);
}

static int peer_request(struct gate *g, struct peer *p, struct amp_error *err)
{
    struct amp_error why;
    struct gate_answer a = {.n = 1};
    const struct amp_net_host *h = &p->request.host;
    p->known = true;
    if (!amp_net_rules_match(g->rules, g->n_rules, h)) {
        amp_fail(&why, AMP_NOPERM, host_refused, "%s:%u is not on the list of allowed hosts",
                 h->name, (unsigned)h->port);
        return peer_forbid(g, p, &why, err);
    }
    p->until_ms = p->connect_until_ms = amp_mono_ms() + g->limits.connect_ms;
    p->stage = STAGE_RESOLVE;
    if (!h->literal) {
        if (gate_resolver_ask(g->resolver, p->connection, h, &why) < 0)
            return peer_refuse(g, p, 503, "Service Unavailable", &why, err);
        return 0;
    }
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(h->port)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(h->port)};
    a.connection = p->connection;
    if (inet_pton(AF_INET, h->name, &v4.sin_addr) == 1) {
        memcpy(&a.address[0].sa, &v4, sizeof v4);
        a.address[0].len = sizeof v4;
    } else {
        inet_pton(AF_INET6, h->name, &v6.sin6_addr);
        memcpy(&a.address[0].sa, &v6, sizeof v6);
        a.address[0].len = sizeof v6;
    }
    return gate_answer(g, &a, err);
}

int gate_answer(struct gate *g, const struct gate_answer *a, struct amp_error *err)
{
    struct peer *p = g->peers;
    struct amp_error why;
    while (p && p->connection != a->connection)
        p = p->next;
    if (!p || p->stage != STAGE_RESOLVE)
        return 0; /* its client is gone */
    if (a->failed || a->n == 0) {
        amp_fail(&why, AMP_UNAVAILABLE, name_unknown, "%s: %s", p->request.host.name,
                 a->failed ? gai_strerror(a->failed) : "no address");
        return peer_refuse(g, p, 502, "Bad Gateway", &why, err);
    }
    memcpy(p->address, a->address, sizeof p->address);
    p->n_addresses = a->n;
    return peer_connect(g, p, err);
}

/* ---- the stages ---- */

static int peer_relay(struct gate *g, struct peer *p, struct amp_error *err)
{
    p->stage = STAGE_RELAY;
    p->until_ms = amp_mono_ms() + g->limits.idle_ms;
    return peer_log(g, p, "allowed", NULL, NULL, err);
}

/* The server accepted the connection. */
static int peer_connected(struct gate *g, struct peer *p, struct amp_error *err)
{
    static const char established[] = "HTTP/1.1 200 Connection established\r\n\r\n";
    AMP_BUF struct amp_buf head = {0};
    if (p->request.tunnel) {
        amp_buf_drop(&p->out.buf, p->request.head);
        p->stage = STAGE_HELLO;
        p->until_ms = amp_mono_ms() + g->limits.header_ms;
        return amp_buf_str(&p->in.buf, established, err);
    }
    /* The head may become longer: a full buffer of a body after it must have room, too. */
    amp_buf_init(&head, 2 * p->out.buf.max);
    struct amp_span bytes = amp_buf_span(&p->out.buf);
    struct amp_span body = {bytes.p + p->request.head, bytes.n - p->request.head};
    if (body.n > p->request.body) /* a second request; the server would take it for ours */
        body.n = (size_t)p->request.body;
    p->out.left = p->request.body - body.n;
    if (amp_net_request_forward(bytes, &p->request, &head, err) < 0 ||
        amp_buf_add(&head, body.p, body.n, err) < 0)
        return -1;
    amp_buf_release(&p->out.buf);
    p->out.buf = head;
    head = (struct amp_buf){0};
    return peer_relay(g, p, err);
}

static int head_work(struct gate *g, struct peer *p, struct amp_error *err)
{
    struct amp_error why;
    struct amp_span bytes = amp_buf_span(&p->out.buf);
    size_t most = (size_t)g->limits.header_bytes;
    int rc = amp_net_request_read(bytes, &p->request, &why);
    if (rc < 0)
        return peer_refuse(g, p, 400, "Bad Request", &why, err);
    if (rc > 0 ? p->request.head > most : bytes.n >= most) {
        amp_fail(&why, AMP_DATAERR, header_too_large, "the request has more than %zu bytes", most);
        return peer_refuse(g, p, 431, "Request Header Fields Too Large", &why, err);
    }
    if (rc > 0)
        return peer_request(g, p, err);
    return p->out.ended ? peer_end(g, p, AMP_CODE(request_incomplete), err) : 0;
}

static int hello_work(struct gate *g, struct peer *p, struct amp_error *err)
{
    struct amp_error why;
    const char *host = p->request.host.name;
    enum amp_net_hello r = amp_net_hello_read(amp_buf_span(&p->out.buf), &p->name, &why);
    if (r == AMP_NET_HELLO_MORE && p->out.buf.len < p->out.buf.max)
        return p->out.ended ? peer_end(g, p, AMP_CODE(hello_incomplete), err) : 0;
    if (r == AMP_NET_HELLO_MORE)
        amp_fail(&why, AMP_DATAERR, hello_too_large, "the client hello has more than %zu bytes",
                 p->out.buf.max);
    if (r != AMP_NET_HELLO_DONE)
        return peer_forbid(g, p, &why, err);
    if (p->name.encrypted)
        amp_fail(&why, AMP_NOPERM, server_name_hidden,
                 "the client hello is encrypted: it may be for another host than %s", host);
    else if (!p->name.name[0] && !p->request.host.literal)
        amp_fail(&why, AMP_NOPERM, server_name_missing, "the client hello names no server");
    else if (p->name.name[0] && strcmp(p->name.name, host) != 0)
        amp_fail(&why, AMP_NOPERM, server_name_mismatch, "the client hello is for %s, not %s",
                 p->name.name, host);
    else
        return peer_relay(g, p, err);
    return peer_forbid(g, p, &why, err);
}

/* ---- bytes ---- */

static int relay_work(struct gate *g, struct peer *p, struct amp_error *err)
{
    uint64_t before = p->out.bytes + p->in.bytes;
    bool whole = way_write(&p->out, p->server) && way_write(&p->in, p->client);
    if (p->out.bytes + p->in.bytes != before)
        p->until_ms = amp_mono_ms() + g->limits.idle_ms;
    if (!whole)
        return peer_end(g, p, AMP_CODE(reset), err);
    /* After a response with its end nothing can follow on a request with a length. */
    bool over = p->in.shut && (p->out.shut || !p->request.tunnel);
    return over ? peer_end(g, p, AMP_CODE(closed), err) : 0;
}

static void refused_work(struct peer *p)
{
    p->in.ended = true;
    if (!way_write(&p->in, p->client) || (p->in.shut && p->out.ended))
        peer_close(p);
    /* The client's further bytes are discarded, so that it can read the reason. */
    p->out.at = p->out.buf.len;
}

static int peer_late(struct gate *g, struct peer *p, struct amp_error *err)
{
    struct amp_error why;
    switch (p->stage) {
    case STAGE_HEAD:
        amp_fail(&why, AMP_TIMEDOUT, header_timeout, "no complete request within %lld ms",
                 (long long)g->limits.header_ms);
        return peer_refuse(g, p, 408, "Request Timeout", &why, err);
    case STAGE_HELLO:
        amp_fail(&why, AMP_TIMEDOUT, hello_timeout, "no client hello within %lld ms",
                 (long long)g->limits.header_ms);
        return peer_forbid(g, p, &why, err);
    case STAGE_CONNECT:
        if (p->next_address < p->n_addresses && amp_mono_ms() < p->connect_until_ms)
            return peer_connect(g, p, err);
        __attribute__((fallthrough));
    case STAGE_RESOLVE:
        amp_fail(&why, AMP_TIMEDOUT, connect_timeout, "%s: no connection within %lld ms",
                 p->request.host.name, (long long)g->limits.connect_ms);
        return peer_refuse(g, p, 504, "Gateway Timeout", &why, err);
    case STAGE_RELAY:
        return peer_end(g, p, AMP_CODE(idle_timeout), err);
    case STAGE_REFUSED:
    case STAGE_OVER:
        peer_close(p);
        break;
    }
    return 0;
}

static int server_look(struct gate *g, struct peer *p, struct amp_error *err)
{
    int failed = 0;
    socklen_t n = sizeof failed;
    if (getsockopt(p->server, SOL_SOCKET, SO_ERROR, &failed, &n) < 0 || failed)
        return peer_connect(g, p, err); /* the next address */
    return peer_connected(g, p, err);
}

static int peer_work(struct gate *g, struct peer *p, struct amp_error *err)
{
    const short in = POLLIN | POLLHUP | POLLERR;
    short client = p->at_client ? p->at_client->revents : 0;
    short server = p->at_server ? p->at_server->revents : 0;
    p->at_client = p->at_server = NULL;
    if ((client & in) && !way_read(&p->out, p->client)) {
        if (p->stage == STAGE_REFUSED) {
            peer_close(p);
            return 0;
        }
        return peer_end(g, p, AMP_CODE(reset), err);
    }
    if (p->stage == STAGE_RELAY && (server & in) && !way_read(&p->in, p->server))
        return peer_end(g, p, AMP_CODE(reset), err);
    if (p->stage == STAGE_CONNECT && (server & (POLLOUT | POLLHUP | POLLERR)) &&
        server_look(g, p, err) < 0)
        return -1;
    if (p->stage == STAGE_HEAD && head_work(g, p, err) < 0)
        return -1;
    if (p->stage == STAGE_HELLO && hello_work(g, p, err) < 0)
        return -1;
    if (p->stage == STAGE_HELLO && !way_write(&p->in, p->client))
        return peer_end(g, p, AMP_CODE(reset), err);
    if (p->stage == STAGE_RELAY && relay_work(g, p, err) < 0)
        return -1;
    if (p->stage == STAGE_REFUSED)
        refused_work(p);
    if (p->stage != STAGE_OVER && amp_mono_ms() >= p->until_ms)
        return peer_late(g, p, err);
    return 0;
}

/* ---- all of them ---- */

/* Refuses a connection past the limit. */
static int peer_turn_away(struct gate *g, struct peer *p, struct amp_error *err)
{
    struct amp_error why;
    amp_fail(&why, AMP_TEMPFAIL, too_many_connections, "%lld connections are open (the limit)",
             (long long)g->limits.connections);
    return peer_refuse(g, p, 503, "Service Unavailable", &why, err);
}

int gate_accept(struct gate *g, int fd, struct amp_error *err)
{
    struct peer *p = calloc(1, sizeof *p);
    if (!p) {
        close(fd);
        return amp_fail_memory(err);
    }
    p->client = fd;
    p->server = -1;
    p->connection = ++g->connections;
    p->start_ms = amp_mono_ms();
    p->until_ms = p->start_ms + g->limits.header_ms;
    way_init(&p->out);
    way_init(&p->in);
    bool many = (int64_t)g->n_peers >= g->limits.connections;
    int rc = many ? peer_turn_away(g, p, err) : 0;
    if ((int64_t)g->n_peers >= g->limits.connections + GATE_SPARE) {
        peer_close(p);
        peer_free(p);
        return rc;
    }
    p->next = g->peers;
    g->peers = p;
    g->n_peers++;
    return rc;
}

static short client_events(const struct peer *p)
{
    short events = way_pending(&p->in) ? POLLOUT : 0;
    bool reads = p->stage == STAGE_RELAY ? way_has_room(&p->out)
                                         : !p->out.ended && p->out.buf.len < p->out.buf.max;
    return (short)(events | (reads || p->stage == STAGE_REFUSED ? POLLIN : 0));
}

static short server_events(const struct peer *p)
{
    if (p->stage == STAGE_CONNECT)
        return POLLOUT;
    if (p->stage != STAGE_RELAY)
        return 0; /* a server of TLS does not speak first */
    return (short)((way_pending(&p->out) ? POLLOUT : 0) | (way_has_room(&p->in) ? POLLIN : 0));
}

void gate_watch(struct gate *g, struct amp_loop *turn)
{
    int64_t now = amp_mono_ms();
    for (struct peer *p = g->peers; p; p = p->next) {
        /* poll reports the end of a broken connection also if no event is asked for; a client that
         * is gone while its name is looked up is noticed later. */
        short events = client_events(p);
        p->at_client = amp_loop_add(turn, events ? p->client : -1, events);
        events = server_events(p);
        p->at_server = amp_loop_add(turn, events ? p->server : -1, events);
        int64_t left = p->until_ms - now;
        amp_loop_within(turn, left < 0 ? 0 : left);
    }
}

int gate_work(struct gate *g, struct amp_error *err)
{
    for (struct peer *p = g->peers; p; p = p->next)
        if (p->stage != STAGE_OVER && peer_work(g, p, err) < 0)
            return -1;
    for (struct peer **at = &g->peers; *at;) {
        struct peer *p = *at;
        if (p->stage != STAGE_OVER) {
            at = &p->next;
            continue;
        }
        *at = p->next;
        g->n_peers--;
        peer_free(p);
    }
    return 0;
}

void gate_end(struct gate *g)
{
    struct amp_error err;
    while (g->peers) {
        struct peer *p = g->peers;
        g->peers = p->next;
        if (p->stage != STAGE_REFUSED && p->stage != STAGE_OVER)
            peer_end(g, p, AMP_CODE(stopped), &err);
        peer_close(p);
        peer_free(p);
    }
    g->n_peers = 0;
}
