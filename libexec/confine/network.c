/* The network of the sandbox: its loopback interface, and the socket through which the gate of
 * EGRESS_RESTRICTED is reached. */
#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "confine.h"

#define GATE_PORT 3128

void network_up(const struct plan *p)
{
    struct ifreq lo = {.ifr_name = "lo"};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || ioctl(fd, SIOCGIFFLAGS, &lo) < 0)
        give_up_sys(p, "cannot find the loopback interface");
    lo.ifr_flags = (short)(lo.ifr_flags | IFF_UP);
    if (ioctl(fd, SIOCSIFFLAGS, &lo) < 0)
        give_up_sys(p, "cannot start the loopback interface");
    close(fd);
}

static void socket_send(const struct plan *p, int socket)
{
    char byte = 'L';
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct iovec data = {&byte, 1};
    struct msghdr m = {.msg_iov = &data,
                       .msg_iovlen = 1,
                       .msg_control = control.room,
                       .msg_controllen = sizeof control.room};
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(c), &socket, sizeof socket);
    if (sendmsg(p->gate_fd, &m, MSG_NOSIGNAL) != 1)
        give_up_sys(p, "cannot pass the socket to the gate");
}

void network_listen(struct plan *p)
{
    /* A namespace of its own has every port free; on the host any free one is taken. */
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                             .sin_port = htons(p->namespaces ? GATE_PORT : 0)};
    socklen_t n = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof at) < 0 || listen(fd, 128) < 0 ||
        getsockname(fd, (struct sockaddr *)&at, &n) < 0)
        give_up_sys(p, "cannot make the socket of the gate");
    socket_send(p, fd);
    close(fd);
    p->port = ntohs(at.sin_port);
}
