/*
 * The head of a request to an HTTP proxy (RFC 9110, RFC 9112): "CONNECT host:port", or a request
 * with an absolute URI ("GET http://host/path"). A head that servers could read in different ways
 * is refused: line ends without CR, folded lines, spaces before a colon, two lengths, control
 * characters.
 */
#ifndef AMP_NET_REQUEST_H
#define AMP_NET_REQUEST_H

#include "net/host.h"

#define AMP_NET_FIELDS_MAX 128

struct amp_net_request {
    bool tunnel; /* CONNECT */
    struct amp_net_host host;
    size_t head;               /* bytes of the head with its empty line */
    uint64_t body;             /* bytes of the body after it */
    struct amp_span method;    /* in the caller's bytes, as is */
    struct amp_span path;      /* of a request that is not CONNECT: "/path?query" */
    struct amp_span authority; /* "host:port" in the URI */
};

/* Reads the head at the start of the bytes. 1: *out is filled; 0: the head is incomplete; -1:
 * DATAERR bad_request, bad_host, bad_port, not_proxied (no proxy request: an origin-form path, or
 * another scheme than http), host_mismatch (the field Host names another host than the URI),
 * length_required (a body with a transfer coding). */
int amp_net_request_read(struct amp_span bytes, struct amp_net_request *out, struct amp_error *err);
/* Writes the head to send to the server: the path instead of the URI, the fields without those
 * between client and proxy, and "Connection: close". bytes are those of amp_net_request_read. */
int amp_net_request_forward(struct amp_span bytes, const struct amp_net_request *r,
                            struct amp_buf *out, struct amp_error *err);

/*
 * The head of a request to this program as a server: "GET /path?query HTTP/1.1". The same rules; a
 * body needs Content-Length.
 */
struct amp_net_served {
    size_t head;            /* bytes of the head with its empty line */
    uint64_t body;          /* bytes of the body after it */
    struct amp_span method; /* these in the caller's bytes */
    struct amp_span path, query;
    struct amp_span type; /* the value of Content-Type, or empty */
};
/* 1: *out is filled; 0: the head is incomplete; -1: DATAERR bad_request, length_required. */
int amp_net_served_read(struct amp_span bytes, struct amp_net_served *out, struct amp_error *err);

/* Finds a field of a form (application/x-www-form-urlencoded) and appends its decoded value with a
 * NUL. 1: found; 0: the form has no such field; -1: DATAERR bad_form: malformed, with a NUL, or the
 * field is there twice; buffer_full. */
int amp_net_form_get(struct amp_span form, const char *name, struct amp_buf *out,
                     struct amp_error *err);

#endif
