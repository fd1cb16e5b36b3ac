/* The parts of the gate: the log, the resolver, the connections. */
#ifndef EGRESS_GATE_GATE_H
#define EGRESS_GATE_GATE_H

#include <netinet/in.h>
#include <sys/socket.h>

#include <amp/base/pipe.h>

#include "base/loop.h"
#include "net/address.h"
#include "net/host.h"

#define GATE_ADDRESSES 8  /* addresses of a name that are tried */
#define GATE_SPARE     16 /* connections past the limit that get a reply with the reason */

struct gate_limits {
    int64_t connections, header_bytes;
    int64_t header_ms;  /* for the request, and for the first message of TLS */
    int64_t connect_ms; /* for the name and the connection */
    int64_t idle_ms;    /* without a byte in either direction */
    int64_t log_bytes;
};

/* ---- the log ---- */

struct gate_log {
    struct amp_outq out;
    const char *client;
    uint64_t most; /* bytes */
    bool full;     /* the last record says so; the gate ends */
};

struct gate_record {
    const char *decision; /* "allowed", "refused", "ended" */
    const char *code;     /* why, unless allowed */
    const char *why;      /* a sentence for people; may be NULL */
    uint64_t connection;
    const struct amp_net_host *host; /* NULL: not known */
    const struct sockaddr *address;  /* NULL: none was chosen */
    const char *server_name;         /* of the client hello; NULL or empty: none */
    uint64_t bytes_out, bytes_in;    /* of "ended" */
    int64_t ms;                      /* of "ended" */
};

/* ---- the resolver: getaddrinfo(3) in threads ---- */

struct gate_address {
    struct sockaddr_storage sa;
    socklen_t len;
};

struct gate_answer {
    uint64_t connection;
    int failed; /* EAI_… or 0 */
    unsigned n;
    struct gate_address address[GATE_ADDRESSES];
};

struct gate_resolver;
int gate_resolver_new(struct gate_resolver **out, struct amp_error *err);
/* Readable when an answer is there. */
int gate_resolver_fd(const struct gate_resolver *r);
/* Asks for the addresses of a name. TEMPFAIL resolver_busy past the limit of open questions. */
int gate_resolver_ask(struct gate_resolver *r, uint64_t connection, const struct amp_net_host *host,
                      struct amp_error *err);
/* Takes the next answer; false: none is there. */
bool gate_resolver_next(struct gate_resolver *r, struct gate_answer *out);

/* ---- bytes on their way in one direction ---- */

struct way {
    struct amp_buf buf;
    size_t at;      /* written so far */
    uint64_t bytes; /* written in all */
    uint64_t left;  /* may still be read: a body with its length; else UINT64_MAX */
    bool ended;     /* its reader saw the end */
    bool shut;      /* the end was passed on */
};
void way_init(struct way *w);
size_t way_pending(const struct way *w);
/* Whether more may be read. */
bool way_has_room(const struct way *w);
/* Reads what is there, at most to the size of the buffer. false: the connection is broken. */
bool way_read(struct way *w, int fd);
/* Writes what the receiver takes, and passes the end on. false: the connection is broken. */
bool way_write(struct way *w, int fd);

/* ---- connections ---- */

struct gate {
    struct gate_limits limits;
    struct amp_net_rule rules[AMP_NET_RULES_MAX];
    unsigned n_rules;
    struct gate_log log;
    struct gate_resolver *resolver;
    struct peer *peers; /* a list */
    unsigned n_peers;
    uint64_t connections; /* so far: the number of the newest */
};

/* Takes over a connected socket. */
int gate_accept(struct gate *g, int fd, struct amp_error *err);
/* Adds the descriptors and the nearest limit of all connections to a turn: 2 places for each of
 * limits.connections + GATE_SPARE connections at most. */
void gate_watch(struct gate *g, struct amp_loop *turn);
/* Does what is possible without waiting after the turn. Fails only if the log fails or memory is
 * short. */
int gate_work(struct gate *g, struct amp_error *err);
/* Gives a connection the addresses of its host. */
int gate_answer(struct gate *g, const struct gate_answer *a, struct amp_error *err);
/* Closes all connections, each with a record with the code "stopped". */
void gate_end(struct gate *g);

#endif
