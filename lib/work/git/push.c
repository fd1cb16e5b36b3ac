/* The configuration that refuses the pushes of agents' worktrees. */
#include "work/git/push.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <amp/base/file.h>

#include "base/codes.h"
#include "work/git/rule.h"

#define CONFIG_MAX   (4u << 20)
#define LOCK_WAIT_MS 5000
#define INCLUDE      "[include]\n\tpath = amp/" AMP_PUSH_SECTIONS "\n"
#define PERMIT       "amp-push" /* in the git directory of a worktree whose agent may push */
#define SETTINGS                                                                                   \
    "[url \"amp-refused://\"]\n\tpushInsteadOf = \"\"\n[push]\n\tdefault = nothing\n"              \
    "[alias]\n\tremote-amp-refused = \"" AMP_PUSH_REFUSAL "\"\n"

/* Writes the section of a git directory. Glob characters of the path are escaped for git's pattern,
 * and backslashes and quotes for the configuration. A section cannot name a line feed: "?" matches
 * it. */
static int section_of(const char *gitdir, struct amp_buf *out, struct amp_error *err)
{
    if (amp_buf_str(out, "[includeIf \"gitdir:", err) < 0)
        return -1;
    for (const char *p = gitdir; *p; p++) {
        const char *before = strchr("*?[", *p) ? "\\\\" : *p == '\\' ? "\\\\\\" : "";
        if (*p == '"')
            before = "\\";
        if (amp_buf_str(out, before, err) < 0 || amp_buf_add(out, *p == '\n' ? "?" : p, 1, err) < 0)
            return -1;
    }
    return amp_buf_str(out, "\"]\n\tpath = " AMP_PUSH_SETTINGS "\n", err);
}

/* Replaces a file without syncing: a lost section is written by the next bind. */
static int file_replace(int dirfd, const char *name, const char *temporary, struct amp_span text,
                        mode_t mode, struct amp_error *err)
{
    AMP_CLOSE int fd = openat(dirfd, temporary,
                              O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode & 07777);
    if (fd < 0 && errno == EEXIST)
        return amp_fail(err, AMP_CONFIG, git_locked,
                        "%s exists: another git runs, or one crashed and left it", temporary);
    if (fd < 0)
        return amp_fail_errno(err, AMP_CANTCREAT, "%s", temporary);
    fchmod(fd, mode & 07777);
    if (amp_write_all(fd, text, err) == 0 && renameat(dirfd, temporary, dirfd, name) == 0)
        return 0;
    if (err && !err->code[0])
        amp_fail_errno(err, AMP_IOERR, "%s", name);
    unlinkat(dirfd, temporary, 0);
    return -1;
}

/* Adds the text to the file, or removes it. */
static enum amp_push_change text_set(int dirfd, const char *name, const char *temporary,
                                     struct amp_span text, bool present, struct amp_error *err)
{
    AMP_BUF struct amp_buf old = {0}, all = {0};
    struct stat st = {.st_mode = 0644};
    amp_buf_init(&old, CONFIG_MAX);
    amp_buf_init(&all, 2 * CONFIG_MAX);
    bool exists = fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
    if (exists && amp_file_read(dirfd, name, CONFIG_MAX, &old, err) < 0)
        return -1;
    const char *at = old.len ? memmem(old.data, old.len, text.p, text.n) : NULL;
    if (!at == !present)
        return AMP_PUSH_UNCHANGED;
    size_t head = at ? (size_t)(at - old.data) : old.len;
    if (amp_buf_add(&all, old.data, head, err) < 0)
        return -1;
    if (at) {
        if (amp_buf_add(&all, at + text.n, old.len - head - text.n, err) < 0)
            return -1;
    } else if ((head && old.data[head - 1] != '\n' && amp_buf_str(&all, "\n", err) < 0) ||
               amp_buf_add(&all, text.p, text.n, err) < 0) {
        return -1;
    }
    return file_replace(dirfd, name, temporary, amp_buf_span(&all), st.st_mode, err) < 0
               ? AMP_PUSH_FAILED
               : AMP_PUSH_CHANGED;
}

static int section_set(const char *gitdir, bool present, struct amp_error *err)
{
    char dir[PATH_MAX + 16];
    AMP_BUF struct amp_buf section = {0};
    amp_buf_init(&section, 4 * PATH_MAX);
    snprintf(dir, sizeof dir, "%s/../../amp", gitdir);
    AMP_CLOSE int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    AMP_CLOSE int lock =
        fd < 0 ? -1 : amp_file_open(fd, AMP_PUSH_SETTINGS, O_RDWR | O_NOFOLLOW, 0, NULL);
    if (lock < 0) /* no guard is installed */
        return 0;
    if (section_of(gitdir, &section, err) < 0 || amp_lock(lock, LOCK_WAIT_MS, err) < 0)
        return -1;
    return text_set(fd, AMP_PUSH_SECTIONS, AMP_PUSH_SECTIONS ".new", amp_buf_span(&section),
                    present, err) < 0
               ? -1
               : 0;
}

