/*
 * The processes of the sandbox: outer, init (with namespaces), command. No process of the sandbox
 * can reach the outer process: the command and the outer process share no descriptor but the
 * command's standard ones, which the outer process and init close after the start.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <amp/base/buf.h>

#include "base/process/process.h"
#include "confine.h"

#define GATE_PORT 3128

/* The signals that reach the command through the outer process. */
static const int forwarded[] = {SIGHUP,  SIGINT,  SIGQUIT,  SIGTERM, SIGUSR1,
                                SIGUSR2, SIGCONT, SIGWINCH, SIGALRM};

/* Two pipes between the outer process and init. signals: one byte for each signal that is passed
 * on; its end tells init that the outer process is gone. status: the command's wait status. */
struct link {
    int signals[2], status[2];
};

static pid_t fork_with(unsigned long flags)
{
    return (pid_t)syscall(SYS_clone, flags | SIGCHLD, NULL, NULL, NULL, NULL);
}

static void own_group(const struct plan *p)
{
    if (p->forwarding == FORWARD_GROUP)
        setpgid(0, 0);
}

/* The standard streams belong to the command: a reader of its output must see their end. */
static void release_streams(const struct plan *p)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = 0; fd < 3; fd++)
        if (null < 0 || dup2(null, fd) < 0)
            close(fd);
    if (null > 2)
        close(null);
    if (p->status_fd >= 0)
        close(p->status_fd);
}

static void close_all_but(int keep)
{
    if (keep < 3) {
        syscall(SYS_close_range, 3U, ~0U, 0U);
        return;
    }
    if (keep > 3)
        syscall(SYS_close_range, 3U, (unsigned)keep - 1, 0U);
    syscall(SYS_close_range, (unsigned)keep + 1, ~0U, 0U);
}

/* Runs in the process that becomes the command. */
static void command_run(struct plan *p) __attribute__((noreturn));
static void command_run(struct plan *p)
{
    sigset_t none;
    sigemptyset(&none);
    close_all_but(p->status_fd);
    umask(022);
    limits_set(p);
    if (!p->namespaces) /* init has dropped them already */
        rights_drop(p);
    if (p->landlock)
        landlock_enforce(p);
    if (p->seccomp)
        filter_enforce(p);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (p->probe)
        _exit(0);
    command_execute(p);
}

static void set_variable(const struct plan *p, const char *name, const char *value)
{
    if ((value ? setenv(name, value, 1) : unsetenv(name)) < 0)
        give_up(p, 77, "out of memory");
}

/* The variables that depend on the sandbox. */
static void environment_set(const struct plan *p)
{
    static const char *const proxies[] = {"HTTPS_PROXY", "https_proxy", "HTTP_PROXY",
                                          "http_proxy",  "ALL_PROXY",   "all_proxy"};
    char text[4200];
    if (p->namespaces) {
        if (p->home)
            set_variable(p, "HOME", p->home);
        set_variable(p, "TMPDIR", "/tmp");
    } else if (p->scratch) {
        snprintf(text, sizeof text, "%s/tmp", p->scratch);
        mkdir(text, 0700);
        set_variable(p, "TMPDIR", text);
        if (!p->home) {
            snprintf(text, sizeof text, "%s/home", p->scratch);
            mkdir(text, 0700);
            set_variable(p, "HOME", text);
        }
    }
    if (p->port) {
        snprintf(text, sizeof text, "http://127.0.0.1:%u", p->port);
        for (size_t i = 0; i < sizeof proxies / sizeof *proxies; i++)
            set_variable(p, proxies[i], text);
        set_variable(p, "NO_PROXY", NULL);
        set_variable(p, "no_proxy", NULL);
        set_variable(p, "NODE_USE_ENV_PROXY", "1");
    }
}

/* Starts the loopback interface of a new network namespace. */
static void network_up(const struct plan *p)
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

/* Makes the socket through which the gate of EGRESS_RESTRICTED is reached, and sends it over
 * gate_fd. */
