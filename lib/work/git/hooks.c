/*
 * Installs, removes and checks the guard. Policy and program are in place before the first link.
 * Each step leaves the old hook, the new one, or only the old one under its kept name, which the
 * next install completes.
 */
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

#include "base/codes.h"
#include "work/git/hooks.h"
#include "work/git/push.h"
#include "work/git/worktree.h"

#define PROGRAM_MAX (16u << 20)

static const struct hook {
    const char *name;
    bool server;
} hooks[] = {
    {"reference-transaction", false},
    {"pre-commit", false},
    {"pre-merge-commit", false},
    {"commit-msg", false},
    {"pre-rebase", false},
    {"pre-push", false},
    {"update", true},
    {"pre-receive", true},
    {NULL, false},
};

/* A relative core.hooksPath starts where hooks run: in the worktree or the bare repository. */
static int foreign_path(struct amp_git *g, const struct amp_git_info *info, const char *repo,
                        struct amp_hooks *h, struct amp_error *err)
{
    char value[PATH_MAX], path[PATH_MAX * 2], real[PATH_MAX], standard[PATH_MAX];
    int rc = amp_git_config(g, repo, "core.hookspath", true, value, sizeof value, err);
    if (rc)
        return rc < 0 ? -1 : 0;
    h->relative = value[0] != '/' && value[0] != '~' && !info->bare;
    snprintf(path, sizeof path, "%s/%s", info->workdir[0] ? info->workdir : info->common, value);
    if (value[0] == '~' || amp_path_canonical(value[0] == '/' ? value : path, real, NULL) < 0)
        amp_span_copy(amp_span_str(value), real, sizeof real);
    if (amp_path_canonical(h->dir, standard, err) < 0)
        return -1;
    if (strcmp(real, standard) != 0)
        amp_span_copy(amp_span_str(real), h->foreign, sizeof h->foreign);
    return 0;
}

int amp_hooks_find(struct amp_git *g, const char *repo, const char *dir, struct amp_hooks *out,
                   struct amp_error *err)
{
    struct amp_git_info info;
    struct amp_hooks h = {.server = false};
    if (amp_git_info(g, repo, &info, err) < 0)
        return -1;
    memcpy(h.common, info.common, sizeof h.common);
    int n = snprintf(h.dir, sizeof h.dir, "%s/hooks", info.common);
    if (n < 0 || (size_t)n >= sizeof h.dir)
        return amp_fail(err, AMP_USAGE, bad_path, "%s: too long", info.common);
    struct stat st;
    h.linked = !dir && lstat(h.dir, &st) == 0 && S_ISLNK(st.st_mode);
    if (dir && amp_path_canonical(dir, h.dir, err) < 0)
        return -1;
    if (foreign_path(g, &info, repo, &h, err) < 0)
        return -1;
    *out = h;
    return 0;
}

const char *amp_hooks_where_git_looks(const struct amp_hooks *h)
{
    return h->foreign[0] ? h->foreign : h->dir;
}

struct steps {
    const struct amp_hooks *h;
    amp_hook_did_fn fn;
    void *ctx;
};

static void step_report(const struct steps *s, const char *did, const char *dir, const char *name,
                        const char *note)
{
    char path[PATH_MAX * 2];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    s->fn(s->ctx, did, path, note);
}

/* Whether the entry is the link that install makes. */
static bool is_ours(int dirfd, const char *name)
{
    char target[64];
    ssize_t n = readlinkat(dirfd, name, target, sizeof target);
    return n == (ssize_t)strlen(AMP_HOOK_PROGRAM) &&
           memcmp(target, AMP_HOOK_PROGRAM, (size_t)n) == 0;
}

