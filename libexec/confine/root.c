/*
 * The new root directory. Sources are opened and their mounts copied first (open_tree), while the
 * old root is still there; the copies get their flags (mount_setattr) before they are attached, so
 * nothing is ever visible with more rights than it should have. The old root is detached last.
 *
 * No path is followed through a symbolic link: sources are real paths, and targets are resolved in
 * the new root, component by component, because a worktree in it has the contents of an agent.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <amp/base/buf.h>
#include <amp/base/num.h>

#include "confine.h"

#define ETC_FILE_MAX ((size_t)1 << 20)

/* From <sys/mount.h>, which conflicts with <linux/mount.h> in some versions of libc. */
#define MOUNT_RECURSIVE 16384
#define MOUNT_PRIVATE   (1 << 18)
#define UMOUNT_DETACH   2

const char *const toolchain_dirs[] = {"/usr",   "/bin",    "/sbin", "/lib",       "/lib32",
                                      "/lib64", "/libx32", "/opt",  "/nix/store", NULL};
/* Programs need these of /etc to start and to resolve names; it has no keys and no passwords. */
const char *const toolchain_etc[] = {"alternatives",   "bash.bashrc",   "ca-certificates.conf",
                                     "debian_version", "fonts",         "group",
                                     "host.conf",      "hosts",         "inputrc",
                                     "ld.so.cache",    "ld.so.conf",    "ld.so.conf.d",
                                     "localtime",      "lsb-release",   "magic",
                                     "mime.types",     "nsswitch.conf", "os-release",
                                     "passwd",         "pki/tls/certs", "profile",
                                     "protocols",      "resolv.conf",   "services",
                                     "shells",         "ssl/certs",     "ssl/openssl.cnf",
                                     "terminfo",       "timezone",      NULL};
const char *const device_names[] = {"null", "zero", "full", "random", "urandom", "tty", NULL};

static int open_at(int dir, const char *path, uint64_t resolve, uint64_t flags)
{
    struct open_how how = {.flags = flags | O_CLOEXEC, .resolve = resolve};
    return (int)syscall(SYS_openat2, dir, path, &how, sizeof how);
}

