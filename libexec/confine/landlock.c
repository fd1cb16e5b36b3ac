/*
 * Landlock: file rules, TCP ports, and the scopes of signals and abstract sockets, as far as the
 * kernel's ABI has them. The constants are from the kernel's documentation of Landlock, because the
 * headers of the system may be older than its kernel.
 */
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "confine.h"

#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_add_rule       445
#define SYS_landlock_restrict_self  446
#endif

#define EXECUTE     (1ULL << 0)
#define WRITE_FILE  (1ULL << 1)
#define READ_FILE   (1ULL << 2)
#define READ_DIR    (1ULL << 3)
#define REMOVE_DIR  (1ULL << 4)
#define REMOVE_FILE (1ULL << 5)
#define MAKE_CHAR   (1ULL << 6)
#define MAKE_DIR    (1ULL << 7)
#define MAKE_REG    (1ULL << 8)
#define MAKE_SOCK   (1ULL << 9)
#define MAKE_FIFO   (1ULL << 10)
#define MAKE_BLOCK  (1ULL << 11)
#define MAKE_SYM    (1ULL << 12)
#define REFER       (1ULL << 13) /* ABI 2 */
#define TRUNCATE    (1ULL << 14) /* ABI 3 */
#define IOCTL_DEV   (1ULL << 15) /* ABI 5 */

#define BIND_TCP    (1ULL << 0) /* ABI 4 */
#define CONNECT_TCP (1ULL << 1)

#define SCOPE_ABSTRACT_UNIX (1ULL << 0) /* ABI 6 */
#define SCOPE_SIGNAL        (1ULL << 1)

#define RULE_PATH 1
#define RULE_PORT 2

#define READ      (EXECUTE | READ_FILE | READ_DIR)
#define OF_A_FILE (EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV)
/* Everything but device nodes (SW4RM §16). */
#define WRITE                                                                                      \
    (READ | WRITE_FILE | TRUNCATE | REMOVE_DIR | REMOVE_FILE | MAKE_DIR | MAKE_REG | MAKE_SOCK |   \
     MAKE_FIFO | MAKE_SYM | REFER)
#define DEVICE (READ_FILE | WRITE_FILE | TRUNCATE | IOCTL_DEV)

struct ruleset_attr {
    uint64_t files, ports, scopes;
};
struct __attribute__((packed)) path_attr {
    uint64_t allowed;
    int32_t fd;
};
struct port_attr {
    uint64_t allowed, port;
};

struct ruleset {
    const struct plan *p;
    int fd;
    uint64_t files;
};

int landlock_abi(void)
{
    long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, 1U /* the version */);
    return abi > 0 ? (int)abi : 0;
}

static uint64_t files_of(int abi)
{
    return abi >= 5   ? (IOCTL_DEV << 1) - 1
           : abi >= 3 ? (TRUNCATE << 1) - 1
           : abi == 2 ? (REFER << 1) - 1
                      : (MAKE_SYM << 1) - 1;
}

/* Allows access beneath what an open descriptor names; -1 is left out. */
static void allow_fd(const struct ruleset *r, int fd, const char *path, uint64_t access)
{
    struct stat st;
    if (fd < 0)
        return;
    /* The kernel refuses the rights of directories for a file. */
    access &= r->files;
    if ((access & ~OF_A_FILE) && fstat(fd, &st) < 0)
        give_up_sys(r->p, "%s", path);
    if ((access & ~OF_A_FILE) && !S_ISDIR(st.st_mode))
        access &= OF_A_FILE;
    struct path_attr a = {.allowed = access, .fd = fd};
    if (syscall(SYS_landlock_add_rule, r->fd, RULE_PATH, &a, 0) < 0)
        give_up_sys(r->p, "cannot add a Landlock rule for %s", path);
    close(fd);
}

/* Allows a path without symbolic links. */
static void allow_path(const struct ruleset *r, const char *path, uint64_t access)
{
    struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_NO_SYMLINKS};
    allow_fd(r, (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof how), path, access);
}

