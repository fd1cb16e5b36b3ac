/* Copying a folder across file systems. The copy gets its name only when it is complete, so that a
 * kill leaves the old folder, or both, of which the new one is complete. */
#include "base/file/directory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/codes.h"

enum { DEEPEST = 32 };

static int file_copy(int from, int to, const char *name, const struct stat *st,
                     struct amp_error *err)
{
    AMP_CLOSE int in = openat(from, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (in < 0)
        return amp_fail_errno(err, AMP_IOERR, "cannot read %s", name);
    AMP_CLOSE int out =
        openat(to, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, st->st_mode & 0777);
    if (out < 0)
        return amp_fail_errno(err, AMP_CANTCREAT, "cannot create %s", name);
    for (;;) {
        char block[65536];
        ssize_t n = read(in, block, sizeof block);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return amp_fail_errno(err, AMP_IOERR, "cannot read %s", name);
        if (n == 0)
            return fsync(out) < 0 ? amp_fail_errno(err, AMP_IOERR, "cannot sync %s", name) : 0;
        if (amp_write_all(out, (struct amp_span){block, (size_t)n}, err) < 0)
            return -1;
    }
}

static int link_copy(int from, int to, const char *name, struct amp_error *err)
{
    char target[PATH_MAX];
    ssize_t n = readlinkat(from, name, target, sizeof target - 1);
    if (n < 0)
        return amp_fail_errno(err, AMP_IOERR, "cannot read the link %s", name);
    target[n] = '\0';
    return symlinkat(target, to, name) < 0
               ? amp_fail_errno(err, AMP_CANTCREAT, "cannot create the link %s", name)
               : 0;
}

static int tree_copy(int from, const char *name, int to, const char *as, unsigned depth,
                     struct amp_error *err)
{
    struct dirent *e;
    struct stat st;
    AMP_DIR DIR *d = amp_dir_open(from, name);
    if (!d || fstat(dirfd(d), &st) < 0)
        return amp_fail_errno(err, AMP_IOERR, "cannot read the folder %s", name);
    if (depth == DEEPEST)
        return amp_fail(err, AMP_NO, too_deep, "the folder has more than %d levels", DEEPEST);
    if (mkdirat(to, as, 0700) < 0)
        return amp_fail_errno(err, AMP_CANTCREAT, "cannot make the folder %s", as);
    AMP_CLOSE int out = openat(to, as, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (out < 0)
        return amp_fail_errno(err, AMP_CANTCREAT, "cannot open the folder %s", as);
    while ((e = readdir(d))) {
        struct stat in;
        int rc = 0;
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 ||
            fstatat(dirfd(d), e->d_name, &in, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        if (S_ISREG(in.st_mode))
            rc = file_copy(dirfd(d), out, e->d_name, &in, err);
        else if (S_ISDIR(in.st_mode))
            rc = tree_copy(dirfd(d), e->d_name, out, e->d_name, depth + 1, err);
        else if (S_ISLNK(in.st_mode))
            rc = link_copy(dirfd(d), out, e->d_name, err);
        else if (S_ISFIFO(in.st_mode))
            rc = mkfifoat(out, e->d_name, in.st_mode & 0777) < 0
                     ? amp_fail_errno(err, AMP_CANTCREAT, "cannot make the FIFO %s", e->d_name)
                     : 0;
        else
            rc = amp_fail(err, AMP_NO, special_file, "%s is a device or a socket", e->d_name);
        if (rc < 0)
            return -1;
    }
    if (fchmod(out, st.st_mode & 0777) < 0 || fsync(out) < 0)
        return amp_fail_errno(err, AMP_IOERR, "cannot sync the folder %s", as);
    return 0;
}

/* Whether two files have the same bytes. 1; 0; -1. */
static int file_same(int a, int b, const char *name, struct amp_error *err)
{
    AMP_CLOSE int x = openat(a, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    AMP_CLOSE int y = openat(b, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (x < 0 || y < 0)
        return amp_fail_errno(err, AMP_IOERR, "cannot read %s", name);
    for (;;) {
        char one[32768], other[sizeof one];
        ssize_t n = read(x, one, sizeof one), m = n > 0 ? read(y, other, (size_t)n) : 0;
        if (n < 0 || m < 0)
            return amp_fail_errno(err, AMP_IOERR, "cannot read %s", name);
        if (n == 0)
            return 1;
        if (m != n || memcmp(one, other, (size_t)n) != 0)
            return 0;
    }
}

static bool link_same(int a, int b, const char *name)
{
    char one[PATH_MAX], other[sizeof one];
    ssize_t n = readlinkat(a, name, one, sizeof one);
    return n >= 0 && readlinkat(b, name, other, sizeof other) == n &&
           memcmp(one, other, (size_t)n) == 0;
}

/* Whether all that is in a folder is also in its copy, which may have more. 1; 0; -1. */
static int tree_is_in(int from, const char *name, int to, const char *as, unsigned depth,
                      struct amp_error *err)
{
    struct dirent *e;
    AMP_DIR DIR *d = depth > DEEPEST ? NULL : amp_dir_open(from, name);
    if (!d)
        return amp_fail_errno(err, AMP_IOERR, "cannot read the folder %s", name);
    AMP_CLOSE int copy = openat(to, as, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (copy < 0)
        return 0;
    while ((e = readdir(d))) {
        struct stat a, b;
        int rc = 1;
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        if (fstatat(dirfd(d), e->d_name, &a, AT_SYMLINK_NOFOLLOW) < 0 ||
            fstatat(copy, e->d_name, &b, AT_SYMLINK_NOFOLLOW) < 0 ||
            (a.st_mode & S_IFMT) != (b.st_mode & S_IFMT))
            return 0;
        if (S_ISREG(a.st_mode))
            rc = a.st_size != b.st_size ? 0 : file_same(dirfd(d), copy, e->d_name, err);
        else if (S_ISDIR(a.st_mode))
            rc = tree_is_in(dirfd(d), e->d_name, copy, e->d_name, depth + 1, err);
        else if (S_ISLNK(a.st_mode))
            rc = link_same(dirfd(d), copy, e->d_name);
        else
            rc = S_ISFIFO(a.st_mode);
        if (rc <= 0)
            return rc;
    }
    return 1;
}

static int tree_remove(int dir, const char *name, unsigned depth, struct amp_error *err)
{
    struct dirent *e;
    AMP_DIR DIR *d = depth > DEEPEST ? NULL : amp_dir_open(dir, name);
    if (!d)
        return errno == ENOENT ? 0
                               : amp_fail_errno(err, AMP_IOERR, "cannot read the folder %s", name);
    while ((e = readdir(d))) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        if (unlinkat(dirfd(d), e->d_name, 0) == 0 || errno == ENOENT)
            continue;
        if ((errno != EISDIR && errno != EPERM) ||
            tree_remove(dirfd(d), e->d_name, depth + 1, err) < 0)
            return amp_fail_errno(err, AMP_IOERR, "cannot remove %s", e->d_name);
    }
    return unlinkat(dir, name, AT_REMOVEDIR) < 0 && errno != ENOENT
               ? amp_fail_errno(err, AMP_IOERR, "cannot remove the folder %s", name)
               : 0;
}

int amp_directory_move(int dir, const char *from, const char *to, struct amp_error *err)
{
    char copy[PATH_MAX];
    struct amp_error why;
    struct stat st;
    const char *slash = strrchr(to, '/');
    int n = snprintf(copy, sizeof copy, "%.*s/.%s.copy", (int)(slash - to), to, slash + 1);
    if (n < 0 || (size_t)n >= sizeof copy)
        return amp_fail(err, AMP_CANTCREAT, bad_path, "the path %s is too long", to);
    if (tree_remove(dir, copy, 0, err) < 0)
        return -1;
    if (fstatat(dir, to, &st, AT_SYMLINK_NOFOLLOW) < 0 &&
        (tree_copy(dir, from, dir, copy, 0, err) < 0 ||
         (renameat2(dir, copy, dir, to, RENAME_NOREPLACE) < 0 &&
          amp_fail_errno(err, AMP_CANTCREAT, "cannot move %s", from) < 0))) {
        tree_remove(dir, copy, 0, &why);
        return -1;
    }
    /* It may be another folder, or something may have written to the old one during the copy. */
    int same = tree_is_in(dir, from, dir, to, 0, err);
    if (same <= 0)
        return same < 0 ? -1
                        : amp_fail(err, AMP_NO, folder_differs,
                                   "%s is there as well, with other contents: %s stays", to, from);
    return tree_remove(dir, from, 0, err);
}
