/*
 * A shim for LD_PRELOAD that fails and traces what a program does to the files beneath one
 * directory.
 *
 * AMP_FAULT_ROOT=DIR      only files beneath DIR count (an absolute path without links)
 * AMP_FAULT=OP:N:HOW      the Nth OP fails. OP: write (also pwrite), fsync, fdatasync, sync
 *                         (either), rename, link, ftruncate, unlink, mkdir, step (any of these).
 *                         HOW: EIO, ENOSPC, EXDEV, SHORT (half of a write is done, the next one
 *                         gives ENOSPC), KILL (the program is killed in its place), TORN (half of
 *                         a write is done, then it is killed); or nothing fails, but the program is
 *                         sent TERM when it was done (TERM), or is stopped when its signals are
 *                         set free next, the lock of the log with them (STOP)
 * AMP_FAULT_MATCH=TEXT    only paths that contain TEXT
 * AMP_FAULT_TEXT=TEXT     only writes that contain TEXT
 * AMP_FAULT_LINES=N       SHORT, TORN behind the Nth line of the write instead; not if it has no
 * more AMP_FAULT_COUNT=FILE    at the end, how many such operations there were (all, with N 0)
 * AMP_FAULT_TRACE=FILE    what was done is appended to FILE, in the order in which it was done
 * AMP_FAULT_NOSYNC=1      fsync and fdatasync do nothing, and say that they did
 *
 * Every traced call is done under a lock on the trace file, so its order is the order of the
 * effects, in all processes. What is written to standard output is traced as well: it is what the
 * program acknowledged.
 */
/* Its inline wrappers would stand in the way of the ones defined here. */
#undef _FORTIFY_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "trace.h"

enum { KILLED = -2, TORN = -3, TERMED = -4, STOPPED = -5 };

static struct {
    bool ready, nosync, busy;
    const char *root, *match, *text;
    size_t root_len;
    int trace;
    char op[16];
    long nth, count, lines;
    int error; /* 0: none, -1: short, or one of the above */
    bool fail_next, stop_next;
} cfg;

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static void setup(void)
{
    if (cfg.ready)
        return;
    cfg.ready = true;
    cfg.trace = -1;
    cfg.root = getenv("AMP_FAULT_ROOT");
    cfg.root_len = cfg.root ? strlen(cfg.root) : 0;
    cfg.match = getenv("AMP_FAULT_MATCH");
    cfg.text = getenv("AMP_FAULT_TEXT");
    cfg.nosync = getenv("AMP_FAULT_NOSYNC") != NULL;
    cfg.lines = getenv("AMP_FAULT_LINES") ? atol(getenv("AMP_FAULT_LINES")) : -1;
    const char *f = getenv("AMP_FAULT"), *t = getenv("AMP_FAULT_TRACE");
    char how[16];
    if (f && sscanf(f, "%15[a-z]:%ld:%15[A-Z]", cfg.op, &cfg.nth, how) == 3)
        cfg.error = strcmp(how, "EIO") == 0      ? EIO
                    : strcmp(how, "ENOSPC") == 0 ? ENOSPC
                    : strcmp(how, "EXDEV") == 0  ? EXDEV
                    : strcmp(how, "KILL") == 0   ? KILLED
                    : strcmp(how, "TORN") == 0   ? TORN
                    : strcmp(how, "TERM") == 0   ? TERMED
                    : strcmp(how, "STOP") == 0   ? STOPPED
                                                 : -1;
    if (t)
        cfg.trace = REAL(open)(t, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
}

/* The path of a descriptor beneath the root, relative to it; NULL when it is not. */
static const char *beneath(const char *path)
{
    if (!cfg.root || strncmp(path, cfg.root, cfg.root_len) != 0 || path[cfg.root_len] != '/')
        return NULL;
    return path + cfg.root_len + 1;
}

static const char *fd_path(int fd, char buf[PATH_MAX])
{
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, buf, PATH_MAX - 1);
    if (n < 0)
        return NULL;
    buf[n] = '\0';
    if (strcmp(buf, cfg.root ? cfg.root : "") == 0)
        return "";
    return beneath(buf);
}

