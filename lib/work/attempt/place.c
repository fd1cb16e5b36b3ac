/*
 * The agent's worktree for a job. Commits on a branch need no worktree. Other changes are kept
 * under a ref, and their directory is kept, before another worktree is used. A worker locks the
 * .git file of its worktree, so that a run with another state directory, which has no record of
 * this worker, neither uses nor removes the worktree.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <amp/base/clock.h>
#include <amp/base/file.h>

#include "base/codes.h"
#include "message/delivery/outbox.h"
#include "work/agent/work.h"
#include "work/attempt/walls/confined.h"
#include "work/git/worktree.h"

#define PLACES_MAX 9 /* REPO.worktrees/AGENT, AGENT-2, … */
#define OWN_MAX    16

/* Locks a worktree. NO "worktree_locked": another run has the lock. */
static int worktree_hold(const char *worktree, int *fd, struct amp_error *err)
{
    char path[PATH_MAX + 8];

    snprintf(path, sizeof path, "%s/.git", worktree);
    AMP_CLOSE int lock = amp_file_open(AT_FDCWD, path, O_RDWR | O_NOFOLLOW, 0, err);
    if (lock < 0)
        return -1;
    if (amp_lock(lock, 0, err))
        return !amp_code_is(err->code, lock_timeout)
                   ? -1
                   : amp_fail(err, AMP_NO, worktree_locked, "%s: another run works there",
                              worktree);
    *fd = lock;
    lock = -1;
    return 0;
}

static bool is_busy(const char *worktree)
{
    AMP_CLOSE int fd = -1;
    struct amp_error e = {0};

    return worktree_hold(worktree, &fd, &e) && amp_code_is(e.code, worktree_locked);
}

/* Whether fd is the lock of this worktree. */
static bool is_held(int fd, const char *worktree)
{
    char path[PATH_MAX + 8];
    struct stat mine, there;

    snprintf(path, sizeof path, "%s/.git", worktree);
    return fd >= 0 && *worktree && !fstat(fd, &mine) && !lstat(path, &there) &&
           mine.st_dev == there.st_dev && mine.st_ino == there.st_ino;
}

struct search {
    const char *agent;
    char paths[OWN_MAX][PATH_MAX];
    int n;
};

static int own_find(void *ctx, const struct amp_git_worktree *t)
{
    struct search *s = ctx;

    if (t->main || t->locked || t->foreign || strcmp(t->agent, s->agent))
        return 0;
    snprintf(s->paths[s->n++], PATH_MAX, "%s", t->path);
    return s->n == OWN_MAX;
}

/* Removes worktrees with the agent's marker that have no record in the state, because of a crash
 * before the record or a removed state directory. Worktrees with uncommitted changes are left
 * alone. */
static void own_clear(struct amp_worker *w, const char *repo)
{
    struct amp_error e;
    struct search *s = calloc(1, sizeof *s);

    if (!s)
        return;
    s->agent = w->opt->agent;
    if (!amp_git_worktrees(w->git, repo, own_find, s, &e))
        for (int i = 0; i < s->n; i++)
            if (!is_busy(s->paths[i]) &&
                amp_git_worktree_remove(w->git, repo, s->paths[i], false, &e) < 0 &&
                amp_code_is(e.code, worktree_dirty))
                w->opt->note("%s: kept, with uncommitted changes", s->paths[i]);
    free(s);
}

/* Ends the binding and leaves the worktree alone. */
static void binding_forget(struct amp_worker *w, struct amp_binding *now)
{
    const struct amp_binding_step step = {
        .agent = w->opt->agent, .event = AMP_BINDING_EV_UNBIND, .now_ms = amp_now_ms()};
    struct amp_error e;

    amp_binding_step(w->store, &step, now, &e);
}

static int binding_end(struct amp_worker *w, bool force, struct amp_binding *now,
                       struct amp_error *err)
{
    const struct amp_unbind_spec spec = {
        .agent = w->opt->agent, .remove = true, .force = force, .now_ms = amp_now_ms()};

    return amp_unbind(w->store, w->git, &spec, now, err);
}

