/* What is outside of the confinement: a process with a secret, servers, and a terminal. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/prctl.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>

#include "escape.h"

static char secret[1024]; /* in the memory of this process */
static const char *signals_path;

static void on_signal(int sig)
{
    const char *name = sig == SIGUSR1 ? "USR1\n" : sig == SIGUSR2 ? "USR2\n" : "URG\n";
    int fd = open(signals_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    ssize_t n = write(fd, name, strlen(name));
    (void)n;
    close(fd);
}

static int must(int fd, const char *what)
{
    if (fd < 0) {
        perror(what);
        exit(1);
    }
    return fd;
}

static int unix_server(const char *path, bool abstract, int type)
{
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    size_t n = strlen(path);
    memcpy(sa.sun_path + abstract, path, n);
    int fd = must(socket(AF_UNIX, type | SOCK_CLOEXEC, 0), "socket");
    must(bind(fd, (struct sockaddr *)&sa,
              (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n + 1)),
         path);
    if (type == SOCK_STREAM)
        must(listen(fd, 20), "listen");
    return fd;
}

static int inet_server(int family, int type, int *port)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)*port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6,
                              .sin6_port = htons((uint16_t)*port),
                              .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    struct sockaddr *sa = family == AF_INET ? (struct sockaddr *)&v4 : (struct sockaddr *)&v6;
    socklen_t n = family == AF_INET ? sizeof v4 : sizeof v6;
    int on = 5, fd = socket(family, type | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, sa, n) != 0 || (type == SOCK_STREAM && listen(fd, 20) != 0)) {
        if (fd >= 0)
            close(fd);
        return -1; /* no IPv6 here */
    }
    if (type == SOCK_STREAM)
        setsockopt(fd, IPPROTO_TCP, 23, &on, sizeof on); /* TCP_FASTOPEN */
    getsockname(fd, sa, &n);
    *port = ntohs(family == AF_INET ? v4.sin_port : v6.sin6_port);
    return fd;
}

static void disk_find(const char *tree, struct world *w)
{
    char line[256], name[64];
    unsigned major, minor;
    FILE *f = fopen("/proc/partitions", "re");
    while (f && fgets(line, sizeof line, f)) {
        char path[100];
        struct stat st;
        if (sscanf(line, "%u %u %*u %63s", &major, &minor, name) != 3 || major > 255 || minor > 255)
            continue;
        snprintf(path, sizeof path, "/dev/%s", name);
        if (stat(path, &st) != 0 || !S_ISBLK(st.st_mode) || strncmp(name, "loop", 4) == 0 ||
            strncmp(name, "zram", 4) == 0)
            continue;
        w->dev = (int)(major << 8 | minor);
        spill(at(tree, ".device"), name);
        break;
    }
    if (f)
        fclose(f);
}

static void handle_write(const char *dir, const char *tree)
{
    union {
        struct file_handle head;
        char room[sizeof(struct file_handle) + 128];
    } h = {.head.handle_bytes = 128};
    int mount;
    char hex[400];
    if (name_to_handle_at(AT_FDCWD, at(dir, "secret"), &h.head, &mount, 0) != 0)
        return;
    int n = snprintf(hex, sizeof hex, "%d", h.head.handle_type);
    for (unsigned i = 0; i < h.head.handle_bytes && n < 380; i++)
        n += snprintf(hex + n, sizeof hex - (size_t)n, " %02x", h.head.f_handle[i]);
    spill(at(tree, ".handle"), hex);
}

static void shared_files(const struct world *w)
{
    char path[200];
    snprintf(path, sizeof path, "/dev/shm/%s", w->abstract);
    spill(path, secret);
    snprintf(path, sizeof path, "/tmp/%s", w->abstract);
    spill(path, secret);
}

static void shared_remove(const struct world *w)
{
    char path[200];
    snprintf(path, sizeof path, "/dev/shm/%s", w->abstract);
    unlink(path);
    snprintf(path, sizeof path, "/tmp/%s", w->abstract);
    unlink(path);
    if (w->shm >= 0)
        shmctl(w->shm, IPC_RMID, NULL);
    long key = syscall(SYS_keyctl, 10, -4, "user", w->abstract, 0);
    if (key > 0)
        syscall(SYS_keyctl, 9, key, -4);
}

static void answer_stream(int server)
{
    char byte;
    struct timeval limit = {1, 0};
    int fd = accept4(server, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0)
        return;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    if (read(fd, &byte, 1) == 1)
        send(fd, secret, strlen(secret), MSG_NOSIGNAL);
    close(fd);
}

