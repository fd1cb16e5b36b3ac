/*
 * Keeps uncommitted work under a new ref before a directory or a branch's tip is removed: a commit
 * of the files on top of HEAD, or the tip itself if no other ref reaches it. HEAD, the index and
 * the files are not changed.
 */
#include <stdlib.h>
#include <string.h>

#include "base/codes.h"
#include "base/grow.h"
#include "worker.h"

struct oids {
    git_oid *v;
    size_t n, cap;
};

static int oids_add(struct oids *o, const git_oid *oid)
{
    if (amp_grow(&o->v, &o->cap, o->n, sizeof *o->v, NULL) < 0)
        return -1;
    o->v[o->n++] = *oid;
    return 0;
}

/* Adds the commits of all refs except `except`. */
static int oids_collect(git_repository *repo, const char *except, struct oids *o)
{
    git_reference_iterator *it = NULL;
    git_reference *ref;
    int rc = git_reference_iterator_new(&it, repo);
    while (rc == 0 && git_reference_next(&ref, it) == 0) {
        git_object *commit = NULL;
        if ((!except || strcmp(git_reference_name(ref), except) != 0) &&
            git_reference_peel(&commit, ref, GIT_OBJECT_COMMIT) == 0)
            rc = oids_add(o, git_object_id(commit));
        git_object_free(commit);
        git_reference_free(ref);
    }
    git_reference_iterator_free(it);
    return rc;
}

bool keep_is_reachable(git_repository *repo, const git_oid *oid, const char *except,
                       const git_oid *extra)
{
    struct oids o = {0};
    bool found = false;
    if (oids_collect(repo, except, &o) == 0 && (!extra || oids_add(&o, extra) == 0)) {
        for (size_t i = 0; i < o.n && !found; i++)
            found = git_oid_equal(&o.v[i], oid);
        if (!found && o.n)
            found = git_graph_reachable_from_any(repo, oid, o.v, o.n) == 1;
    }
    free(o.v);
    return found;
}

static int keep_under(struct request *r, git_repository *repo, const char *ref, const git_oid *oid)
{
    CLEANUP(git_reference_cleanup) git_reference *made = NULL;
    int rc = git_reference_create(&made, repo, ref, oid, 0, "amp: kept");
    return rc ? fail_git(r, rc, AMP_IOERR, AMP_CODE(git_error), ref) : 0;
}

int keep_tip(struct request *r, git_repository *repo, const git_oid *tip, const char *except,
             const git_oid *extra, const char *ref, bool *kept)
{
    *kept = !keep_is_reachable(repo, tip, except, extra);
    return *kept ? keep_under(r, repo, ref, tip) : 0;
}

struct keeping {
    struct request *r;
    git_repository *tree;
    bool *partial;
};

/* Leaves out a repository inside the worktree, which the library passes as one directory path and a
 * tree cannot contain, and a file that is too large. */
static int skip_file(const char *path, const char *matched, void *ctx)
{
    const struct keeping *k = ctx;
    size_t n = strlen(path);
    (void)matched;
    if ((n == 0 || path[n - 1] != '/') && !file_oversize(k->r, k->tree, path))
        return 0;
    *k->partial = true;
    return 1;
}

static int commit_tree(git_repository *repo, const git_oid *tree_id, const git_signature *who,
                       const char *message, const git_oid *parents, size_t n, git_oid *out)
{
    CLEANUP(git_tree_cleanup) git_tree *tree = NULL;
    git_commit *p[2] = {NULL, NULL};
    const git_commit *list[2];
    int rc = git_tree_lookup(&tree, repo, tree_id);
    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = git_commit_lookup(&p[i], repo, &parents[i]);
    for (size_t i = 0; i < 2; i++)
        list[i] = p[i];
    if (rc == 0)
        rc = git_commit_create(out, repo, NULL, who, who, NULL, message, tree, n, list);
    git_commit_free(p[0]);
    git_commit_free(p[1]);
    return rc;
}

/* Commits the files on top of HEAD, like git stash; staged changes that differ are the second
 * parent.
 */
