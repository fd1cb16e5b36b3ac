/* Operations that only read a repository. */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/codes.h"
#include "work/git/repository/git.h"
#include "worker.h"
#include "json/text.h"

int open_repository(struct request *r, const char *path, git_repository **out)
{
    int rc = git_repository_open_ext(out, path, 0, NULL);
    const git_error *e = rc ? git_error_last() : NULL;
    /* Without any safe.directory the library reports a foreign owner as "not found". */
    if (rc == GIT_ENOTFOUND && e && e->message && strstr(e->message, "safe.directory"))
        rc = GIT_EOWNER;
    if (rc == GIT_ENOTFOUND && !open_refused())
        return amp_fail(r->err, AMP_DATAERR, repo_not_git, "%s: not a git repository", path);
    return rc ? fail_git(r, rc, AMP_DATAERR, AMP_CODE(repo_not_git), path) : 0;
}

/* git's own directory for them is one of the repository's objects. Any other directory that the
 * environment names is ignored. */
static bool is_incoming(const git_repository *repo, const char *dir, char real[PATH_MAX])
{
    static const char *const names[] = {"tmp_objdir-incoming-", "incoming-"};
    char path[PATH_MAX], objects[PATH_MAX];
    int n = snprintf(path, sizeof path, "%sobjects", git_repository_commondir(repo));
    if (n < 0 || (size_t)n >= sizeof path || !realpath(path, objects) || !realpath(dir, real))
        return false;
    size_t len = strlen(objects);
    if (strncmp(real, objects, len) != 0 || real[len] != '/')
        return false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strncmp(real + len + 1, names[i], strlen(names[i])) == 0 &&
            !strchr(real + len + 1, '/'))
            return true;
    return false;
}

int incoming_add(struct request *r)
{
    const char *dir = getenv("GIT_QUARANTINE_PATH");
    CLEANUP(git_odb_cleanup) git_odb *odb = NULL;
    char real[PATH_MAX];
    if (!dir || !*dir || !is_incoming(r->repo, dir, real))
        return 0;
    int rc = git_repository_odb(&odb, r->repo);
    if (rc == 0)
        rc = git_odb_add_disk_alternate(odb, real);
    return rc ? fail_git(r, rc, AMP_IOERR, AMP_CODE(git_failed), "the objects of the push") : 0;
}

/* Full ids and refs are looked up directly, as revparse would do first: the library leaks memory
 * for each expression that revparse tries without a match. */
static int find_object(git_repository *repo, const char *rev, git_object **out)
{
    CLEANUP(git_reference_cleanup) git_reference *ref = NULL;
    git_oid oid;
    /* The library reads an empty name as HEAD. */
    if (!*rev)
        return GIT_ENOTFOUND;
    if (strlen(rev) == GIT_OID_HEXSZ && git_oid_fromstr(&oid, rev) == 0)
        return git_object_lookup(out, repo, &oid, GIT_OBJECT_ANY);
    if (git_reference_dwim(&ref, repo, rev) == 0)
        return git_reference_peel(out, ref, GIT_OBJECT_ANY);
    return git_revparse_single(out, repo, rev);
}

int find_commit(struct request *r, git_repository *repo, const char *rev, git_commit **out)
{
    CLEANUP(git_object_cleanup) git_object *any = NULL;
    git_object *commit = NULL;
    if (find_object(repo, rev, &any) || git_object_peel(&commit, any, GIT_OBJECT_COMMIT))
        return amp_fail(r->err, AMP_NO, unknown_revision, "%s: no such commit in %s", rev,
                        git_repository_path(repo));
    *out = (git_commit *)commit;
    return 0;
}

