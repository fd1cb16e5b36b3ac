/* The typed git calls against a real repository, and against workers that fail. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <amp/base/file.h>

#include "../tap.h"
#include "work/git/repository/git.h"

static char dir[256], repo[PATH_MAX], tree[PATH_MAX];

static void sh(const char *command)
{
    char text[PATH_MAX + 512];
    snprintf(text, sizeof text, "cd %s && { %s; } >/dev/null 2>&1", dir, command);
    if (system(text) != 0)
        printf("# failed: %s\n", command);
}

static void path(char *out, const char *name)
{
    snprintf(out, PATH_MAX, "%s/%s", dir, name);
}

static int count_changes;
static char changed[256];
static void note_change(void *ctx, const char *ref, const char *before, const char *after)
{
    (void)ctx;
    count_changes++;
    snprintf(changed, sizeof changed, "%s %s %s", ref, *before ? "was" : "new",
             *after ? "is" : "gone");
}

static int seen_agents;
static int see_worktree(void *ctx, const struct amp_git_worktree *w)
{
    (void)ctx;
    seen_agents += strcmp(w->agent, "bob") == 0 && !w->main && strcmp(w->branch, "task/a") == 0;
    return 0;
}

static void real_work(void)
{
    struct amp_git *g;
    struct amp_error err;
    struct amp_git_info info;
    char head[AMP_OID_MAX], oid[AMP_OID_MAX], other[AMP_OID_MAX];
    TAP_OK(amp_git_open(NULL, &g, &err) == 0, "a connection");
    TAP_OK(amp_git_info(g, repo, &info, &err) == 0 && !info.linked, "info");
    TAP_STR(info.branch, "main", "HEAD's branch");
    TAP_OK(amp_git_resolve(g, repo, "nothing", oid, &err) == -1, "an unknown revision");
    TAP_STR(err.code, "unknown_revision", "its code");
    TAP_OK(amp_git_info(g, dir, &info, &err) == -1, "no repository");
    TAP_STR(err.code, "repo_not_git", "its code");

    struct amp_git_refs before, after;
    amp_git_refs(g, repo, false, &before, &err);
    struct amp_git_worktree_spec spec = {repo, tree, "task/a", "main", "bob"};
    TAP_OK(amp_git_worktree_add(g, &spec, head, &err) == 0, "a worktree on a new branch");
    TAP_OK(amp_git_worktree_add(g, &spec, other, &err) == -1, "the same again is refused");
    struct amp_git_worktree_spec on_main = {repo, "/nonexistent/x", "main", NULL, "bob"};
    TAP_OK(amp_git_worktree_add(g, &on_main, other, &err) == -1, "an agent on main is refused");
    TAP_STR(err.code, "branch_violation", "its code");
    TAP_INT(err.status, AMP_NOPERM, "its status");
    TAP_OK(amp_git_worktrees(g, repo, see_worktree, NULL, &err) == 0 && seen_agents == 1,
           "listed with its agent");

    sh("cd repo.worktrees/tree && echo two >>f && echo new >n");
    struct amp_git_diff diff;
    TAP_OK(amp_git_diff(g, repo, tree, 0, head, NULL, NULL, &diff, &err) == 0,
           "diff to the working tree");
    TAP_OK(diff.n_files == 2 && diff.lines_added == 2 && diff.lines_removed == 0, "counts");
    TAP_STR(diff.files[1], "n", "untracked files count");
    amp_git_diff_release(&diff);

    struct amp_git_commit_spec commit = {repo, tree, "bob", "bob@x", "work", NULL};
    TAP_INT(amp_git_commit(g, &commit, oid, &err), 0, "commit");
    TAP_INT(amp_git_commit(g, &commit, other, &err), 1, "then there is nothing to commit");
    TAP_STR(other, oid, "and HEAD is told");
    sh("cd repo.worktrees/tree && echo '*.bin filter=lfs' >.gitattributes && echo b >b.bin");
    TAP_INT(amp_git_commit(g, &commit, other, &err), -1, "what needs a filter is not taken raw");
    TAP_STR(err.code, "filter_unsupported", "its code");
    sh("cd repo.worktrees/tree && rm .gitattributes b.bin && git init -q nested && echo x "
       ">nested/x");
    TAP_INT(amp_git_commit(g, &commit, other, &err), -1, "a repository inside is not left out");
    TAP_STR(err.code, "nested_repository", "its code");
    sh("cd repo.worktrees/tree && rm -r nested");
    sh("cd repo.worktrees/tree && git switch -q -c clash main && echo other >f && git commit -qam "
       "clash && "
       "git switch -q task/a");
    sh("cd repo.worktrees/tree && git merge clash || true");
    TAP_INT(amp_git_commit(g, &commit, other, &err), -1, "an unfinished merge is not committed");
    TAP_STR(err.code, "worktree_unfinished", "its code");
    sh("cd repo.worktrees/tree && git merge --abort && git branch -qD clash");
    sh("cd repo.worktrees/tree && git switch -q --detach && echo x >>f");
    TAP_INT(amp_git_commit(g, &commit, other, &err), 0, "a detached commit");
    sh("cd repo.worktrees/tree && git switch -q task/a && git symbolic-ref HEAD refs/heads/main && "
       "echo y >>f");
    TAP_INT(amp_git_commit(g, &commit, other, &err), -1, "the marker holds the agent off main");
    TAP_STR(err.code, "branch_violation", "its code");
    sh("cd repo.worktrees/tree && git symbolic-ref HEAD refs/heads/task/a && git reset -q --hard");

    struct amp_git_reflog log;
    TAP_OK(amp_git_reflog(g, repo, "refs/heads/task/a", oid, &log, &err) == 0, "reflog");
    TAP_STR(log.name, "bob", "names who moved the branch");
    amp_git_refs(g, repo, false, &after, &err);
    TAP_INT(amp_git_refs_compare(&before, &after, note_change, NULL), 1, "one ref changed");
    TAP_STR(changed, "refs/heads/task/a new is", "the new branch");

    struct amp_git_rollback_spec roll = {repo, "task/a", head, head, "op", "op@x"};
    TAP_OK(amp_git_rollback(g, &roll, &err) == -1, "rollback of a branch that moved");
    TAP_STR(err.code, "branch_moved", "its code");
    roll.expect = oid;
    TAP_OK(amp_git_rollback(g, &roll, &err) == 0, "rollback");
    roll.branch = "main";
    TAP_OK(amp_git_rollback(g, &roll, &err) == -1, "never on main");
    sh("cd repo.worktrees/tree && test -z \"$(git status --short)\" && ! test -e n || echo dirty "
       ">../../bad");
    char bad[PATH_MAX];
    path(bad, "bad");
    TAP_OK(access(bad, F_OK) != 0, "the worktree followed");

    TAP_OK(amp_git_config(g, repo, "core.nothing", false, other, sizeof other, &err) == 1,
           "config: unset");
    sh("cd repo.worktrees/tree && echo z >untracked");
    TAP_OK(amp_git_worktree_remove(g, repo, tree, false, &err) == -1, "a dirty worktree stays");
    TAP_STR(err.code, "worktree_dirty", "its code");
    TAP_OK(amp_git_worktree_remove(g, repo, tree, true, &err) == 0, "unless it is forced");
    sh("cd repo && if git worktree prune -n -v | grep .; then touch ../bad; fi");
    TAP_OK(access(bad, F_OK) != 0, "git has nothing left to prune");
    amp_git_refs_release(&before);
    amp_git_refs_release(&after);
    amp_git_close(g);
}

/* What a crash while a worktree was being made left behind does not stand in the way. */
static void half_made(void)
{
    struct amp_git *g;
    struct amp_error err;
    char head[AMP_OID_MAX];
    struct amp_git_worktree_spec spec = {repo, tree, "task/b", NULL, "bob"};
    amp_git_open(NULL, &g, &err);
    amp_git_worktree_add(g, &spec, head, &err);
    sh("printf 'amp: being made\\n' >repo/.git/worktrees/tree/locked && rm -f "
       "repo.worktrees/tree/f");
    TAP_OK(amp_git_worktree_add(g, &spec, head, &err) == 0, "made anew over a half-made one");
    sh("rm -r repo.worktrees/tree");
    TAP_OK(amp_git_worktree_add(g, &spec, head, &err) == 0, "made anew where the files vanished");
    sh("git -C repo.worktrees/tree worktree lock .");
    TAP_OK(amp_git_worktree_remove(g, repo, tree, true, &err) == -1, "a locked one stays");
    TAP_STR(err.code, "worktree_locked", "its code");
    if (geteuid() == 0) {
        sh("chown -R 65534 repo");
        TAP_OK(amp_git_resolve(g, repo, "HEAD", head, &err) == -1, "somebody else's repository");
        TAP_STR(err.code, "repo_not_owned", "its code");
        sh("chown -R 0 repo");
    } else {
        tap_skip(2, "only root can give files away");
    }
    sh("git -C repo.worktrees/tree worktree unlock . && echo '[extensions]' >>repo/.git/config && "
       "echo 'objectformat = sha256' >>repo/.git/config && "
       "git -C repo config core.repositoryformatversion 1 || "
       "sed -i 's/repositoryformatversion = 0/repositoryformatversion = 1/' repo/.git/config");
    TAP_OK(amp_git_resolve(g, repo, "HEAD", head, &err) == -1, "an extension that is not known");
    TAP_STR(err.code, "repo_unsupported", "its code");
    amp_git_close(g);
}

