/* See path.h. */
#include "work/git/snapshot/path.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <amp/base/file.h>
#include <sodium.h>

enum { PART = 64 * 1024 };

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

bool amp_tree_is_in(const char *path, const char *dir)
{
    size_t n = strlen(dir);
    return strcmp(dir, ".") == 0 ||
           (strncmp(path, dir, n) == 0 && (path[n] == '/' || path[n] == '\0'));
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

/* Writes the bytes at the offset, a part of nothing but NULs as a hole. */
static int part_write(int to, const unsigned char *part, size_t n, int64_t at)
{
    if (n == PART && !part[0] && memcmp(part, part + 1, n - 1) == 0)
        return 0;
    for (size_t done = 0; done < n;) {
        ssize_t k = pwrite(to, part + done, n - done, at + (int64_t)done);
        if (k < 0 && errno != EINTR)
            return -1;
        done += k > 0 ? (size_t)k : 0;
    }
    return 0;
}

int amp_tree_copy(int from, int to, int64_t most, volatile const int *stop, int64_t *size,
                  char sum[AMP_TREE_SUM_MAX])
{
    crypto_hash_sha256_state state;
    unsigned char digest[crypto_hash_sha256_BYTES];
    AMP_FREE unsigned char *part = malloc(PART);
    bool cloned = to >= 0 && ioctl(to, FICLONE, from) == 0;
    ssize_t n = part ? 0 : -1;
    crypto_hash_sha256_init(&state);
    for (*size = 0; part && *size <= most; *size += n) {
        n = pread(cloned ? to : from, part, PART, *size);
        if (n < 0 && errno == EINTR)
            n = 0;
        else if (n <= 0)
            break;
        if (stop && *stop) {
            errno = EINTR;
            return -1;
        }
        crypto_hash_sha256_update(&state, part, (size_t)n);
        if (to >= 0 && !cloned && part_write(to, part, (size_t)n, *size) < 0)
            return -1;
    }
    if (n < 0 || (to >= 0 && ftruncate(to, *size) < 0)) /* it may end with a hole */
        return -1;
    crypto_hash_sha256_final(&state, digest);
    sodium_bin2hex(sum, AMP_TREE_SUM_MAX, digest, sizeof digest);
    return 0;
}
