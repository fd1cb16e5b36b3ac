/* Finding out whether the guard would really be asked, and whether git would still work. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <amp/base/file.h>

#include "worktree/hooks.h"

#define PROGRAM_MAX (16u << 20)

struct check {
    const struct amp_hooks *h;
    const char *dir; /* where git looks */
    const char *env_path;
    amp_hook_fn fn;
    void *ctx;
    int dirfd, errors;
};

static void finding_report(struct check *c, enum amp_hook_severity severity, const char *code,
                           const char *dir, const char *name, const char *what)
{
    char path[PATH_MAX * 2];
    snprintf(path, sizeof path, "%s%s%s", dir, *name ? "/" : "", name);
    struct amp_hook_finding f = {severity, code, path, what};
    c->errors += severity == AMP_HOOK_ERROR;
    c->fn(c->ctx, &f);
}

static bool in_path(const char *env_path, const char *name)
{
    for (const char *p = env_path; *p;) {
        size_t n = strcspn(p, ":");
        char path[PATH_MAX];
        int len = snprintf(path, sizeof path, "%.*s/%s", (int)n, p, name);
        if (len > 0 && (size_t)len < sizeof path && access(path, X_OK) == 0)
            return true;
        p += n + (p[n] == ':');
    }
    return false;
}

/* "#!/usr/bin/env -S python3 -u": the interpreter, and behind env the program it looks for. */
static bool interpreter_missing(struct check *c, const char *name, char *which, size_t size)
{
    char line[256];
    AMP_CLOSE int fd = openat(c->dirfd, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t n = fd < 0 ? -1 : read(fd, line, sizeof line - 1);
    if (n < 3 || line[0] != '#' || line[1] != '!')
        return false;
    line[n] = '\0';
    line[strcspn(line, "\r\n")] = '\0';
    char *save, *program = strtok_r(line + 2, " \t", &save);
    if (!program)
        return false;
    snprintf(which, size, "%s", program);
    if (access(program, X_OK) != 0)
        return true;
    size_t len = strlen(program);
    if (len < 4 || strcmp(program + len - 4, "/env") != 0)
        return false;
    char *word = strtok_r(NULL, " \t", &save);
    while (word && (word[0] == '-' || strchr(word, '=')))
        word = strtok_r(NULL, " \t", &save);
    if (!word)
        return false;
    snprintf(which, size, "%s", word);
    return word[0] == '/' ? access(word, X_OK) != 0 : !in_path(c->env_path, word);
}

static void check_foreign(struct check *c, const char *name)
{
    char which[128], what[256];
    if (faccessat(c->dirfd, name, X_OK, 0) != 0) {
        finding_report(c, AMP_HOOK_WARNING, "hook_not_executable", c->dir, name,
                       "not executable: git silently ignores it");
    } else if (interpreter_missing(c, name, which, sizeof which)) {
        snprintf(what, sizeof what, "its interpreter %s is missing: git commands that run it fail",
                 which);
        finding_report(c, AMP_HOOK_ERROR, "interpreter_missing", c->dir, name, what);
    }
}

static void check_ours(struct check *c, const char *name)
{
    struct stat st;
    if (fstatat(c->dirfd, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        finding_report(c, AMP_HOOK_ERROR, "hook_missing", c->dir, name, "not installed");
    else if (!amp_hook_is_ours(c->dirfd, name))
        finding_report(c, AMP_HOOK_ERROR, "hook_replaced", c->dir, name,
                       "another hook is installed: the guard does not run");
    else if (faccessat(c->dirfd, name, X_OK, 0) != 0)
        finding_report(c, AMP_HOOK_ERROR, "hook_not_executable", c->dir, name,
                       errno == ENOENT ? "a dangling link: git silently ignores it"
                                       : "not executable: git silently ignores it");
}

static bool is_hook_name(const char *name)
{
    size_t n = strlen(name), kept = strlen(AMP_HOOK_KEPT);
    if (n > kept && strcmp(name + n - kept, AMP_HOOK_KEPT) == 0)
        return true;
    /* Git's hooks are lower-case words and dashes; samples and other files have a dot. */
    return n > 0 && strspn(name, "abcdefghijklmnopqrstuvwxyz-") == n &&
           strcmp(name, AMP_HOOK_PROGRAM) != 0;
}

static void check_others(struct check *c)
{
    DIR *d = opendir(c->dir);
    for (struct dirent *e; d && (e = readdir(d));)
        if (is_hook_name(e->d_name) && !amp_hook_is_ours(c->dirfd, e->d_name))
            check_foreign(c, e->d_name);
    if (d)
        closedir(d);
}

/* Compares bytes and runs nothing: what is in a repository may be anybody's program. */
static void check_program(struct check *c, const char *program)
{
    char path[PATH_MAX + 32];
    struct statvfs fs;
    AMP_BUF struct amp_buf ours = {0}, theirs = {0};
    snprintf(path, sizeof path, "%s/" AMP_HOOK_PROGRAM, c->dir);
    amp_buf_init(&ours, PROGRAM_MAX + 1);
    amp_buf_init(&theirs, PROGRAM_MAX + 1);
    if (amp_file_read(AT_FDCWD, path, PROGRAM_MAX, &ours, NULL) < 0)
        finding_report(c, AMP_HOOK_ERROR, "guard_missing", path, "",
                       "the guard's program cannot be read");
    else if (!program || amp_file_read(AT_FDCWD, program, PROGRAM_MAX, &theirs, NULL) < 0)
        finding_report(c, AMP_HOOK_ERROR, "guard_unknown", path, "",
                       "cannot be compared: the installed " AMP_HOOK_PROGRAM " cannot be read");
    else if (!amp_span_eq(amp_buf_span(&ours), amp_buf_span(&theirs)))
        finding_report(
            c, AMP_HOOK_ERROR, "guard_differs", path, "",
            "not the installed guard, but another version or another program: run hooks install "
            "again");
    else if (statvfs(path, &fs) == 0 && (fs.f_flag & ST_NOEXEC))
        finding_report(c, AMP_HOOK_ERROR, "hook_not_executable", path, "",
                       "on a file system without exec: git silently ignores the hooks");
}

static void check_policy(struct check *c)
{
    struct amp_rule rule;
    struct amp_error err;
    AMP_CLOSE int fd = open(c->h->common, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || faccessat(fd, "amp/" AMP_RULE_FILE, F_OK, 0) != 0)
        finding_report(c, AMP_HOOK_ERROR, "policy_missing", c->h->common, "amp/" AMP_RULE_FILE,
                       "no policy: only main and master are protected");
    else if (amp_rule_load(&rule, fd, &err))
        finding_report(c, AMP_HOOK_ERROR, "bad_guard_policy", c->h->common, "amp/" AMP_RULE_FILE,
                       err.what);
    if (fd >= 0 && faccessat(fd, "amp/" AMP_OVERRIDE, F_OK, 0) == 0)
        finding_report(c, AMP_HOOK_WARNING, "override_open", c->h->common, "amp/" AMP_OVERRIDE,
                       "an unused override exists");
}

int amp_hooks_check(const struct amp_hooks *h, const char *program, const char *env_path,
                    amp_hook_fn fn, void *ctx, struct amp_error *err)
{
    struct check c = {.h = h,
                      .dir = amp_hooks_where_git_looks(h),
                      .env_path = env_path ? env_path : "",
                      .fn = fn,
                      .ctx = ctx};
    AMP_CLOSE int dirfd = open(c.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dirfd < 0 && errno != ENOENT && errno != ENOTDIR)
        return amp_fail_errno(err, AMP_IOERR, "%s", c.dir);
    if (h->relative)
        finding_report(
            &c, AMP_HOOK_ERROR, "relative_hooks_path", c.dir, "",
            "core.hooksPath is relative: in each worktree git looks below that worktree, where "
            "its agent can change the hooks; make it an absolute path");
    if (h->foreign[0] && (dirfd < 0 || faccessat(dirfd, AMP_HOOK_PROGRAM, F_OK, 0) != 0)) {
        finding_report(&c, AMP_HOOK_ERROR, "foreign_hooks_path", h->foreign, "",
                       "core.hooksPath leads git here: the guard does not run");
        return c.errors;
    }
    if (dirfd < 0) {
        finding_report(&c, AMP_HOOK_ERROR, "hook_missing", c.dir, "", "no such directory");
        return c.errors;
    }
    c.dirfd = dirfd;
    for (const struct amp_hook_name *n = amp_hook_names; n->name; n++)
        if (!n->server || h->server)
            check_ours(&c, n->name);
    check_others(&c);
    check_program(&c, program);
    check_policy(&c);
    return c.errors;
}