int amp_push_set(const char *worktree, bool allowed, struct amp_error *err)
{
    static const char head[] = "gitdir: /";
    char text[PATH_MAX + 16];
    AMP_BUF struct amp_buf link = {0};
    amp_buf_init(&link, sizeof text);
    snprintf(text, sizeof text, "%.4000s/.git", worktree);
    if (amp_file_read(AT_FDCWD, text, PATH_MAX, &link, err) < 0)
        return -1;
    amp_span_copy(amp_buf_span(&link), text, sizeof text);
    size_t n = strlen(text); /* git ends the path with a line feed, and it may have others */
    while (n > 0 && (text[n - 1] == '\n' || text[n - 1] == '\r'))
        text[--n] = '\0';
    if (strncmp(text, head, strlen(head)) != 0)
        return amp_fail(err, AMP_NO, worktree_unknown, "%s: not a linked worktree", worktree);
    const char *gitdir = text + strlen(head) - 1;
    AMP_CLOSE int fd = open(gitdir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || faccessat(fd, AMP_AGENT_MARKER, F_OK, AT_SYMLINK_NOFOLLOW) != 0)
        return amp_fail_errno(err, AMP_IOERR, "%s/" AMP_AGENT_MARKER, gitdir);
    if (allowed ? amp_file_write_atomic(fd, PERMIT, 0644, AMP_SPAN("1\n"), err) < 0
                : unlinkat(fd, PERMIT, 0) != 0 && errno != ENOENT &&
                      amp_fail_errno(err, AMP_IOERR, "%s/" PERMIT, gitdir))
        return -1;
    return section_set(gitdir, !allowed, err);
}

int amp_push_end(const char *gitdir, struct amp_error *err)
{
    AMP_CLOSE int fd = open(gitdir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0)
        unlinkat(fd, PERMIT, 0);
    return section_set(gitdir, false, err);
}

/* Calls fn for the git directory of each worktree whose agent may not push, until it returns other
 * than 0. The path is the real one, as git compares it. */
static int refused_each(const char *common,
                        int (*fn)(void *ctx, const char *gitdir, struct amp_error *err), void *ctx,
                        struct amp_error *err)
{
    AMP_FREE char *real = realpath(common, NULL);
    char path[PATH_MAX + 300];
    int rc = 0;
    if (!real)
        return amp_fail_errno(err, AMP_IOERR, "%s", common);
    snprintf(path, sizeof path, "%.4000s/worktrees", real);
    DIR *dir = opendir(path);
    if (!dir)
        return errno == ENOENT ? 0 : amp_fail_errno(err, AMP_IOERR, "%s", path);
    for (const struct dirent *e; rc == 0 && (e = readdir(dir));) {
        snprintf(path, sizeof path, "%.4000s/worktrees/%s", real, e->d_name);
        AMP_CLOSE int fd =
            e->d_name[0] == '.' ? -1 : open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd >= 0 && faccessat(fd, AMP_AGENT_MARKER, F_OK, AT_SYMLINK_NOFOLLOW) == 0 &&
            faccessat(fd, PERMIT, F_OK, AT_SYMLINK_NOFOLLOW) != 0)
            rc = fn(ctx, path, err);
    }
    closedir(dir);
    return rc;
}

static int section_add(void *ctx, const char *gitdir, struct amp_error *err)
{
    (void)ctx;
    return section_set(gitdir, true, err);
}

enum amp_push_change amp_push_install(const char *common, struct amp_error *err)
{
    AMP_CLOSE int fd = open(common, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return amp_fail_errno(err, AMP_IOERR, "%s", common);
    if (amp_file_write_atomic(fd, "amp/" AMP_PUSH_SETTINGS, 0644, AMP_SPAN(SETTINGS), err) < 0 ||
        refused_each(common, section_add, NULL, err) < 0)
        return -1;
    return text_set(fd, "config", "config.lock", AMP_SPAN(INCLUDE), true, err);
}

/* Tells whether the file has the text. */
static bool file_has(int dirfd, const char *name, struct amp_span text)
{
    AMP_BUF struct amp_buf all = {0};
    amp_buf_init(&all, CONFIG_MAX);
    return amp_file_read(dirfd, name, CONFIG_MAX, &all, NULL) >= 0 && all.len &&
           memmem(all.data, all.len, text.p, text.n);
}

struct unrefused {
    int fd;
    char *out;
};

static int section_check(void *ctx, const char *gitdir, struct amp_error *err)
{
    const struct unrefused *u = ctx;
    AMP_BUF struct amp_buf section = {0};
    amp_buf_init(&section, 4 * PATH_MAX);
    if (section_of(gitdir, &section, err) < 0)
        return -1;
    if (file_has(u->fd, "amp/" AMP_PUSH_SECTIONS, amp_buf_span(&section)))
        return 0;
    snprintf(u->out, PATH_MAX, "%s", gitdir);
    return 1;
}

int amp_push_check(const char *common, char out[PATH_MAX], struct amp_error *err)
{
    AMP_CLOSE int fd = open(common, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct unrefused u = {fd, out};
    if (fd < 0)
        return amp_fail_errno(err, AMP_IOERR, "%s", common);
    snprintf(out, PATH_MAX, "%s/config", common);
    if (!file_has(fd, "config", AMP_SPAN(INCLUDE)) ||
        !file_has(fd, "amp/" AMP_PUSH_SETTINGS, AMP_SPAN(SETTINGS)))
        return 0;
    int allowed = refused_each(common, section_check, &u, err);
    return allowed < 0 ? -1 : !allowed;
}

enum amp_push_change amp_push_uninstall(const char *common, struct amp_error *err)
{
    AMP_CLOSE int fd = open(common, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return amp_fail_errno(err, AMP_IOERR, "%s", common);
    enum amp_push_change done =
        text_set(fd, "config", "config.lock", AMP_SPAN(INCLUDE), false, err);
    if (done != AMP_PUSH_FAILED) {
        unlinkat(fd, "amp/" AMP_PUSH_SETTINGS, 0);
        unlinkat(fd, "amp/" AMP_PUSH_SECTIONS, 0);
    }
    return done;
}
