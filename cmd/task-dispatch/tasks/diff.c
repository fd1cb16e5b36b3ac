/* task-dispatch diff: what a task's branch changes. share/task/diff runs git. */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/child.h>

#include "../verbs.h"
#include "base/codes.h"
#include "people/story/story.h"
#include "work/git/repository/git.h"

static const struct amp_opt tasks_diff_opts[] = {AMP_OPT_END};

/* The commits between which git compares. */
struct comparing {
    struct amp_task task;
    char from[AMP_OID_MAX], to[AMP_OID_MAX]; /* git takes what from and to have in common */
};

/* The branch for which the work is, if the task has no base: that of the main worktree. */
static int target_find(struct comparing *c, struct amp_git *git, struct amp_error *err)
{
    struct amp_git_info info;

    if (amp_git_info(git, c->task.repo, &info, err) < 0 ||
        (info.linked && amp_git_info(git, info.common, &info, err) < 0))
        return -1;
    const char *const names[] = {info.branch, "main", "master", "HEAD"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (*names[i] && strcmp(names[i], c->task.branch) != 0 &&
            amp_git_resolve(git, c->task.repo, names[i], c->from, err) == 0)
            return 0;
    return -1;
}

/* The branch, or the commit of the last result if the branch is gone. */
static int commits_find(struct comparing *c, struct amp_git *git, struct amp_error *err)
{
    const struct amp_task *t = &c->task;
    char branch[300];
    const char *commit = "";

    for (size_t i = t->n_parts; i-- > 0 && !*commit;)
        commit = t->parts[i].commit;
    snprintf(branch, sizeof branch, "refs/heads/%.280s", t->branch);
    if (amp_git_resolve(git, t->repo, branch, c->to, err) < 0 &&
        (!amp_code_is(err->code, unknown_revision) || !*commit ||
         amp_git_resolve(git, t->repo, commit, c->to, err) < 0))
        return -1;
    return *t->base ? amp_git_resolve(git, t->repo, t->base, c->from, err)
                    : target_find(c, git, err);
}

/* Runs share/task/diff, which starts git and the pager. Returns its exit status. */
static int git_run(const struct comparing *c, struct amp_error *err)
{
    char script[PATH_MAX], range[2 * AMP_OID_MAX + 4];
    struct amp_child child;
    struct amp_child_end end;
    const char *const argv[] = {script, c->task.repo, range, NULL};
    const struct amp_child_spec spec = {.argv = argv,
                                        .fd_in = STDIN_FILENO,
                                        .fd_out = STDOUT_FILENO,
                                        .fd_err = STDERR_FILENO,
                                        .keep_group = true};

    snprintf(range, sizeof range, "%s...%s", c->from, c->to);
    /* Ctrl-C in the pager is the pager's. */
    amp_signals_install();
    if (amp_helper_path("../../share/amp/task/diff", script, sizeof script, err) < 0 ||
        amp_child_start(&spec, &child, err) < 0 ||
        amp_child_wait(&child, -1, 1000, NULL, &end, err) < 0)
        return -1;
    return end.exited ? end.exit_code : AMP_INTERRUPTED;
}

static int tasks_diff(struct amp_command *c, struct amp_error *err)
{
    struct comparing run = {0};
    struct amp_git *git = NULL;
    char id[AMP_TASK_ID_MAX];

    int rc = amp_story_find(c->store, c->argv[0], id, err);
    if (rc == 0)
        rc = amp_task_load(c->store, amp_span_str(id), &run.task, NULL, err);
    amp_state_close(c);
    if (rc == 0 && (!*run.task.repo || !*run.task.branch))
        rc = amp_fail(err, AMP_NO, no_branch, "%s names no repository and branch", id);
    if (rc == 0 && (rc = amp_git_open(NULL, &git, err)) == 0)
        rc = commits_find(&run, git, err);
    amp_git_close(git);
    if (rc == 0)
        rc = git_run(&run, err);
    amp_task_release(&run.task);
    return rc;
}

const struct amp_verb diff_verbs[] = {
    {"diff", "TASK", "show what the branch of a task changes", tasks_diff_opts, tasks_diff,
     .opens = AMP_OPENS_READ, .least = 1, .most = 1,
     .usage = "diff needs one task: diff TASK (task-dispatch list shows them)", .finds_state = true,
     .values = "task"},
    {0},
};