static bool file_exists(int dirfd, const char *name)
{
    struct stat st;
    return fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static int place_link(int dirfd, const struct steps *s, const char *name, struct amp_error *err)
{
    const struct amp_hooks *h = s->h;
    char kept[128], temporary[128];
    snprintf(kept, sizeof kept, "%s" AMP_HOOK_KEPT, name);
    snprintf(temporary, sizeof temporary, "%s.amp-new", name);
    if (is_ours(dirfd, name)) {
        step_report(s, "unchanged", h->dir, name, "");
        return 0;
    }
    if (file_exists(dirfd, name)) {
        if (file_exists(dirfd, kept))
            return amp_fail(err, AMP_CONFIG, hook_conflict,
                            "%s/%s: not the guard, and %s exists as well: remove one", h->dir, name,
                            kept);
        if (renameat(dirfd, name, dirfd, kept) != 0)
            return amp_fail_errno(err, AMP_CANTCREAT, "%s/%s", h->dir, kept);
        step_report(s, "kept", h->dir, kept, "the previous hook; the guard calls it");
    }
    unlinkat(dirfd, temporary, 0);
    if (symlinkat(AMP_HOOK_PROGRAM, dirfd, temporary) != 0 ||
        renameat(dirfd, temporary, dirfd, name) != 0)
        return amp_fail_errno(err, AMP_CANTCREAT, "%s/%s", h->dir, name);
    step_report(s, "linked", h->dir, name, "to " AMP_HOOK_PROGRAM);
    return 0;
}

static int write_policy(const struct steps *s, const struct amp_rule *rule, struct amp_error *err)
{
    const struct amp_hooks *h = s->h;
    char dir[PATH_MAX + 8];
    struct stat st;
    AMP_BUF struct amp_buf text = {0};
    amp_buf_init(&text, AMP_RULE_FILE_MAX);
    snprintf(dir, sizeof dir, "%s/amp", h->common);
    /* On a server, the hooks of several accounts must be able to read it. */
    if (amp_rule_format(rule, &text, err) < 0 || amp_mkdirs(dir, h->server ? 0755 : 0700, err) < 0)
        return -1;
    AMP_CLOSE int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return amp_fail_errno(err, AMP_CANTCREAT, "%s", dir);
    if (amp_file_write_atomic(fd, AMP_RULE_FILE, 0644, amp_buf_span(&text), err) < 0)
        return -1;
    bool closed = h->server && fstat(fd, &st) == 0 && (st.st_mode & 055) != 055;
    step_report(
        s, "policy", dir, AMP_RULE_FILE,
        closed ? "other accounts' hooks cannot read it: chmod 755 the directory amp, and keep the "
                 "state elsewhere (--state)"
               : "");
    return 0;
}

int amp_hooks_install(const struct amp_hooks *h, const struct amp_rule *rule, const char *program,
                      amp_hook_did_fn did, void *ctx, struct amp_error *err)
{
    const struct steps s = {h, did, ctx};
    AMP_BUF struct amp_buf bytes = {0};
    amp_buf_init(&bytes, PROGRAM_MAX + 1);
    if (h->foreign[0])
        return amp_fail(err, AMP_CONFIG, foreign_hooks_path,
                        "core.hooksPath leads git to %s: unset it, or install there with "
                        "--hooks-dir",
                        h->foreign);
    if (h->linked)
        return amp_fail(err, AMP_CONFIG, linked_hooks,
                        "%s is a symbolic link, and other repositories may use what it leads to: "
                        "make it a directory, or install there with --hooks-dir",
                        h->dir);
    if (amp_file_read(AT_FDCWD, program, PROGRAM_MAX, &bytes, err) < 0 ||
        write_policy(&s, rule, err) < 0 || amp_mkdirs(h->dir, 0755, err) < 0)
        return -1;
    enum amp_push_change done = h->server ? AMP_PUSH_UNCHANGED : amp_push_install(h->common, err);
    if (done == AMP_PUSH_FAILED)
        return -1;
    if (done == AMP_PUSH_CHANGED)
        step_report(&s, "configured", h->common, "config",
                    "agents' worktrees: git refuses to push from them");
    AMP_CLOSE int dirfd = open(h->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dirfd < 0)
        return amp_fail_errno(err, AMP_CANTCREAT, "%s", h->dir);
    /* Read-only: a hook manager that writes to pre-commit would write through the link. */
    if (amp_file_write_atomic(dirfd, AMP_HOOK_PROGRAM, 0555, amp_buf_span(&bytes), err) < 0)
        return -1;
    step_report(&s, "copied", h->dir, AMP_HOOK_PROGRAM, "");
    for (const struct hook *n = hooks; n->name; n++)
        if ((!n->server || h->server) && place_link(dirfd, &s, n->name, err))
            return -1;
    return amp_fsync_dir(dirfd, ".", err);
}

static int uninstall_from(const struct steps *s, const char *dir, struct amp_error *err)
{
    AMP_CLOSE int dirfd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dirfd < 0)
        return errno == ENOENT ? 0 : amp_fail_errno(err, AMP_IOERR, "%s", dir);
    for (const struct hook *n = hooks; n->name; n++) {
        char kept[128];
        snprintf(kept, sizeof kept, "%s" AMP_HOOK_KEPT, n->name);
        bool ours = is_ours(dirfd, n->name), has_kept = file_exists(dirfd, kept);
        if ((!ours && file_exists(dirfd, n->name)) || (!ours && !has_kept))
            continue;
        if (has_kept ? renameat(dirfd, kept, dirfd, n->name) : unlinkat(dirfd, n->name, 0))
            return amp_fail_errno(err, AMP_IOERR, "%s/%s", dir, n->name);
        step_report(s, has_kept ? "restored" : "removed", dir, n->name, "");
    }
    if (unlinkat(dirfd, AMP_HOOK_PROGRAM, 0) == 0)
        step_report(s, "removed", dir, AMP_HOOK_PROGRAM, "");
    else if (errno != ENOENT)
        return amp_fail_errno(err, AMP_IOERR, "%s/" AMP_HOOK_PROGRAM, dir);
    return 0;
}