static const char *at_path(int dirfd, const char *path, char buf[PATH_MAX])
{
    char dir[PATH_MAX];
    if (path[0] == '/')
        return beneath(path);
    if (dirfd == AT_FDCWD) {
        if (!getcwd(dir, sizeof dir))
            return NULL;
    } else {
        char link[64];
        snprintf(link, sizeof link, "/proc/self/fd/%d", dirfd);
        ssize_t n = readlink(link, dir, sizeof dir - 1);
        if (n < 0)
            return NULL;
        dir[n] = '\0';
    }
    if (snprintf(buf, PATH_MAX, "%s/%s", dir, path) >= PATH_MAX)
        return NULL;
    return beneath(buf);
}

/* Whether this call is the one that fails. */
static int fails(const char *op, const char *path)
{
    if (!cfg.error || !path || (cfg.match && !strstr(path, cfg.match)))
        return 0;
    if (strcmp(cfg.op, op) != 0 && strcmp(cfg.op, "step") != 0 &&
        !(strcmp(cfg.op, "sync") == 0 && strstr(op, "sync")))
        return 0;
    if (cfg.fail_next) {
        cfg.fail_next = false;
        return ENOSPC;
    }
    if (++cfg.count != cfg.nth)
        return 0;
    if (cfg.error == KILLED)
        raise(SIGKILL);
    return cfg.error;
}

__attribute__((destructor)) static void tell_count(void)
{
    const char *file = getenv("AMP_FAULT_COUNT");
    FILE *f = file && cfg.count ? fopen(file, "w") : NULL;
    if (f) {
        fprintf(f, "%ld\n", cfg.count);
        fclose(f);
    }
}

static void lock_trace(void)
{
    if (cfg.trace >= 0)
        flock(cfg.trace, LOCK_EX);
}

static void unlock_trace(void)
{
    if (cfg.trace >= 0)
        flock(cfg.trace, LOCK_UN);
}

static void record(enum trace_op op, int fd, const char *path, const char *path2, long long off,
                   const void *data, size_t n)
{
    struct stat st = {0};
    struct trace_record r = {.op = op, .off = off, .n = (unsigned)n};
    if (cfg.trace < 0)
        return;
    if (fd >= 0 && fstat(fd, &st) == 0)
        r.ino = st.st_ino;
    r.n_path = (unsigned)strlen(path) + 1;
    r.n_path2 = path2 ? (unsigned)strlen(path2) + 1 : 0;
    size_t size = sizeof r + r.n_path + r.n_path2 + n;
    char *p = malloc(size);
    if (!p)
        abort();
    memcpy(p, &r, sizeof r);
    memcpy(p + sizeof r, path, r.n_path);
    if (path2)
        memcpy(p + sizeof r + r.n_path, path2, r.n_path2);
    if (n)
        memcpy(p + sizeof r + r.n_path + r.n_path2, data, n);
    if (REAL(write)(cfg.trace, p, size) != (ssize_t)size)
        abort();
    free(p);
}

static bool is_dir(int fd)
{
    struct stat st;
    return fstat(fd, &st) == 0 && S_ISDIR(st.st_mode);
}

/* The size of the first cfg.lines lines; n: there are no more. */
static size_t lines_size(const char *p, size_t n)
{
    const char *at = p, *end = p + n;
    for (long i = 0; at && i < cfg.lines; i++)
        if ((at = memchr(at, '\n', (size_t)(end - at))))
            at++;
    return at ? (size_t)(at - p) : n;
}

static ssize_t do_write(int fd, const void *p, size_t n, off_t off, bool positioned)
{
    char buf[PATH_MAX];
    setup();
    const char *path = fd_path(fd, buf);
    bool ack = fd == 1 && cfg.trace >= 0;
    if (!path && !ack)
        return positioned ? REAL(pwrite64)(fd, p, n, off) : REAL(write)(fd, p, n);
    bool other = cfg.text && !cfg.fail_next && !memmem(p, n, cfg.text, strlen(cfg.text));
    int e = other ? 0 : fails("write", path);
    if (e > 0) {
        errno = e;
        return -1;
    }
    if ((e == TORN || e == -1) && cfg.lines >= 0) {
        size_t part = lines_size(p, n);
        e = part < n ? e : 0;
        cfg.fail_next = e == -1;
        n = part;
    } else if ((e == -1 || e == TORN) && n > 1) {
        n /= 2;
        cfg.fail_next = true;
    }
    lock_trace();
    if (!positioned && path) {
        off = lseek(fd, 0, SEEK_CUR);
        if (fcntl(fd, F_GETFL) & O_APPEND)
            off = lseek(fd, 0, SEEK_END);
    }
    ssize_t r = positioned ? REAL(pwrite64)(fd, p, n, off) : REAL(write)(fd, p, n);
    if (e == TORN || e == TERMED)
        raise(e == TORN ? SIGKILL : SIGTERM);
    cfg.stop_next = e == STOPPED;
    if (r > 0)
        record(path ? TRACE_WRITE : TRACE_ACK, path ? fd : -1, path ? path : "", NULL, off, p,
               (size_t)r);
    unlock_trace();
    return r;
}