/* Allows a path of the administrator, which may be a link, as /etc/resolv.conf is. */
static void allow_linked(const struct ruleset *r, const char *path, uint64_t access)
{
    allow_fd(r, open(path, O_PATH | O_CLOEXEC), path, access);
}

static void allow_devices(const struct ruleset *r)
{
    char path[64];
    for (size_t i = 0; device_names[i]; i++) {
        snprintf(path, sizeof path, "/dev/%s", device_names[i]);
        allow_path(r, path, DEVICE);
    }
}

/* In the new root everything visible may be read: the mounts decide what is visible. */
static void allow_in_root(const struct ruleset *r)
{
    allow_path(r, "/", READ);
    allow_path(r, "/tmp", WRITE);
    allow_path(r, "/var/tmp", WRITE);
    allow_path(r, "/dev/shm", WRITE);
    allow_path(r, "/dev/pts", DEVICE | READ_DIR);
    allow_devices(r);
    if (r->p->home)
        allow_path(r, r->p->home, WRITE);
    for (size_t i = 0; i < r->p->n_places; i++)
        if (r->p->places[i].write)
            allow_path(r, r->p->places[i].at, WRITE);
}

/* On the host's root. /proc has other processes, so only files without them are readable. */
static void allow_on_host(const struct ruleset *r)
{
    static const char *const facts[] = {
        "/proc/cpuinfo", "/proc/meminfo", "/proc/stat",        "/proc/uptime",
        "/proc/loadavg", "/proc/version", "/proc/filesystems", NULL};
    char path[256];
    for (size_t i = 0; toolchain_dirs[i]; i++)
        allow_path(r, toolchain_dirs[i], READ);
    for (size_t i = 0; toolchain_etc[i]; i++) {
        snprintf(path, sizeof path, "/etc/%s", toolchain_etc[i]);
        allow_linked(r, path, READ);
    }
    for (size_t i = 0; facts[i]; i++)
        allow_path(r, facts[i], READ_FILE);
    allow_path(r, "/sys/devices/system/cpu", READ);
    allow_devices(r);
    if (r->p->scratch)
        allow_path(r, r->p->scratch, WRITE);
    for (size_t i = 0; i < r->p->n_places; i++)
        if (r->p->places[i].from)
            allow_path(r, r->p->places[i].from, r->p->places[i].write ? WRITE : READ);
}

/* A network namespace without interfaces needs no rules of ports. */
static uint64_t ports_of(const struct plan *p, int abi)
{
    if (abi < 4 || p->network == FULL_ACCESS)
        return 0;
    if (p->network == EGRESS_UNRESTRICTED)
        return BIND_TCP;
    return p->namespaces ? 0 : BIND_TCP | CONNECT_TCP;
}

void landlock_enforce(const struct plan *p)
{
    int abi = landlock_abi();
    struct ruleset_attr attr = {.files = files_of(abi),
                                .ports = ports_of(p, abi),
                                .scopes = abi >= 6 ? SCOPE_ABSTRACT_UNIX | SCOPE_SIGNAL : 0};
    struct ruleset r = {p, -1, attr.files};
    r.fd = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof attr, 0);
    if (abi == 0 || r.fd < 0)
        give_up_sys(p, "cannot make a Landlock ruleset");
    if (p->namespaces)
        allow_in_root(&r);
    else
        allow_on_host(&r);
    if (p->port && (attr.ports & CONNECT_TCP)) {
        struct port_attr a = {CONNECT_TCP, p->port};
        if (syscall(SYS_landlock_add_rule, r.fd, RULE_PORT, &a, 0) < 0)
            give_up_sys(p, "cannot add a Landlock rule for port %u", p->port);
    }
    if (syscall(SYS_landlock_restrict_self, r.fd, 0) < 0)
        give_up_sys(p, "cannot enforce the Landlock ruleset");
    close(r.fd);
}
