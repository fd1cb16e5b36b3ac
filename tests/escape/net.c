/* Attempts to reach the network, with the policy DENY_ALL. */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <linux/netlink.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include "escape.h"

#define QUESTION "?"

static int talk(int family, int type, int protocol, int port, int flags, char *proof)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6,
                              .sin6_port = htons((uint16_t)port),
                              .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    const struct sockaddr *sa = family == AF_INET ? (struct sockaddr *)&v4 : (struct sockaddr *)&v6;
    socklen_t n = family == AF_INET ? sizeof v4 : sizeof v6;
    struct timeval limit = {0, 300000};
    int fd = socket(family, type | SOCK_CLOEXEC, protocol);
    if (fd < 0)
        return -errno;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    int rc = 0;
    if (flags ? sendto(fd, QUESTION, 1, flags, sa, n) < 0
              : connect(fd, sa, n) != 0 || send(fd, QUESTION, 1, MSG_NOSIGNAL) < 0)
        rc = -errno;
    if (rc == 0 && recv(fd, proof, PROOF_MAX - 1, 0) <= 0)
        rc = errno ? -errno : -EIO;
    close(fd);
    return rc;
}

static int tcp(const struct world *w, char *proof)
{
    return talk(AF_INET, SOCK_STREAM, 0, w->tcp, 0, proof);
}

static int tcp6(const struct world *w, char *proof)
{
    return talk(AF_INET6, SOCK_STREAM, 0, w->tcp6, 0, proof);
}

static int tcp_mapped(const struct world *w, char *proof)
{
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)w->tcp)};
    inet_pton(AF_INET6, "::ffff:127.0.0.1", &v6.sin6_addr);
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    int rc = connect(fd, (struct sockaddr *)&v6, sizeof v6) == 0 ? 0 : -errno;
    if (rc == 0 && (write(fd, QUESTION, 1) < 0 || read(fd, proof, PROOF_MAX - 1) <= 0))
        rc = -EIO;
    close(fd);
    return rc;
}

static int fast_open(const struct world *w, char *proof)
{
    return talk(AF_INET, SOCK_STREAM, 0, w->tcp, MSG_FASTOPEN, proof);
}

static int multipath(const struct world *w, char *proof)
{
    return talk(AF_INET, SOCK_STREAM, 262, w->tcp, 0, proof);
}

static int udp(const struct world *w, char *proof)
{
    return talk(AF_INET, SOCK_DGRAM, 0, w->udp, 0, proof);
}

static int udp6(const struct world *w, char *proof)
{
    return talk(AF_INET6, SOCK_DGRAM, 0, w->udp, 0, proof);
}

static int udp_unconnected(const struct world *w, char *proof)
{
    return talk(AF_INET, SOCK_DGRAM, 0, w->udp, MSG_NOSIGNAL, proof);
}

/* A question of DNS, which smuggles data out in the name. */
static int dns(const struct world *w, char *proof)
{
    static const char query[] = "\x12\x34\1\0\0\1\0\0\0\0\0\0\6secret\7example\0\0\1\0\1";
    struct sockaddr_in sa = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)w->udp),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct timeval limit = {0, 300000};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    int rc = 0;
    if (sendto(fd, query, sizeof query - 1, 0, (struct sockaddr *)&sa, sizeof sa) < 0 ||
        recv(fd, proof, PROOF_MAX - 1, 0) <= 0)
        rc = -errno;
    close(fd);
    return rc;
}

static int just_socket(int family, int type, int protocol)
{
    int fd = socket(family, type | SOCK_CLOEXEC, protocol);
    if (fd < 0)
        return -errno;
    close(fd);
    return 0;
}

static int raw(const struct world *w, char *proof)
{
    (void)w;
    (void)proof;
    return just_socket(AF_INET, SOCK_RAW, IPPROTO_ICMP);
}

static int raw6(const struct world *w, char *proof)
{
    (void)w;
    (void)proof;
    return just_socket(AF_INET6, SOCK_RAW, IPPROTO_RAW);
}

static int packet(const struct world *w, char *proof)
{
    (void)w;
    (void)proof;
    return just_socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL));
}

static int vsock(const struct world *w, char *proof)
{
    (void)w;
    (void)proof;
    return just_socket(AF_VSOCK, SOCK_STREAM, 0);
}

static int crypto(const struct world *w, char *proof)
{
    (void)w;
    (void)proof;
    return just_socket(AF_ALG, SOCK_SEQPACKET, 0);
}

static int uevents(const struct world *w, char *proof)
{
    (void)w;
    (void)proof;
    return just_socket(AF_NETLINK, SOCK_RAW, NETLINK_KOBJECT_UEVENT);
}

/* Whether it sees the interfaces of the host. */
static int interfaces(const struct world *w, char *proof)
{
    struct if_nameindex *all = if_nameindex();
    int rc = all ? -ENOENT : -errno;
    (void)w;
    (void)proof;
    for (struct if_nameindex *i = all; i && i->if_name; i++)
        if (strcmp(i->if_name, "lo") != 0)
            rc = 0;
    if (all)
        if_freenameindex(all);
    return rc;
}

/* The world tries to connect to this port all the time. */
static int listen_for(const struct world *w, char *proof)
{
    struct sockaddr_in sa = {.sin_family = AF_INET, .sin_port = htons((uint16_t)(w->tcp + 1))};
    int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), rc = 0;
    if (fd < 0)
        return -errno;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    struct pollfd p = {fd, POLLIN, 0};
    if (bind(fd, (struct sockaddr *)&sa, sizeof sa) != 0 || listen(fd, 5) != 0)
        rc = -errno;
    else if (poll(&p, 1, 400) != 1)
        rc = -ETIMEDOUT;
    int peer = rc == 0 ? accept(fd, NULL, NULL) : -1;
    if (peer >= 0 && read(peer, proof, PROOF_MAX - 1) <= 0)
        rc = -EIO;
    if (peer >= 0)
        close(peer);
    close(fd);
    return rc;
}

const struct attempt net_attempts[] = {
    {"tcp", "a server on the loopback interface", tcp, NULL, BOTH, true},
    {"tcp6", "a server by IPv6", tcp6, NULL, BOTH, true},
    {"tcp_mapped", "a server by a mapped address", tcp_mapped, NULL, BOTH, true},
    {"fast_open", "TCP Fast Open", fast_open, NULL, BOTH, true},
    {"multipath", "MPTCP", multipath, NULL, BOTH, true},
    {"udp", "a server by UDP", udp, NULL, BOTH, true},
    {"udp6", "a server by UDP and IPv6", udp6, NULL, BOTH, true},
    {"udp_unconnected", "UDP without connect", udp_unconnected, NULL, BOTH, true},
    {"dns", "a question of DNS", dns, NULL, BOTH, true},
    {"raw", "a raw socket", raw, NULL, BOTH, false},
    {"raw6", "a raw socket of IPv6", raw6, NULL, BOTH, false},
    {"packet", "a packet socket", packet, NULL, BOTH, false},
    {"vsock", "a socket to the hypervisor", vsock, NULL, BOTH, false},
    {"crypto", "a socket to the kernel's ciphers", crypto, NULL, BOTH, false},
    {"uevents", "events of devices by netlink", uevents, NULL, BOTH, false},
    {"interfaces", "the host's interfaces by netlink", interfaces, NULL, BOTH, false},
    {"listen", "an inbound connection", listen_for, NULL, BOTH, true},
    {0},
};
