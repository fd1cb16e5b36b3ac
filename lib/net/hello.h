/* The server name in the first message of a TLS client (RFC 8446 §4.1.2, RFC 6066 §3). */
#ifndef AMP_NET_HELLO_H
#define AMP_NET_HELLO_H

#include "net/host.h"

#define AMP_NET_HELLO_MAX (64u << 10) /* bytes of records that are examined */

enum amp_net_hello {
    AMP_NET_HELLO_BAD = -1, /* err is filled: bad_hello, not_tls, hello_too_large */
    AMP_NET_HELLO_MORE,     /* the message is incomplete */
    AMP_NET_HELLO_DONE,
};

struct amp_net_name {
    char name[AMP_NET_NAME_MAX]; /* lower case; empty: the client sent none */
    bool encrypted;              /* with an encrypted client hello: the name is the outer one */
};

/* Reads the message at the start of the bytes, which may be in several records. Several names, an
 * extension that occurs twice, a name that is not a host name and lengths that disagree are
 * bad_hello: servers differ in what they make of them. */
enum amp_net_hello amp_net_hello_read(struct amp_span bytes, struct amp_net_name *out,
                                      struct amp_error *err);

#endif