static void answer_datagram(int server)
{
    struct sockaddr_storage from;
    socklen_t n = sizeof from;
    char buf[600];
    if (recvfrom(server, buf, sizeof buf, MSG_DONTWAIT, (struct sockaddr *)&from, &n) > 0)
        sendto(server, secret, strlen(secret), MSG_DONTWAIT, (struct sockaddr *)&from, n);
}

static void copy_to(int from, const char *path)
{
    char buf[600];
    ssize_t n = read(from, buf, sizeof buf);
    int fd = n > 0 ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644) : -1;
    if (fd >= 0 && write(fd, buf, (size_t)n) < 0)
        perror(path);
    if (fd >= 0)
        close(fd);
}

/* Sends the secret to whoever listens on the port after that of the server. */
static void knock(int port)
{
    struct sockaddr_in sa = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)(port + 1)),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&sa, sizeof sa) == 0)
        send(fd, secret, strlen(secret), MSG_NOSIGNAL);
    if (fd >= 0)
        close(fd);
}

static void facts_write(const struct world *w)
{
    char text[800];
    snprintf(text, sizeof text, "%s %s %d %d %d %lu %d %d %d %d %d\n", w->dir, w->abstract, w->pid,
             w->fd, w->fifo_fd, w->addr, w->tcp, w->udp, w->tcp6, w->shm, w->dev);
    unlink(at(w->tree, ".facts"));
    if (spill(at(w->tree, ".facts.new"), text) < 0 ||
        rename(at(w->tree, ".facts.new"), at(w->tree, ".facts")) != 0)
        exit(1);
}

int world_main(const char *dir, const char *tree)
{
    struct world w = {0};
    snprintf(w.dir, sizeof w.dir, "%s", dir);
    snprintf(w.tree, sizeof w.tree, "%s", tree);
    snprintf(w.abstract, sizeof w.abstract, "amp-escape-%d", getpid());
    if (slurp(at(dir, "secret"), secret) < 0 || chdir(dir) != 0)
        return 1;
    secret[strcspn(secret, "\n")] = '\0';
    prctl(PR_SET_DUMPABLE, 1);
    signals_path = strdup(at(dir, "signals"));
    signal(SIGUSR1, on_signal);
    signal(SIGUSR2, on_signal);
    signal(SIGURG, on_signal);
    signal(SIGPIPE, SIG_IGN);
    w.pid = getpid();
    w.addr = (unsigned long)secret;
    w.fd = must(open("secret", O_RDONLY | O_CLOEXEC), "secret");
    w.fifo_fd = must(open("back", O_RDWR | O_NONBLOCK | O_CLOEXEC), "back");
    w.shm = shmget(IPC_PRIVATE, 4096, 0600 | IPC_CREAT);
    char *p = w.shm < 0 ? (char *)-1 : shmat(w.shm, NULL, 0);
    if (p != (char *)-1)
        memcpy(p, secret, strlen(secret) + 1);
    syscall(SYS_add_key, "user", w.abstract, secret, strlen(secret), -4);
    shared_files(&w);
    disk_find(tree, &w);
    handle_write(dir, tree);
    struct pollfd fds[10] = {
        {STDIN_FILENO, POLLIN, 0},
        {w.fifo_fd, POLLIN, 0},
        {unix_server("sock", false, SOCK_STREAM), POLLIN, 0},
        {unix_server(w.abstract, true, SOCK_STREAM), POLLIN, 0},
        {inet_server(AF_INET, SOCK_STREAM, &w.tcp), POLLIN, 0},
        {inet_server(AF_INET6, SOCK_STREAM, &w.tcp6), POLLIN, 0},
        {inet_server(AF_INET, SOCK_DGRAM, &w.udp), POLLIN, 0},
        {inet_server(AF_INET6, SOCK_DGRAM, &w.udp), POLLIN, 0},
        {unix_server("dgram", false, SOCK_DGRAM), POLLIN, 0},
    };
    facts_write(&w);
    for (;;) {
        poll(fds, 9, 20);
        if (fds[0].revents)
            break;
        if (fds[1].revents)
            copy_to(w.fifo_fd, "back.read");
        for (int i = 2; i < 6; i++)
            if (fds[i].revents)
                answer_stream(fds[i].fd);
        for (int i = 6; i < 8; i++)
            if (fds[i].revents)
                answer_datagram(fds[i].fd);
        if (fds[8].revents)
            copy_to(fds[8].fd, "dgram.read");
        knock(w.tcp);
    }
    shared_remove(&w);
    return 0;
}