/* Copies uncommitted changes to a ref. 0: all were copied, or there are none; -1: not all. */
static int changes_keep(struct amp_worker *w, const struct amp_binding *b, bool release, char *ref)
{
    struct amp_error e;
    char email[256];

    amp_agent_email(w->opt->agent, email, sizeof email);
    amp_git_keep_ref(w->opt->agent, amp_now_ms(), ref);
    const struct amp_git_keep_spec spec = {b->repo,       b->worktree, ref,
                                           w->opt->agent, email,       release};
    enum amp_git_kept kept = amp_git_keep(w->git, &spec, &e);
    if (kept == AMP_KEPT_ERROR || kept == AMP_KEPT_NOTHING)
        *ref = 0;
    if (kept == AMP_KEPT_ERROR)
        w->opt->note("%s: not copied to a ref: %s", b->worktree, e.what);
    return kept == AMP_KEPT_ERROR || kept == AMP_KEPT_PART ? -1 : 0;
}

/* Releases a worktree before another one is used. It is removed unless it has uncommitted changes
 * or commits on no branch. These commits are kept under a ref, and the directory stays, unless it
 * is of an attempt that is repeated (spent) and the ref is a complete copy. */
static void worktree_vacate(struct amp_worker *w, bool spent, struct amp_binding *now)
{
    const struct amp_binding was = *now;
    struct amp_error e;
    char ref[AMP_KEEP_REF_MAX];

    if (!binding_end(w, false, now, &e)) {
        if (*was.worktree && was.state != AMP_BINDING_BIND_FAILED && !access(was.worktree, F_OK))
            w->opt->note("%s: kept: its .git does not belong to %s", was.worktree, was.repo);
        return;
    }
    if (!amp_code_is(e.code, worktree_dirty)) {
        w->opt->note("%s", e.what);
        return binding_forget(w, now);
    }
    bool copied = !changes_keep(w, &was, spent, ref);
    /* Commits on no branch have a ref now: then the directory can be removed. */
    if (!binding_end(w, spent && copied, now, &e)) {
        if (*ref)
            w->opt->note("%s: removed; its commits on no branch are kept as %s (git show %s)",
                         was.worktree, ref, ref);
        return;
    }
    w->opt->note("%s: kept, with uncommitted work%s%s; remove it with git worktree remove --force",
                 was.worktree, *ref ? ", which is also kept as " : "", ref);
    binding_forget(w, now);
}

static int place_bind(struct amp_worker *w, const struct amp_bind_spec *spec,
                      struct amp_binding *now, struct amp_error *err)
{
    if (spec->path && is_busy(spec->path))
        return amp_fail(err, AMP_NO, worktree_locked, "%s: another run works there", spec->path);
    if (amp_bind(w->store, w->git, spec, now, err))
        return -1;
    if (!worktree_hold(now->worktree, &w->tree, err))
        return 0;
    binding_forget(w, now);
    return -1;
}

struct holder {
    const char *branch;
    struct amp_git_worktree found;
};

static int holder_find(void *ctx, const struct amp_git_worktree *t)
{
    struct holder *h = ctx;

    if (t->main || strcmp(t->branch, h->branch) != 0)
        return 0;
    h->found = *t;
    return 1;
}

/* Whether the agent left work there that goes on later. */
static bool is_suspended(const struct amp_agent_status *st)
{
    return st->state == AMP_AGENT_SUSPENDED || st->state == AMP_AGENT_WAITING ||
           st->state == AMP_AGENT_WAITING_RESOURCES;
}

