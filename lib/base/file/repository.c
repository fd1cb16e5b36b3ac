/* Finding a git repository: the file or directory .git, then commondir. */
#include "base/file/repository.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <amp/base/file.h>

#include "base/codes.h"

#define SMALL_MAX   8192
#define EXCLUDE_MAX ((size_t)1 << 20)

bool amp_repository_text(const char *dir, const char *name, const char *prefix, char *out,
                         size_t size)
{
    char path[PATH_MAX + 64];
    AMP_BUF struct amp_buf b = {0};
    amp_buf_init(&b, SMALL_MAX);
    snprintf(path, sizeof path, "%s/%s", dir, name);
    if (amp_file_read(AT_FDCWD, path, SMALL_MAX - 1, &b, NULL) < 0)
        return false;
    struct amp_span s = amp_buf_span(&b);
    while (s.n && (s.p[s.n - 1] == '\n' || s.p[s.n - 1] == '\r'))
        s.n--;
    size_t n = strlen(prefix);
    if (!amp_span_starts(s, prefix))
        return false;
    return amp_span_copy((struct amp_span){s.p + n, s.n - n}, out, size);
}

/* The real path of the directory `path`, which is relative to dir. */
static bool dir_resolve(const char *dir, const char *path, char out[PATH_MAX])
{
    char text[2 * PATH_MAX];
    struct stat st;
    snprintf(text, sizeof text, "%s%s%s", path[0] == '/' ? "" : dir, path[0] == '/' ? "" : "/",
             path);
    return realpath(text, out) && stat(out, &st) == 0 && S_ISDIR(st.st_mode);
}

static bool is_gitdir(const char *dir)
{
    char path[PATH_MAX + 16];
    snprintf(path, sizeof path, "%s/HEAD", dir);
    if (access(path, F_OK) != 0)
        return false;
    snprintf(path, sizeof path, "%s/commondir", dir);
    if (access(path, F_OK) == 0)
        return true;
    snprintf(path, sizeof path, "%s/refs", dir);
    return access(path, F_OK) == 0;
}

/* Sets gitdir, top and found if dir is the top of a repository. */
static int repository_at(const char *dir, struct amp_repository *r, struct amp_error *err)
{
    char path[PATH_MAX + 16], text[PATH_MAX];
    struct stat st;
    snprintf(path, sizeof path, "%s/.git", dir);
    if (lstat(path, &st) != 0) {
        if (!is_gitdir(dir))
            return 0;
        snprintf(r->gitdir, sizeof r->gitdir, "%s", dir);
    } else if (S_ISREG(st.st_mode)) {
        if (!amp_repository_text(dir, ".git", "gitdir: ", text, sizeof text) ||
            !dir_resolve(dir, text, r->gitdir))
            return amp_fail(err, AMP_DATAERR, repo_not_git, "%s: its file .git names no directory",
                            dir);
        snprintf(r->top, sizeof r->top, "%s", dir);
    } else {
        if (!dir_resolve(dir, ".git", r->gitdir))
            return 0;
        snprintf(r->top, sizeof r->top, "%s", dir);
    }
    r->found = true;
    return 0;
}

int amp_repository_find(const char *dir, struct amp_repository *out, struct amp_error *err)
{
    char at[PATH_MAX], text[PATH_MAX];
    memset(out, 0, sizeof *out);
    if (!amp_span_copy(amp_span_str(dir), at, sizeof at))
        return 0;
    while (at[0] && !out->found) {
        if (repository_at(at, out, err) < 0)
            return -1;
        char *slash = strrchr(at, '/');
        if (!out->found && slash)
            *slash = '\0';
        else
            break;
    }
    if (!out->found)
        return 0;
    memcpy(out->common, out->gitdir, sizeof out->common);
    if (amp_repository_text(out->gitdir, "commondir", "", text, sizeof text) &&
        !dir_resolve(out->gitdir, text, out->common))
        return amp_fail(err, AMP_DATAERR, repo_not_git, "%s: its commondir is malformed",
                        out->gitdir);
    return 0;
}

int amp_repository_lock(const char *common, const char *lock, int64_t wait_ms, int *dir, int *fd,
                        struct amp_error *err)
{
    char path[PATH_MAX];
    int n = snprintf(path, sizeof path, "%s/amp", common);
    if (n < 0 || (size_t)n >= sizeof path)
        return amp_fail(err, AMP_USAGE, bad_path, "%s: too long", common);
    if (amp_mkdirs(path, 0755, err) < 0)
        return -1;
    *dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (*dir < 0)
        return amp_fail_errno(err, AMP_IOERR, "%s", path);
    *fd = amp_file_open(*dir, lock, O_RDWR | O_CREAT | O_NOFOLLOW, 0600, err);
    return *fd < 0 || amp_lock(*fd, wait_ms, err) < 0 ? -1 : 0;
}

static bool has_line(struct amp_span text, struct amp_span line)
{
    for (const char *at = text.p, *end = text.p + text.n; at < end;) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        size_t n = (size_t)((stop ? stop : end) - at);
        if (n == line.n && memcmp(at, line.p, n) == 0)
            return true;
        at += n + 1;
    }
    return false;
}

int amp_repository_exclude(const char *common, const char *pattern, struct amp_error *err)
{
    AMP_BUF struct amp_buf text = {.max = EXCLUDE_MAX}, line = {.max = PATH_MAX};
    struct stat st;
    AMP_CLOSE int dir = open(common, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0 || (mkdirat(dir, "info", 0777) < 0 && errno != EEXIST))
        return amp_fail_errno(err, AMP_CANTCREAT, "%s/info", common);
    AMP_CLOSE int fd =
        amp_open_beneath(dir, "info/exclude", O_RDWR | O_CREAT | O_APPEND | O_NONBLOCK, 0666, err);
    if (fd < 0)
        return -1;
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_nlink != 1)
        return amp_fail(err, AMP_NOPERM, not_a_file,
                        "%s/info/exclude is not a file, or has another name, too", common);
    if (amp_file_read(dir, "info/exclude", EXCLUDE_MAX - 1, &text, err) < 0)
        return -1;
    if (has_line(amp_buf_span(&text), amp_span_str(pattern)))
        return 0;
    bool open_end = text.len > 0 && text.data[text.len - 1] != '\n';
    return amp_buf_fmt(&line, err, "%s%s\n", open_end ? "\n" : "", pattern) < 0
               ? -1
               : amp_write_all(fd, amp_buf_span(&line), err);
}
