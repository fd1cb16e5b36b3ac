/* Attempts on other processes, and on what processes share. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "escape.h"

static int attach(const struct world *w, char *proof)
{
    if (ptrace(PTRACE_SEIZE, w->pid, NULL, NULL) != 0)
        return -errno;
    for (size_t i = 0; i < PROOF_MAX / sizeof(long) - 1; i++) {
        long word = ptrace(PTRACE_PEEKDATA, w->pid, (char *)w->addr + i * sizeof word, NULL);
        memcpy(proof + i * sizeof word, &word, sizeof word);
    }
    return 0;
}

/* Reading words of a traced process needs it stopped. */
static int trace(const struct world *w, char *proof)
{
    if (ptrace(PTRACE_ATTACH, w->pid, NULL, NULL) != 0)
        return -errno;
    waitpid(w->pid, NULL, __WALL);
    for (size_t i = 0; i < PROOF_MAX / sizeof(long) - 1; i++) {
        long word = ptrace(PTRACE_PEEKDATA, w->pid, (char *)w->addr + i * sizeof word, NULL);
        memcpy(proof + i * sizeof word, &word, sizeof word);
    }
    ptrace(PTRACE_DETACH, w->pid, NULL, NULL);
    return 0;
}

static int seize(const struct world *w, char *proof)
{
    char ignored[PROOF_MAX];
    (void)proof;
    int rc = attach(w, ignored);
    if (rc == 0)
        ptrace(PTRACE_DETACH, w->pid, NULL, NULL);
    return rc;
}

static int vm_read(const struct world *w, char *proof)
{
    struct iovec mine = {proof, PROOF_MAX - 1}, its = {(void *)w->addr, PROOF_MAX - 1};
    return process_vm_readv(w->pid, &mine, 1, &its, 1, 0) < 0 ? -errno : 0;
}

static int vm_write(const struct world *w, char *proof)
{
    char text[] = "escaped";
    struct iovec mine = {text, sizeof text}, its = {(void *)(w->addr + 512), sizeof text};
    (void)proof;
    return process_vm_writev(w->pid, &mine, 1, &its, 1, 0) < 0 ? -errno : 0;
}

static int signal_one(const struct world *w, char *proof)
{
    (void)proof;
    return kill(w->pid, SIGUSR1) == 0 ? 0 : -errno;
}
static bool signal_one_judge(const struct world *w)
{
    return marked(at(w->dir, "signals"), "USR1");
}

static int signal_all(const struct world *w, char *proof)
{
    (void)w;
    (void)proof;
    return kill(-1, SIGURG) == 0 ? 0 : -errno; /* ignored by default */
}
static bool signal_all_judge(const struct world *w)
{
    return marked(at(w->dir, "signals"), "URG");
}

static int signal_pidfd(const struct world *w, char *proof)
{
    (void)proof;
    int fd = (int)syscall(SYS_pidfd_open, w->pid, 0);
    if (fd < 0)
        return -errno;
    int rc = syscall(SYS_pidfd_send_signal, fd, SIGUSR2, NULL, 0) == 0 ? 0 : -errno;
    close(fd);
    return rc;
}
static bool signal_pidfd_judge(const struct world *w)
{
    return marked(at(w->dir, "signals"), "USR2");
}

static int steal_fd(const struct world *w, char *proof)
{
    int fd = (int)syscall(SYS_pidfd_open, w->pid, 0);
    if (fd < 0)
        return -errno;
    int got = (int)syscall(SYS_pidfd_getfd, fd, w->fd, 0);
    int rc = got < 0 ? -errno : 0;
    if (got >= 0 && pread(got, proof, PROOF_MAX - 1, 0) < 0)
        rc = -errno;
    close(fd);
    if (got >= 0)
        close(got);
    return rc;
}

static int limits_of_other(const struct world *w, char *proof)
{
    const struct rlimit none = {0, 0};
    (void)proof;
    return prlimit(w->pid, RLIMIT_CORE, &none, NULL) == 0 ? 0 : -errno;
}

static int priority_of_other(const struct world *w, char *proof)
{
    (void)proof;
    return setpriority(PRIO_PROCESS, (id_t)w->pid, 1) == 0 ? 0 : -errno;
}

static int enter_namespace(const struct world *w, char *proof)
{
    char path[64];
    (void)proof;
    snprintf(path, sizeof path, "/proc/%d/ns/net", w->pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int rc = syscall(SYS_setns, fd, 0) == 0 ? 0 : -errno;
    close(fd);
    return rc;
}

static int shared_memory(const struct world *w, char *proof)
{
    char *p = shmat(w->shm, NULL, SHM_RDONLY);
    if (p == (char *)-1)
        return -errno;
    snprintf(proof, PROOF_MAX, "%.100s", p);
    shmdt(p);
    return 0;
}

/* ---- sockets ---- */

static int unix_talk(const struct sockaddr_un *sa, socklen_t n, const void *say, size_t size,
                     char *proof)
{
    struct timeval limit = {2, 0};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    int rc = connect(fd, (const struct sockaddr *)sa, n) == 0 ? 0 : -errno;
    if (rc == 0 && write(fd, say, size) < 0)
        rc = -errno;
    ssize_t got = rc == 0 ? read(fd, proof, PROOF_MAX - 1) : -1;
    if (rc == 0 && got <= 0)
        rc = -EIO;
    close(fd);
    return rc;
}

static int unix_path(const char *path, const void *say, size_t size, char *proof)
{
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof sa.sun_path)
        return -ENAMETOOLONG;
    memcpy(sa.sun_path, path, strlen(path));
    return unix_talk(&sa, sizeof sa, say, size, proof);
}

