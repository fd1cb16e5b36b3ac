/* The agent's worktree for a job. It is ours to throw away: what matters is committed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/clock.h>

#include "flow/worker.h"
#include "worktree/worktree.h"

struct search {
    const char *agent;
    char path[PATH_MAX];
};

static int find_own(void *ctx, const struct amp_git_worktree *t)
{
    struct search *s = ctx;

    if (t->main || t->locked || strcmp(t->agent, s->agent))
        return 0;
    snprintf(s->path, sizeof s->path, "%s", t->path);
    return 1;
}

/* Worktrees with the agent's marker of which the state knows nothing: a crash between making and
 * recording, or a state directory that is gone. */
static void clear_own(struct amp_worker *w, const char *repo)
{
    struct amp_error e;

    for (int i = 0; i < 16; i++) {
        struct search s = {.agent = w->opt->agent};
        if (amp_git_worktrees(w->git, repo, find_own, &s, &e) || !*s.path ||
            amp_git_worktree_remove(w->git, repo, s.path, true, &e))
            return;
    }
}

int amp_worker_bind(struct amp_worker *w, const struct amp_worker_place *p, char *worktree,
                    size_t size, struct amp_error *err)
{
    struct amp_binding now;
    struct amp_error e;
    char real[PATH_MAX];
    const char *branch = p->branch ? p->branch : "";
    const struct amp_bind_spec spec = {
        .agent = w->opt->agent,
        .repo = p->repo,
        .branch = p->branch,
        .base = p->base,
        .now_ms = amp_now_ms(),
    };

    if (amp_binding_get(w->store, w->opt->agent, &now, err))
        return -1;
    bool home = now.found && now.state == AMP_BINDING_BOUND_HOME;
    bool same = home && !p->fresh && *branch && !strcmp(now.branch, branch) &&
                realpath(p->repo, real) && !strcmp(now.repo, real) && !access(now.worktree, F_OK);
    if (now.found && now.state != AMP_BINDING_UNBOUND && !same)
        amp_unbind(w->store, w->git, w->opt->agent, true, true, spec.now_ms, NULL, &now, &e);
    if (amp_bind(w->store, w->git, &spec, &now, err)) {
        clear_own(w, p->repo);
        amp_unbind(w->store, w->git, w->opt->agent, true, true, spec.now_ms, NULL, &now, &e);
        if (amp_bind(w->store, w->git, &spec, &now, err))
            return -1;
    }
    snprintf(worktree, size, "%s", now.worktree);
    return 0;
}

void amp_worker_unbind(struct amp_worker *w)
{
    struct amp_binding b;
    struct amp_error e;

    amp_unbind(w->store, w->git, w->opt->agent, true, w->role->disposable, amp_now_ms(), NULL, &b,
               &e);
}