/* Copies what a killed agent left in its worktree to a ref, and removes the worktree. */
static int holder_clear(struct amp_worker *w, const struct amp_bind_spec *spec,
                        const struct holder *h, struct amp_error *err)
{
    struct amp_binding of = {0};
    struct amp_error e;
    char ref[AMP_KEEP_REF_MAX], email[256];

    amp_agent_email(h->found.agent, email, sizeof email);
    amp_git_keep_ref(h->found.agent, amp_now_ms(), ref);
    const struct amp_git_keep_spec keep = {spec->repo,     h->found.path, ref,
                                           h->found.agent, email,         true};
    enum amp_git_kept kept = h->found.missing ? AMP_KEPT_NOTHING : amp_git_keep(w->git, &keep, &e);
    if (kept == AMP_KEPT_ERROR)
        return amp_fail(err, AMP_NO, worktree_locked, "%s: not copied to a ref: %s", h->found.path,
                        e.what);
    if (kept == AMP_KEPT_ALL)
        w->opt->note("%s: what %s left there is kept as %s (git show %s)", h->found.path,
                     h->found.agent, ref, ref);
    bool copied = kept == AMP_KEPT_ALL || kept == AMP_KEPT_NOTHING;
    if (amp_git_worktree_remove(w->git, spec->repo, h->found.path, copied, &e) < 0)
        return amp_code_is(e.code, worktree_dirty)
                   ? -1
                   : amp_fail(err, AMP_NO, worktree_locked, "%s: not removed: %s", h->found.path,
                              e.what);
    const struct amp_binding_step step = {
        .agent = h->found.agent, .event = AMP_BINDING_EV_UNBIND, .now_ms = amp_now_ms()};
    if (amp_binding_get(w->store, h->found.agent, &of, &e) == 0 && of.rev &&
        strcmp(of.worktree, h->found.path) == 0)
        amp_binding_step(w->store, &step, &of, &e);
    return 0;
}

/* Frees a branch that is checked out in the worktree of another agent. If that agent works there,
 * or has work there that goes on: NO worktree_locked. The work of a killed agent is kept under a
 * ref, and the worktree is removed. 0: the branch is free; -1: it is not. */
static int branch_free(struct amp_worker *w, const struct amp_bind_spec *spec,
                       struct amp_error *err)
{
    AMP_FREE struct holder *h = calloc(1, sizeof *h);
    AMP_CLOSE int lock = -1;
    struct amp_agent_status agent;
    struct amp_error e;

    if (!h)
        return amp_fail_memory(err);
    h->branch = spec->branch;
    if (amp_git_worktrees(w->git, spec->repo, holder_find, h, &e) < 0)
        return amp_fail(err, AMP_NO, worktree_locked, "%s: %s", spec->branch, e.what);
    if (!*h->found.path)
        return 0; /* it was freed meanwhile */
    bool own = strcmp(h->found.agent, w->opt->agent) == 0;
    amp_fail(err, AMP_NO, branch_checked_out, "%s: checked out in %s already%s", spec->branch,
             h->found.path, h->found.missing ? ", which is missing (git worktree prune)" : "");
    if (!*h->found.agent || h->found.foreign || h->found.locked ||
        amp_agent_status(w->store, h->found.agent, &agent, &e) < 0 || !agent.found)
        return -1; /* not of this state */
    /* With the lock of its name it begins nothing new there; another agent of this pool is
     * borrowed. */
    bool mine = own || amp_outbox_lock(w->store, h->found.agent, 0, &lock, &e) == 0;
    bool borrowed = !mine && w->opt->borrow && w->opt->borrow(w->opt->wait_ctx, h->found.agent);
    bool is_free = own || borrowed || (mine && !is_suspended(&agent));
    int rc = is_free && !is_busy(h->found.path)
                 ? holder_clear(w, spec, h, err)
                 : amp_fail(err, AMP_NO, worktree_locked, "%s: %s has %s there", h->found.path,
                            h->found.agent, spec->branch);
    if (borrowed)
        w->opt->give_back(w->opt->wait_ctx, h->found.agent);
    return rc;
}

/* Binds the first directory that is free or can be freed. */
static int place_find(struct amp_worker *w, const struct amp_bind_spec *spec,
                      struct amp_binding *now, struct amp_error *err)
{
    struct amp_bind_spec at = *spec;
    struct amp_git_info info;
    char path[PATH_MAX + 256];

