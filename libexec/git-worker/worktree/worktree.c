/* Adds, removes and lists worktrees. */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/file.h>

#include "../worker.h"
#include "base/codes.h"

/* The branch of the new worktree: an existing one, or a new one from base. */
static int take_branch(struct request *r, git_reference **out, bool *made)
{
    git_repository *repo = r->repo;
    const char *branch = r->in.branch;
    int valid = 0;
    *made = false;
    if (git_branch_name_is_valid(&valid, branch) || !valid)
        return amp_fail(r->err, AMP_USAGE, bad_branch, "%s: not a branch's name", branch);
    int rc = git_branch_lookup(out, repo, branch, GIT_BRANCH_LOCAL);
    if (rc == 0) {
        if (!linked_checked_out(repo, git_reference_name(*out)))
            return 0;
        return amp_fail(r->err, AMP_NO, branch_checked_out,
                        "%s: checked out in another worktree already", branch);
    }
    CLEANUP(git_commit_cleanup) git_commit *commit = NULL;
    if (rc != GIT_ENOTFOUND)
        return fail_git(r, rc, AMP_IOERR, AMP_CODE(git_error), branch);
    if (find_commit(r, repo, r->in.base ? r->in.base : "HEAD", &commit) < 0)
        return -1;
    rc = git_branch_create(out, repo, branch, commit, 0);
    *made = rc == 0;
    return rc ? fail_git(r, rc, AMP_CANTCREAT, AMP_CODE(git_error), branch) : 0;
}

int tree_open(struct request *r, const char *gitdir, const char *path, git_repository **out)
{
    CLEANUP(git_repository_cleanup) git_repository *repo = NULL;
    /* By its git directory: the file .git in the worktree is the agent's. */
    int rc = git_repository_open(&repo, gitdir);
    if (rc)
        return fail_git(r, rc, AMP_NO, AMP_CODE(worktree_unknown), path);
    const char *workdir = git_repository_workdir(repo);
    if (!workdir || !same_dir(AT_FDCWD, workdir, AT_FDCWD, path) ||
        !same_dir(AT_FDCWD, git_repository_path(repo), AT_FDCWD, gitdir) ||
        !same_dir(AT_FDCWD, git_repository_commondir(repo), AT_FDCWD,
                  git_repository_commondir(r->repo)))
        return amp_fail(r->err, AMP_NO, worktree_unknown,
                        "%s: kept: its .git belongs to %s with the work directory %s, not to %s",
                        path, git_repository_path(repo), workdir ? workdir : "(none)", gitdir);
    *out = repo;
    repo = NULL;
    return 0;
}

static int refuse_foreign(struct request *r, const struct linked *w)
{
    return amp_fail(r->err, AMP_NO, worktree_unknown, "%s: kept: its .git does not belong to %s",
                    w->path, w->gitdir);
}

struct search {
    const char *path;
    struct linked found;
};

static int match_path(void *ctx, const struct linked *w)
{
    struct search *s = ctx;
    if (strcmp(w->path, s->path) != 0)
        return 0;
    s->found = *w;
    return 1;
}

int open_worktree(struct request *r, git_repository **out)
{
    struct search s = {.path = r->in.worktree};
    if (!linked_each(r->repo, match_path, &s))
        return amp_fail(r->err, AMP_NO, worktree_unknown, "%s: not a worktree of %s", s.path,
                        git_repository_commondir(r->repo));
    if (s.found.missing || s.found.foreign)
        return refuse_foreign(r, &s.found);
    return tree_open(r, s.found.gitdir, s.path, out);
}

static int check_out(struct request *r, const struct linked *w)
{
    CLEANUP(git_repository_cleanup) git_repository *repo = NULL;
    if (tree_open(r, w->gitdir, w->path, &repo) < 0 || checkout_files(r, w, repo) < 0)
        return -1;
    reply_text(r, "path", w->path);
    return linked_finish(r, w);
}

