/* Attempts to use parts of the kernel that a confined command does not need. */
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fanotify.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "escape.h"

#ifndef SYS_io_uring_setup
#define SYS_io_uring_setup 425
#endif

static int namespaces(const struct world *w, char *proof)
{
    (void)w;
    (void)proof;
    return unshare(CLONE_NEWUSER) == 0 ? 0 : -errno;
}

static int namespaces_clone(const struct world *w, char *proof)
{
    (void)w;
    (void)proof;
    long pid = syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, NULL, NULL, NULL, 0UL);
    if (pid == 0)
        _exit(0);
    if (pid < 0)
        return -errno;
    waitpid((pid_t)pid, NULL, 0);
    return 0;
}

static int namespaces_clone3(const struct world *w, char *proof)
{
    struct {
        unsigned long flags, pidfd, child, parent, exit_signal, stack, size, tls;
    } args = {.flags = CLONE_NEWUSER, .exit_signal = SIGCHLD};
    (void)w;
    (void)proof;
    long pid = syscall(SYS_clone3, &args, sizeof args);
    if (pid == 0)
        _exit(0);
    if (pid < 0)
        return -errno;
    waitpid((pid_t)pid, NULL, 0);
    return 0;
}

/* The numbers of another architecture of this processor, which a filter may not know. */
static int namespaces_compat(const struct world *w, char *proof)
{
    (void)w;
    (void)proof;
#ifdef __x86_64__
    long rc = 310; /* unshare of i386 */
    __asm__ volatile("int $0x80"
                     : "+a"(rc)
                     : "b"(CLONE_NEWUSER)
                     : "memory", "r8", "r9", "r10", "r11");
    return (int)rc;
#else
    return -ENOSYS;
#endif
}

static int namespaces_x32(const struct world *w, char *proof)
{
    (void)w;
    (void)proof;
    return syscall(0x40000000 | SYS_unshare, CLONE_NEWUSER) == 0 ? 0 : -errno;
}

static int namespaces_mount(const struct world *w, char *proof)
{
    (void)w;
    (void)proof;
    return unshare(CLONE_NEWNS) == 0 ? 0 : -errno;
}

static int mount_of(const struct world *w, const char *type)
{
    const char *on = at(w->tree, "mnt");
    mkdir(on, 0755);
    if (mount(type, on, type, 0, NULL) != 0)
        return -errno;
    umount2(on, MNT_DETACH);
    return 0;
}

static int mount_tmpfs(const struct world *w, char *proof)
{
    (void)proof;
    return mount_of(w, "tmpfs");
}

static int mount_proc(const struct world *w, char *proof)
{
    (void)proof;
    return mount_of(w, "proc");
}

static int mount_bind(const struct world *w, char *proof)
{
    const char *on = at(w->tree, "mnt");
    mkdir(on, 0755);
    if (mount(w->dir, on, NULL, MS_BIND, NULL) != 0)
        return -errno;
    int rc = slurp(at(on, "secret"), proof);
    umount2(on, MNT_DETACH);
    return rc;
}

static int mount_new_api(const struct world *w, char *proof)
{
    (void)w;
    (void)proof;
    int fd = (int)syscall(SYS_fsopen, "tmpfs", 0);
    if (fd < 0)
        return -errno;
    close(fd);
    return 0;
}

static int open_tree_clone(const struct world *w, char *proof)
{
    (void)proof;
    int fd = (int)syscall(SYS_open_tree, AT_FDCWD, w->tree, 1 | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    close(fd);
    return 0;
}

/* With the permission, these three fail only because nothing is mounted there. */
static int unmount(const struct world *w, char *proof)
{
    (void)proof;
    return umount2(at(w->tree, ".facts"), MNT_DETACH) == 0 || errno == EINVAL ? 0 : -errno;
}

static int remount(const struct world *w, char *proof)
{
    const char *on = at(w->tree, ".facts");
    (void)proof;
    return mount("none", on, NULL, MS_REMOUNT | MS_BIND, NULL) == 0 || errno == EINVAL ? 0 : -errno;
}

static int pivot(const struct world *w, char *proof)
{
    (void)proof;
    return syscall(SYS_pivot_root, w->tree, w->tree) == 0 || errno == EINVAL || errno == EBUSY
               ? 0
               : -errno;
}

static int chroot_escape(const struct world *w, char *proof)
{
    const char *jail = at(w->tree, "jail");
    mkdir(jail, 0755);
    if (chroot(jail) != 0)
        return -errno;
    for (int i = 0; i < 64; i++)
        if (chdir("..") != 0)
            return -errno;
    if (chroot(".") != 0)
        return -errno;
    return slurp(at(w->dir, "secret"), proof);
}

static int ring(const struct world *w, char *proof)
{
    char params[256] = {0};
    (void)w;
    (void)proof;
    int fd = (int)syscall(SYS_io_uring_setup, 4, params);
    if (fd < 0)
        return -errno;
    close(fd);
    return 0;
}

static int bpf_map(const struct world *w, char *proof)
{
    union bpf_attr attr;
    (void)w;
    (void)proof;
    memset(&attr, 0, sizeof attr);
    attr.map_type = BPF_MAP_TYPE_ARRAY;
    attr.key_size = attr.value_size = 4;
    attr.max_entries = 1;
    int fd = (int)syscall(SYS_bpf, BPF_MAP_CREATE, &attr, sizeof attr);
    if (fd < 0)
        return -errno;
    close(fd);
    return 0;
}

static int fault_handler(const struct world *w, char *proof)
{
    (void)w;
    (void)proof;
    int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
    if (fd < 0)
        return -errno;
    close(fd);
    return 0;
}

static int perf(const struct world *w, char *proof)
{
    struct perf_event_attr attr = {
        .type = PERF_TYPE_SOFTWARE, .size = sizeof attr, .config = PERF_COUNT_SW_CPU_CLOCK};
    (void)w;
    (void)proof;
    int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0UL);
    if (fd < 0)
        return -errno;
    close(fd);
    return 0;
}

