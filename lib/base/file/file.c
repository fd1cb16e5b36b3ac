/* Files: complete reads and writes, atomic replacement, publication, safe opening. */
#include <amp/base/file.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <amp/base/id.h>

#include "base/codes.h"
#include "base/file/own.h"

int amp_write_all(int fd, struct amp_span data, struct amp_error *err)
{
    while (data.n > 0) {
        ssize_t n = write(fd, data.p, data.n);
        if (n >= 0) {
            data.p += n;
            data.n -= (size_t)n;
        } else if (errno == EAGAIN) {
            struct pollfd p = {.fd = fd, .events = POLLOUT};
            if (poll(&p, 1, -1) < 0 && errno != EINTR)
                return amp_fail_errno(err, AMP_IOERR, "cannot wait for output");
        } else if (errno != EINTR) {
            return amp_fail_errno(err, AMP_IOERR, "cannot write");
        }
    }
    return 0;
}

int amp_file_open(int dirfd, const char *path, int flags, mode_t mode, struct amp_error *err)
{
    struct stat st;
    int fd = openat(dirfd, path, flags | O_NONBLOCK | O_CLOEXEC | O_NOCTTY, mode);
    /* ENXIO: a FIFO without a reader, a socket or a device without a driver. */
    if (fd < 0 && errno != ENXIO)
        return amp_fail_errno(err, flags & O_CREAT ? AMP_CANTCREAT : AMP_DATAERR, "cannot open %s",
                              path);
    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
        return fd;
    if (fd >= 0)
        close(fd);
    amp_fail(err, AMP_DATAERR, not_a_file, "%s is not a regular file", path);
    errno = EINVAL;
    return -1;
}

static int read_whole(int fd, const char *path, size_t max, bool any, struct amp_buf *out,
                      struct amp_error *err)
{
    AMP_BUF struct amp_buf b = {0};
    amp_buf_init(&b, max + 1);
    struct pollfd in = {.fd = fd, .events = POLLIN};
    struct stat st;
    if (fstat(fd, &st) < 0)
        return amp_fail_errno(err, AMP_IOERR, "cannot stat %s", path);
    size_t step = st.st_size > 0 && (size_t)st.st_size <= max ? (size_t)st.st_size + 1 : 16384;
    for (;;) {
        size_t want = step > b.max - b.len ? b.max - b.len : step;
        if (want == 0)
            break;
        if (amp_buf_reserve(&b, want, err) < 0)
            return -1;
        ssize_t n = read(fd, b.data + b.len, want);
        if (n < 0 && errno == EINTR && !any)
            continue;
        /* The other end of an inherited socket or pipe may have made it non-blocking. */
        if (n < 0 && errno == EAGAIN && poll(&in, 1, -1) >= 0)
            continue;
        if (n < 0 && errno == EINTR)
            return amp_fail(err, AMP_INTERRUPTED, interrupted, "interrupted while reading %s",
                            path);
        if (n < 0)
            return amp_fail_errno(err, AMP_IOERR, "cannot read %s", path);
        if (n == 0)
            break;
        b.len += (size_t)n;
    }
    if (b.len > max)
        return amp_fail(err, AMP_DATAERR, file_too_large, "%s is larger than %zu bytes", path, max);
    return amp_buf_add(out, b.data, b.len, err);
}