static void network_listen(struct plan *p)
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

static void network_set(struct plan *p)
{
    bool own = p->network == DENY_ALL || p->network == EGRESS_RESTRICTED;
    if (p->namespaces && own)
        network_up(p);
    if (p->gate_fd >= 0)
        network_listen(p);
}

/* ---- init ---- */

static bool outer_alive(int lifeline)
{
    struct pollfd fd = {.fd = lifeline, .events = POLLIN};
    return poll(&fd, 1, 0) <= 0 || !(fd.revents & POLLHUP);
}

static void command_signal(const struct plan *p, pid_t command, int sig)
{
    kill(p->forwarding == FORWARD_GROUP ? -command : command, sig);
}

/* Kills and reaps all processes of the sandbox: orphans are children of init. */
static void init_clear(void)
{
    int status;
    do
        kill(-1, SIGKILL);
    while (waitpid(-1, &status, 0) > 0 || errno == EINTR);
}

/* Reaps until the command has ended, ends everything else, and reports the command's status. */
static void init_loop(const struct plan *p, const struct link *l, pid_t command)
    __attribute__((noreturn));
static void init_loop(const struct plan *p, const struct link *l, pid_t command)
{
    sigset_t chld;
    sigemptyset(&chld);
    sigaddset(&chld, SIGCHLD);
    int children = signalfd(-1, &chld, SFD_CLOEXEC | SFD_NONBLOCK);
    for (;;) {
        struct pollfd fds[] = {{.fd = children, .events = POLLIN},
                               {.fd = l->signals[0], .events = POLLIN}};
        struct signalfd_siginfo si;
        unsigned char sig;
        int status;
        pid_t pid;
        poll(fds, 2, -1);
        while (read(children, &si, sizeof si) == sizeof si)
            ;
        while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
            if (pid == command) {
                init_clear();
                ssize_t n = write(l->status[1], &status, sizeof status);
                _exit(n == sizeof status ? 0 : 1);
            }
        if (fds[1].revents & POLLIN) {
            if (read(l->signals[0], &sig, 1) == 1)
                command_signal(p, command, sig);
        } else if (fds[1].revents & POLLHUP) {
            _exit(1);
        }
    }
}

static void init_run(struct plan *p, struct link *l, uid_t uid, gid_t gid)
    __attribute__((noreturn));
static void init_run(struct plan *p, struct link *l, uid_t uid, gid_t gid)
{
    close(l->signals[1]);
    close(l->status[0]);
    /* Children must not read this process through /proc before it is closed to them. */
    root_map_user(p, uid, gid);
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    network_set(p);
    root_build(p);
    if (p->gate_fd >= 0)
        close(p->gate_fd);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (!outer_alive(l->signals[0]))
        _exit(1);
    environment_set(p);
    rights_drop(p);
    pid_t command = fork_with(0);
    if (command < 0)
        give_up_sys(p, "cannot start the command's process");
    if (command == 0) {
        prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
        own_group(p);
        command_run(p);
    }
    release_streams(p);
    init_loop(p, l, command);
}

/* ---- the outer process ---- */

/* Ends as the command ended. */
static int end_as(int status)
{
    if (WIFEXITED(status))
        return WEXITSTATUS(status);
    return amp_process_end_by(WTERMSIG(status));
}

/* Whether the signal has to be passed on to the command. */
static bool is_for_command(const struct plan *p, const struct signalfd_siginfo *si)
{
    return p->forwarding == FORWARD_GROUP ||
           /* The group got the signals of the terminal. */
           (p->forwarding == FORWARD_COMMAND && si->ssi_code != SI_KERNEL);
}

static void block_signals(sigset_t *set)
{
    sigemptyset(set);
    for (size_t i = 0; i < sizeof forwarded / sizeof *forwarded; i++)
        sigaddset(set, forwarded[i]);
    sigaddset(set, SIGCHLD);
    sigprocmask(SIG_BLOCK, set, NULL);
}