int sigprocmask(int how, const sigset_t *set, sigset_t *old)
{
    int rc = REAL(sigprocmask)(how, set, old);
    if (cfg.stop_next && how == SIG_SETMASK) {
        cfg.stop_next = false;
        raise(SIGSTOP);
    }
    return rc;
}

ssize_t write(int fd, const void *p, size_t n)
{
    return do_write(fd, p, n, 0, false);
}

ssize_t pwrite64(int fd, const void *p, size_t n, off64_t off)
{
    return do_write(fd, p, n, off, true);
}

ssize_t pwrite(int fd, const void *p, size_t n, off_t off)
{
    return do_write(fd, p, n, off, true);
}

/* Programs then copy by write, which is seen here. */
ssize_t copy_file_range(int from, off64_t *from_off, int to, off64_t *to_off, size_t n,
                        unsigned flags)
{
    (void)from, (void)from_off, (void)to, (void)to_off, (void)n, (void)flags;
    errno = ENOSYS;
    return -1;
}

static int do_sync(int fd, const char *name, int (*real)(int))
{
    char buf[PATH_MAX];
    setup();
    const char *path = fd_path(fd, buf);
    if (!path)
        return real(fd);
    int e = fails(name, path);
    if (e) {
        errno = e > 0 ? e : EIO;
        return -1;
    }
    if (cfg.nosync)
        return 0;
    lock_trace();
    /* A crash image is made from the trace; the real disk need not wait. */
    int rc = cfg.trace >= 0 ? 0 : real(fd);
    if (rc == 0)
        record(is_dir(fd) ? TRACE_SYNC_DIR : TRACE_SYNC, fd, path, NULL, 0, NULL, 0);
    unlock_trace();
    return rc;
}

int fsync(int fd)
{
    return do_sync(fd, "fsync", REAL(fsync));
}

int fdatasync(int fd)
{
    return do_sync(fd, "fdatasync", REAL(fdatasync));
}

int ftruncate64(int fd, off64_t size)
{
    char buf[PATH_MAX];
    setup();
    const char *path = fd_path(fd, buf);
    int e = fails("ftruncate", path);
    if (e) {
        errno = e > 0 ? e : EIO;
        return -1;
    }
    lock_trace();
    int rc = REAL(ftruncate64)(fd, size);
    if (rc == 0 && path)
        record(TRACE_TRUNCATE, fd, path, NULL, size, NULL, 0);
    unlock_trace();
    return rc;
}

int ftruncate(int fd, off_t size)
{
    return ftruncate64(fd, size);
}

/* A name for an inode: what was made by open, link or rename. */
static void record_name(enum trace_op op, const char *path, const char *path2)
{
    char full[PATH_MAX];
    snprintf(full, sizeof full, "%s/%s", cfg.root, path2 ? path2 : path);
    int fd = cfg.trace < 0 ? -1 : REAL(open)(full, O_PATH | O_CLOEXEC | O_NOFOLLOW);
    record(op, fd, path, path2, 0, NULL, 0);
    if (fd >= 0)
        close(fd);
}

static int do_open(int dirfd, const char *name, int flags, mode_t mode)
{
    char buf[PATH_MAX];
    setup();
    const char *path =
        cfg.trace >= 0 && (flags & (O_CREAT | O_TRUNC)) ? at_path(dirfd, name, buf) : NULL;
    if (!path)
        return REAL(openat64)(dirfd, name, flags, mode);
    lock_trace();
    bool existed = faccessat(dirfd, name, F_OK, 0) == 0;
    int fd = REAL(openat64)(dirfd, name, flags, mode);
    if (fd >= 0 && !existed)
        record(TRACE_CREATE, fd, path, NULL, 0, NULL, 0);
    else if (fd >= 0 && (flags & O_TRUNC))
        record(TRACE_TRUNCATE, fd, path, NULL, 0, NULL, 0);
    unlock_trace();
    return fd;
}