DIR *amp_dir_open(int dirfd, const char *path)
{
    int fd = openat(dirfd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (!d && fd >= 0)
        close(fd);
    return d;
}

void amp_auto_closedir(DIR **dir)
{
    if (*dir)
        closedir(*dir);
}

int amp_file_read(int dirfd, const char *path, size_t max, struct amp_buf *out,
                  struct amp_error *err)
{
    AMP_CLOSE int fd = amp_file_open(dirfd, path, O_RDONLY, 0, err);
    return fd < 0 ? -1 : read_whole(fd, path, max, false, out, err);
}

int amp_file_read_any(const char *path, size_t max, struct amp_buf *out, struct amp_error *err)
{
    AMP_CLOSE int fd = amp_own_open(path, O_RDONLY, 0);
    if (strcmp(path, "-") == 0)
        path = "standard input";
    if (fd < 0 && errno == EINTR)
        return amp_fail(err, AMP_INTERRUPTED, interrupted, "interrupted while opening %s", path);
    if (fd < 0)
        return amp_fail_errno(err, AMP_DATAERR, "cannot open %s", path);
    return read_whole(fd, path, max, true, out, err);
}

/* A random name in the directory of path, with a leading dot, so that directory readers skip it. */
static int temporary_name(const char *path, char *out, size_t size, struct amp_error *err)
{
    const char *slash = strrchr(path, '/');
    int dir = slash ? (int)(slash - path) + 1 : 0;
    unsigned long long r;
    amp_random(&r, sizeof r);
    int n = snprintf(out, size, "%.*s.%.100s.%016llx.tmp", dir, path, path + dir, r);
    if (n < 0 || (size_t)n >= size || path[dir] == '\0')
        return amp_fail(err, AMP_CANTCREAT, bad_path, "cannot use the path '%s'", path);
    return 0;
}

static int sync_parent(int dirfd, const char *path, struct amp_error *err)
{
    const char *slash = strrchr(path, '/');
    if (!slash)
        return amp_fsync_dir(dirfd, ".", err);
    char dir[PATH_MAX];
    size_t n = slash == path ? 1 : (size_t)(slash - path);
    if (!amp_span_copy((struct amp_span){path, n}, dir, sizeof dir))
        return amp_fail(err, AMP_CANTCREAT, bad_path, "the path is too long: %s", path);
    return amp_fsync_dir(dirfd, dir, err);
}

/* Creates the temporary file with data, synced and closed. */
static int write_temporary(int dirfd, const char *tmp, mode_t mode, struct amp_span data,
                           struct amp_error *err)
{
    int fd = openat(dirfd, tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
    if (fd < 0)
        return amp_fail_errno(err, AMP_CANTCREAT, "cannot create %s", tmp);
    int rc = amp_write_all(fd, data, err);
    if (!rc && fsync(fd) < 0)
        rc = amp_fail_errno(err, AMP_IOERR, "cannot sync %s", tmp);
    if (close(fd) && !rc)
        rc = amp_fail_errno(err, AMP_IOERR, "cannot close %s", tmp);
    if (rc)
        unlinkat(dirfd, tmp, 0);
    return rc;
}

int amp_file_write_atomic(int dirfd, const char *path, mode_t mode, struct amp_span data,
                          struct amp_error *err)
{
    char tmp[PATH_MAX];
    if (temporary_name(path, tmp, sizeof tmp, err) < 0 ||
        write_temporary(dirfd, tmp, mode, data, err) < 0)
        return -1;
    if (renameat(dirfd, tmp, dirfd, path)) {
        amp_fail_errno(err, AMP_CANTCREAT, "cannot replace %s", path);
        unlinkat(dirfd, tmp, 0);
        return -1;
    }
    return sync_parent(dirfd, path, err);
}

int amp_file_publish(int dirfd, const char *path, mode_t mode, struct amp_span data,
                     struct amp_error *err)
{
    char tmp[PATH_MAX];
    if (temporary_name(path, tmp, sizeof tmp, err) < 0 ||
        write_temporary(dirfd, tmp, mode, data, err) < 0)
        return -1;
    int rc = 0;
    if (linkat(dirfd, tmp, dirfd, path, 0) < 0)
        rc = errno == EEXIST ? 1 : amp_fail_errno(err, AMP_CANTCREAT, "cannot publish %s", path);
    unlinkat(dirfd, tmp, 0);
    /* Also if it exists: its writer may not have synced the directory yet. */
    if (rc >= 0 && sync_parent(dirfd, path, err))
        return -1;
    return rc;
}

int amp_fsync_dir(int dirfd, const char *path, struct amp_error *err)
{
    AMP_CLOSE int fd = openat(dirfd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return amp_fail_errno(err, AMP_IOERR, "cannot open the directory %s", path);
    if (fsync(fd) < 0)
        return amp_fail_errno(err, AMP_IOERR, "cannot sync the directory %s", path);
    return 0;
}

int amp_mkdirs(const char *path, mode_t mode, struct amp_error *err)
{
    char part[PATH_MAX];
    struct stat st;
    if (!path[0] || !amp_span_copy(amp_span_str(path), part, sizeof part))
        return amp_fail(err, AMP_CANTCREAT, bad_path, "cannot use the path '%s'", path);
    /* Most often at most the last one is missing. */
    if (mkdir(path, mode) == 0 || (stat(path, &st) == 0 && S_ISDIR(st.st_mode)))
        return 0;
    for (char *p = part + 1;; p++) {
        if (*p != '/' && *p != '\0')
            continue;
        char c = *p;
        *p = '\0';
        if (mkdir(part, mode)) {
            int saved = errno;
            /* A directory that exists may also answer EACCES or EROFS. */
            if (stat(part, &st) || !S_ISDIR(st.st_mode)) {
                errno = saved == EEXIST ? ENOTDIR : saved;
                return amp_fail_errno(err, AMP_CANTCREAT, "cannot make the directory %s", part);
            }
        }
        *p = c;
        if (c == '\0')
            return 0;
    }
}

/* For kernels and sandboxes without openat2: opens each component, none of which may be a link.
 * Refuses "..". */
static int walk_beneath(int dirfd, const char *path, int flags, mode_t mode)
{
    AMP_CLOSE int at = -1;
    while (*path) {
        char part[NAME_MAX + 1];
        size_t n = strcspn(path, "/");
        const char *rest = path + n + strspn(path + n, "/");
        bool last = *rest == '\0';
        bool up = n == 2 && path[0] == '.' && path[1] == '.';
        if (n == 0 || up || !amp_span_copy((struct amp_span){path, n}, part, sizeof part)) {
            errno = n > NAME_MAX ? ENAMETOOLONG : EXDEV;
            return -1;
        }
        int how =
            last ? flags | O_CLOEXEC | O_NOFOLLOW : O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
        int fd = openat(at < 0 ? dirfd : at, part, how, mode);
        if (fd < 0 || last)
            return fd;
        if (at >= 0)
            close(at);
        at = fd;
        path = rest;
    }
    errno = ENOENT;
    return -1;
}

int amp_open_beneath(int dirfd, const char *path, int flags, mode_t mode, struct amp_error *err)
{
    struct open_how how = {
        .flags = (unsigned)flags | O_CLOEXEC,
        .mode = flags & (O_CREAT | __O_TMPFILE) ? mode : 0,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
    };
    long fd;
    do /* EAGAIN: a rename raced with the walk */
        fd = syscall(SYS_openat2, dirfd, path, &how, sizeof how);
    while (fd < 0 && (errno == EAGAIN || errno == EINTR));
    if (fd < 0 && errno == ENOSYS)
        fd = walk_beneath(dirfd, path, flags, mode);
    if (fd < 0)
        return amp_fail_errno(err, flags & O_CREAT ? AMP_CANTCREAT : AMP_DATAERR, "cannot open %s",
                              path);
    return (int)fd;
}

bool amp_fs_is_network(int fd)
{
    static const unsigned long magics[] = {
        0x6969,     /* NFS */
        0xff534d42, /* CIFS */
        0xfe534d42, /* SMB2 */
        0x517b,     /* SMB */
        0x65735546, /* FUSE */
        0x01021997, /* 9P */
        0x5346414f, /* OpenAFS */
        0x6b414653, /* kAFS */
        0x73757245, /* Coda */
        0x00c36400, /* Ceph */
        0x0bd00bd0, /* Lustre */
        0x47504653, /* GPFS */
        0x564c,     /* NCP */
        0x786f4256, /* VirtualBox shared folders */
        0x7c7c6673, /* Parallels shared folders */
    };
    struct statfs fs;
    if (fstatfs(fd, &fs) < 0)
        return false;
    for (size_t i = 0; i < sizeof magics / sizeof magics[0]; i++)
        if (((unsigned long)fs.f_type & 0xffffffffUL) == magics[i])
            return true;
    return false;
}