static void fake(const char *script)
{
    AMP_BUF struct amp_buf b = {0};
    char file[PATH_MAX];
    amp_buf_init(&b, 4096);
    amp_buf_fmt(&b, NULL, "#!/bin/sh\n%s\n", script);
    path(file, "fake/git-worker");
    amp_file_write_atomic(AT_FDCWD, file, 0755, amp_buf_span(&b), NULL);
}

static void failing_workers(void)
{
    struct amp_git *g;
    struct amp_error err;
    struct amp_git_options opt = {.time_limit_ms = tap_patient(500)};
    char lib[PATH_MAX], oid[AMP_OID_MAX];
    path(lib, "fake");
    mkdir(lib, 0755);
    setenv("AMP_LIBEXEC", lib, 1);
    fake("exec sleep 60");
    amp_git_open(&opt, &g, &err);
    TAP_OK(amp_git_resolve(g, repo, "HEAD", oid, &err) == -1, "a worker that hangs");
    TAP_STR(err.code, "git_timeout", "is killed at the limit");
    fake("exit 3");
    TAP_OK(amp_git_resolve(g, repo, "HEAD", oid, &err) == -1, "a worker that dies");
    TAP_STR(err.code, "git_crashed", "is noticed");
    fake("read -r x; echo '{\"q\":99,\"ok\":true}'");
    TAP_OK(amp_git_resolve(g, repo, "HEAD", oid, &err) == -1, "a worker that answers another");
    fake("[ \"$1\" = --version ] && exit 0; exit 3");
    TAP_OK(amp_git_resolve(g, repo, "HEAD", oid, &err) == -1, "the fourth within a minute");
    TAP_STR(err.code, "git_crashed", "is blamed on what was asked");
    fake("exit 3");
    TAP_OK(amp_git_resolve(g, repo, "HEAD", oid, &err) == -1, "one that does not come up");
    TAP_STR(err.code, "git_unavailable", "is not asked");
    TAP_INT(err.status, AMP_UNAVAILABLE, "its status");
    amp_git_close(g);
    amp_git_close(NULL);
}

int main(void)
{
    char template[] = "/tmp/amp-git-test.XXXXXX";
    if (!mkdtemp(template) || !amp_span_copy(amp_span_str(template), dir, sizeof dir))
        return 1;
    path(repo, "repo");
    path(tree, "repo.worktrees/tree");
    setenv("GIT_CONFIG_GLOBAL", "/dev/null", 1);
    setenv("GIT_AUTHOR_NAME", "t", 1);
    setenv("GIT_AUTHOR_EMAIL", "t@x", 1);
    setenv("GIT_COMMITTER_NAME", "t", 1);
    setenv("GIT_COMMITTER_EMAIL", "t@x", 1);
    sh("git init -q -b main repo && cd repo && echo one >f && git add f && "
       "git commit -q -m one");
    real_work();
    half_made();
    failing_workers();
    sh("cd / && rm -rf \"$OLDPWD\"");
    return tap_done();
}
