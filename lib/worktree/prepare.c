/* Prepares a worktree for its agent. Both parts can be repeated, so a bind that was killed is
 * completed by the next one. */
#include "worktree/prepare.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/file.h>

#define DONE "amp-prepared" /* in the git directory of the worktree */

static int files_include(struct amp_git *g, const char *worktree, const struct amp_prepare *p,
                         struct amp_error *err)
{
    struct amp_git_included in;
    char modules[PATH_MAX + 16];
    snprintf(modules, sizeof modules, "%s/.gitmodules", worktree);
    if (!p->include && access(modules, F_OK) != 0)
        return 0;
    if (amp_git_worktree_include(g, worktree, worktree, p->include ? p->include_bytes : 0, &in,
                                 err) < 0)
        return -1;
    if (in.copied > 0)
        p->note("%s: copied %lld ignored %s (.worktreeinclude)", worktree, (long long)in.copied,
                in.copied == 1 ? "file" : "files");
    if (in.skipped > 0)
        p->note("%s: %lld not copied, because they are not regular files (.worktreeinclude)",
                worktree, (long long)in.skipped);
    if (in.submodules > 0)
        p->note("%s: %lld %s not fetched; fetch with: git -C %s submodule update --init", worktree,
                (long long)in.submodules, in.submodules == 1 ? "submodule is" : "submodules are",
                worktree);
    return 0;
}

static int command_start(const struct amp_prepare *p, const struct amp_child_spec *spec,
                         struct amp_child_end *end, struct amp_error *err)
{
    struct amp_child child;
    if (p->run)
        return p->run(p->ctx, spec, end, err);
    return amp_child_start(spec, &child, err) < 0
               ? -1
               : amp_child_wait(&child, p->command_ms, AMP_PREPARE_GRACE, p->stop, end, err);
}

/* Runs the command in the worktree; its output goes to stderr. */
static int command_run(const char *worktree, const struct amp_prepare *p, struct amp_error *err)
{
    const char *const argv[] = {"/bin/sh", "-c", p->command, NULL};
    const struct amp_child_spec spec = {.argv = argv,
                                        .cwd = worktree,
                                        .fd_in = -1,
                                        .fd_out = STDERR_FILENO,
                                        .fd_err = STDERR_FILENO,
                                        .dies_with_us = true,
                                        .owns_tree = true};
    struct amp_child_end end = {0};
    if (command_start(p, &spec, &end, err) < 0)
        return -1;
    if (end.exited && end.exit_code == 0)
        return 0;
    if (p->stop && *p->stop)
        return amp_fail(err, AMP_INTERRUPTED, "interrupted", "the post-create command was stopped");
    if (end.timed_out)
        return amp_fail(err, AMP_NO, "post_create_failed",
                        "the post-create command did not end in %lld ms", (long long)p->command_ms);
    return amp_fail(err, AMP_NO, "post_create_failed",
                    "the post-create command ended with %s %d: fix it and bind again",
                    end.exited ? "status" : "signal", end.exited ? end.exit_code : end.signal);
}

/* Runs the command unless it has succeeded in this worktree before. */
static int command_once(struct amp_git *g, const char *worktree, const struct amp_prepare *p,
                        struct amp_error *err)
{
    struct amp_git_info info;
    if (!p->command || !*p->command)
        return 0;
    if (amp_git_info(g, worktree, &info, err) < 0)
        return -1;
    AMP_CLOSE int fd = open(info.gitdir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return amp_fail_errno(err, AMP_IOERR, "%s", info.gitdir);
    if (faccessat(fd, DONE, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        return 0;
    return command_run(worktree, p, err) < 0
               ? -1
               : amp_file_write_atomic(fd, DONE, 0644, AMP_SPAN("1\n"), err);
}

/* The lock that flow/work/place.c takes while a worker uses the worktree: gc leaves it alone. */
static int worktree_lock(const char *worktree, int *fd, struct amp_error *err)
{
    char path[PATH_MAX + 8];
    struct amp_error why;
    snprintf(path, sizeof path, "%s/.git", worktree);
    AMP_CLOSE int lock = amp_file_open(AT_FDCWD, path, O_RDWR | O_NOFOLLOW, 0, err);
    if (lock < 0)
        return -1;
    if (amp_lock(lock, 0, &why) < 0)
        return amp_fail(err, AMP_NO, "worktree_locked", "%s: another process works there",
                        worktree);
    *fd = lock;
    lock = -1;
    return 0;
}

int amp_worktree_prepare(struct amp_git *g, const char *worktree, const struct amp_prepare *p,
                         struct amp_error *err)
{
    AMP_CLOSE int lock = -1;
    bool any = p->include || (p->command && *p->command);
    if (any && worktree_lock(worktree, &lock, err) < 0)
        return -1;
    return files_include(g, worktree, p, err) < 0 ? -1 : command_once(g, worktree, p, err);
}
