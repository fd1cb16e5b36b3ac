/* Prepares a worktree after its bind: the files of .worktreeinclude, and the command of the person.
 * Both can be repeated, so a bind that was killed is completed by the next one. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/child.h>
#include <amp/base/clock.h>
#include <amp/base/file.h>

#include "bind.h"

#define DONE     "amp-prepared" /* in the git directory of the worktree */
#define GRACE_MS 5000

static int files_include(struct session *s, const char *worktree, struct amp_error *err)
{
    struct amp_git_included in;
    char modules[PATH_MAX + 16];
    snprintf(modules, sizeof modules, "%s/.gitmodules", worktree);
    if (!opt.include && access(modules, F_OK) != 0)
        return 0;
    if (amp_git_worktree_include(s->git, worktree, worktree, opt.include ? opt.include_bytes : 0,
                                 &in, err) < 0)
        return -1;
    if (in.copied > 0)
        amp_note("%s: copied %lld ignored %s (.worktreeinclude)", worktree, (long long)in.copied,
                 in.copied == 1 ? "file" : "files");
    if (in.skipped > 0)
        amp_warn("%s: %lld not copied, because they are not regular files (.worktreeinclude)",
                 worktree, (long long)in.skipped);
    if (in.submodules > 0)
        amp_note("%s: %lld %s not fetched; fetch with: git -C %s submodule update --init", worktree,
                 (long long)in.submodules, in.submodules == 1 ? "submodule is" : "submodules are",
                 worktree);
    return 0;
}

/* Runs the command in the worktree; its output goes to stderr. */
static int command_run(const char *worktree, struct amp_error *err)
{
    const char *const argv[] = {"/bin/sh", "-c", opt.post_create, NULL};
    const struct amp_child_spec spec = {.argv = argv,
                                        .cwd = worktree,
                                        .fd_in = -1,
                                        .fd_out = STDERR_FILENO,
                                        .fd_err = STDERR_FILENO,
                                        .dies_with_us = true,
                                        .owns_tree = true};
    struct amp_child child;
    struct amp_child_end end;
    if (amp_child_start(&spec, &child, err) < 0 ||
        amp_child_wait(&child, opt.post_create_ms, GRACE_MS, &amp_stop, &end, err) < 0)
        return -1;
    if (end.exited && end.exit_code == 0)
        return 0;
    if (end.timed_out)
        return amp_fail(err, AMP_NO, "post_create_failed",
                        "the post-create command did not end in %lld ms",
                        (long long)opt.post_create_ms);
    return amp_fail(err, AMP_NO, "post_create_failed",
                    "the post-create command ended with %s %d: fix it and bind again",
                    end.exited ? "status" : "signal", end.exited ? end.exit_code : end.signal);
}

/* Runs the command unless it has succeeded in this worktree before. */
static int command_once(struct session *s, const char *worktree, struct amp_error *err)
{
    struct amp_git_info info;
    if (!opt.post_create || !*opt.post_create)
        return 0;
    if (amp_git_info(s->git, worktree, &info, err) < 0)
        return -1;
    AMP_CLOSE int fd = open(info.gitdir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return amp_fail_errno(err, AMP_IOERR, "%s", info.gitdir);
    if (faccessat(fd, DONE, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        return 0;
    return command_run(worktree, err) < 0
               ? -1
               : amp_file_write_atomic(fd, DONE, 0644, AMP_SPAN("1\n"), err);
}

int worktree_prepare(struct session *s, struct amp_binding *b, struct amp_error *err)
{
    const struct amp_unbind_spec undo = {.agent = b->agent, .now_ms = amp_now_ms()};
    struct amp_error late;
    if (files_include(s, b->worktree, err) == 0 && command_once(s, b->worktree, err) == 0)
        return 0;
    /* The agent does not work in a worktree that is not complete. */
    if (amp_unbind(s->store, s->git, &undo, b, &late) < 0)
        amp_warn("%s", late.what);
    return -1;
}
