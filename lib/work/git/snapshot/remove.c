/*
 * Removes a directory that an agent may have made: see restore.h. It may be deeper than a process
 * has descriptors or stack for. Entries that are too deep are moved to its top, and removed from
 * there.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <amp/base/file.h>

#include "work/git/snapshot/restore.h"

enum { DEEP = 32 };

struct removal {
    int top; /* the directory that is removed */
    unsigned long long raised;
    const dev_t *only; /* NULL: other file systems in it, too */
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
static int node_raise(struct removal *x, int dir, const char *name)
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

static int node_remove(struct removal *x, int dir, const char *name, unsigned depth);

/* Whether something was moved to the top, which has to be read again: *again. */
static int names_remove(struct removal *x, DIR *d, unsigned depth, bool *again)
{
    const struct dirent *e;
    bool tried = false;
    unsigned long long before = x->raised;
    while ((e = readdir(d))) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        if (!tried) /* if it is of another owner, it may be writable as it is */
            (void)!fchmod(dirfd(d), 0700);
        tried = true;
        if (node_remove(x, dirfd(d), e->d_name, depth + 1) < 0)
            return -1;
    }
    *again = x->raised != before;
    return 0;
}

/* Whether the directory is on another file system, which is to be left alone. */
static bool is_other(const struct removal *x, DIR *d)
{
    struct stat st;
    bool is = x->only && (fstat(dirfd(d), &st) < 0 || st.st_dev != *x->only);
    if (is)
        errno = EXDEV;
    return is;
}

static int node_remove(struct removal *x, int dir, const char *name, unsigned depth)
{
    bool again = false;
    if (unlinkat(dir, name, 0) == 0 || errno == ENOENT)
        return 0;
    if (errno != EISDIR && errno != EPERM)
        return remove_fail(x, name);
    if (depth > DEEP)
        return node_raise(x, dir, name);
    AMP_DIR DIR *d = amp_dir_open(dir, name);
    if (!d && errno == EACCES && amp_restore_mode(dir, name, 0700) == 0)
        d = amp_dir_open(dir, name);
    if (!d || is_other(x, d))
        return remove_fail(x, name);
    if (depth == 0)
        x->top = dirfd(d);
    do {
        rewinddir(d);
        if (names_remove(x, d, depth, &again) < 0)
            return -1;
    } while (depth == 0 && again);
    return unlinkat(dir, name, AT_REMOVEDIR) == 0 || errno == ENOENT ? 0 : remove_fail(x, name);
}

int amp_restore_remove(int dir, const char *name, struct amp_error *err)
{
    struct removal x = {.top = -1, .err = err};
    return node_remove(&x, dir, name, 0);
}

int amp_restore_remove_on(int dir, const char *name, dev_t only, struct amp_error *err)
{
    struct removal x = {.top = -1, .only = &only, .err = err};
    return node_remove(&x, dir, name, 0);
}