static int unix_socket(const struct world *w, char *proof)
{
    return unix_path(at(w->dir, "sock"), "?", 1, proof);
}

static int unix_symlink(const struct world *w, char *proof)
{
    const char *link = at(w->tree, "s");
    if (symlink(at(w->dir, "sock"), link) != 0 && errno != EEXIST)
        return -errno;
    return unix_path(link, "?", 1, proof);
}

static int abstract_socket(const struct world *w, char *proof)
{
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    size_t n = strlen(w->abstract);
    memcpy(sa.sun_path + 1, w->abstract, n);
    return unix_talk(&sa, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + n), "?", 1,
                     proof);
}

static int datagram_socket(const struct world *w, char *proof)
{
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    const char *path = at(w->dir, "dgram");
    (void)proof;
    memcpy(sa.sun_path, path, strlen(path));
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    int rc = sendto(fd, "escaped\n", 8, 0, (struct sockaddr *)&sa, sizeof sa) < 0 ? -errno : 0;
    close(fd);
    return rc;
}
static bool datagram_judge(const struct world *w)
{
    return marked(at(w->dir, "dgram.read"), "escaped");
}

static int ssh_agent(const struct world *w, char *proof)
{
    static const char list[] = {0, 0, 0, 1, 11};
    char answer[PROOF_MAX];
    int rc = unix_path(at(w->dir, "agent"), list, sizeof list, answer);
    if (rc == 0)
        snprintf(proof, PROOF_MAX, "type %d", answer[4]);
    return rc == 0 && answer[4] != 12 ? -EPROTO : rc;
}

static int session_bus(const struct world *w, char *proof)
{
    static const char auth[] = "\0AUTH EXTERNAL\r\n";
    return unix_path(at(w->dir, "bus"), auth, sizeof auth - 1, proof);
}

/* ---- keys and the terminal ---- */

static int key_ring(const struct world *w, char *proof)
{
    enum { SEARCH = 10, READ = 11, LINK = 8, USER = -4, PROCESS = -2 };
    syscall(SYS_keyctl, LINK, USER, PROCESS);
    long key = syscall(SYS_keyctl, SEARCH, USER, "user", w->abstract, 0);
    if (key < 0)
        return -errno;
    return syscall(SYS_keyctl, READ, key, proof, PROOF_MAX - 1) < 0 ? -errno : 0;
}

static int terminal_input(const struct world *w, char *proof)
{
    (void)w;
    (void)proof;
    return ioctl(0, TIOCSTI, "x") == 0 ? 0 : -errno;
}

static int setuid_run(const struct world *w, char *proof)
{
    (void)proof;
    return shell("W=$(\"$DIR/bin/whose\" -u) && [ \"$W\" != \"$(id -u)\" ]", w) == 0 ? 0 : -EPERM;
}

const struct attempt process_attempts[] = {
    {"ptrace", "attach to a process and read its memory", trace, NULL, BOTH, true},
    {"ptrace_seize", "seize a process", seize, NULL, BOTH, false},
    {"vm_read", "process_vm_readv", vm_read, NULL, BOTH, true},
    {"vm_write", "process_vm_writev", vm_write, NULL, BOTH, false},
    {"signal_one", "a signal to a process outside", signal_one, signal_one_judge, BOTH, false},
    {"signal_all", "kill -1", signal_all, signal_all_judge, BOTH, false},
    {"signal_pidfd", "a signal by pidfd", signal_pidfd, signal_pidfd_judge, BOTH, false},
    {"steal_fd", "pidfd_getfd", steal_fd, NULL, BOTH, true},
    {"limits_of_other", "the limits of a process outside", limits_of_other, NULL, BOTH, false},
    {"priority_of_other", "the priority of a process outside", priority_of_other, NULL, BOTH,
     false},
    {"enter_namespace", "setns", enter_namespace, NULL, BOTH, false},
    {"shared_memory", "a segment of System V", shared_memory, NULL, BOTH, true},
    {"unix_socket", "a unix socket outside", unix_socket, NULL, BOTH, true},
    {"unix_symlink", "a unix socket by a link", unix_symlink, NULL, BOTH, true},
    {"abstract_socket", "an abstract socket", abstract_socket, NULL, BOTH, true},
    {"datagram_socket", "a datagram socket outside", datagram_socket, datagram_judge, BOTH, false},
    {"ssh_agent", "the ssh-agent", ssh_agent, NULL, BOTH, false},
    {"session_bus", "the session bus", session_bus, NULL, BOTH, false},
    {"key_ring", "a key in the user's keyring", key_ring, NULL, BOTH, true},
    {"terminal_input", "TIOCSTI", terminal_input, NULL, BOTH, false},
    {"setuid_run", "run a setuid program", setuid_run, NULL, BOTH, false},
    {0},
};