static int snapshot_commit(struct keeping *k, const git_signature *who, git_oid *head, bool *born,
                           git_oid *out, bool *changed)
{
    git_repository *tree = k->tree;
    CLEANUP(git_index_cleanup) git_index *index = NULL;
    CLEANUP(git_commit_cleanup) git_commit *commit = NULL;
    git_oid staged, files, parents[2];
    size_t n = 0;
    *born = git_reference_name_to_id(head, tree, "HEAD") == 0;
    int rc = *born ? git_commit_lookup(&commit, tree, head) : 0;
    if (rc == 0)
        rc = git_repository_index(&index, tree);
    bool has_staged = rc == 0 && git_index_write_tree(&staged, index) == 0;
    if (rc == 0)
        rc = git_index_add_all(index, NULL, GIT_INDEX_ADD_DEFAULT, skip_file, k);
    if (rc == 0)
        rc = git_index_update_all(index, NULL, NULL, NULL);
    if (rc == 0)
        rc = git_index_write_tree(&files, index);
    if (index && git_index_read(index, 1) < 0 && rc == 0) /* as it is on disk */
        rc = -1;
    if (rc)
        return rc;
    bool same = *born && git_oid_equal(git_commit_tree_id(commit), &files);
    bool same_staged = !has_staged || git_oid_equal(&staged, &files) ||
                       (*born && git_oid_equal(git_commit_tree_id(commit), &staged));
    *changed = !same || !same_staged;
    if (!*changed)
        return 0;
    if (*born)
        parents[n++] = *head;
    if (!same_staged) {
        rc = commit_tree(tree, &staged, who, "Staged changes\n", head, n, &parents[n]);
        n++;
    }
    return rc ? rc : commit_tree(tree, &files, who, "Uncommitted changes\n", parents, n, out);
}

int keep_tree(struct request *r, git_repository *tree, const char *ref, bool *kept, bool *partial)
{
    CLEANUP(git_signature_cleanup) git_signature *who = NULL;
    git_oid head, oid;
    bool born, changed;
    struct keeping k = {r, tree, partial};
    *kept = *partial = false;
    int rc = git_signature_now(&who, r->in.name, r->in.email);
    if (rc == 0)
        rc = snapshot_commit(&k, who, &head, &born, &oid, &changed);
    if (rc)
        return fail_git(r, rc, AMP_IOERR, AMP_CODE(git_error), git_repository_workdir(tree));
    if (!changed && born)
        return keep_tip(r, tree, &head, NULL, NULL, ref, kept);
    *kept = changed;
    return changed ? keep_under(r, tree, ref, &oid) : 0;
}

int op_keep(struct request *r)
{
    CLEANUP(git_repository_cleanup) git_repository *tree = NULL;
    git_oid head;
    bool kept, partial;
    if (open_worktree(r, &tree) < 0)
        return -1;
    /* The client may remove the directory as soon as it has the reply. */
    git_libgit2_opts(GIT_OPT_ENABLE_FSYNC_GITDIR, 1);
    int rc = keep_tree(r, tree, r->in.ref, &kept, &partial);
    git_libgit2_opts(GIT_OPT_ENABLE_FSYNC_GITDIR, 0);
    if (rc)
        return -1;
    if (partial && r->in.release && git_reference_name_to_id(&head, tree, "HEAD") == 0 &&
        (rc = git_repository_set_head_detached(tree, &head)) != 0)
        return fail_git(r, rc, AMP_IOERR, AMP_CODE(git_error), r->in.worktree);
    reply_flag(r, "kept", kept);
    reply_flag(r, "partial", partial);
    return 0;
}

/* ---- notes ---- */

int op_note_write(struct request *r)
{
    CLEANUP(git_commit_cleanup) git_commit *commit = NULL;
    CLEANUP(git_signature_cleanup) git_signature *who = NULL;
    git_oid oid;
    if (find_commit(r, r->repo, r->in.rev, &commit) < 0)
        return -1;
    int rc = git_signature_now(&who, r->in.name, r->in.email);
    if (rc == 0)
        rc = git_note_create(&oid, r->repo, r->in.ref, who, who, git_commit_id(commit),
                             r->in.message, 1);
    return rc ? fail_git(r, rc, AMP_IOERR, AMP_CODE(git_error), r->in.ref) : 0;
}

int op_note_read(struct request *r)
{
    CLEANUP(git_commit_cleanup) git_commit *commit = NULL;
    git_note *note = NULL;
    if (find_commit(r, r->repo, r->in.rev, &commit) < 0)
        return -1;
    int rc = git_note_read(&note, r->repo, r->in.ref, git_commit_id(commit));
    if (rc == 0)
        reply_text(r, "note", git_note_message(note));
    git_note_free(note);
    return rc && rc != GIT_ENOTFOUND ? fail_git(r, rc, AMP_IOERR, AMP_CODE(git_error), r->in.ref)
                                     : 0;
}
