/* Operations that move a branch: commit and rollback. They check the rule first. */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/codes.h"
#include "worker.h"

struct staging {
    struct request *r;
    git_repository *repo;
    bool refused;
};

int64_t file_oversize(const struct request *r, git_repository *repo, const char *path)
{
    int64_t most = r->in.object_bytes > 0 ? r->in.object_bytes : AMP_OBJECT_BYTES;
    char full[PATH_MAX];
    struct stat st;
    int n = snprintf(full, sizeof full, "%s%s", git_repository_workdir(repo), path);

    return n > 0 && (size_t)n < sizeof full && lstat(full, &st) == 0 && S_ISREG(st.st_mode) &&
                   st.st_size > most
               ? st.st_size
               : 0;
}

/* Refuses a file that is too large, or that needs a filter program (git-lfs and the like): the
 * library runs none, so it would be committed unfiltered. Only git can commit it. */
static int check_file(const char *path, const char *matched, void *ctx)
{
    struct staging *st = ctx;
    const char *filter = NULL;
    (void)matched;
    int64_t size = file_oversize(st->r, st->repo, path);
    if (size) {
        st->refused = true;
        return refuse_limit(st->r, "the file %s has %lld bytes, more than object_bytes allows",
                            path, (long long)size);
    }
    if (git_attr_get(&filter, st->repo, GIT_ATTR_CHECK_FILE_THEN_INDEX, path, "filter") ||
        git_attr_value(filter) != GIT_ATTR_VALUE_STRING)
        return 0;
    st->refused = true;
    return amp_fail(st->r->err, AMP_NO, filter_unsupported,
                    "%s: needs the filter %s, which only git runs: commit it with git", path,
                    filter);
}

/* Stages the complete working tree, like git add -A. */
static int stage_all(struct request *r, git_repository *repo, git_oid *tree)
{
    struct staging st = {r, repo, false};
    CLEANUP(git_index_cleanup) git_index *index = NULL;
    int rc = git_repository_index(&index, repo);
    if (rc == 0 && git_index_has_conflicts(index))
        return amp_fail(r->err, AMP_NO, worktree_unfinished, "%s: a merge with conflicts was left",
                        git_repository_workdir(repo));
    if (rc == 0)
        rc = git_index_add_all(index, NULL, GIT_INDEX_ADD_DEFAULT, check_file, &st);
    if (st.refused)
        return -1;
    const git_error *e = rc ? git_error_last() : NULL;
    /* The library passes a repository inside the worktree as one directory path. */
    if (e && e->message && strstr(e->message, "invalid path") && strstr(e->message, "/'"))
        return amp_fail(r->err, AMP_NO, nested_repository,
                        "a git repository inside the worktree cannot be committed: %s", e->message);
    if (rc == 0)
        rc = git_index_update_all(index, NULL, NULL, NULL);
    if (rc == 0)
        rc = git_index_write(index);
    if (rc == 0)
        rc = git_index_write_tree(tree, index);
    return rc ? fail_git(r, rc, AMP_IOERR, AMP_CODE(git_error), git_repository_workdir(repo)) : 0;
}

/* Loads the rule and finds the caller; refuses the branch of HEAD. */
static int check_rule(struct request *r, git_repository *repo, struct amp_rule *rule,
                      struct amp_rule_caller *caller)
{
    char branch[1024];
    if (load_rule(r, repo, rule) < 0)
        return -1;
    head_branch(repo, branch, sizeof branch);
    AMP_CLOSE int fd = open(git_repository_path(repo), O_PATH | O_DIRECTORY | O_CLOEXEC);
    amp_rule_caller(r->in.agent, r->in.role, fd, caller);
    return check_branch(r, rule, caller, branch);
}

int op_commit(struct request *r)
{
    CLEANUP(git_repository_cleanup) git_repository *repo = NULL;
    CLEANUP(git_commit_cleanup) git_commit *parent = NULL;
    CLEANUP(git_tree_cleanup) git_tree *tree = NULL;
    CLEANUP(git_signature_cleanup) git_signature *who = NULL;
    const char *path = r->in.worktree;
    git_oid tree_id, head, oid;
    if (open_worktree(r, &repo) < 0)
        return -1;
    int state = git_repository_state(repo);
    if (state != GIT_REPOSITORY_STATE_NONE && state != GIT_REPOSITORY_STATE_BISECT)
        return amp_fail(r->err, AMP_NO, worktree_unfinished,
                        "%s: a merge, rebase or cherry-pick was left unfinished", path);
    if (stage_all(r, repo, &tree_id) < 0)
        return -1;
    bool born = git_reference_name_to_id(&head, repo, "HEAD") == 0;
    int rc = born ? git_commit_lookup(&parent, repo, &head) : 0;
    if (rc)
        return fail_git(r, rc, AMP_IOERR, AMP_CODE(git_error), path);
    if (born && git_oid_equal(git_commit_tree_id(parent), &tree_id)) {
        reply_oid(r, "oid", &head);
        reply_flag(r, "nothing", true);
        return 0;
    }
    struct amp_rule rule;
    struct amp_rule_caller caller;
    AMP_BUF struct amp_buf message = {0};
    amp_buf_init(&message, 2 << 20);
    if (check_rule(r, repo, &rule, &caller) < 0 || add_trailers(r, &rule, &message) < 0)
        return -1;
    const git_commit *parents[] = {parent};
    rc = git_tree_lookup(&tree, repo, &tree_id);
    if (rc == 0)
        rc = git_signature_now(&who, r->in.name, r->in.email);
    if (rc == 0)
        rc = git_repository_set_ident(repo, r->in.name, r->in.email);
    /* Make the commit without moving HEAD, then again with it: it is the same commit. */
    if (rc == 0)
        rc = git_commit_create(&oid, repo, NULL, who, who, NULL, message.data, tree, born ? 1 : 0,
                               parents);
    if (rc == 0 && check_contents(r, repo, &rule, caller.agent ? caller.name : NULL, &oid) < 0)
        return -1;
    if (rc == 0)
        rc = git_commit_create(&oid, repo, "HEAD", who, who, NULL, message.data, tree, born ? 1 : 0,
                               parents);
    if (rc)
        return fail_git(r, rc, AMP_IOERR, AMP_CODE(git_error), path);
    reply_oid(r, "oid", &oid);
    reply_flag(r, "nothing", false);
    return 0;
}