int op_worktree_add(struct request *r)
{
    CLEANUP(git_reference_cleanup) git_reference *ref = NULL;
    CLEANUP(git_commit_cleanup) git_commit *commit = NULL;
    git_repository *repo = r->repo;
    const char *branch = r->in.branch, *agent = r->in.agent;
    struct amp_rule rule;
    struct linked w;
    bool made = false;
    if (load_rule(r, repo, &rule) < 0)
        return -1;
    struct amp_rule_caller caller;
    amp_rule_caller(agent, r->in.role, -1, &caller);
    /* The branch is the one that it is being bound to. */
    amp_span_copy(amp_span_str(branch), caller.branch, sizeof caller.branch);
    caller.marked = agent;
    if (branch && check_branch(r, &rule, &caller, branch) < 0)
        return -1;
    AMP_CLOSE int lock = linked_lock(r);
    if (lock < 0)
        return -1;
    linked_clear(repo, r->in.path);
    char head[1024];
    if (branch) {
        if (take_branch(r, &ref, &made) < 0)
            return -1;
        snprintf(head, sizeof head, "ref: %s", git_reference_name(ref));
    } else {
        if (find_commit(r, repo, r->in.base ? r->in.base : "HEAD", &commit) < 0)
            return -1;
        git_oid_tostr(head, sizeof head, git_commit_id(commit));
    }
    int rc = linked_make(r, head, &w);
    if (rc == 0 && check_out(r, &w)) {
        linked_remove(&w, true);
        rc = -1;
    }
    if (rc && made)
        git_reference_delete(ref);
    return rc;
}

static bool is_dirty(struct request *r, const struct linked *w)
{
    CLEANUP(git_repository_cleanup) git_repository *repo = NULL;
    char modules[PATH_MAX + 16];
    snprintf(modules, sizeof modules, "%s/modules", w->gitdir);
    if (tree_open(r, w->gitdir, w->path, &repo) < 0 || access(modules, F_OK) == 0)
        return true; /* unknown, or with repositories of submodules: the files are kept */
    git_oid head;
    return has_changes(repo, true) || git_repository_state(repo) != GIT_REPOSITORY_STATE_NONE ||
           (git_repository_head_detached(repo) == 1 &&
            git_reference_name_to_id(&head, repo, "HEAD") == 0 &&
            !keep_is_reachable(repo, &head, NULL, NULL));
}

/* Whether path is outside of REPO.worktrees: only worktrees inside are removed with their files. */
static bool is_outside(git_repository *repo, const char *path, char *root, size_t size)
{
    char parent[PATH_MAX], real_root[PATH_MAX], real[PATH_MAX];
    trim_path(git_repository_commondir(repo), root, size);
    size_t n = strlen(root);
    if (n > 5 && strcmp(root + n - 5, "/.git") == 0)
        root[n - 5] = '\0';
    n = strlen(root);
    snprintf(root + n, size - n, ".worktrees");
    const char *slash = strrchr(path, '/');
    snprintf(parent, sizeof parent, "%.*s", slash ? (int)(slash - path) : 0, path);
    /* The parent, because the directory may be missing. */
    if (!realpath(root, real_root) || !realpath(parent, real))
        return true;
    n = strlen(real_root);
    return strncmp(real, real_root, n) != 0 || (real[n] != '\0' && real[n] != '/');
}

int op_worktree_remove(struct request *r)
{
    char root[PATH_MAX + 32];
    git_repository *repo = r->repo;
    const char *path = r->in.path;
    struct search s = {.path = path};
    bool force = r->in.force;
    AMP_CLOSE int lock = linked_lock(r);
    if (lock < 0)
        return -1;
    if (!linked_each(repo, match_path, &s))
        return amp_fail(r->err, AMP_NO, worktree_not_found, "%s: not a worktree of %s", path,
                        git_repository_commondir(repo));
    if (s.found.foreign)
        return refuse_foreign(r, &s.found);
    if (s.found.locked && !s.found.unfinished)
        return amp_fail(r->err, AMP_NO, worktree_locked, "%s: the worktree is locked", path);
    bool files = !s.found.missing, outside = is_outside(repo, path, root, sizeof root);
    if (files && outside)
        return amp_fail(r->err, AMP_NO, worktree_outside,
                        "%s: not removed: only worktrees inside %s are; use git worktree remove",
                        path, root);
    if (!force && files && !s.found.unfinished && is_dirty(r, &s.found))
        return amp_fail(r->err, AMP_NO, worktree_dirty,
                        "%s: there are changes that are not committed, or commits on no branch",
                        path);
    linked_remove(&s.found, !outside);
    bool left = access(path, F_OK) == 0;
    if (left && files)
        return amp_fail(r->err, AMP_IOERR, filesystem_error, "%s: cannot be removed completely",
                        path);
    reply_flag(r, "left", left);
    return 0;
}

