/* Handles worktrees after they were made: what would be lost with each, and the remains of crashes.
 */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/file.h>

#include "../worker.h"
#include "base/codes.h"

/* ---- what would be lost ---- */

struct lives {
    struct request *r;
    git_repository *repo;
    struct amp_rule rule;
    git_oid into; /* the commit of in.branch, if it is given */
    bool has_into;
};

/* Whether the branch of `ref` has the commit. `own`: the worktree's branch, which does not count.
 */
static bool ref_has(git_repository *repo, git_reference *ref, const git_oid *oid)
{
    CLEANUP(git_object_cleanup) git_object *tip = NULL;
    if (git_reference_peel(&tip, ref, GIT_OBJECT_COMMIT) != 0)
        return false;
    return git_oid_equal(git_object_id(tip), oid) ||
           git_graph_descendant_of(repo, git_object_id(tip), oid) == 1;
}

/* merged: a protected branch, or the one that was named, has the commit. remote: some branch of a
 * remote is known; pushed: one of them has it. */
static void commit_judge(const struct lives *l, const git_oid *oid, bool *merged, bool *remote,
                         bool *pushed)
{
    git_reference_iterator *it = NULL;
    git_reference *ref;
    *merged = l->has_into && (git_oid_equal(&l->into, oid) ||
                              git_graph_descendant_of(l->repo, &l->into, oid) == 1);
    *remote = *pushed = false;
    if (git_reference_iterator_new(&it, l->repo) != 0)
        return;
    while (git_reference_next(&ref, it) == 0) {
        const char *name = git_reference_name(ref);
        if (strncmp(name, "refs/remotes/", 13) == 0) {
            *remote = true;
            *pushed = *pushed || ref_has(l->repo, ref, oid);
        } else if (!l->has_into && amp_rule_protects(&l->rule, amp_span_str(name))) {
            *merged = *merged || ref_has(l->repo, ref, oid);
        }
        git_reference_free(ref);
    }
    git_reference_iterator_free(it);
}

/* The first reason for which the worktree must be kept; NULL: nothing would be lost. */
static const char *worktree_judge(struct lives *l, const struct linked *w)
{
    CLEANUP(git_repository_cleanup) git_repository *repo = NULL;
    char modules[PATH_MAX + 16];
    bool merged, remote, pushed;
    git_oid head;
    if (w->foreign)
        return "foreign";
    if (w->locked)
        return "locked";
    if (w->missing)
        return NULL;
    snprintf(modules, sizeof modules, "%s/modules", w->gitdir);
    if (access(modules, F_OK) == 0)
        return "submodules"; /* their repositories would be removed, too */
    if (tree_open(l->r, w->gitdir, w->path, &repo) < 0)
        return "unreadable";
    if (git_repository_state(repo) != GIT_REPOSITORY_STATE_NONE)
        return "unfinished_operation";
    if (has_changes(repo, true))
        return "uncommitted";
    if (git_reference_name_to_id(&head, repo, "HEAD") != 0)
        return "no_commit";
    commit_judge(l, &head, &merged, &remote, &pushed);
    return !merged ? "unmerged" : remote && !pushed ? "unpushed" : NULL;
}

static int life_reply(void *ctx, const struct linked *w)
{
    struct lives *l = ctx;
    if (w->unfinished)
        return 0;
    const char *keep = worktree_judge(l, w);
    reply_worktree(l->r, w, false, keep ? keep : "", NULL);
    return 0;
}

int op_worktree_lives(struct request *r)
{
    struct lives l = {.r = r, .repo = r->repo};
    CLEANUP(git_commit_cleanup) git_commit *into = NULL;
    if (load_rule(r, r->repo, &l.rule) < 0)
        return -1;
    if (r->in.branch) {
        if (find_commit(r, r->repo, r->in.branch, &into) < 0)
            return -1;
        l.into = *git_commit_id(into);
        l.has_into = true;
    }
    AMP_CLOSE int lock = linked_lock(r);
    if (lock < 0)
        return -1;
    amp_jw_member_open(&r->out, "worktrees", '[');
    linked_each(r->repo, life_reply, &l);
    amp_jw_close(&r->out, ']');
    *r->err = (struct amp_error){0}; /* of a worktree that could not be read */
    return 0;
}