int amp_hooks_uninstall(const struct amp_hooks *h, amp_hook_did_fn did, void *ctx,
                        struct amp_error *err)
{
    const struct steps s = {h, did, ctx};
    if (uninstall_from(&s, h->dir, err) < 0 ||
        (h->foreign[0] && uninstall_from(&s, h->foreign, err) < 0))
        return -1;
    enum amp_push_change done = amp_push_uninstall(h->common, err);
    if (done == AMP_PUSH_FAILED)
        return -1;
    if (done == AMP_PUSH_CHANGED)
        step_report(&s, "restored", h->common, "config", "");
    AMP_CLOSE int common = open(h->common, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (common >= 0 && unlinkat(common, "amp/" AMP_RULE_FILE, 0) == 0)
        step_report(&s, "removed", h->common, "amp/" AMP_RULE_FILE, "");
    if (common >= 0 && unlinkat(common, "amp/" AMP_OVERRIDE, 0) == 0)
        step_report(&s, "removed", h->common, "amp/" AMP_OVERRIDE, "");
    return 0;
}

int amp_hooks_override(const struct amp_hooks *h, const struct amp_hook_override *o,
                       struct amp_error *err)
{
    char dir[PATH_MAX + 8];
    AMP_BUF struct amp_buf text = {0};
    amp_buf_init(&text, 1024);
    snprintf(dir, sizeof dir, "%s/amp", h->common);
    if (strpbrk(o->branch, "\n ") || strpbrk(o->agent, "\n "))
        return amp_fail(err, AMP_USAGE, bad_value, "a name with white space");
    if (amp_buf_fmt(&text, err, "amp-override 1\nbranch %s\nagent %s\nuntil %lld\nid %s\n",
                    o->branch, o->agent, (long long)o->until_ms, o->id) < 0)
        return -1;
    AMP_CLOSE int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return amp_fail_errno(err, AMP_CANTCREAT, "%s", dir);
    return amp_file_write_atomic(fd, AMP_OVERRIDE, 0600, amp_buf_span(&text), err);
}

/* ---- checking ---- */

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

/* "#!/usr/bin/env -S python3 -u": checks the interpreter and the program after env. */
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
        finding_report(c, AMP_HOOK_WARNING, AMP_CODE(hook_not_executable), c->dir, name,
                       "not executable: git silently ignores it");
    } else if (interpreter_missing(c, name, which, sizeof which)) {
        snprintf(what, sizeof what, "its interpreter %s is missing: git commands that run it fail",
                 which);
        finding_report(c, AMP_HOOK_ERROR, AMP_CODE(interpreter_missing), c->dir, name, what);
    }
}