#define OPEN_MODE(flags)                                                                           \
    mode_t mode = 0;                                                                               \
    if ((flags) & (O_CREAT | O_TMPFILE)) {                                                         \
        va_list ap;                                                                                \
        va_start(ap, flags);                                                                       \
        mode = (mode_t)va_arg(ap, int);                                                            \
        va_end(ap);                                                                                \
    }

int open(const char *name, int flags, ...)
{
    OPEN_MODE(flags)
    return do_open(AT_FDCWD, name, flags, mode);
}

int open64(const char *name, int flags, ...)
{
    OPEN_MODE(flags)
    return do_open(AT_FDCWD, name, flags, mode);
}

int openat(int dirfd, const char *name, int flags, ...)
{
    OPEN_MODE(flags)
    return do_open(dirfd, name, flags, mode);
}

int openat64(int dirfd, const char *name, int flags, ...)
{
    OPEN_MODE(flags)
    return do_open(dirfd, name, flags, mode);
}

int mkdirat(int dirfd, const char *name, mode_t mode)
{
    char buf[PATH_MAX];
    setup();
    int e = fails("mkdir", at_path(dirfd, name, buf));
    if (e) {
        errno = e > 0 ? e : EIO;
        return -1;
    }
    const char *path = at_path(dirfd, name, buf);
    lock_trace();
    int rc = REAL(mkdirat)(dirfd, name, mode);
    if (rc == 0 && path)
        record_name(TRACE_MKDIR, path, NULL);
    unlock_trace();
    return rc;
}

int mkdir(const char *name, mode_t mode)
{
    return mkdirat(AT_FDCWD, name, mode);
}

int renameat(int from_fd, const char *from, int to_fd, const char *to)
{
    char a[PATH_MAX], b[PATH_MAX];
    setup();
    const char *path = at_path(from_fd, from, a), *path2 = at_path(to_fd, to, b);
    int e = fails("rename", path2);
    if (e) {
        errno = e > 0 ? e : EIO;
        return -1;
    }
    lock_trace();
    int rc = REAL(renameat)(from_fd, from, to_fd, to);
    if (rc == 0 && path && path2)
        record_name(TRACE_RENAME, path, path2);
    unlock_trace();
    return rc;
}

/* Two names that change places; a trace does not have it. */
int renameat2(int from_fd, const char *from, int to_fd, const char *to, unsigned flags)
{
    char b[PATH_MAX];
    setup();
    int e = fails("rename", at_path(to_fd, to, b));
    if (e) {
        errno = e > 0 ? e : EIO;
        return -1;
    }
    return REAL(renameat2)(from_fd, from, to_fd, to, flags);
}

int rename(const char *from, const char *to)
{
    return renameat(AT_FDCWD, from, AT_FDCWD, to);
}

int linkat(int from_fd, const char *from, int to_fd, const char *to, int flags)
{
    char a[PATH_MAX], b[PATH_MAX];
    setup();
    const char *path = at_path(from_fd, from, a), *path2 = at_path(to_fd, to, b);
    int e = fails("link", path2);
    if (e) {
        errno = e > 0 ? e : EIO;
        return -1;
    }
    lock_trace();
    int rc = REAL(linkat)(from_fd, from, to_fd, to, flags);
    if (rc == 0 && path && path2)
        record_name(TRACE_LINK, path, path2);
    unlock_trace();
    return rc;
}

int link(const char *from, const char *to)
{
    return linkat(AT_FDCWD, from, AT_FDCWD, to, 0);
}

int unlinkat(int dirfd, const char *name, int flags)
{
    char buf[PATH_MAX];
    setup();
    const char *path = at_path(dirfd, name, buf);
    int e = fails("unlink", path);
    if (e) {
        errno = e > 0 ? e : EIO;
        return -1;
    }
    lock_trace();
    int rc = REAL(unlinkat)(dirfd, name, flags);
    if (rc == 0 && path)
        record(TRACE_UNLINK, -1, path, NULL, 0, NULL, 0);
    unlock_trace();
    return rc;
}

int unlink(const char *name)
{
    return unlinkat(AT_FDCWD, name, 0);
}
