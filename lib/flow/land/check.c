/* Runs the check of a merge. */
#include "flow/land/check.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <amp/base/file.h>

#include "agent/gate.h"
#include "base/codes.h"
#include "base/loop.h"
#include "base/process/runner.h"

#define GRACE_MS   2000
#define SHOWN      320 /* bytes of the output's end in a sentence */
#define NAME       "amp-land"
#define READ_TURNS 16

extern char **environ;

struct check {
    const struct amp_land_check *how;
    char tree[PATH_MAX + 32], git_file[PATH_MAX + 48], scratch[PATH_MAX];
    int lock; /* of scratch */
    struct amp_gate gate;
    const char **env;
    struct amp_buf output;
};

static void check_release(struct check *k)
{
    struct amp_error ignored;

    amp_gate_end(&k->gate);
    if (*k->scratch)
        amp_confine_scratch_remove(k->scratch, &ignored);
    amp_auto_close(&k->lock);
    free(k->env);
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
    snprintf(k->git_file, sizeof k->git_file, "%s/.git", k->tree);
    const struct amp_git_worktree_spec spec = {
        .repo = repo, .path = k->tree, .base = commit, .no_sparse = true};
    amp_git_worktree_remove(git, repo, k->tree, true, &ignored); /* of a check that was killed */
    return amp_git_worktree_add(git, &spec, NULL, err);
}

/* ---- the command ---- */

static bool is_confined(const struct check *k)
{
    return k->how->confine->demand != AMP_CONFINE_OFF;
}

static int env_make(struct check *k, struct amp_error *err)
{
    size_t n = 0, kept = 0;

    while (environ[n])
        n++;
    if (!(k->env = calloc(n + 3, sizeof *k->env)))
        return amp_fail_memory(err);
    for (size_t i = 0; i < n; i++)
        if (is_confined(k)
                ? amp_confine_env_passes(k->how->policy, environ[i])
                : strncmp(environ[i], "AMP_", 4) != 0 && strncmp(environ[i], "GIT_", 4) != 0)
            k->env[kept++] = environ[i];
    k->env[kept++] = "GIT_CONFIG_NOSYSTEM=1";
    return 0;
}

static int walls_make(struct check *k, struct amp_error *err)
{
    const struct amp_land_check *how = k->how;
    char run[PATH_MAX + 8];

    if (how->confine->level != AMP_LEVEL_FULL) {
        snprintf(run, sizeof run, "%s/run", how->state_dir);
        if ((k->lock = amp_confine_scratch_make(run, k->scratch, sizeof k->scratch, err)) < 0)
            return -1;
    }
    if (how->policy->network != AMP_NETWORK_EGRESS_RESTRICTED)
        return 0;
    AMP_CLOSE int log = amp_gate_log(how->state_dir, err);
    return log < 0 ? -1 : amp_gate_start(how->policy, NAME, log, STDERR_FILENO, &k->gate, err);
}

static int command_start(struct check *k, int out, struct amp_child *child, struct amp_error *err)
{
    const char *const argv[] = {"/bin/sh", "-c", k->how->command, NULL};
    const char *const hidden[] = {k->how->state_dir, NULL};
    const struct amp_confine_place dot_git = {.path = k->git_file, .at = k->git_file};

    if (env_make(k, err) < 0)
        return -1;
    const struct amp_child_spec spec = {.argv = argv,
                                        .envp = k->env,
                                        .cwd = k->tree,
                                        .fd_in = -1,
                                        .fd_out = out,
                                        .fd_err = out,
                                        .new_session = true,
                                        .owns_tree = true};
    if (!is_confined(k))
        return amp_child_start(&spec, child, err);
    if (walls_make(k, err) < 0)
        return -1;
    const struct amp_confine c = {.policy = k->how->policy,
                                  .report = k->how->confine,
                                  .worktree = k->tree,
                                  .home = getenv("HOME"),
                                  .hidden = hidden,
                                  .places = &dot_git,
                                  .n_places = k->how->confine->level == AMP_LEVEL_FULL,
                                  .scratch = *k->scratch ? k->scratch : NULL,
                                  .gate_fd = k->gate.fd};
    return amp_confine_start(&c, &spec, child, err);
}

/* Reads some of the output, and drops it behind the limit. A command that writes without end does
 * not keep the caller from its time limit. */
static void output_read(struct check *k, int *fd)
{
    char part[65536];
    ssize_t n;

    for (int turns = 0; turns < READ_TURNS && *fd >= 0 && (n = read(*fd, part, sizeof part)) >= 0;
         turns++) {
        size_t room = AMP_LAND_CHECK_OUTPUT - k->output.len;
        if (n == 0) {
            close(*fd);
            *fd = -1;
            return;
        }
        amp_buf_add(&k->output, part, (size_t)n < room ? (size_t)n : room, NULL);
    }
}

static int command_run(struct check *k, struct amp_child_end *end, struct amp_error *err)
{
    struct amp_child child;
    int pipes[2];
    int rc = 0;

    if (pipe2(pipes, O_CLOEXEC) < 0)
        return amp_fail_errno(err, AMP_IOERR, "a pipe");
    AMP_CLOSE int from = pipes[0];
    fcntl(from, F_SETFL, O_NONBLOCK);
    rc = command_start(k, pipes[1], &child, err);
    close(pipes[1]);
    if (rc < 0)
        return -1;
    struct amp_runner run =
        amp_runner_of(&child, k->how->limit_ms ? k->how->limit_ms : -1, GRACE_MS);
    while (rc == 0) {
        struct pollfd fds[2];
        struct amp_loop turn = amp_loop_turn(fds, 2, *k->how->stop ? NULL : k->how->stop, NULL);
        amp_loop_add(&turn, child.pidfd, POLLIN);
        amp_loop_add(&turn, from, POLLIN);
        amp_loop_within(&turn, amp_runner_wait(&run));
        if (amp_loop_wait(&turn, err) < 0) {
            amp_child_kill_tree(&run.child, 9);
            amp_child_poll(&run.child, end, NULL);
            return -1;
        }
        if (*k->how->stop)
            amp_runner_hurry(&run, GRACE_MS);
        output_read(k, &from);
        rc = amp_runner_look(&run, end, err);
    }
    output_read(k, &from);
    if (rc > 0 && *k->how->stop)
        return amp_fail(err, AMP_INTERRUPTED, interrupted, "the check was interrupted");
    return rc < 0 ? -1 : 0;
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
    struct check k = {.how = c, .lock = -1, .gate = AMP_GATE_NONE};
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