/* A detached file system of its own, with no device files, programs only where they are needed. */
struct fs_option {
    const char *key, *value;
};
static int new_fs(const struct plan *p, const char *type, const struct fs_option *options,
                  unsigned attributes)
{
    int fs = (int)syscall(SYS_fsopen, type, FSOPEN_CLOEXEC);
    bool failed = fs < 0;
    for (; !failed && options && options->key; options++)
        failed =
            syscall(SYS_fsconfig, fs, FSCONFIG_SET_STRING, options->key, options->value, 0) < 0;
    if (failed || syscall(SYS_fsconfig, fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
        give_up_sys(p, "cannot make a file system of type %s", type);
    int mnt = (int)syscall(SYS_fsmount, fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | attributes);
    if (mnt < 0)
        give_up_sys(p, "cannot mount a file system of type %s", type);
    close(fs);
    return mnt;
}

static void set_flags(const struct plan *p, int tree, uint64_t flags, const char *what)
{
    struct mount_attr attr = {.attr_set = flags};
    if (syscall(SYS_mount_setattr, tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr, sizeof attr) < 0)
        give_up_sys(p, "cannot set the mount options of %s", what);
}

/* A detached copy of the mounts at an open path, with the flags of a grant. */
static int copy_tree(const struct plan *p, int fd, const char *what, bool write, bool device)
{
    int tree = (int)syscall(SYS_open_tree, fd, "",
                            OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH | AT_RECURSIVE);
    if (tree < 0)
        give_up_sys(p, "cannot copy the mount of %s", what);
    set_flags(p, tree,
              MOUNT_ATTR_NOSUID | (write ? 0 : MOUNT_ATTR_RDONLY) |
                  (device ? MOUNT_ATTR_NOEXEC : MOUNT_ATTR_NODEV),
              what);
    return tree;
}

static void attach_tree(const struct plan *p, int tree, int target, const char *what)
{
    if (syscall(SYS_move_mount, tree, "", target, "",
                MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0)
        give_up_sys(p, "cannot mount %s", what);
    close(tree);
    close(target);
}

/* Attaches at a directory or file of the new root that only this process has written to. */
static void attach_at(const struct plan *p, int tree, int root, const char *path)
{
    if (syscall(SYS_move_mount, tree, "", root, path, MOVE_MOUNT_F_EMPTY_PATH) < 0)
        give_up_sys(p, "cannot mount /%s", path);
    close(tree);
}

/* The new root's own file systems: directories are made in these only. */
struct root {
    int fd;
    dev_t own[2];
};

static bool is_own(const struct root *r, int fd)
{
    struct stat st;
    return fstat(fd, &st) == 0 && (st.st_dev == r->own[0] || st.st_dev == r->own[1]);
}

/* Opens a path in the new root; makes missing directories, and the last component as `file`, in the
 * root's own file systems. */
static int open_target(const struct plan *p, const struct root *r, const char *path, bool file)
{
    char name[NAME_MAX + 1];
    int dir = dup(r->fd);
    if (dir < 0)
        give_up_sys(p, "cannot open the new root");
    for (const char *at = path + strspn(path, "/"); *at;) {
        size_t n = strcspn(at, "/");
        const char *next = at + n + strspn(at + n, "/");
        if (!amp_span_copy((struct amp_span){at, n}, name, sizeof name))
            give_up(p, 77, "a name is too long in %s", path);
        int fd = open_at(dir, name, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS, O_PATH);
        if (fd < 0 && errno == ENOENT && is_own(r, dir)) {
            if (*next || !file)
                mkdirat(dir, name, 0755);
            else
                close(openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
            fd = open_at(dir, name, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS, O_PATH);
        }
        if (fd < 0)
            give_up_sys(p, "cannot make %s visible in the sandbox", path);
        close(dir);
        dir = fd;
        at = next;
    }
    return dir;
}

static void bind_open(const struct plan *p, int fd, const char *what, bool write, int *tree,
                      bool *file)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        give_up_sys(p, "%s", what);
    *file = !S_ISDIR(st.st_mode);
    *tree = copy_tree(p, fd, what, write, S_ISCHR(st.st_mode));
    close(fd);
}

static void places_open(struct plan *p)
{
    for (size_t i = 0; i < p->n_places; i++) {
        struct mount_place *q = &p->places[i];
        if (!q->from)
            continue;
        int fd = open_at(AT_FDCWD, q->from, RESOLVE_NO_SYMLINKS, O_PATH);
        struct stat st;
        if (fd < 0)
            give_up_sys(p, "cannot open %s", q->from);
        if (fstat(fd, &st) == 0 && (S_ISCHR(st.st_mode) || S_ISBLK(st.st_mode)))
            give_up(p, 77, "%s is a device", q->from);
        bind_open(p, fd, q->from, q->write, &q->tree, &q->file);
    }
}

/* Binds a path of the host, or repeats a symbolic link; absent ones are left out. */
struct base {
    const char *path;
    int tree;
    bool file;
    char link[PATH_MAX];
};

static void copy_file(const struct plan *p, int from, int to, const char *name)
{
    char b[65536];
    size_t all = 0;
    for (ssize_t n; (n = read(from, b, sizeof b)) != 0; all += (size_t)n) {
        if (n < 0 || write(to, b, (size_t)n) != n || all > ETC_FILE_MAX)
            give_up_sys(p, "cannot copy /etc/%s", name);
        if ((size_t)n < sizeof b)
            break;
    }
}

/* Makes the directories above a name of toolchain_etc. */
static void etc_parents(int etc, const char *name)
{
    char dir[256];
    for (const char *slash = strchr(name, '/'); slash; slash = strchr(slash + 1, '/'))
        if (amp_span_copy((struct amp_span){name, (size_t)(slash - name)}, dir, sizeof dir))
            mkdirat(etc, dir, 0755);
}

/* /etc: files are copied, directories are bound. A file that cannot be read is left out. */
static void etc_build(const struct plan *p, int root, int host)
{
    int etc = mkdirat(root, "etc", 0755) < 0 ? -1 : openat(root, "etc", O_PATH | O_CLOEXEC);
    if (etc < 0)
        give_up_sys(p, "cannot make /etc");
    for (const char *const *name = toolchain_etc; *name; name++) {
        struct stat st;
        int from = openat(host, *name, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        if (from < 0 || fstat(from, &st) < 0)
            continue;
        etc_parents(etc, *name);
        if (S_ISDIR(st.st_mode)) {
            if (mkdirat(etc, *name, 0755) < 0)
                give_up_sys(p, "cannot make /etc/%s", *name);
            attach_at(p, copy_tree(p, from, *name, false, false), etc, *name);
        } else if (S_ISREG(st.st_mode)) {
            int to = openat(etc, *name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
            if (to < 0)
                give_up_sys(p, "cannot make /etc/%s", *name);
            copy_file(p, from, to, *name);
            close(to);
        }
        close(from);
    }
    close(etc);
}

static void dev_build(const struct plan *p, int root, const int *trees, int pts)
{
    char path[64];
    if (mkdirat(root, "dev", 0755) < 0 || mkdirat(root, "dev/pts", 0755) < 0 ||
        mkdirat(root, "dev/shm", 0755) < 0)
        give_up_sys(p, "cannot build /dev");
    for (size_t i = 0; device_names[i]; i++) {
        snprintf(path, sizeof path, "dev/%s", device_names[i]);
        if (trees[i] < 0)
            continue;
        if (mknodat(root, path, S_IFREG | 0644, 0) < 0)
            give_up_sys(p, "cannot make /%s", path);
        attach_at(p, trees[i], root, path);
    }
    attach_at(p, pts, root, "dev/pts");
    if (symlinkat("pts/ptmx", root, "dev/ptmx") < 0 ||
        symlinkat("/proc/self/fd", root, "dev/fd") < 0 ||
        symlinkat("/proc/self/fd/0", root, "dev/stdin") < 0 ||
        symlinkat("/proc/self/fd/1", root, "dev/stdout") < 0 ||
        symlinkat("/proc/self/fd/2", root, "dev/stderr") < 0)
        give_up_sys(p, "cannot build /dev");
}

bool root_pids_limited(void)
{
    struct utsname u;
    char *end;
    if (uname(&u) < 0)
        return false;
    long major = strtol(u.release, &end, 10);
    long minor = *end == '.' ? strtol(end + 1, NULL, 10) : 0;
    return major > 6 || (major == 6 && minor >= 14);
}

/* uid 0 is exempt from RLIMIT_NPROC; pid_max also counts. Its least value is 301. Before Linux 6.14
 * it is the host's, which must not change. */
static void pids_limit(const struct plan *p, int proc)
{
    char text[24];
    if (p->processes <= 0 || geteuid() != 0 || !root_pids_limited())
        return;
    AMP_CLOSE int fd = openat(proc, "sys/kernel/pid_max", O_WRONLY | O_CLOEXEC);
    int n =
        snprintf(text, sizeof text, "%lld", (long long)(p->processes < 301 ? 301 : p->processes));
    if (fd < 0 || write(fd, text, (size_t)n) != n)
        give_up_sys(p, "cannot limit the number of processes");
}

/* A directory of the scratch file system at a path of the new root. */
static void scratch_bind(const struct plan *p, const struct root *r, int scratch, const char *name,
                         mode_t mode, const char *at)
{
    if (mkdirat(scratch, name, 0700) < 0 || fchmodat(scratch, name, mode, 0) < 0)
        give_up_sys(p, "cannot make %s", at);
    int fd = openat(scratch, name, O_PATH | O_CLOEXEC);
    attach_tree(p, copy_tree(p, fd, at, true, false), open_target(p, r, at, false), at);
    close(fd);
}

/* A directory for a place that shows nothing but the places in it, which could not be mounted on a
 * name that is missing there. */
static int cover_open(const struct plan *p, const struct root *r, size_t i, int scratch)
{
    const char *at = p->places[i].at;
    size_t n = strlen(at);
    char name[32];

    snprintf(name, sizeof name, "cover%zu", i);
    if (mkdirat(scratch, name, 0755) < 0)
        give_up_sys(p, "cannot make a directory");
    struct root cover = {open_at(scratch, name, RESOLVE_NO_SYMLINKS, O_PATH),
                         {r->own[0], r->own[1]}};
    for (size_t j = 0; j < p->n_places; j++)
        if (j != i && strncmp(p->places[j].at, at, n) == 0 && p->places[j].at[n] == '/')
            close(open_target(p, &cover, p->places[j].at + n, p->places[j].file));
    return cover.fd;
}

static void places_attach(const struct plan *p, const struct root *r, int scratch)
{
    for (size_t i = 0; i < p->n_places; i++) {
        const struct mount_place *q = &p->places[i];
        int tree = q->tree;
        if (!q->from) {
            int empty = cover_open(p, r, i, scratch);
            tree = copy_tree(p, empty, q->at, false, false);
            close(empty);
        }
        attach_tree(p, tree, open_target(p, r, q->at, q->file), q->at);
    }
}

static void root_enter(const struct plan *p, const struct root *r)
{
    int target = open("/usr", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (target < 0)
        target = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    int keep = dup(r->fd);
    attach_tree(p, r->fd, target, "the new root");
    if (fchdir(keep) < 0 || syscall(SYS_pivot_root, ".", ".") < 0 ||
        syscall(SYS_umount2, ".", UMOUNT_DETACH) < 0 || chdir("/") < 0)
        give_up_sys(p, "cannot enter the new root");
    close(keep);
    struct mount_attr attr = {.attr_set = MOUNT_ATTR_RDONLY};
    if (syscall(SYS_mount_setattr, AT_FDCWD, "/", 0, &attr, sizeof attr) < 0)
        give_up_sys(p, "cannot make the new root read-only");
    if (chdir(p->cwd) < 0)
        give_up_sys(p, "cannot enter %s in the sandbox", p->cwd);
}

static const struct fs_option pts_options[] = {{"ptmxmode", "0666"}, {"mode", "0620"}, {0}};
static const struct fs_option root_options[] = {{"mode", "0755"}, {"size", "16m"}, {0}};
/* /tmp, /var/tmp, /dev/shm and HOME together; it is memory. */
static const struct fs_option scratch_options[] = {
    {"mode", "0700"}, {"size", "2g"}, {"nr_inodes", "500k"}, {0}};

#define BASES (sizeof toolchain_dirs / sizeof *toolchain_dirs)

void root_build(struct plan *p)
{
    struct root r = {-1, {0, 0}};
    struct base bases[BASES] = {0};
    int devices[16];
    struct stat st;
    if (syscall(SYS_mount, NULL, "/", NULL, MOUNT_RECURSIVE | MOUNT_PRIVATE, NULL) < 0)
        give_up_sys(p, "cannot detach the mounts from the host's");
    for (size_t i = 0; toolchain_dirs[i]; i++) {
        struct base *b = &bases[i];
        b->tree = -1;
        ssize_t n = readlink(toolchain_dirs[i], b->link, sizeof b->link - 1);
        int fd = n > 0 ? -1 : open(toolchain_dirs[i], O_PATH | O_NOFOLLOW | O_CLOEXEC);
        b->link[n > 0 ? n : 0] = '\0';
        if (fd >= 0)
            bind_open(p, fd, toolchain_dirs[i], false, &b->tree, &b->file);
    }
    for (size_t i = 0; device_names[i]; i++) {
        char path[64];
        bool file;
        snprintf(path, sizeof path, "/dev/%s", device_names[i]);
        int fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
        devices[i] = -1;
        if (fd >= 0)
            bind_open(p, fd, path, true, &devices[i], &file);
    }
    places_open(p);
    int etc = open("/etc", O_PATH | O_DIRECTORY | O_CLOEXEC);
    int proc = new_fs(p, "proc", NULL, MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
    pids_limit(p, proc);
    set_flags(p, proc, MOUNT_ATTR_RDONLY, "/proc");
    int pts = new_fs(p, "devpts", pts_options, MOUNT_ATTR_NOEXEC);

    r.fd = new_fs(p, "tmpfs", root_options, MOUNT_ATTR_NODEV);
    int scratch = new_fs(p, "tmpfs", scratch_options, MOUNT_ATTR_NODEV);
    if (fstat(r.fd, &st) == 0)
        r.own[0] = st.st_dev;
    if (fstat(scratch, &st) == 0)
        r.own[1] = st.st_dev;
    for (size_t i = 0; i < BASES; i++) {
        struct base *b = &bases[i];
        if (b->link[0] && symlinkat(b->link, r.fd, toolchain_dirs[i] + 1) < 0)
            give_up_sys(p, "cannot make %s", toolchain_dirs[i]);
        if (b->link[0] || !toolchain_dirs[i] || b->tree < 0)
            continue;
        close(open_target(p, &r, toolchain_dirs[i], b->file));
        attach_at(p, b->tree, r.fd, toolchain_dirs[i] + 1);
    }
    if (etc >= 0)
        etc_build(p, r.fd, etc);
    dev_build(p, r.fd, devices, pts);
    if (mkdirat(r.fd, "proc", 0755) < 0)
        give_up_sys(p, "cannot make /proc");
    attach_at(p, proc, r.fd, "proc");
    scratch_bind(p, &r, scratch, "tmp", 01777, "/tmp");
    scratch_bind(p, &r, scratch, "shm", 01777, "/dev/shm");
    scratch_bind(p, &r, scratch, "vartmp", 01777, "/var/tmp");
    if (p->home)
        scratch_bind(p, &r, scratch, "home", 0700, p->home);
    places_attach(p, &r, scratch);
    close(scratch);
    /* A worktree of which nothing is granted is an empty directory. */
    close(open_target(p, &r, p->cwd, false));
    root_enter(p, &r);
}

static void write_once(const struct plan *p, const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
        give_up_sys(p, "cannot write %s", path);
    close(fd);
}

void root_map_user(const struct plan *p, uid_t uid, gid_t gid)
{
    char line[64];
    write_once(p, "/proc/self/setgroups", "deny");
    snprintf(line, sizeof line, "%u %u 1\n", gid, gid);
    write_once(p, "/proc/self/gid_map", line);
    snprintf(line, sizeof line, "%u %u 1\n", uid, uid);
    write_once(p, "/proc/self/uid_map", line);
}
