/* Attempts on files: reading what is outside, changing it, leaving something for others. */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/time.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "escape.h"

/* ---- reading ---- */

static int read_secret(const struct world *w, char *proof)
{
    return slurp(at(w->dir, "home/.ssh/id_ed25519"), proof);
}

static int read_dotdot(const struct world *w, char *proof)
{
    if (chdir(w->tree) != 0)
        return -errno;
    return slurp("../../../../../../../../../../../../../proc/self/cwd/../secret", proof);
}

static int read_symlink(const struct world *w, char *proof)
{
    const char *link = at(w->tree, "link-to-secret");
    if (symlink(at(w->dir, "secret"), link) != 0 && errno != EEXIST)
        return -errno;
    return slurp(link, proof);
}

static int read_hardlink(const struct world *w, char *proof)
{
    const char *link_path = at(w->tree, "hard-link");
    if (link(at(w->dir, "secret"), link_path) != 0)
        return -errno;
    int rc = slurp(link_path, proof);
    unlink(link_path);
    return rc;
}

static int read_process(const struct world *w, const char *what, char *proof)
{
    char path[400];
    snprintf(path, sizeof path, "/proc/%d/%s", w->pid, what);
    return slurp(path, proof);
}

static int read_root(const struct world *w, char *proof)
{
    char rest[300];
    snprintf(rest, sizeof rest, "root%s/secret", w->dir);
    return read_process(w, rest, proof);
}

static int read_parent_root(const struct world *w, char *proof)
{
    char path[400];
    int rc = -ENOENT;
    for (int pid = 1; pid < 40 && rc < 0; pid++) {
        snprintf(path, sizeof path, "/proc/%d/root%s/secret", pid, w->dir);
        rc = slurp(path, proof);
    }
    return rc;
}

static int read_self_root(const struct world *w, char *proof)
{
    char path[400];
    snprintf(path, sizeof path, "/proc/self/root/../../%s/secret", w->dir);
    return slurp(path, proof);
}

static int read_cwd(const struct world *w, char *proof)
{
    return read_process(w, "cwd/secret", proof);
}

static int read_fd(const struct world *w, char *proof)
{
    char rest[40];
    snprintf(rest, sizeof rest, "fd/%d", w->fd);
    return read_process(w, rest, proof);
}

static int read_environ(const struct world *w, char *proof)
{
    char path[64];
    char all[8192];
    snprintf(path, sizeof path, "/proc/%d/environ", w->pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    ssize_t n = read(fd, all, sizeof all - 1);
    close(fd);
    if (n <= 0)
        return -EPERM;
    all[n] = '\0';
    for (char *p = all; p < all + n; p += strlen(p) + 1)
        if (strncmp(p, "ESCAPE_SECRET=", 14) == 0)
            return snprintf(proof, PROOF_MAX, "%s", p);
    return -ENOENT;
}

static int read_mem(const struct world *w, char *proof)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/mem", w->pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    ssize_t n = pread(fd, proof, PROOF_MAX - 1, (off_t)w->addr);
    int rc = n < 0 ? -errno : (int)n;
    close(fd);
    return rc;
}

static int read_cmdline(const struct world *w, char *proof)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/cmdline", w->pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    ssize_t n = read(fd, proof, PROOF_MAX - 1);
    close(fd);
    for (ssize_t i = 0; i < n; i++)
        if (!proof[i])
            proof[i] = ' ';
    return n > 0 ? 0 : -EPERM;
}