static void check_ours(struct check *c, const char *name)
{
    struct stat st;
    if (fstatat(c->dirfd, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        finding_report(c, AMP_HOOK_ERROR, AMP_CODE(hook_missing), c->dir, name, "not installed");
    else if (!is_ours(c->dirfd, name))
        finding_report(c, AMP_HOOK_ERROR, AMP_CODE(hook_replaced), c->dir, name,
                       "another hook is installed: the guard does not run");
    else if (faccessat(c->dirfd, name, X_OK, 0) != 0)
        finding_report(c, AMP_HOOK_ERROR, AMP_CODE(hook_not_executable), c->dir, name,
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
    AMP_DIR DIR *d = opendir(c->dir);
    for (struct dirent *e; d && (e = readdir(d));)
        if (is_hook_name(e->d_name) && !is_ours(c->dirfd, e->d_name))
            check_foreign(c, e->d_name);
}

/* Compares bytes and runs nothing: the file in a repository may be any program. */
static void check_program(struct check *c, const char *program)
{
    char path[PATH_MAX + 32];
    struct statvfs fs;
    AMP_BUF struct amp_buf ours = {0}, theirs = {0};
    snprintf(path, sizeof path, "%s/" AMP_HOOK_PROGRAM, c->dir);
    amp_buf_init(&ours, PROGRAM_MAX + 1);
    amp_buf_init(&theirs, PROGRAM_MAX + 1);
    if (amp_file_read(AT_FDCWD, path, PROGRAM_MAX, &ours, NULL) < 0)
        finding_report(c, AMP_HOOK_ERROR, AMP_CODE(guard_missing), path, "",
                       "the guard's program cannot be read");
    else if (!program || amp_file_read(AT_FDCWD, program, PROGRAM_MAX, &theirs, NULL) < 0)
        finding_report(c, AMP_HOOK_ERROR, AMP_CODE(guard_unknown), path, "",
                       "cannot be compared: the installed " AMP_HOOK_PROGRAM " cannot be read");
    else if (!amp_span_eq(amp_buf_span(&ours), amp_buf_span(&theirs)))
        finding_report(
            c, AMP_HOOK_ERROR, AMP_CODE(guard_differs), path, "",
            "not the installed guard, but another version or another program: run hooks install "
            "again");
    else if (statvfs(path, &fs) == 0 && (fs.f_flag & ST_NOEXEC))
        finding_report(c, AMP_HOOK_ERROR, AMP_CODE(hook_not_executable), path, "",
                       "on a file system without exec: git silently ignores the hooks");
}

/* A server has no agents' worktrees, and gets no settings for them. */
static void check_pushes(struct check *c)
{
    char where[PATH_MAX];
    struct amp_error err;
    int refuses = amp_push_check(c->h->common, where, &err);
    if (refuses <= 0)
        finding_report(
            c, AMP_HOOK_ERROR, AMP_CODE(push_allowed), refuses < 0 ? c->h->common : where, "",
            refuses < 0 ? err.what : "git does not refuse the pushes of agents: install again");
}

static void check_policy(struct check *c)
{
    struct amp_rule rule;
    struct amp_error err;
    AMP_CLOSE int fd = open(c->h->common, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || faccessat(fd, "amp/" AMP_RULE_FILE, F_OK, 0) != 0)
        finding_report(c, AMP_HOOK_ERROR, AMP_CODE(policy_missing), c->h->common,
                       "amp/" AMP_RULE_FILE, "no policy: only main and master are protected");
    else if (amp_rule_load(&rule, fd, &err))
        finding_report(c, AMP_HOOK_ERROR, AMP_CODE(bad_guard_policy), c->h->common,
                       "amp/" AMP_RULE_FILE, err.what);
    else if (!rule.server_all)
        check_pushes(c);
    if (fd >= 0 && faccessat(fd, "amp/" AMP_OVERRIDE, F_OK, 0) == 0)
        finding_report(c, AMP_HOOK_WARNING, AMP_CODE(override_open), c->h->common,
                       "amp/" AMP_OVERRIDE, "an unused override exists");
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
            &c, AMP_HOOK_ERROR, AMP_CODE(relative_hooks_path), c.dir, "",
            "core.hooksPath is relative: in each worktree git looks below that worktree, where "
            "its agent can change the hooks; make it an absolute path");
    if (h->foreign[0] && (dirfd < 0 || faccessat(dirfd, AMP_HOOK_PROGRAM, F_OK, 0) != 0)) {
        finding_report(&c, AMP_HOOK_ERROR, AMP_CODE(foreign_hooks_path), h->foreign, "",
                       "core.hooksPath leads git here: the guard does not run");
        return c.errors;
    }
    if (dirfd < 0) {
        finding_report(&c, AMP_HOOK_ERROR, AMP_CODE(hook_missing), c.dir, "", "no such directory");
        return c.errors;
    }
    c.dirfd = dirfd;
    for (const struct hook *n = hooks; n->name; n++)
        if (!n->server || h->server)
            check_ours(&c, n->name);
    check_others(&c);
    check_program(&c, program);
    check_policy(&c);
    return c.errors;
}
