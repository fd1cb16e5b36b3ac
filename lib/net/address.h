/* Which addresses belong to the public internet (the special-purpose registries of RFC 6890). */
#ifndef AMP_NET_ADDRESS_H
#define AMP_NET_ADDRESS_H

#include <netinet/in.h>
#include <sys/socket.h>

enum amp_net_kind {
    AMP_NET_PUBLIC,
    AMP_NET_UNSPECIFIED, /* 0.0.0.0/8, :: */
    AMP_NET_LOOPBACK,
    AMP_NET_PRIVATE,   /* 10/8, 172.16/12, 192.168/16, 100.64/10, fc00::/7, fec0::/10 */
    AMP_NET_LINK,      /* link-local, which includes 169.254.169.254 */
    AMP_NET_METADATA,  /* another address at which a cloud provider serves credentials */
    AMP_NET_MULTICAST, /* and broadcast */
    AMP_NET_MAPPED,    /* an IPv6 address that contains an IPv4 address, or a tunnel of one */
    AMP_NET_RESERVED,  /* documentation, benchmarks, future use, another family */
};

/* An address behind the well-known NAT64 prefix 64:ff9b::/96 has the kind of its IPv4 address. */
enum amp_net_kind amp_net_address_kind(const struct sockaddr *sa);
/* "loopback", for a log record. */
const char *amp_net_kind_name(enum amp_net_kind kind);
/* Writes the address without its port; "?" for another family. */
void amp_net_address_text(const struct sockaddr *sa, char out[INET6_ADDRSTRLEN]);

#endif