static int key_add(const struct world *w, char *proof)
{
    (void)w;
    (void)proof;
    return syscall(SYS_add_key, "user", "escape", "x", 1UL, -1) < 0 ? -errno : 0;
}

static int host_name(const struct world *w, char *proof)
{
    char name[256] = "";
    (void)w;
    (void)proof;
    gethostname(name, sizeof name - 1);
    return sethostname(name, strlen(name)) == 0 ? 0 : -errno;
}

static int watch_files(const struct world *w, char *proof)
{
    (void)proof;
    int fd = fanotify_init(FAN_CLASS_NOTIF | FAN_CLOEXEC, O_RDONLY);
    if (fd < 0)
        return -errno;
    int rc = fanotify_mark(fd, FAN_MARK_ADD | FAN_MARK_MOUNT, FAN_OPEN, AT_FDCWD, w->tree) == 0
                 ? 0
                 : -errno;
    close(fd);
    return rc;
}

static int kernel_log(const struct world *w, char *proof)
{
    char text[64];
    enum { READ_ALL = 3 };
    (void)w;
    (void)proof;
    return syscall(SYS_syslog, READ_ALL, text, sizeof text) < 0 ? -errno : 0;
}

static int swap_off(const struct world *w, char *proof)
{
    (void)w;
    (void)proof;
    return syscall(SYS_swapoff, "/nonexistent") == 0 || errno == ENOENT ? 0 : -errno;
}

static int module_load(const struct world *w, char *proof)
{
    (void)w;
    (void)proof;
    syscall(SYS_init_module, "x", 1UL, "");
    return errno == ENOEXEC ? 0 : -errno; /* it got as far as reading the module */
}

static int clock_set(const struct world *w, char *proof)
{
    (void)w;
    (void)proof;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return clock_settime(CLOCK_REALTIME, &now) == 0 ? 0 : -errno;
}

const struct attempt kernel_attempts[] = {
    {"namespaces", "a user namespace by unshare", namespaces, NULL, BOTH, false},
    {"namespaces_clone", "a user namespace by clone", namespaces_clone, NULL, BOTH, false},
    {"namespaces_clone3", "a user namespace by clone3", namespaces_clone3, NULL, BOTH, false},
    {"namespaces_compat", "a user namespace by a call of i386", namespaces_compat, NULL, BOTH,
     false},
    {"namespaces_x32", "a user namespace by a call of x32", namespaces_x32, NULL, BOTH, false},
    {"namespaces_mount", "a mount namespace", namespaces_mount, NULL, BOTH, false},
    {"mount_tmpfs", "mount a tmpfs", mount_tmpfs, NULL, BOTH, false},
    {"mount_bind", "bind a directory outside", mount_bind, NULL, BOTH, true},
    {"mount_proc", "mount another /proc", mount_proc, NULL, BOTH, false},
    {"mount_new_api", "fsopen", mount_new_api, NULL, BOTH, false},
    {"open_tree_clone", "open_tree", open_tree_clone, NULL, BOTH, false},
    {"unmount", "umount2", unmount, NULL, BOTH, false},
    {"remount", "remount", remount, NULL, BOTH, false},
    {"pivot_root", "pivot_root", pivot, NULL, BOTH, false},
    {"chroot_escape", "leave a chroot", chroot_escape, NULL, BOTH, true},
    {"io_uring", "io_uring_setup", ring, NULL, BOTH, false},
    {"bpf", "a map of bpf", bpf_map, NULL, BOTH, false},
    {"userfaultfd", "userfaultfd", fault_handler, NULL, BOTH, false},
    {"perf_event", "perf_event_open", perf, NULL, BOTH, false},
    {"key_add", "add_key", key_add, NULL, BOTH, false},
    {"host_name", "sethostname", host_name, NULL, BOTH, false},
    {"watch_files", "fanotify on a mount", watch_files, NULL, BOTH, false},
    {"kernel_log", "the log of the kernel", kernel_log, NULL, BOTH, false},
    {"swap_off", "swapoff", swap_off, NULL, BOTH, false},
    {"module_load", "init_module", module_load, NULL, BOTH, false},
    {"clock_set", "clock_settime", clock_set, NULL, BOTH, false},
    {0},
};
