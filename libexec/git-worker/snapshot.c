/* Recorded files as a commit (lib/work/git/repository/snapshot.h). Nothing is read from the
 * workspace, and nothing is filtered. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include <amp/base/file.h>

#include "base/codes.h"
#include "work/git/snapshot/tree.h"
#include "worker.h"

#define REFS     "refs/amp/snapshots/"
#define TREE_MAX ((size_t)1 << 30)

/* No filter is applied. Most objects are there already. */
static int contents_put(struct request *r, const char *sum, git_oid *oid)
{
    CLEANUP(git_odb_cleanup) git_odb *odb = NULL;
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/contents/%s", r->in.path, sum);
    if (git_repository_odb(&odb, r->repo) == 0 &&
        git_odb_hashfile(oid, path, GIT_OBJECT_BLOB) == 0 && git_odb_exists(odb, oid))
        return 0;
    return git_blob_create_from_disk(oid, r->repo, path);
}

/* Gives the path what the entry has; earlier files there, or below it, are removed. */
static int entry_put(struct request *r, git_index *to, const struct amp_tree_entry *e)
{
    char path[PATH_MAX + 16];
    git_index_entry in = {.path = path};
    int rc = 0;
    bool all = strcmp(e->path, ".") == 0;
    if (e->type == AMP_TREE_WAY || e->type == AMP_TREE_NO_WAY)
        return 0;
    int n = snprintf(path, sizeof path, "%s%s", r->in.base ? r->in.base : "", all ? "" : e->path);
    if (n < 0 || (size_t)n >= sizeof path)
        return -1;
    if (n == 0)
        git_index_clear(to);
    else if (!all)
        git_index_remove(to, path, 0);
    if (n > 0)
        git_index_remove_directory(to, path, 0);
    if (e->type == AMP_TREE_FILE) {
        in.mode = e->mode & 0100 ? GIT_FILEMODE_BLOB_EXECUTABLE : GIT_FILEMODE_BLOB;
        rc = contents_put(r, e->sum, &in.id);
    } else if (e->type == AMP_TREE_LINK) {
        in.mode = GIT_FILEMODE_LINK;
        rc = git_blob_create_from_buffer(&in.id, r->repo, e->target, strlen(e->target));
    }
    if (rc == 0 && in.mode && git_index_add(to, &in))
        git_error_clear(); /* a name that git refuses, such as .git */
    return rc;
}

static int files_put(struct request *r, git_index *to)
{
    CLEANUP(amp_tree_release) struct amp_tree t = {0};
    AMP_BUF struct amp_buf text = {0};
    char path[PATH_MAX];
    amp_buf_init(&text, TREE_MAX);
    snprintf(path, sizeof path, "%s/tree", r->in.path);
    if (amp_file_read(AT_FDCWD, path, TREE_MAX, &text, r->err) < 0 ||
        amp_tree_read(amp_buf_span(&text), &t, r->err) < 0)
        return -1;
    for (size_t i = 0; i < t.n; i++) {
        int rc = entry_put(r, to, &t.v[i]);
        if (rc)
            return fail_git(r, rc, AMP_IOERR, AMP_CODE(git_error), t.v[i].path);
    }
    return 0;
}

static int patch_write(struct request *r, git_tree *from, git_tree *to)
{
    CLEANUP(git_diff_cleanup) git_diff *diff = NULL;
    git_diff_options opt;
    git_diff_options_init(&opt, GIT_DIFF_OPTIONS_VERSION);
    opt.flags = GIT_DIFF_SHOW_BINARY | GIT_DIFF_INCLUDE_TYPECHANGE;
    int rc = git_diff_tree_to_tree(&diff, r->repo, from, to, &opt);
    return rc ? fail_git(r, rc, AMP_IOERR, AMP_CODE(git_error), r->in.ref)
              : write_patch(r, diff, r->in.patch);
}

static int ref_check(struct request *r)
{
    return strncmp(r->in.ref, REFS, sizeof REFS - 1) == 0
               ? 0
               : amp_fail(r->err, AMP_INTERNAL, bad_request, "%s: not a snapshot's ref", r->in.ref);
}

int op_snapshot_save(struct request *r)
{
    CLEANUP(git_index_cleanup) git_index *index = NULL;
    CLEANUP(git_commit_cleanup) git_commit *head = NULL;
    CLEANUP(git_tree_cleanup) git_tree *from = NULL, *to = NULL;
    CLEANUP(git_signature_cleanup) git_signature *who = NULL;
    CLEANUP(git_reference_cleanup) git_reference *ref = NULL;
    git_oid oid, tree;
    int rc = git_index_new(&index);
    if (ref_check(r) < 0)
        return -1;
    if (rc == 0 && git_reference_name_to_id(&oid, r->repo, "HEAD") == 0) {
        rc = git_commit_lookup(&head, r->repo, &oid);
        if (rc == 0)
            rc = git_commit_tree(&from, head);
        if (rc == 0)
            rc = git_index_read_tree(index, from);
    }
    if (rc)
        return fail_git(r, rc, AMP_IOERR, AMP_CODE(git_error), r->in.repo);
    if (files_put(r, index) < 0)
        return -1;
    rc = git_index_write_tree_to(&tree, index, r->repo);
    if (rc == 0)
        rc = git_tree_lookup(&to, r->repo, &tree);
    if (rc == 0)
        rc = git_signature_now(&who, r->in.name, r->in.email);
    const git_commit *parents[] = {head};
    if (rc == 0)
        rc = git_commit_create(&oid, r->repo, NULL, who, who, NULL,
                               "Files before an agent's work\n", to, head ? 1 : 0, parents);
    if (rc == 0)
        rc = git_reference_create(&ref, r->repo, r->in.ref, &oid, 1, "amp: snapshot");
    if (rc)
        return fail_git(r, rc, AMP_IOERR, AMP_CODE(git_error), r->in.ref);
    reply_oid(r, "oid", &oid);
    return r->in.patch ? patch_write(r, from, to) : 0;
}

int op_snapshot_drop(struct request *r)
{
    if (ref_check(r) < 0)
        return -1;
    int rc = git_reference_remove(r->repo, r->in.ref);
    return rc && rc != GIT_ENOTFOUND ? fail_git(r, rc, AMP_IOERR, AMP_CODE(git_error), r->in.ref)
                                     : 0;
}