static int read_handle(const struct world *w, char *proof)
{
    union {
        struct file_handle head;
        char room[sizeof(struct file_handle) + 128];
    } h = {0};
    char hex[400] = "";
    if (slurp(at(w->tree, ".handle"), hex) < 0)
        return -ENOENT;
    unsigned type, n = 0, byte;
    int used;
    char *p = hex;
    if (sscanf(p, "%u%n", &type, &used) != 1)
        return -EINVAL;
    p += used;
    while (n < 128 && sscanf(p, " %2x%n", &byte, &used) == 1) {
        h.head.f_handle[n++] = (unsigned char)byte;
        p += used;
    }
    h.head.handle_type = (int)type;
    h.head.handle_bytes = n;
    int mount = open(w->tree, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int fd = mount < 0 ? -1 : open_by_handle_at(mount, &h.head, O_RDONLY | O_CLOEXEC);
    int saved = errno;
    if (mount >= 0)
        close(mount);
    if (fd < 0)
        return -saved;
    ssize_t got = read(fd, proof, PROOF_MAX - 1);
    close(fd);
    return got < 0 ? -errno : 0;
}

static int device_try(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return -errno;
    close(fd);
    return 0;
}

/* A disk, or another device that is not for everybody. */
static int device_open(const struct world *w, char *proof)
{
    static const char *const others[] = {"/dev/kmsg", "/dev/mem", "/dev/fuse", "/dev/kvm",
                                         "/dev/net/tun"};
    char name[PROOF_MAX] = "", path[300];
    (void)proof;
    if (slurp(at(w->tree, ".device"), name) == 0) {
        snprintf(path, sizeof path, "/dev/%s", name);
        if (device_try(path) == 0)
            return 0;
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (device_try(others[i]) == 0)
            return 0;
    return -EACCES;
}

static int device_make(const struct world *w, char *proof)
{
    const struct {
        mode_t type;
        dev_t number;
    } nodes[] = {{S_IFBLK, makedev((unsigned)w->dev >> 8, (unsigned)w->dev & 255)},
                 {S_IFCHR, makedev(1, 11)},
                 {S_IFCHR, makedev(10, 229)}};
    const char *path = at(w->tree, "node");
    int rc = -EACCES;
    (void)proof;
    for (size_t i = 0; i < sizeof nodes / sizeof *nodes && rc < 0; i++) {
        if (mknod(path, nodes[i].type | 0600, nodes[i].number) != 0)
            return -errno;
        rc = device_try(path);
        unlink(path);
    }
    return rc;
}

static int inherited_fd(const struct world *w, char *proof)
{
    (void)w;
    ssize_t n = pread(9, proof, PROOF_MAX - 1, 0);
    return n < 0 ? -errno : 0;
}

/* Standard error is a file that it may write; opened again, it could be read and truncated. */
static int reopen_stderr(const struct world *w, char *proof)
{
    (void)w;
    return slurp("/proc/self/fd/2", proof);
}

static int state_read(const struct world *w, char *proof)
{
    return slurp(at(w->dir, "state/log/000001.ndjson"), proof);
}

static int state_keys_read(const struct world *w, char *proof)
{
    return slurp(at(w->dir, "state/keys/coordinator"), proof);
}

static int other_read(const struct world *w, char *proof)
{
    return slurp(at(w->dir, "other/secret"), proof);
}

static int main_config_read(const struct world *w, char *proof)
{
    char all[4096];
    int fd = open(at(w->dir, "repo/.git/config"), O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    ssize_t n = read(fd, all, sizeof all - 1);
    close(fd);
    all[n < 0 ? 0 : n] = '\0';
    const char *p = strstr(all, "escape-");
    return p ? snprintf(proof, PROOF_MAX, "%.60s", p) : -ENOENT;
}

static int shm_file(const struct world *w, char *proof)
{
    char path[200];
    snprintf(path, sizeof path, "/dev/shm/%s", w->abstract);
    return slurp(path, proof);
}

static int tmp_file(const struct world *w, char *proof)
{
    char path[200];
    snprintf(path, sizeof path, "/tmp/%s", w->abstract);
    return slurp(path, proof);
}

/* ---- writing ---- */

static int write_outside(const struct world *w, char *proof)
{
    (void)proof;
    return spill(at(w->dir, "mark/write_outside"), "escaped");
}
static bool write_outside_judge(const struct world *w)
{
    return marked(at(w->dir, "mark/write_outside"), "escaped");
}

static int write_symlink(const struct world *w, char *proof)
{
    const char *link = at(w->tree, "link-to-dir");
    (void)proof;
    if (symlink(at(w->dir, "mark"), link) != 0 && errno != EEXIST)
        return -errno;
    return spill(at(link, "write_symlink"), "escaped");
}
static bool write_symlink_judge(const struct world *w)
{
    return marked(at(w->dir, "mark/write_symlink"), "escaped");
}

static int write_hardlink(const struct world *w, char *proof)
{
    const char *mine = at(w->tree, "hard-link-write");
    (void)proof;
    if (link(at(w->dir, "mark/hard"), mine) != 0)
        return -errno;
    int rc = spill(mine, "escaped");
    unlink(mine);
    return rc;
}
static bool write_hardlink_judge(const struct world *w)
{
    return marked(at(w->dir, "mark/hard"), "escaped");
}

static int rename_out(const struct world *w, char *proof)
{
    const char *mine = at(w->tree, "to-be-moved");
    (void)proof;
    int rc = spill(mine, "escaped");
    if (rc < 0)
        return rc;
    return rename(mine, at(w->dir, "mark/rename_out")) == 0 ? 0 : -errno;
}
static bool rename_out_judge(const struct world *w)
{
    return marked(at(w->dir, "mark/rename_out"), "escaped");
}

static int rename_in(const struct world *w, char *proof)
{
    (void)proof;
    return rename(at(w->dir, "mark/steal"), at(w->tree, "stolen")) == 0 ? 0 : -errno;
}
static bool rename_in_judge(const struct world *w)
{
    return access(at(w->dir, "mark/steal"), F_OK) != 0;
}

static int truncate_file(const struct world *w, char *proof)
{
    (void)proof;
    return truncate(at(w->dir, "mark/truncate"), 0) == 0 ? 0 : -errno;
}
static bool truncate_judge(const struct world *w)
{
    return !marked(at(w->dir, "mark/truncate"), "intact");
}

static int unlink_file(const struct world *w, char *proof)
{
    (void)proof;
    return unlink(at(w->dir, "mark/unlink")) == 0 ? 0 : -errno;
}
static bool unlink_judge(const struct world *w)
{
    return access(at(w->dir, "mark/unlink"), F_OK) != 0;
}

static int make_dir(const struct world *w, char *proof)
{
    (void)proof;
    return mkdir(at(w->dir, "mark/made"), 0755) == 0 ? 0 : -errno;
}
static bool make_dir_judge(const struct world *w)
{
    return access(at(w->dir, "mark/made"), F_OK) == 0;
}

static int change_mode(const struct world *w, char *proof)
{
    (void)proof;
    return chmod(at(w->dir, "mark/mode"), 0777) == 0 ? 0 : -errno;
}
static bool change_mode_judge(const struct world *w)
{
    struct stat st;
    return stat(at(w->dir, "mark/mode"), &st) == 0 && (st.st_mode & 0777) == 0777;
}

static int change_times(const struct world *w, char *proof)
{
    const struct timeval then[2] = {{1, 0}, {1, 0}};
    (void)proof;
    return utimes(at(w->dir, "mark/times"), then) == 0 ? 0 : -errno;
}
static bool change_times_judge(const struct world *w)
{
    struct stat st;
    return stat(at(w->dir, "mark/times"), &st) == 0 && st.st_mtime == 1;
}

/* Linux 6.17: sets flags of a file by its path. */
static int change_flags(const struct world *w, char *proof)
{
    const struct fsxattr flags = {.fsx_xflags = FS_XFLAG_NODUMP};
    const struct {
        uint64_t xflags;
        uint32_t extsize, nextents, projid, cowextsize;
    } attr = {.xflags = flags.fsx_xflags};
    (void)proof;
    return syscall(469, AT_FDCWD, at(w->dir, "mark/times"), &attr, sizeof attr, 0) == 0 ? 0
                                                                                        : -errno;
}
static bool change_flags_judge(const struct world *w)
{
    struct fsxattr flags = {0};
    int fd = open(at(w->dir, "mark/times"), O_RDONLY | O_CLOEXEC);
    bool set = fd >= 0 && ioctl(fd, FS_IOC_FSGETXATTR, &flags) == 0 &&
               (flags.fsx_xflags & FS_XFLAG_NODUMP);
    if (fd >= 0)
        close(fd);
    return set;
}

static int state_write(const struct world *w, char *proof)
{
    (void)proof;
    return spill(at(w->dir, "state/log/000001.ndjson"), "forged");
}
static bool state_write_judge(const struct world *w)
{
    return marked(at(w->dir, "state/log/000001.ndjson"), "forged");
}

static int state_key_plant(const struct world *w, char *proof)
{
    (void)proof;
    return spill(at(w->dir, "state/keys/allowed_signers"), "forged");
}
static bool state_key_plant_judge(const struct world *w)
{
    return marked(at(w->dir, "state/keys/allowed_signers"), "forged");
}

static int other_write(const struct world *w, char *proof)
{
    (void)proof;
    return spill(at(w->dir, "other/planted"), "escaped");
}
static bool other_write_judge(const struct world *w)
{
    return marked(at(w->dir, "other/planted"), "escaped");
}

static int program_write(const struct world *w, char *proof)
{
    (void)proof;
    return spill(at(w->dir, "bin/tool"), "escaped");
}
static bool program_write_judge(const struct world *w)
{
    return marked(at(w->dir, "bin/tool"), "escaped");
}

static int profile_write(const struct world *w, char *proof)
{
    (void)proof;
    return spill(at(w->dir, "home/.profile"), "escaped");
}
static bool profile_write_judge(const struct world *w)
{
    return marked(at(w->dir, "home/.profile"), "escaped");
}

static int tmp_write(const struct world *w, char *proof)
{
    char path[200];
    (void)proof;
    snprintf(path, sizeof path, "/tmp/%s.planted", w->abstract);
    return spill(path, "escaped");
}
static bool tmp_write_judge(const struct world *w)
{
    char path[200];
    snprintf(path, sizeof path, "/tmp/%s.planted", w->abstract);
    bool worked = marked(path, "escaped");
    unlink(path);
    return worked;
}

static int sysctl_write(const struct world *w, char *proof)
{
    char now[PROOF_MAX] = "";
    (void)w;
    (void)proof;
    int rc = slurp("/proc/sys/kernel/core_pattern", now);
    if (rc < 0)
        return rc;
    int fd = open("/proc/sys/kernel/core_pattern", O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    rc = write(fd, now, strlen(now)) < 0 ? -errno : 0; /* the same value again */
    close(fd);
    return rc;
}

/* Opens one of the files for writing, without writing. */
static int writable(const char *const *paths)
{
    int rc = -ENOENT;
    for (; *paths && rc < 0; paths++) {
        int fd = open(*paths, O_WRONLY | O_APPEND | O_CLOEXEC);
        rc = fd < 0 ? -errno : 0;
        if (fd >= 0)
            close(fd);
    }
    return rc;
}

static int system_write(const struct world *w, char *proof)
{
    (void)w;
    (void)proof;
    return writable((const char *const[]){"/etc/passwd", "/etc/hosts", NULL});
}

/* A library in here would be loaded into every program of the machine. */
static int loader_write(const struct world *w, char *proof)
{
    (void)w;
    (void)proof;
    return writable((const char *const[]){"/etc/ld.so.preload", "/etc/ld.so.cache", NULL});
}

static int sysfs_write(const struct world *w, char *proof)
{
    (void)w;
    (void)proof;
    return writable((const char *const[]){"/sys/kernel/uevent_helper", "/sys/power/state",
                                          "/sys/kernel/mm/ksm/run", "/sys/class/net/lo/mtu", NULL});
}

static int sysrq_write(const struct world *w, char *proof)
{
    (void)w;
    (void)proof;
    return writable((const char *const[]){"/proc/sysrq-trigger", NULL});
}

static int score_write(const struct world *w, char *proof)
{
    char path[64];
    (void)proof;
    snprintf(path, sizeof path, "/proc/%d/oom_score_adj", w->pid);
    return writable((const char *const[]){path, NULL});
}

static int cgroup_make(const struct world *w, char *proof)
{
    const char *path = "/sys/fs/cgroup/amp-escape";
    (void)w;
    (void)proof;
    if (mkdir(path, 0755) != 0)
        return -errno;
    rmdir(path);
    return 0;
}

static int setuid_plant(const struct world *w, char *proof)
{
    const char *path = at(w->tree, "setuid-program");
    (void)proof;
    int rc = spill(path, "#!/bin/sh\n");
    if (rc < 0)
        return rc;
    return chmod(path, 04755) == 0 ? 0 : -errno;
}
static bool setuid_plant_judge(const struct world *w)
{
    struct stat st;
    return lstat(at(w->tree, "setuid-program"), &st) == 0 && (st.st_mode & S_ISUID);
}

static int setuid_create(const struct world *w, char *proof)
{
    (void)proof;
    umask(0);
    int fd = open(at(w->tree, "setuid-created"), O_WRONLY | O_CREAT | O_CLOEXEC, 04755);
    if (fd < 0)
        return -errno;
    close(fd);
    return 0;
}
static bool setuid_create_judge(const struct world *w)
{
    struct stat st;
    return lstat(at(w->tree, "setuid-created"), &st) == 0 && (st.st_mode & S_ISUID);
}

/* The mode of openat2 is in memory, where a filter does not see it. */
static int setuid_openat2(const struct world *w, char *proof)
{
    struct {
        unsigned long flags, mode, resolve;
    } how = {O_WRONLY | O_CREAT | O_CLOEXEC, 02755, 0};
    (void)proof;
    umask(0);
    int fd = (int)syscall(437, AT_FDCWD, at(w->tree, "setgid-created"), &how, sizeof how);
    if (fd < 0)
        return -errno;
    close(fd);
    return 0;
}
static bool setuid_openat2_judge(const struct world *w)
{
    struct stat st;
    return lstat(at(w->tree, "setgid-created"), &st) == 0 && (st.st_mode & S_ISGID);
}

static int device_plant(const struct world *w, char *proof)
{
    (void)proof;
    return mknod(at(w->tree, "planted-node"), S_IFCHR | 0666, makedev(1, 3)) == 0 ? 0 : -errno;
}
static bool device_plant_judge(const struct world *w)
{
    struct stat st;
    return lstat(at(w->tree, "planted-node"), &st) == 0 && S_ISCHR(st.st_mode);
}

/* ---- the loop ---- */

static int fifo_write(const struct world *w, char *proof)
{
    (void)proof;
    int fd = open(at(w->dir, "back"), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int rc = write(fd, "forged by path\n", 15) < 0 ? -errno : 0;
    close(fd);
    return rc;
}
static bool fifo_write_judge(const struct world *w)
{
    return marked(at(w->dir, "back.read"), "forged by path");
}

static int fifo_by_proc(const struct world *w, char *proof)
{
    char path[64];
    (void)proof;
    snprintf(path, sizeof path, "/proc/%d/fd/%d", w->pid, w->fifo_fd);
    int fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int rc = write(fd, "forged by proc\n", 15) < 0 ? -errno : 0;
    close(fd);
    return rc;
}
static bool fifo_by_proc_judge(const struct world *w)
{
    return marked(at(w->dir, "back.read"), "forged by proc");
}

static int tool_on_state(const struct world *w, char *proof)
{
    (void)proof;
    return shell("agent-registry register -s \"$DIR/toolstate\" forger", w);
}
static bool tool_on_state_judge(const struct world *w)
{
    return access(at(w->dir, "toolstate/log"), F_OK) == 0;
}

const struct attempt file_attempts[] = {
    {"read_secret", "a private key in ~/.ssh", read_secret, NULL, BOTH, true},
    {"read_dotdot", "a path with ..", read_dotdot, NULL, BOTH, true},
    {"read_symlink", "a symbolic link in the worktree", read_symlink, NULL, BOTH, true},
    {"read_hardlink", "a hard link to a file outside", read_hardlink, NULL, BOTH, true},
    {"read_root", "/proc/PID/root of a process outside", read_root, NULL, BOTH, true},
    {"read_parent_root", "/proc/N/root for each small N", read_parent_root, NULL, BOTH, true},
    {"read_self_root", "/proc/self/root with ..", read_self_root, NULL, BOTH, true},
    {"read_cwd", "/proc/PID/cwd of a process outside", read_cwd, NULL, BOTH, true},
    {"read_fd", "/proc/PID/fd of a process outside", read_fd, NULL, BOTH, true},
    {"read_environ", "/proc/PID/environ of a process outside", read_environ, NULL, BOTH, true},
    {"read_mem", "/proc/PID/mem of a process outside", read_mem, NULL, BOTH, true},
    {"read_cmdline", "/proc/PID/cmdline of a process outside", read_cmdline, NULL, BOTH, true},
    {"read_handle", "open_by_handle_at", read_handle, NULL, BOTH, true},
    {"device_open", "a disk, or /dev/kmsg, /dev/mem, /dev/fuse, /dev/kvm, /dev/net/tun",
     device_open, NULL, BOTH, false},
    {"device_make", "the same by a device node of its own", device_make, NULL, BOTH, false},
    {"inherited_fd", "a descriptor that the starter had open", inherited_fd, NULL, BOTH, true},
    {"reopen_stderr", "its standard error, opened for reading", reopen_stderr, NULL, BOTH, true},
    {"state_read", "the log of the state directory", state_read, NULL, BOTH, true},
    {"state_keys_read", "the keys of the tools", state_keys_read, NULL, BOTH, true},
    {"other_read", "another agent's worktree", other_read, NULL, BOTH, true},
    {"main_config_read", "the configuration of the main repository", main_config_read, NULL, BOTH,
     true},
    {"shm_file", "a file in /dev/shm", shm_file, NULL, BOTH, true},
    {"tmp_file", "a file in /tmp", tmp_file, NULL, BOTH, true},
    {"write_outside", "a file outside", write_outside, write_outside_judge, BOTH, false},
    {"write_symlink", "through a link to a directory", write_symlink, write_symlink_judge, BOTH,
     false},
    {"write_hardlink", "through a hard link", write_hardlink, write_hardlink_judge, BOTH, false},
    {"rename_out", "move a file out", rename_out, rename_out_judge, BOTH, false},
    {"rename_in", "move a file in", rename_in, rename_in_judge, BOTH, false},
    {"truncate_file", "truncate a file outside", truncate_file, truncate_judge, BOTH, false},
    {"unlink_file", "remove a file outside", unlink_file, unlink_judge, BOTH, false},
    {"make_dir", "make a directory outside", make_dir, make_dir_judge, BOTH, false},
    {"change_mode", "change the mode of a file outside", change_mode, change_mode_judge, FULL,
     false},
    {"change_times", "change the times of a file outside", change_times, change_times_judge, FULL,
     false},
    {"change_flags", "change the flags of a file outside", change_flags, change_flags_judge, BOTH,
     false},
    {"state_write", "the log of the state directory", state_write, state_write_judge, BOTH, false},
    {"state_key_plant", "a key in the state directory", state_key_plant, state_key_plant_judge,
     BOTH, false},
    {"other_write", "another agent's worktree", other_write, other_write_judge, BOTH, false},
    {"program_write", "a program on PATH", program_write, program_write_judge, BOTH, false},
    {"profile_write", "the shell's start file", profile_write, profile_write_judge, BOTH, false},
    {"tmp_write", "a file in /tmp", tmp_write, tmp_write_judge, BOTH, false},
    {"sysctl_write", "/proc/sys/kernel/core_pattern", sysctl_write, NULL, BOTH, false},
    {"system_write", "/etc/passwd", system_write, NULL, BOTH, false},
    {"loader_write", "/etc/ld.so.preload", loader_write, NULL, BOTH, false},
    {"sysfs_write", "a setting in /sys", sysfs_write, NULL, BOTH, false},
    {"sysrq_write", "/proc/sysrq-trigger", sysrq_write, NULL, BOTH, false},
    {"score_write", "/proc/PID/oom_score_adj of a process outside", score_write, NULL, BOTH, false},
    {"cgroup_make", "a control group", cgroup_make, NULL, BOTH, false},
    {"setuid_plant", "a setuid program in the worktree", setuid_plant, setuid_plant_judge, BOTH,
     false},
    {"setuid_create", "open with a setuid mode", setuid_create, setuid_create_judge, BOTH, false},
    {"setuid_openat2", "openat2 with a setgid mode", setuid_openat2, setuid_openat2_judge, BOTH,
     false},
    {"device_plant", "a device node in the worktree", device_plant, device_plant_judge, BOTH,
     false},
    {"fifo_write", "the loop's FIFO by its path", fifo_write, fifo_write_judge, BOTH, false},
    {"fifo_by_proc", "the loop's FIFO by /proc/PID/fd", fifo_by_proc, fifo_by_proc_judge, BOTH,
     false},
    {"tool_on_state", "a tool of ours on a state directory", tool_on_state, tool_on_state_judge,
     BOTH, false},
    {0},
};
