/*
 * Removes a directory that an agent may have made: see restore.h. It may be deeper than a process
 * has descriptors or stack for, so directories below the second level are moved to the top, and
 * emptied there.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <amp/base/file.h>

#include "worktree/snapshot/restore.h"

struct removal {
    int top; /* the directory that is removed; -1: it is not open yet */
    dev_t dev;
    unsigned long long raised;
    struct amp_error *err;
};

int amp_restore_move(int from, const char *name, int to, const char *as)
{
    struct stat st;
    int rc = renameat2(from, name, to, as, RENAME_NOREPLACE);
    if (rc == 0 || errno != EINVAL)
        return rc;
    if (fstatat(to, as, &st, AT_SYMLINK_NOFOLLOW) == 0)
        errno = EEXIST;
    return errno == ENOENT ? renameat(from, name, to, as) : -1;
}

int amp_restore_mode(int dir, const char *name, unsigned mode)
{
    struct stat st;
    char proc[64];
    AMP_CLOSE int fd = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0)
        return -1;
    if (S_ISLNK(st.st_mode)) {
        errno = ELOOP;
        return -1;
    }
    snprintf(proc, sizeof proc, "/proc/self/fd/%d", fd);
    return chmod(proc, mode);
}

static int remove_fail(struct removal *x, const char *name)
{
    return amp_fail_errno(x->err, AMP_IOERR, "cannot remove %s", name);
}

/* A directory that is not writable cannot be moved to another one. */
static int dir_raise(struct removal *x, int dir, const char *name)
{
    char to[48];
    int rc;
    if (amp_restore_mode(dir, name, 0700) < 0)
        return remove_fail(x, name);
    do {
        snprintf(to, sizeof to, ".amp-deep-%llu", x->raised++);
        rc = amp_restore_move(dir, name, x->top, to);
    } while (rc < 0 && errno == EEXIST);
    return rc < 0 ? remove_fail(x, name) : 0;
}

/* Opens a directory of the same file system so that its entries can be removed. */
static DIR *dir_open(struct removal *x, int dir, const char *name)
{
    struct stat st;
    DIR *d = amp_dir_open(dir, name);
    if (!d && errno == EACCES && amp_restore_mode(dir, name, 0700) == 0)
        d = amp_dir_open(dir, name);
    if (d && (fstat(dirfd(d), &st) < 0 || st.st_dev != x->dev)) {
        closedir(d);
        errno = EXDEV;
        return NULL;
    }
    if (d) /* if it is of another owner, it may be writable as it is */
        (void)!fchmod(dirfd(d), 0700);
    return d;
}

static int dir_remove(struct removal *x, int dir, const char *name);

static int names_remove(struct removal *x, DIR *d, bool top)
{
    for (const struct dirent *e; (e = readdir(d));) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 ||
            unlinkat(dirfd(d), e->d_name, 0) == 0 || errno == ENOENT)
            continue;
        if (errno != EISDIR && errno != EPERM)
            return remove_fail(x, e->d_name);
        if ((top ? dir_remove(x, x->top, e->d_name) : dir_raise(x, dirfd(d), e->d_name)) < 0)
            return -1;
    }
    return 0;
}

static int dir_remove(struct removal *x, int dir, const char *name)
{
    AMP_DIR DIR *d = dir_open(x, dir, name);
    bool top = x->top < 0;
    unsigned long long before;
    if (!d)
        return remove_fail(x, name);
    if (top)
        x->top = dirfd(d);
    do { /* until nothing more was moved to the top */
        before = x->raised;
        rewinddir(d);
        if (names_remove(x, d, top) < 0)
            return -1;
    } while (top && x->raised != before);
    return unlinkat(dir, name, AT_REMOVEDIR) == 0 || errno == ENOENT ? 0 : remove_fail(x, name);
}

int amp_restore_remove_on(int dir, const char *name, dev_t only, struct amp_error *err)
{
    struct removal x = {.top = -1, .dev = only, .err = err};
    return unlinkat(dir, name, 0) == 0 || errno == ENOENT ? 0
           : errno == EISDIR || errno == EPERM            ? dir_remove(&x, dir, name)
                                                          : remove_fail(&x, name);
}

int amp_restore_remove(int dir, const char *name, struct amp_error *err)
{
    struct stat st = {0};
    (void)!fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW);
    return amp_restore_remove_on(dir, name, st.st_dev, err);
}
