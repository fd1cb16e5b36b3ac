/* The private directory of a command without namespaces: made, and removed with what the command
 * left in it. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <amp/base/file.h>

#include "base/codes.h"
#include "work/confine/private.h"

#define DEPTH_MAX 200 /* one open directory for each level */
#define PREFIX    "amp-confine-"
#define TRIES     8

/* Opens a directory and locks it; -1 if it is locked. A sweep may have removed it meanwhile. */
static int directory_lock(int parent, const char *name)
{
    struct stat mine, there;
    AMP_CLOSE int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0 || fstat(fd, &mine) < 0 ||
        fstatat(parent, name, &there, AT_SYMLINK_NOFOLLOW) < 0 || mine.st_ino != there.st_ino ||
        mine.st_dev != there.st_dev || mine.st_uid != geteuid())
        return -1;
    int locked = fd;
    fd = -1;
    return locked;
}

int amp_confine_scratch_make(const char *parent, char *out, size_t size, struct amp_error *err)
{
    char path[4096];
    for (int i = 0; i < TRIES; i++) {
        int n = snprintf(path, sizeof path, "%s/" PREFIX "XXXXXX", parent);
        if (n < 0 || (size_t)n >= sizeof path || (size_t)n >= size)
            return amp_fail(err, AMP_CANTCREAT, bad_path, "%.200s: too long", parent);
        if (!mkdtemp(path))
            break;
        int lock = directory_lock(AT_FDCWD, path);
        if (lock >= 0) {
            memcpy(out, path, (size_t)n + 1);
            return lock;
        }
    }
    return amp_fail_errno(err, AMP_CANTCREAT, "cannot make a directory in %s", parent);
}

/* Gives back the rights of a directory that the command took away; not through a link. */
static bool directory_unlock(int parent, const char *name)
{
    char path[64];
    AMP_CLOSE int fd = openat(parent, name, O_PATH | O_NOFOLLOW | O_DIRECTORY | O_CLOEXEC);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return fd >= 0 && chmod(path, 0700) == 0;
}

/* NULL: it cannot be opened. */
static DIR *directory_open(int parent, const char *name)
{
    DIR *d = amp_dir_open(parent, name);
    return !d && errno == EACCES && directory_unlock(parent, name) ? amp_dir_open(parent, name) : d;
}

/* The next name but "." and ".."; NULL: none. */
static const char *directory_next(DIR *d)
{
    for (struct dirent *e; (e = readdir(d)) != NULL;)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            return e->d_name;
    return NULL;
}

static int directory_empty(int parent, const char *name, int depth, struct amp_error *err)
{
    if (depth > DEPTH_MAX)
        return amp_fail(err, AMP_IOERR, too_deep, "more than %d directories deep", DEPTH_MAX);
    AMP_DIR DIR *d = directory_open(parent, name);
    if (!d)
        return amp_fail_errno(err, AMP_IOERR, "cannot open %s", name);
    for (const char *in; (in = directory_next(d)) != NULL;) {
        if (unlinkat(dirfd(d), in, 0) == 0 || errno == ENOENT)
            continue;
        /* Linux reports EISDIR, POSIX EPERM. */
        if (errno != EISDIR && errno != EPERM)
            return amp_fail_errno(err, AMP_IOERR, "cannot remove %s", in);
        if (directory_empty(dirfd(d), in, depth + 1, err) < 0)
            return -1;
        if (unlinkat(dirfd(d), in, AT_REMOVEDIR) < 0)
            return amp_fail_errno(err, AMP_IOERR, "cannot remove %s", in);
    }
    return 0;
}

/* Subtracts what is in it; false: a rest is below zero, or it is too deep or cannot be read. */
static bool directory_fits(int parent, const char *name, int depth, int64_t *bytes,
                           int64_t *entries)
{
    struct stat st;
    AMP_DIR DIR *d = depth > DEPTH_MAX ? NULL : directory_open(parent, name);
    if (!d)
        return false;
    for (const char *in; (in = directory_next(d)) != NULL;) {
        if (fstatat(dirfd(d), in, &st, AT_SYMLINK_NOFOLLOW) < 0)
            return false;
        *bytes -= (int64_t)st.st_blocks * 512;
        *entries -= 1;
        if (*bytes < 0 || *entries < 0 ||
            (S_ISDIR(st.st_mode) && !directory_fits(dirfd(d), in, depth + 1, bytes, entries)))
            return false;
    }
    return true;
}

int amp_confine_scratch_bound(const char *dir, int64_t bytes, int64_t entries,
                              struct amp_error *err)
{
    if (directory_fits(AT_FDCWD, dir, 0, &bytes, &entries))
        return 0;
    return directory_empty(AT_FDCWD, dir, 0, err) < 0 ? -1 : 1;
}

int amp_confine_scratch_remove(const char *dir, struct amp_error *err)
{
    if (directory_empty(AT_FDCWD, dir, 0, err) < 0)
        return -1;
    return rmdir(dir) < 0 ? amp_fail_errno(err, AMP_IOERR, "cannot remove %s", dir) : 0;
}

int amp_confine_scratch_sweep(const char *parent)
{
    AMP_DIR DIR *d = amp_dir_open(AT_FDCWD, parent);
    struct dirent *e;
    int n = 0;
    while (d && (e = readdir(d)) != NULL) {
        if (strncmp(e->d_name, PREFIX, sizeof PREFIX - 1) != 0)
            continue;
        AMP_CLOSE int lock = directory_lock(dirfd(d), e->d_name);
        n += lock >= 0 && directory_empty(dirfd(d), e->d_name, 0, NULL) == 0 &&
             unlinkat(dirfd(d), e->d_name, AT_REMOVEDIR) == 0;
    }
    return n;
}