/* ---- what it has ---- */

struct facts {
    struct request *r;
    git_oid base; /* the HEAD of the main worktree */
    bool has_base;
};

static int64_t changes_count(git_repository *repo)
{
    CLEANUP(git_status_list_cleanup) git_status_list *list = NULL;
    git_status_options opt;
    git_status_options_init(&opt, GIT_STATUS_OPTIONS_VERSION);
    opt.show = GIT_STATUS_SHOW_INDEX_AND_WORKDIR;
    opt.flags = GIT_STATUS_OPT_INCLUDE_UNTRACKED;
    return git_status_list_new(&list, repo, &opt) != 0 ? -1
                                                       : (int64_t)git_status_list_entrycount(list);
}

static void facts_read(const struct facts *f, const struct linked *w, struct tree_facts *out)
{
    CLEANUP(git_repository_cleanup) git_repository *repo = NULL;
    CLEANUP(git_commit_cleanup) git_commit *commit = NULL;
    size_t ahead, behind;
    git_oid head;
    if (w->missing || w->foreign || tree_open(f->r, w->gitdir, w->path, &repo) < 0)
        return;
    out->changes = changes_count(repo);
    if (git_reference_name_to_id(&head, repo, "HEAD") != 0)
        return;
    if (git_commit_lookup(&commit, repo, &head) == 0)
        out->head_s = git_commit_time(commit);
    if (f->has_base && git_graph_ahead_behind(&ahead, &behind, f->r->repo, &head, &f->base) == 0) {
        out->ahead = (int64_t)ahead;
        out->behind = (int64_t)behind;
    }
}

static int facts_reply(void *ctx, const struct linked *w)
{
    const struct facts *f = ctx;
    struct tree_facts t = {.changes = -1, .ahead = -1, .behind = -1};
    if (w->unfinished)
        return 0;
    facts_read(f, w, &t);
    reply_worktree(f->r, w, false, NULL, &t);
    return 0;
}

int op_worktree_facts(struct request *r)
{
    CLEANUP(git_repository_cleanup) git_repository *main_repo = NULL;
    struct facts f = {.r = r};
    const char *common = git_repository_commondir(r->repo);
    int rc = git_repository_open(&main_repo, common);
    if (rc)
        return fail_git(r, rc, AMP_DATAERR, AMP_CODE(repo_not_git), common);
    f.has_base = git_reference_name_to_id(&f.base, main_repo, "HEAD") == 0;
    AMP_CLOSE int lock = linked_lock(r);
    if (lock < 0)
        return -1;
    amp_jw_member_open(&r->out, "worktrees", '[');
    linked_each(r->repo, facts_reply, &f);
    amp_jw_close(&r->out, ']');
    *r->err = (struct amp_error){0}; /* of a worktree that could not be read */
    return 0;
}

/* ---- the remains of crashes ---- */

static int repair_one(void *ctx, const struct linked *w)
{
    struct request *r = ctx;
    /* Under the lock no other process works on it. */
    if (w->unfinished && !w->foreign) {
        linked_remove(w, true);
        amp_jw_str(&r->out, amp_span_str(w->path[0] ? w->path : w->gitdir));
    }
    return 0;
}

int op_worktree_repair(struct request *r)
{
    AMP_CLOSE int lock = linked_lock(r);
    if (lock < 0)
        return -1;
    amp_jw_member_open(&r->out, "removed", '[');
    linked_each(r->repo, repair_one, r);
    amp_jw_close(&r->out, ']');
    return 0;
}