struct holder {
    const char *ref;
    struct linked w; /* path "": none */
    bool is_agents;
};

static int find_holder(void *ctx, const struct linked *w)
{
    struct holder *h = ctx;
    char name[128];
    if (w->missing || w->foreign || w->unfinished || !linked_head_is(w->gitdir, h->ref))
        return 0;
    h->is_agents = find_agent(NULL, w->gitdir, name, sizeof name);
    h->w = *w;
    return 1;
}

bool has_changes(git_repository *repo, bool untracked)
{
    CLEANUP(git_status_list_cleanup) git_status_list *list = NULL;
    git_status_options opt;
    git_status_options_init(&opt, GIT_STATUS_OPTIONS_VERSION);
    opt.show = GIT_STATUS_SHOW_INDEX_AND_WORKDIR;
    opt.flags = untracked ? GIT_STATUS_OPT_INCLUDE_UNTRACKED : 0;
    return git_status_list_new(&list, repo, &opt) || git_status_list_entrycount(list) > 0;
}

/* Resets the worktree that has the branch checked out, with its files. An agent's uncommitted work
 * is kept first; with a person's, the rollback is refused. */
static int roll_worktree(struct request *r, const struct holder *h, const git_oid *to,
                         const git_oid *tip, bool *kept)
{
    CLEANUP(git_repository_cleanup) git_repository *repo = NULL;
    CLEANUP(git_object_cleanup) git_object *target = NULL;
    const char *keep = r->in.keep;
    bool partial = false;
    if (tree_open(r, h->w.gitdir, h->w.path, &repo) < 0)
        return -1;
    bool changes = has_changes(repo, false);
    if (changes && h->is_agents && keep && keep_tree(r, repo, keep, kept, &partial))
        return -1;
    if (changes && (!h->is_agents || !keep || partial))
        return amp_fail(r->err, AMP_NO, worktree_dirty,
                        "%s: there are changes that are not committed", h->w.path);
    /* A snapshot has the tip as its parent. */
    if (keep && tip && !*kept && keep_tip(r, repo, tip, h->ref, to, keep, kept))
        return -1;
    int rc = git_repository_set_ident(repo, r->in.name, r->in.email);
    if (rc == 0)
        rc = git_object_lookup(&target, repo, to, GIT_OBJECT_COMMIT);
    if (rc == 0)
        rc = git_reset(repo, target, GIT_RESET_HARD, NULL);
    return rc ? fail_git(r, rc, AMP_IOERR, AMP_CODE(git_error), h->w.path) : 0;
}

int op_rollback(struct request *r)
{
    CLEANUP(git_repository_cleanup) git_repository *main_repo = NULL;
    CLEANUP(git_reference_cleanup) git_reference *ref = NULL, *moved = NULL;
    CLEANUP(git_commit_cleanup) git_commit *commit = NULL;
    git_repository *repo = r->repo;
    const char *branch = r->in.branch, *expect = r->in.expect, *keep = r->in.keep;
    bool kept = false;
    struct amp_rule rule;
    struct holder h = {0};
    if (load_rule(r, repo, &rule) < 0)
        return -1;
    if (amp_rule_protects(&rule, amp_span_str(branch)))
        return refuse_branch(r, branch, NULL);
    int rc = git_branch_lookup(&ref, repo, branch, GIT_BRANCH_LOCAL);
    if (rc == GIT_ENOTFOUND)
        return amp_fail(r->err, AMP_NO, unknown_revision, "%s: no such branch", branch);
    if (rc)
        return fail_git(r, rc, AMP_IOERR, AMP_CODE(git_error), branch);
    if (find_commit(r, repo, r->in.commit, &commit) < 0)
        return -1;
    const git_oid *now = git_reference_target(ref);
    if (expect && (!now || git_oid_streq(now, expect) != 0))
        return amp_fail(r->err, AMP_NO, branch_moved, "%s: no longer at %s", branch, expect);
    h.ref = git_reference_name(ref);
    const char *common = git_repository_commondir(repo);
    if (!linked_each(repo, find_holder, &h) && linked_head_is(common, h.ref)) {
        rc = git_repository_open(&main_repo, common);
        const char *workdir = rc == 0 ? git_repository_workdir(main_repo) : NULL;
        if (workdir && amp_span_copy(amp_span_str(common), h.w.gitdir, sizeof h.w.gitdir))
            trim_path(workdir, h.w.path, sizeof h.w.path);
    }
    const git_oid *to = git_commit_id(commit);
    if (h.w.path[0]) {
        rc = roll_worktree(r, &h, to, now, &kept);
    } else if (keep && now && keep_tip(r, repo, now, h.ref, to, keep, &kept)) {
        rc = -1;
    } else {
        rc = git_repository_set_ident(repo, r->in.name, r->in.email);
        if (rc == 0)
            rc = git_reference_set_target(&moved, ref, to, "amp: rollback");
        if (rc)
            rc = fail_git(r, rc, AMP_IOERR, AMP_CODE(git_error), branch);
    }
    reply_flag(r, "kept", kept);
    return rc;
}
