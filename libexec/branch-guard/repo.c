/* Reads a repository's refs from its files: loose files take precedence over packed-refs. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/file.h>

#include "guard.h"

#define LINKS_MAX  5
#define PACKED_MAX (256u << 20)
#define PATH_SIZE  4096

static ssize_t read_text(int dirfd, const char *path, char *buf, size_t size)
{
    AMP_CLOSE int fd = amp_file_open(dirfd, path, O_RDONLY, 0, NULL);
    if (fd < 0)
        return -1;
    size_t n = 0;
    while (n < size - 1) {
        ssize_t got = read(fd, buf + n, size - 1 - n);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        n += (size_t)got;
    }
    while (n && (buf[n - 1] == '\n' || buf[n - 1] == '\r' || buf[n - 1] == ' '))
        n--;
    buf[n] = '\0';
    return (ssize_t)n;
}

static int open_dir(int dirfd, const char *path)
{
    return openat(dirfd, path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/* ".git" in dirfd: a directory, or a file "gitdir: PATH" relative to dirfd. */
static int open_dot_git(int dirfd)
{
    int fd = open_dir(dirfd, ".git");
    char text[PATH_SIZE];
    if (fd >= 0 || errno != ENOTDIR || read_text(dirfd, ".git", text, sizeof text) < 8 ||
        strncmp(text, "gitdir: ", 8) != 0)
        return fd;
    return open_dir(dirfd, text + 8);
}

void repo_find(struct repo *r)
{
    memset(r, 0, sizeof *r);
    const char *env = getenv("GIT_DIR");
    if (env && *env) {
        r->gitdir = open_dir(AT_FDCWD, env);
    } else {
        r->gitdir = open_dot_git(AT_FDCWD);
        if (r->gitdir < 0 && faccessat(AT_FDCWD, "HEAD", F_OK, 0) == 0 &&
            faccessat(AT_FDCWD, "refs", F_OK, 0) == 0)
            r->gitdir = open_dir(AT_FDCWD, "."); /* in a bare repository */
    }
    r->common = r->gitdir;
    char text[PATH_SIZE];
    if (r->gitdir >= 0 && read_text(r->gitdir, "commondir", text, sizeof text) > 0)
        r->common = open_dir(r->gitdir, text);
}

bool repo_head(const struct repo *r, char name[NAME_SIZE])
{
    char text[NAME_SIZE];
    ssize_t n = r->gitdir < 0 ? -1 : read_text(r->gitdir, "HEAD", text, sizeof text);
    if (n < 6 || strncmp(text, "ref: ", 5) != 0)
        return false;
    memcpy(name, text + 5, (size_t)n - 4);
    return true;
}

static void read_packed(struct repo *r)
{
    if (r->packed_read)
        return;
    r->packed_read = true;
    if (r->common < 0)
        return;
    r->packed_locked = faccessat(r->common, "packed-refs.lock", F_OK, 0) == 0;
    amp_buf_init(&r->packed, PACKED_MAX);
    amp_file_read(r->common, "packed-refs", PACKED_MAX, &r->packed, NULL);
}

/* A line is "<hex> SP <name> LF". */
struct amp_span repo_packed(struct repo *r, struct amp_span ref)
{
    const struct amp_span none = {NULL, 0};
    read_packed(r);
    const char *begin = r->packed.data, *p = begin, *end = p + r->packed.len;
    while (p && p < end) {
        const char *hit = memmem(p, (size_t)(end - p), ref.p, ref.n);
        if (!hit)
            return none;
        p = hit + ref.n;
        if (hit == begin || hit[-1] != ' ' || p >= end || *p != '\n')
            continue;
        const char *lf = memrchr(begin, '\n', (size_t)(hit - begin)), *start = lf ? lf + 1 : begin;
        return (struct amp_span){start, (size_t)(hit - 1 - start)};
    }
    return none;
}

struct amp_span repo_value(struct repo *r, struct amp_span ref, char value[VALUE_SIZE])
{
    const struct amp_span none = {NULL, 0};
    char name[NAME_SIZE], text[NAME_SIZE];
    if (r->common < 0 || !amp_span_copy(ref, name, sizeof name))
        return none;
    for (int links = 0; links < LINKS_MAX; links++) {
        ssize_t n = read_text(r->common, name, text, sizeof text);
        if (n <= 0) {
            struct amp_span packed = repo_packed(r, amp_span_str(name));
            return amp_span_copy(packed, value, VALUE_SIZE) ? amp_span_str(value) : none;
        }
        if (strncmp(text, "ref: ", 5) != 0)
            return amp_span_copy((struct amp_span){text, (size_t)n}, value, VALUE_SIZE)
                       ? amp_span_str(value)
                       : none;
        memmove(name, text + 5, (size_t)n - 4);
    }
    return none;
}
