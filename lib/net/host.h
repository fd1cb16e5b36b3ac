/*
 * Host names, ports, and the entries of an allow-list of them (SW4RM §18.5.2, EGRESS_RESTRICTED).
 *
 * An entry is HOST:PORT. HOST is a name ("api.example.com"), a pattern for all names below another
 * one ("*.example.com", any number of labels, but not "example.com" itself), an IPv4 address, or an
 * IPv6 address in brackets. PORT is a number from 1 to 65535.
 */
#ifndef AMP_NET_HOST_H
#define AMP_NET_HOST_H

#include <stdbool.h>
#include <stdint.h>

#include <amp/base/buf.h>

#define AMP_NET_NAME_MAX  254 /* the longest host name, 253 bytes, and a NUL */
#define AMP_NET_RULES_MAX 256 /* entries of a list */

/* A host and a port in one spelling: a name in lower case without a final dot, or an address as
 * inet_ntop(3) writes it, without brackets. */
struct amp_net_host {
    char name[AMP_NET_NAME_MAX];
    bool literal; /* an address */
    uint16_t port;
};

struct amp_net_rule {
    struct amp_net_host host; /* of a pattern: the part after "*." */
    bool below;               /* a pattern */
};

/* Reads HOST:PORT, or HOST alone with default_port (0: the port is required). Fails with DATAERR
 * bad_host or bad_port. Octal and short forms of addresses ("127.1") are not accepted, neither as
 * addresses nor as names. */
int amp_net_host_parse(struct amp_span text, uint16_t default_port, struct amp_net_host *out,
                       struct amp_error *err);
/* Reads an entry of a list. Fails in the same way. */
int amp_net_rule_parse(struct amp_span text, struct amp_net_rule *out, struct amp_error *err);
/* Whether one of n entries lists the host with its port. An address is listed only as itself. */
bool amp_net_rules_match(const struct amp_net_rule *rules, unsigned n,
                         const struct amp_net_host *host);

#endif
