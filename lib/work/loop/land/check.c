/* Runs the check of a merge. */
#include "work/loop/land/check.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/pipe.h>

#include "base/codes.h"
#include "work/attempt/walls/walled.h"

#define GRACE_MS 2000
#define SHOWN    320 /* bytes of the output's end in a sentence */
#define NAME     "amp-land"

extern char **environ;

struct check {
    const struct amp_land_check *how;
    char tree[PATH_MAX + 32];
    struct amp_buf output;
};

static void check_release(struct check *k)
{
    amp_buf_release(&k->output);
}

/* ---- the worktree ---- */

static int tree_make(struct amp_git *git, struct check *k, const char *repo, const char *commit,
                     struct amp_error *err)
{
    struct amp_git_info info;
    struct amp_error ignored;

    if (amp_git_info(git, repo, &info, err) < 0 ||
        (info.linked && amp_git_info(git, info.common, &info, err) < 0))
        return -1;
    snprintf(k->tree, sizeof k->tree, "%s.worktrees/" NAME,
             *info.workdir ? info.workdir : info.gitdir);
    const struct amp_git_worktree_spec spec = {
        .repo = repo, .path = k->tree, .base = commit, .no_sparse = true};
    amp_git_worktree_remove(git, repo, k->tree, true, &ignored); /* of a check that was killed */
    return amp_git_worktree_add(git, &spec, NULL, err);
}

/* ---- the command ---- */

static int command_wait(void *ctx, struct pollfd *fds, unsigned n, int64_t wait_ms,
                        struct amp_error *err)
{
    volatile const int *stop = ((struct check *)ctx)->how->stop;

    if (amp_poll(fds, n, wait_ms, *stop ? NULL : stop) < 0 && errno != EINTR)
        return amp_fail_errno(err, AMP_INTERNAL, "cannot wait for the check");
    return *stop != 0;
}

/* Drops what is behind the limit. */
static void output_take(void *ctx, bool errs, struct amp_span more)
{
    struct check *k = ctx;
    size_t room = AMP_LAND_CHECK_OUTPUT - k->output.len;

    (void)errs;
    amp_buf_add(&k->output, more.p, more.n < room ? more.n : room, NULL);
}

static int command_run(struct check *k, struct amp_child_end *end, struct amp_error *err)
{
    const struct amp_land_check *how = k->how;
    const char *const argv[] = {"/bin/sh", "-c", how->command, NULL};
    const struct amp_child_spec spec = {
        .argv = argv, .cwd = k->tree, .fd_in = -1, .new_session = true, .owns_tree = true};
    const struct amp_walled x = {.policy = how->policy,
                                 .confine = how->confine,
                                 .state_dir = how->state_dir,
                                 .home = getenv("HOME"),
                                 .client = NAME,
                                 .envp = environ,
                                 .limit_ms = how->limit_ms ? how->limit_ms : -1,
                                 .grace_ms = GRACE_MS,
                                 .wait = command_wait,
                                 .take = output_take,
                                 .ctx = k,
                                 .merged = true};
    int rc = amp_walled_run(&x, &spec, end, err);

    return rc > 0 ? amp_fail(err, AMP_INTERRUPTED, interrupted, "the check was interrupted") : rc;
}

/* The end of the output as one line. */
static void why_make(const struct check *k, const struct amp_child_end *end, char *out, size_t size)
{
    char last[SHOWN + 1];
    size_t n = k->output.len, at = 0;
    const char *from = k->output.data;

    while (n && strchr(" \t\r\n", from[n - 1]))
        n--;
    for (size_t i = n > SHOWN ? n - SHOWN : 0; i < n; i++)
        last[at++] = (unsigned char)from[i] < ' ' || (unsigned char)from[i] >= 0x7f ? ' ' : from[i];
    last[at] = '\0';
    const char *dots = n > SHOWN ? "…" : "";
    if (end->timed_out)
        snprintf(out, size, "it ran for longer than %g s: %s%s", (double)k->how->limit_ms / 1000,
                 dots, last);
    else if (end->signaled)
        snprintf(out, size, "it was ended by signal %d: %s%s", end->signal, dots, last);
    else
        snprintf(out, size, "it ended with %d: %s%s", end->exit_code, dots, last);
}

int amp_land_check_run(struct amp_git *git, const struct amp_land_check *c, const char *repo,
                       const char *commit, struct amp_land_checked *out, struct amp_error *err)
{
    AMP_CLEANUP(check_release)
    struct check k = {.how = c};
    struct amp_child_end end = {0};
    struct amp_error ignored;

    *out = (struct amp_land_checked){0};
    amp_buf_init(&k.output, AMP_LAND_CHECK_OUTPUT + 1);
    if (tree_make(git, &k, repo, commit, err) < 0)
        return -1;
    int rc = command_run(&k, &end, err);
    if (amp_git_worktree_remove(git, repo, k.tree, true, rc < 0 ? &ignored : err) < 0)
        rc = -1;
    if (rc < 0)
        return -1;
    out->passed = end.exited && end.exit_code == 0 && !end.timed_out;
    amp_sha256_hex(amp_buf_span(&k.output), out->digest);
    if (!out->passed)
        why_make(&k, &end, out->why, sizeof out->why);
    return 0;
}