    if (amp_git_info(w->git, spec->repo, &info, err))
        return -1;
    size_t n = strlen(info.common);
    if (n > 5 && !strcmp(info.common + n - 5, "/.git"))
        info.common[n - 5] = 0;
    at.path = path;
    for (int i = 1; i <= PLACES_MAX; i++) {
        snprintf(path, sizeof path, "%s.worktrees/%s", info.common, spec->agent);
        if (i > 1)
            snprintf(path + strlen(path), sizeof path - strlen(path), "-%d", i);
        if (!place_bind(w, &at, now, err))
            return 0;
        if (i == 1) {
            own_clear(w, spec->repo);
            if (!place_bind(w, &at, now, err))
                return 0;
        }
        if (amp_code_is(err->code, branch_checked_out)) {
            if (branch_free(w, spec, err) < 0)
                return -1;
            if (!place_bind(w, &at, now, err))
                return 0;
        }
        if (!amp_code_is(err->code, worktree_locked) && !amp_code_is(err->code, worktree_exists))
            return -1;
    }
    return amp_fail(err, AMP_NO, worktree_exists,
                    "%s.worktrees: no free directory for %s (up to %s-%d): remove unused ones with "
                    "git worktree remove",
                    info.common, spec->agent, spec->agent, PLACES_MAX);
}

int amp_assignment_bind(struct amp_worker *w, struct amp_assignment *k,
                        const struct amp_worker_place *p, struct amp_error *err)
{
    struct amp_binding now;
    char real[PATH_MAX];
    const char *branch = p->branch ? p->branch : "";
    const struct amp_prepare prepare = amp_confined_prepare_of(w);
    struct amp_bind_spec spec = {
        .agent = w->opt->agent,
        .repo = k->repo,
        .branch = p->branch,
        .base = p->base,
        .role = w->opt->role,
        .prepare = &prepare,
        .now_ms = amp_now_ms(),
    };

    if (amp_binding_get(w->store, w->opt->agent, &now, err))
        return -1;
    bool held = is_held(w->tree, now.worktree);
    amp_auto_close(&w->tree);
    w->tree = -1;
    bool bound = now.rev && now.state != AMP_BINDING_UNBOUND;
    bool here = realpath(k->repo, real) && !strcmp(now.repo, real);
    bool same = bound && here && !strcmp(now.branch, branch);
    if (bound && *now.worktree && is_busy(now.worktree)) {
        binding_forget(w, &now);
    } else if (same && *branch && !p->fresh && now.state == AMP_BINDING_BOUND_HOME &&
               !access(now.worktree, F_OK) && !place_bind(w, &spec, &now, err)) {
        goto bound;
    } else if (bound && !here && !held) {
        /* It is of another repository, not of this run: the state directory may be a copy. */
        if (*now.worktree && now.state != AMP_BINDING_BIND_FAILED)
            w->opt->note("%s: kept: a worktree of %s", now.worktree, now.repo);
        binding_forget(w, &now);
    } else if (bound && held && w->role->disposable && !binding_end(w, true, &now, err)) {
        ; /* of a review only the verdict and the fixes are kept */
    } else if (bound) {
        worktree_vacate(w, same && (p->fresh || w->role->disposable), &now);
    }
    if (place_find(w, &spec, &now, err))
        return -1;
bound:
    snprintf(k->worktree, sizeof k->worktree, "%s", now.worktree);
    return 0;
}

void amp_worker_vacate(struct amp_worker *w)
{
    struct amp_binding b;
    struct amp_error e;
    bool known = !amp_binding_get(w->store, w->opt->agent, &b, &e) && b.rev &&
                 b.state != AMP_BINDING_UNBOUND && is_held(w->tree, b.worktree);

    amp_auto_close(&w->tree);
    w->tree = -1;
    if (known)
        worktree_vacate(w, true, &b);
}

void amp_worker_unbind(struct amp_worker *w)
{
    struct amp_binding b;
    struct amp_error e;
    char path[PATH_MAX];
    bool known = !amp_binding_get(w->store, w->opt->agent, &b, &e) && b.rev;
    bool held = known && is_held(w->tree, b.worktree);

    amp_auto_close(&w->tree);
    w->tree = -1;
    if (!known)
        return;
    snprintf(path, sizeof path, "%s", b.worktree);
    if (!held && *path && is_busy(path))
        return binding_forget(w, &b);
    if (binding_end(w, w->role->disposable && held, &b, &e) && *path && !access(path, F_OK))
        w->opt->note("%s: kept: %s", path, e.what);
}
