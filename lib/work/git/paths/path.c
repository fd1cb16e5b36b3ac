/* Path rules: canonical forms, compared component by component and never by string prefix. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <amp/base/file.h>

#include "base/codes.h"
#include "work/git/worktree.h"

/* Appends "/component"; false if it does not fit. */
static bool component_add(char *out, size_t size, size_t *len, const char *p, size_t n)
{
    if (*len + 1 + n >= size)
        return false;
    if (*len == 0 || out[*len - 1] != '/')
        out[(*len)++] = '/';
    memcpy(out + *len, p, n);
    *len += n;
    out[*len] = '\0';
    return true;
}

bool amp_path_normal(struct amp_span path, char *out, size_t size)
{
    size_t len = 0;
    if (size < 2 || !path.n || path.p[0] != '/' || memchr(path.p, '\0', path.n))
        return false;
    for (size_t at = 0; at < path.n;) {
        while (at < path.n && path.p[at] == '/')
            at++;
        size_t start = at;
        while (at < path.n && path.p[at] != '/')
            at++;
        size_t n = at - start;
        const char *p = path.p + start;
        if (n == 0 || (n == 1 && p[0] == '.'))
            continue;
        if (n == 2 && p[0] == '.' && p[1] == '.') {
            if (len == 0)
                return false;
            while (out[--len] != '/')
                ;
            out[len] = '\0';
        } else if (!component_add(out, size, &len, p, n)) {
            return false;
        }
    }
    if (len == 0)
        out[len++] = '/';
    out[len] = '\0';
    return true;
}

int amp_path_canonical(const char *path, char out[PATH_MAX], struct amp_error *err)
{
    char head[PATH_MAX], real[PATH_MAX], all[PATH_MAX * 2];
    if (!*path || !amp_span_copy(amp_span_str(path), head, sizeof head))
        return amp_fail(err, AMP_USAGE, bad_path, "\"%s\": empty or too long", path);
    const char *rest = "";
    /* Remove components from the end until the rest exists. */
    while (!realpath(head, real)) {
        if (errno != ENOENT)
            return amp_fail_errno(err, AMP_NOPERM, "%s", path);
        struct stat st;
        if (lstat(head, &st) == 0)
            return amp_fail(err, AMP_NOPERM, path_escape, "%s: a dangling link", head);
        char *slash = strrchr(head, '/');
        size_t at = slash ? (size_t)(slash - head) : 0;
        rest = path + at;
        if (slash && at > 0) {
            head[at] = '\0';
        } else {
            head[0] = slash ? '/' : '.';
            head[1] = '\0';
        }
    }
    size_t n = strlen(real), m = strlen(rest);
    memcpy(all, real, n);
    all[n++] = '/';
    memcpy(all + n, rest, m + 1);
    /* A ".." after a missing directory could leave the existing one. */
    for (const char *p = rest; (p = strstr(p, "..")); p += 2)
        if ((p == rest || p[-1] == '/') && (p[2] == '/' || !p[2]))
            return amp_fail(err, AMP_NOPERM, path_escape, "%s: \"..\" after a missing directory",
                            path);
    if (!amp_path_normal((struct amp_span){all, n + m}, out, PATH_MAX))
        return amp_fail(err, AMP_USAGE, bad_path, "%s: too long", path);
    return 0;
}

int amp_path_inside(const char *root, const char *path, char *out, struct amp_error *err)
{
    char base[PATH_MAX], joined[PATH_MAX * 2], real[PATH_MAX];
    if (amp_path_canonical(root, base, err) < 0)
        return -1;
    size_t n = strlen(base), m = strlen(path);
    if (m >= PATH_MAX)
        return amp_fail(err, AMP_USAGE, bad_path, "the path is too long");
    memcpy(joined, base, n);
    joined[n] = '/';
    memcpy(joined + n + 1, path, m + 1);
    if (amp_path_canonical(path[0] == '/' ? path : joined, real, err) < 0)
        return -1;
    bool is_root = strcmp(base, "/") == 0;
    if (!is_root && (strncmp(real, base, n) != 0 || (real[n] != '/' && real[n] != '\0')))
        return amp_fail(err, AMP_NOPERM, path_escape, "%s: outside %s", path, base);
    if (out)
        memcpy(out, real, strlen(real) + 1);
    return 0;
}
