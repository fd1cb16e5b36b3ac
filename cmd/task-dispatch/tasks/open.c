/* task-dispatch open: prints the worktree of a task, and makes it if there is none. */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/codes.h"
#include "people/answer/person.h"
#include "people/story/story.h"
#include "shared/work/person.h"
#include "work/git/repository/git.h"

static const struct amp_opt tasks_open_opts[] = {AMP_OPT_END};

struct opening {
    struct amp_task task;
    struct amp_git *git;
    char path[PATH_MAX];
    bool missing; /* git has a worktree on the branch whose directory is gone */
    bool found;
};

/* The callback of amp_git_worktrees: the worktree that has the branch. */
static int worktree_look(void *ctx, const struct amp_git_worktree *w)
{
    struct opening *o = ctx;

    if (strcmp(w->branch, o->task.branch) != 0)
        return 0;
    o->missing = w->missing || w->foreign;
    o->found = !o->missing;
    snprintf(o->path, sizeof o->path, "%s", w->path);
    return o->found;
}

/* The commit of the last result, "" if there is none. */
static const char *last_commit(const struct amp_task *t)
{
    for (size_t i = t->n_parts; i-- > 0;)
        if (*t->parts[i].commit)
            return t->parts[i].commit;
    return "";
}

/* Makes the worktree REPO.worktrees/TASK on the branch, or at its last commit if the branch is
 * gone. */
static int worktree_make(struct opening *o, struct amp_error *err)
{
    const struct amp_task *t = &o->task;
    struct amp_git_info info;
    char oid[AMP_OID_MAX];
    const char *commit = last_commit(t);
    struct amp_git_worktree_spec spec = {.repo = t->repo, .branch = t->branch, .path = o->path};

    if (amp_person_only_recorded(amp_tool_state, amp_cli_name(), environ, "make a worktree", err) <
            0 ||
        amp_git_info(o->git, t->repo, &info, err) < 0)
        return -1;
    size_t n = strlen(info.common);
    if (n > 5 && strcmp(info.common + n - 5, "/.git") == 0)
        info.common[n - 5] = '\0';
    /* The repository's record of a removed directory would keep its branch. */
    if (o->missing && amp_git_worktree_remove(o->git, t->repo, o->path, false, err) < 0)
        return -1;
    int len = snprintf(o->path, sizeof o->path, "%s.worktrees/%s", info.common, t->id);
    if (len < 0 || (size_t)len >= sizeof o->path)
        return amp_fail(err, AMP_CANTCREAT, path_too_long, "%s: path too long", info.common);
    if (amp_git_resolve(o->git, t->repo, t->branch, oid, err) < 0) {
        if (!amp_code_is(err->code, unknown_revision))
            return -1;
        if (!*commit || amp_git_resolve(o->git, t->repo, commit, oid, err) < 0)
            return amp_fail(err, AMP_NO, no_worktree,
                            "%s has no worktree: its branch %s does not exist%s", t->id, t->branch,
                            *commit ? " and its commit is gone" : " yet");
        spec.branch = NULL;
        spec.base = oid;
    }
    if (amp_git_worktree_add(o->git, &spec, NULL, err) < 0)
        return -1;
    amp_note("made the worktree again%s", spec.branch ? "" : ", without a branch: it is gone");
    return 0;
}

static int path_find(struct opening *o, struct amp_error *err)
{
    if (!*o->task.repo || !*o->task.branch)
        return amp_fail(err, AMP_NO, no_worktree, "%s names no repository and branch", o->task.id);
    if (amp_git_worktrees(o->git, o->task.repo, worktree_look, o, err) < 0)
        return -1;
    return o->found ? 0 : worktree_make(o, err);
}

static int tasks_open(struct amp_command *c, struct amp_error *err)
{
    struct opening o = {0};
    char id[AMP_TASK_ID_MAX];
    AMP_BUF struct amp_buf line = {.max = PATH_MAX + 2};

    int rc = amp_story_find(c->store, c->argv[0], id, err);
    if (rc == 0)
        rc = amp_task_load(c->store, amp_span_str(id), &o.task, NULL, err);
    amp_state_close(c);
    if (rc == 0)
        rc = amp_git_open(NULL, &o.git, err);
    if (rc == 0)
        rc = path_find(&o, err);
    if (rc == 0 && amp_buf_fmt(&line, err, "%s\n", o.path) == 0)
        rc = amp_out(amp_buf_span(&line), err);
    amp_git_close(o.git);
    amp_task_release(&o.task);
    return rc;
}

const struct amp_verb open_verbs[] = {
    {"open", "TASK", "print the worktree of a task", tasks_open_opts, tasks_open,
     .opens = AMP_OPENS_READ, .least = 1, .most = 1,
     .usage = "open needs one task: open TASK (task-dispatch list shows them)", .finds_state = true,
     .values = "task"},
    {0},
};
