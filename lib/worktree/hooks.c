/*
 * Installing and removing the guard. Policy and program are in place before the first link; each
 * step leaves either the old hook, the new one, or the old one under its kept name with none in its
 * place, which the next install completes.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <amp/base/file.h>

#include "worktree/hooks.h"
#include "worktree/worktree.h"

#define PROGRAM_MAX (16u << 20)

const struct amp_hook_name amp_hook_names[] = {
    {"reference-transaction", false},
    {"pre-commit", false},
    {"pre-merge-commit", false},
    {"pre-rebase", false},
    {"pre-push", false},
    {"update", true},
    {NULL, false},
};

/* A relative core.hooksPath counts from where hooks run: the worktree, or the bare repository. */
static int foreign_path(struct amp_git *g, const struct amp_git_info *info, const char *repo,
                        struct amp_hooks *h, struct amp_error *err)
{
    char value[PATH_MAX], path[PATH_MAX * 2], real[PATH_MAX], standard[PATH_MAX];
    int rc = amp_git_config(g, repo, "core.hookspath", true, value, sizeof value, err);
    if (rc)
        return rc < 0 ? -1 : 0;
    h->relative = value[0] != '/' && value[0] != '~' && !info->bare;
    snprintf(path, sizeof path, "%s/%s", info->workdir[0] ? info->workdir : info->common, value);
    if (value[0] == '~' || amp_path_canonical(value[0] == '/' ? value : path, real, NULL))
        amp_span_copy(amp_span_str(value), real, sizeof real);
    if (amp_path_canonical(h->dir, standard, err))
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
        return amp_fail(err, AMP_USAGE, "bad_path", "%s: too long", info.common);
    if (dir && amp_path_canonical(dir, h.dir, err))
        return -1;
    if (foreign_path(g, &info, repo, &h, err))
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

bool amp_hook_is_ours(int dirfd, const char *name)
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
    if (amp_hook_is_ours(dirfd, name)) {
        step_report(s, "unchanged", h->dir, name, "");
        return 0;
    }
    if (file_exists(dirfd, name)) {
        if (file_exists(dirfd, kept))
            return amp_fail(err, AMP_CONFIG, "hook_conflict",
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
    /* Where people of several accounts push, their hooks must be able to read it. */
    if (amp_rule_format(rule, &text, err) || amp_mkdirs(dir, h->server ? 0755 : 0700, err))
        return -1;
    AMP_CLOSE int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return amp_fail_errno(err, AMP_CANTCREAT, "%s", dir);
    if (amp_file_write_atomic(fd, AMP_RULE_FILE, 0644, amp_buf_span(&text), err))
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
        return amp_fail(err, AMP_CONFIG, "foreign_hooks_path",
                        "core.hooksPath leads git to %s: unset it, or install there with "
                        "--hooks-dir",
                        h->foreign);
    if (amp_file_read(AT_FDCWD, program, PROGRAM_MAX, &bytes, err) < 0 ||
        write_policy(&s, rule, err) || amp_mkdirs(h->dir, 0755, err))
        return -1;
    AMP_CLOSE int dirfd = open(h->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dirfd < 0)
        return amp_fail_errno(err, AMP_CANTCREAT, "%s", h->dir);
    /* Read-only: a hook manager that writes to pre-commit would write through the link. */
    if (amp_file_write_atomic(dirfd, AMP_HOOK_PROGRAM, 0555, amp_buf_span(&bytes), err))
        return -1;
    step_report(&s, "copied", h->dir, AMP_HOOK_PROGRAM, "");
    for (const struct amp_hook_name *n = amp_hook_names; n->name; n++)
        if ((!n->server || h->server) && place_link(dirfd, &s, n->name, err))
            return -1;
    return amp_fsync_dir(dirfd, ".", err);
}

static int uninstall_from(const struct steps *s, const char *dir, struct amp_error *err)
{
    AMP_CLOSE int dirfd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dirfd < 0)
        return errno == ENOENT ? 0 : amp_fail_errno(err, AMP_IOERR, "%s", dir);
    for (const struct amp_hook_name *n = amp_hook_names; n->name; n++) {
        char kept[128];
        snprintf(kept, sizeof kept, "%s" AMP_HOOK_KEPT, n->name);
        bool ours = amp_hook_is_ours(dirfd, n->name), has_kept = file_exists(dirfd, kept);
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
    if (uninstall_from(&s, h->dir, err) || (h->foreign[0] && uninstall_from(&s, h->foreign, err)))
        return -1;
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
        return amp_fail(err, AMP_USAGE, "bad_value", "a name with white space");
    if (amp_buf_fmt(&text, err, "amp-override 1\nbranch %s\nagent %s\nuntil %lld\nid %s\n",
                    o->branch, o->agent, (long long)o->until_ms, o->id) < 0)
        return -1;
    AMP_CLOSE int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return amp_fail_errno(err, AMP_CANTCREAT, "%s", dir);
    return amp_file_write_atomic(fd, AMP_OVERRIDE, 0600, amp_buf_span(&text), err);
}
