/* Paths of a tree, and copies of its files: see tree.h, path.h. */
#include "worktree/snapshot/path.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/file.h>

#include "worktree/snapshot/tree.h"

bool amp_tree_path_valid(const char *path)
{
    if (!*path || *path == '/' || strlen(path) >= PATH_MAX)
        return false;
    if (strcmp(path, ".") == 0)
        return true;
    for (const char *p = path; *p;) {
        size_t n = strcspn(p, "/");
        if (n == 0 || (n == 1 && *p == '.') || (n == 2 && p[0] == '.' && p[1] == '.'))
            return false;
        p += n + (p[n] == '/');
        if (!*p && p[-1] == '/')
            return false;
    }
    return true;
}

const char *amp_tree_above(int root, const char *path, int *fd)
{
    const char *slash = strrchr(path, '/');
    char above[PATH_MAX] = ".";
    if (slash &&
        !amp_span_copy((struct amp_span){path, (size_t)(slash - path)}, above, sizeof above)) {
        errno = ENAMETOOLONG;
        return NULL;
    }
    *fd = amp_open_beneath(root, above, O_PATH | O_DIRECTORY, 0, NULL);
    return *fd < 0 ? NULL : slash ? slash + 1 : path;
}

/* Copies what is between two holes. */
static int data_copy(int from, off_t at, int to, off_t end)
{
    char part[65536];
    while (at < end) {
        ssize_t n = copy_file_range(from, &at, to, NULL, (size_t)(end - at), 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break; /* another file system, or not supported there: by reading and writing */
    }
    while (at < end) {
        size_t most = end - at < (off_t)sizeof part ? (size_t)(end - at) : sizeof part;
        ssize_t n = pread(from, part, most, at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            errno = n ? errno : EIO;
            return -1;
        }
        struct amp_error err;
        if (amp_write_all(to, (struct amp_span){part, (size_t)n}, &err) < 0) {
            errno = err.sys;
            return -1;
        }
        at += n;
    }
    return 0;
}

int amp_tree_copy(int from, int to, int64_t size)
{
    off_t at = 0, start = lseek(to, 0, SEEK_CUR);
    while (at < size) {
        off_t data = lseek(from, at, SEEK_DATA), end;
        if (data < 0)
            data = errno == ENXIO ? size : at; /* a hole up to the end; or it has none of them */
        end = data < size ? lseek(from, data, SEEK_HOLE) : size;
        if (end <= data || end > size)
            end = size;
        if (data > size)
            data = size;
        if (lseek(to, start + data, SEEK_SET) < 0 || data_copy(from, data, to, end) < 0)
            return -1;
        at = end;
    }
    return ftruncate(to, start + size); /* it may end with a hole */
}