/* Waits for the command and passes signals on. */
static int wait_for(const struct plan *p, pid_t child, const sigset_t *set)
{
    int events = signalfd(-1, set, SFD_CLOEXEC), status;
    for (;;) {
        struct signalfd_siginfo si;
        pid_t pid = waitpid(child, &status, WNOHANG);
        if (pid == child || (pid < 0 && errno != EINTR))
            return pid == child ? status : 1 << 8;
        if (read(events, &si, sizeof si) != sizeof si || si.ssi_signo == SIGCHLD ||
            !is_for_command(p, &si))
            continue;
        command_signal(p, child, (int)si.ssi_signo);
    }
}

/* Returns the command's status, or 1 if init ended without a report: it was killed, or gave up.
 * When the report arrives, no process of the sandbox is left but init, which still takes down its
 * namespaces. */
static int wait_for_init(const struct plan *p, pid_t init, const struct link *l,
                         const sigset_t *set)
{
    int events = signalfd(-1, set, SFD_CLOEXEC), status;
    for (;;) {
        struct pollfd fds[] = {{.fd = l->status[0], .events = POLLIN},
                               {.fd = events, .events = POLLIN}};
        struct signalfd_siginfo si;
        if (poll(fds, 2, -1) < 0 && errno != EINTR)
            return 1 << 8;
        if ((fds[1].revents & POLLIN) && read(events, &si, sizeof si) == sizeof si &&
            si.ssi_signo != SIGCHLD && is_for_command(p, &si)) {
            unsigned char sig = (unsigned char)si.ssi_signo;
            ssize_t n = write(l->signals[1], &sig, 1);
            (void)n;
        }
        if (!fds[0].revents)
            continue;
        if (read(l->status[0], &status, sizeof status) == sizeof status)
            return status;
        return waitpid(init, &status, 0) == init ? status : 1 << 8;
    }
}

static int run_in_namespaces(struct plan *p, const sigset_t *set)
{
    struct link l;
    uid_t uid = geteuid();
    gid_t gid = getegid();
    unsigned long flags =
        CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP;
    if (p->network == DENY_ALL || p->network == EGRESS_RESTRICTED)
        flags |= CLONE_NEWNET;
    if (pipe2(l.signals, O_CLOEXEC) < 0 || pipe2(l.status, O_CLOEXEC) < 0)
        give_up_sys(p, "cannot make a pipe");
    pid_t init = fork_with(flags);
    if (init < 0)
        give_up_sys(p, "cannot make namespaces");
    if (init == 0)
        init_run(p, &l, uid, gid);
    close(l.signals[0]);
    close(l.status[1]);
    release_streams(p);
    return end_as(wait_for_init(p, init, &l, set));
}

static int run_on_host(struct plan *p, const sigset_t *set)
{
    pid_t outer = getpid();
    network_set(p);
    environment_set(p);
    /* Without a gate that must learn of the command's end, this process becomes the command. */
    if (p->gate_fd < 0)
        command_run(p);
    pid_t command = fork_with(0);
    if (command < 0)
        give_up_sys(p, "cannot start the command's process");
    if (command == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != outer)
            _exit(1);
        own_group(p);
        command_run(p);
    }
    if (p->forwarding == FORWARD_GROUP)
        setpgid(command, command);
    release_streams(p);
    return end_as(wait_for(p, command, set));
}

int outer_run(struct plan *p)
{
    sigset_t set;
    if (!getcwd(p->cwd, sizeof p->cwd))
        give_up_sys(p, "cannot find the working directory");
    if (p->status_fd >= 0)
        fcntl(p->status_fd, F_SETFD, FD_CLOEXEC);
    if (p->gate_fd >= 0)
        fcntl(p->gate_fd, F_SETFD, FD_CLOEXEC);
    block_signals(&set);
    return p->namespaces ? run_in_namespaces(p, &set) : run_on_host(p, &set);
}