void reply_worktree(struct request *r, const struct linked *w, bool is_main, const char *keep,
                    const struct tree_facts *facts)
{
    char text[1024], agent[128];
    AMP_BUF struct amp_buf b = {0};
    amp_buf_init(&b, sizeof text);
    AMP_CLOSE int fd = open(w->gitdir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const char *branch = "", *head = "";
    git_oid oid;
    char hex[GIT_OID_HEXSZ + 1];
    text[0] = '\0';
    if (fd >= 0 && amp_file_read(fd, "HEAD", sizeof text - 1, &b, NULL) == 0) {
        while (b.len && b.data[b.len - 1] == '\n')
            b.len--;
        amp_span_copy(amp_buf_span(&b), text, sizeof text);
        if (strncmp(text, "ref: refs/heads/", 16) == 0)
            branch = text + 16;
    }
    /* Opening each worktree would read its configuration again. */
    if (!w->missing && !w->foreign &&
        (git_oid_fromstr(&oid, text) == 0 ||
         (strncmp(text, "ref: refs/", 10) == 0 &&
          git_reference_name_to_id(&oid, r->repo, text + 5) == 0)))
        head = git_oid_tostr(hex, sizeof hex, &oid);
    amp_jw_open(&r->out, '{');
    reply_text(r, "path", w->path);
    reply_text(r, "gitdir", w->gitdir);
    reply_text(r, "branch", branch);
    reply_text(r, "head", head);
    reply_text(r, "agent", !is_main && amp_rule_agent(NULL, fd, agent, sizeof agent) ? agent : "");
    reply_flag(r, "main", is_main);
    reply_flag(r, "locked", w->locked);
    reply_flag(r, "missing", w->missing);
    reply_flag(r, "foreign", w->foreign);
    if (keep)
        reply_text(r, "keep", keep);
    if (facts) {
        amp_jw_member_int(&r->out, "changes", facts->changes);
        amp_jw_member_int(&r->out, "ahead", facts->ahead);
        amp_jw_member_int(&r->out, "behind", facts->behind);
        amp_jw_member_int(&r->out, "head_time", facts->head_s);
    }
    amp_jw_close(&r->out, '}');
}

static int list_one(void *ctx, const struct linked *w)
{
    if (!w->unfinished)
        reply_worktree(ctx, w, false, NULL, NULL);
    return 0;
}

int op_worktrees(struct request *r)
{
    CLEANUP(git_repository_cleanup) git_repository *main_repo = NULL;
    struct linked w = {0};
    const char *common = git_repository_commondir(r->repo);
    int rc = git_repository_open(&main_repo, common);
    if (rc)
        return fail_git(r, rc, AMP_DATAERR, AMP_CODE(repo_not_git), common);
    AMP_CLOSE int lock = linked_lock(r);
    if (lock < 0)
        return -1;
    const char *workdir = git_repository_workdir(main_repo);
    trim_path(common, w.gitdir, sizeof w.gitdir);
    trim_path(workdir ? workdir : "", w.path, sizeof w.path);
    amp_jw_member_open(&r->out, "worktrees", '[');
    reply_worktree(r, &w, true, NULL, NULL);
    linked_each(r->repo, list_one, r);
    amp_jw_close(&r->out, ']');
    return 0;
}