int load_rule(struct request *r, git_repository *repo, struct amp_rule *rule)
{
    AMP_CLOSE int fd = open(git_repository_commondir(repo), O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return amp_fail_errno(r->err, AMP_IOERR, "%s", git_repository_commondir(repo));
    return amp_rule_load(rule, fd, r->err);
}

bool find_agent(const char *agent, const char *gitdir, char *name, size_t size)
{
    AMP_CLOSE int fd = open(gitdir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return amp_rule_agent(agent, fd, name, size);
}

int check_branch(struct request *r, const struct amp_rule *rule, const struct amp_rule_caller *c,
                 const char *branch)
{
    char ref[1100];
    if (!*branch) /* a detached HEAD */
        return 0;
    snprintf(ref, sizeof ref, "%s%s", strncmp(branch, "refs/", 5) == 0 ? "" : "refs/heads/",
             branch);
    enum amp_rule_verdict v = amp_rule_allows(rule, c, amp_span_str(ref));
    if (v == AMP_RULE_REFUSE)
        return refuse_branch(r, branch, c->agent ? c->name : NULL);
    if (amp_rule_refused(v))
        return amp_fail_text(r->err, AMP_NOPERM, amp_rule_code(v), "%s: refused to %s", branch,
                             c->name);
    return 0;
}

int refuse_branch(struct request *r, const char *branch, const char *agent)
{
    return amp_fail(r->err, AMP_NOPERM, branch_violation, "%s: protected branch: refused to %s",
                    branch, agent ? agent : "people");
}

bool trim_path(const char *path, char *out, size_t size)
{
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/')
        n--;
    return amp_span_copy((struct amp_span){path, n}, out, size);
}

void head_branch(git_repository *repo, char *out, size_t size)
{
    CLEANUP(git_reference_cleanup) git_reference *head = NULL;
    out[0] = '\0';
    if (git_reference_lookup(&head, repo, "HEAD") == 0 &&
        git_reference_type(head) == GIT_REFERENCE_SYMBOLIC)
        amp_span_copy(amp_span_str(git_reference_symbolic_target(head)), out, size);
}

static int reply_path(struct request *r, const char *key, const char *path)
{
    char text[4096] = "";
    trim_path(path ? path : "", text, sizeof text);
    if (amp_utf8_path(text, r->err) < 0)
        return -1;
    reply_text(r, key, text);
    return 0;
}

int op_info(struct request *r)
{
    git_repository *repo = r->repo;
    char branch[1024];
    git_oid oid;
    head_branch(repo, branch, sizeof branch);
    if (reply_path(r, "workdir", git_repository_workdir(repo)) < 0 ||
        reply_path(r, "gitdir", git_repository_path(repo)) < 0 ||
        reply_path(r, "common", git_repository_commondir(repo)) < 0)
        return -1;
    reply_text(r, "branch", branch + (strncmp(branch, "refs/heads/", 11) == 0 ? 11 : 0));
    reply_oid(r, "head", git_reference_name_to_id(&oid, repo, "HEAD") == 0 ? &oid : NULL);
    reply_flag(r, "bare", git_repository_is_bare(repo));
    reply_flag(r, "linked", git_repository_is_worktree(repo));
    return 0;
}

int op_resolve(struct request *r)
{
    CLEANUP(git_commit_cleanup) git_commit *commit = NULL;
    if (find_commit(r, r->repo, r->in.rev, &commit) < 0)
        return -1;
    reply_oid(r, "oid", git_commit_id(commit));
    return 0;
}

int op_look(struct request *r)
{
    CLEANUP(git_commit_cleanup) git_commit *commit = NULL;
    if (find_commit(r, r->repo, r->in.rev, &commit) < 0)
        return -1;
    reply_oid(r, "oid", git_commit_id(commit));
    reply_oid(r, "tree", git_commit_tree_id(commit));
    reply_oid(r, "first", git_commit_parent_id(commit, 0));
    reply_oid(r, "second", git_commit_parent_id(commit, 1));
    amp_jw_member_int(&r->out, "parents", git_commit_parentcount(commit));
    return 0;
}

int op_config(struct request *r)
{
    CLEANUP(git_config_cleanup) git_config *config = NULL;
    const char *key = r->in.key, *value = "";
    git_buf expanded = {0};
    int rc = git_repository_config_snapshot(&config, r->repo);
    if (rc == 0 && r->in.is_path) {
        rc = git_config_get_path(&expanded, config, key);
        value = expanded.ptr;
    } else if (rc == 0) {
        rc = git_config_get_string(&value, config, key);
    }
    if (rc == 0 || rc == GIT_ENOTFOUND) {
        reply_flag(r, "found", rc == 0);
        reply_text(r, "value", rc == 0 ? value : "");
        rc = 0;
    }
    git_buf_dispose(&expanded);
    return rc ? fail_git(r, rc, AMP_CONFIG, AMP_CODE(git_config), key) : 0;
}

int op_reflog(struct request *r)
{
    CLEANUP(git_reflog_cleanup) git_reflog *log = NULL;
    const char *oid = r->in.oid;
    int rc = git_reflog_read(&log, r->repo, r->in.ref);
    if (rc)
        return fail_git(r, rc, AMP_IOERR, AMP_CODE(git_error), r->in.ref);
    for (size_t i = 0; i < git_reflog_entrycount(log); i++) {
        const git_reflog_entry *e = git_reflog_entry_byindex(log, i);
        const git_signature *who = git_reflog_entry_committer(e);
        if (oid && git_oid_streq(git_reflog_entry_id_new(e), oid) != 0)
            continue;
        reply_oid(r, "old", git_reflog_entry_id_old(e));
        reply_oid(r, "new", git_reflog_entry_id_new(e));
        reply_text(r, "name", who->name);
        reply_text(r, "email", who->email);
        reply_text(r, "message", git_reflog_entry_message(e));
        amp_jw_member_int(&r->out, "time", (int64_t)who->when.time * 1000);
        return 0;
    }
    return amp_fail(r->err, AMP_NO, unknown_revision, "%s: no such entry in its log", r->in.ref);
}

/* ---- refs ---- */

#define REMOTES_MAX 16

/* Whether the trip-wire watches a ref: protected branches, what remotes have of them, the symbolic
 * refs of remotes, and the notes with proofs. */
static bool is_watched(const struct amp_rule *rule, const char *name)
{
    static const char tracking[] = "refs/remotes/";
    if (strcmp(name, AMP_PROOF_NOTES) == 0)
        return true;
    if (strncmp(name, tracking, sizeof tracking - 1) != 0)
        return amp_rule_protects(rule, amp_span_str(name));
    /* A remote's name may contain slashes. */
    for (const char *p = strchr(name + sizeof tracking - 1, '/'); p; p = strchr(p + 1, '/'))
        if (strcmp(p + 1, "HEAD") == 0 || amp_rule_protects(rule, amp_span_str(p + 1)))
            return true;
    return false;
}

/* The value of a ref, as struct amp_git_ref has it; false if it has none. */
static bool ref_value(git_repository *repo, const char *name, char *out, size_t size)
{
    CLEANUP(git_reference_cleanup) git_reference *ref = NULL;
    char hex[GIT_OID_HEXSZ + 1] = "";
    git_oid oid;
    if (git_reference_lookup(&ref, repo, name) != 0)
        return false;
    bool symbolic = git_reference_type(ref) == GIT_REFERENCE_SYMBOLIC;
    if (git_reference_name_to_id(&oid, repo, name) == 0)
        git_oid_tostr(hex, sizeof hex, &oid);
    if (symbolic)
        snprintf(out, size, "ref: %.250s %s", git_reference_symbolic_target(ref), hex);
    else
        snprintf(out, size, "%s", hex);
    return *out != '\0';
}

static int reply_refs(struct request *r, git_repository *repo, const struct amp_rule *rule,
                      const char *prefix)
{
    git_strarray names = {0};
    char name[1200], value[400];
    int rc = git_reference_list(&names, repo);
    for (size_t i = 0; rc == 0 && i < names.count; i++) {
        if ((rule && !is_watched(rule, names.strings[i])) ||
            (*prefix && strncmp(names.strings[i], "refs/heads/", 11) != 0) ||
            !ref_value(repo, names.strings[i], value, sizeof value))
            continue;
        snprintf(name, sizeof name, "%s%s", prefix, names.strings[i]);
        amp_jw_open(&r->out, '{');
        reply_text(r, "ref", name);
        reply_text(r, "value", value);
        amp_jw_close(&r->out, '}');
    }
    git_strarray_dispose(&names);
    return rc;
}

/* The protected branches of remotes that are directories: a push there moves no ref here. */
static void reply_remotes(struct request *r, const struct amp_rule *rule)
{
    git_strarray remotes = {0};
    if (git_remote_list(&remotes, r->repo) != 0)
        return;
    for (size_t i = 0; i < remotes.count && i < REMOTES_MAX; i++) {
        CLEANUP(git_repository_cleanup) git_repository *other = NULL;
        git_remote *remote = NULL;
        char path[4200], prefix[300];
        if (git_remote_lookup(&remote, r->repo, remotes.strings[i]) != 0)
            continue;
        const char *url =
            git_remote_pushurl(remote) ? git_remote_pushurl(remote) : git_remote_url(remote);
        if (url && strncmp(url, "file://", 7) == 0)
            url += 7;
        snprintf(path, sizeof path, "%s%s%s",
                 url && *url == '/' ? "" : git_repository_commondir(r->repo),
                 url && *url == '/' ? "" : "../", url ? url : "");
        snprintf(prefix, sizeof prefix, "remote %.250s: ", remotes.strings[i]);
        if (url && *url && !strstr(url, "://") && git_repository_open(&other, path) == 0)
            reply_refs(r, other, rule, prefix);
        git_remote_free(remote);
    }
    git_strarray_dispose(&remotes);
}

int op_refs(struct request *r)
{
    struct amp_rule rule;
    if (load_rule(r, r->repo, &rule) < 0)
        return -1;
    bool only = r->in.protected;
    amp_jw_member_open(&r->out, "refs", '[');
    int rc = reply_refs(r, r->repo, only ? &rule : NULL, "");
    if (rc)
        return fail_git(r, rc, AMP_IOERR, AMP_CODE(git_error), r->in.repo);
    if (only)
        reply_remotes(r, &rule);
    amp_jw_close(&r->out, ']');
    return 0;
}
