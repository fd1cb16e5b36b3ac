/* Folders that ignore case: every name beneath FAIL_CASE_ROOT, an absolute path without links, that
 * does not exist is looked up again without regard to the case of its letters. A new file keeps the
 * name that it was given. */
#undef _FORTIFY_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

/* The directory of a path that is relative to dirfd, if that is beneath the root. */
static bool base_find(int dirfd, const char *path, char out[PATH_MAX])
{
    const char *root = getenv("FAIL_CASE_ROOT");
    char link[64];
    if (!root || path[0] == '/' || dirfd == AT_FDCWD)
        return false;
    snprintf(link, sizeof link, "/proc/self/fd/%d", dirfd);
    ssize_t n = readlink(link, out, PATH_MAX - 1);
    if (n < 0)
        return false;
    out[n] = '\0';
    return strncmp(out, root, strlen(root)) == 0;
}

/* Replaces a component by the name of an entry that differs in case only. */
static void name_fold(const char *dir, char *name)
{
    DIR *d = opendir(dir);
    struct dirent *e;
    while (d && (e = readdir(d)))
        if (strcasecmp(e->d_name, name) == 0) {
            memcpy(name, e->d_name, strlen(name));
            break;
        }
    if (d)
        closedir(d);
}

static const char *fold(int dirfd, const char *path, char out[PATH_MAX])
{
    char at[PATH_MAX], part[PATH_MAX];
    struct stat st;
    size_t n = 0;
    if (!path || !base_find(dirfd, path, at) || strlen(path) >= PATH_MAX)
        return path;
    strcpy(out, path);
    for (char *p = out; *p; p += n + (p[n] == '/')) {
        n = strcspn(p, "/");
        memcpy(part, p, n);
        part[n] = '\0';
        size_t len = strlen(at);
        if (len + n + 2 > sizeof at)
            return path;
        snprintf(at + len, sizeof at - len, "/%s", part);
        if (lstat(at, &st) < 0) {
            at[len] = '\0';
            name_fold(at, part);
            memcpy(p, part, n);
            snprintf(at + len, sizeof at - len, "/%s", part);
        }
    }
    return out;
}

long syscall(long number, ...)
{
    char buf[PATH_MAX];
    long a[6];
    va_list ap;
    va_start(ap, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(ap, long);
    va_end(ap);
    if (number == SYS_openat2) {
        const char *path;
        memcpy(&path, &a[1], sizeof path);
        path = fold((int)a[0], path, buf);
        memcpy(&a[1], &path, sizeof path);
    }
    return REAL(syscall)(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

int openat(int dirfd, const char *path, int flags, ...)
{
    char buf[PATH_MAX];
    va_list ap;
    va_start(ap, flags);
    mode_t mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(ap, mode_t) : 0;
    va_end(ap);
    return REAL(openat)(dirfd, fold(dirfd, path, buf), flags, mode);
}

int fstatat(int dirfd, const char *path, struct stat *st, int flags)
{
    char buf[PATH_MAX];
    return REAL(fstatat)(dirfd, fold(dirfd, path, buf), st, flags);
}

int mkdirat(int dirfd, const char *path, mode_t mode)
{
    char buf[PATH_MAX];
    return REAL(mkdirat)(dirfd, fold(dirfd, path, buf), mode);
}

int unlinkat(int dirfd, const char *path, int flags)
{
    char buf[PATH_MAX];
    return REAL(unlinkat)(dirfd, fold(dirfd, path, buf), flags);
}

int renameat(int from_fd, const char *from, int to_fd, const char *to)
{
    char a[PATH_MAX], b[PATH_MAX];
    return REAL(renameat)(from_fd, fold(from_fd, from, a), to_fd, fold(to_fd, to, b));
}

int renameat2(int from_fd, const char *from, int to_fd, const char *to, unsigned flags)
{
    char a[PATH_MAX], b[PATH_MAX];
    return REAL(renameat2)(from_fd, fold(from_fd, from, a), to_fd, fold(to_fd, to, b), flags);
}
