/*
 * Landing: a branch moves to a commit that contains it, to a merge commit with that commit's tree,
 * or, if the request allows it, to a merge of the contents of both, computed in memory. The files
 * of the worktree that has the branch are written first. While that lasts, the file amp-land.moving
 * in the common directory names the branch and the tree: if the program or the machine stops in
 * between, the next request continues, and knows a file that was written in part.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <amp/base/file.h>

#include "base/codes.h"
#include "worker.h"

#define MOVING_FILE   "amp-land.moving"
#define MOVING_MAX    2048
#define CONFLICTS_MAX 64 /* in a reply */

struct target {
    char ref[1024]; /* full name */
    git_oid now;
    struct linked tree; /* the worktree that has it; path "": none */
    bool is_agents;
};

static int target_holder(void *ctx, const struct linked *w)
{
    struct target *t = ctx;
    char name[128];

    if (w->missing || w->foreign || w->unfinished || !linked_head_is(w->gitdir, t->ref))
        return 0;
    t->is_agents = find_agent(NULL, w->gitdir, name, sizeof name);
    t->tree = *w;
    return 1;
}

/* Finds the branch, its value, and the worktree that has it checked out. */
static int target_find(struct request *r, struct target *t)
{
    CLEANUP(git_repository_cleanup) git_repository *main_repo = NULL;
    const char *branch = r->in.branch, *common = git_repository_commondir(r->repo);
    int valid = 0;

    *t = (struct target){0};
    if (git_branch_name_is_valid(&valid, branch) || !valid)
        return amp_fail(r->err, AMP_USAGE, bad_branch, "%s: not a branch's name", branch);
    snprintf(t->ref, sizeof t->ref, "refs/heads/%s", branch);
    int rc = git_reference_name_to_id(&t->now, r->repo, t->ref);
    if (rc == GIT_ENOTFOUND)
        return amp_fail(r->err, AMP_NO, unknown_revision, "%s: no such branch", branch);
    if (rc)
        return fail_git(r, rc, AMP_IOERR, AMP_CODE(git_error), branch);
    if (!linked_each(r->repo, target_holder, t) && linked_head_is(common, t->ref)) {
        rc = git_repository_open(&main_repo, common);
        const char *workdir = rc == 0 ? git_repository_workdir(main_repo) : NULL;
        if (workdir && amp_span_copy(amp_span_str(common), t->tree.gitdir, sizeof t->tree.gitdir))
            trim_path(workdir, t->tree.path, sizeof t->tree.path);
    }
    return 0;
}

/* Whether `of` is a or comes after it. -1: failure. */
static int contains(struct request *r, const git_oid *of, const git_oid *a)
{
    int rc = git_oid_equal(of, a) ? 1 : git_graph_descendant_of(r->repo, of, a);

    return rc < 0 ? fail_git(r, rc, AMP_IOERR, AMP_CODE(git_error), "ancestors") : rc;
}

/* ---- the plan ---- */

/* tree_oid: the merged tree; NULL: that of the commit. */
static int merge_make(struct request *r, const struct target *t, git_commit *commit,
                      const git_oid *tree_oid, git_oid *out)
{
    CLEANUP(git_commit_cleanup) git_commit *now = NULL;
    CLEANUP(git_tree_cleanup) git_tree *tree = NULL;
    CLEANUP(git_signature_cleanup) git_signature *who = NULL;
    int rc = git_commit_lookup(&now, r->repo, &t->now);

    if (rc == 0)
        rc = tree_oid ? git_tree_lookup(&tree, r->repo, tree_oid) : git_commit_tree(&tree, commit);
    if (rc == 0)
        rc = git_signature_now(&who, r->in.name, r->in.email);
    const git_commit *parents[] = {now, commit};
    if (rc == 0)
        rc = git_commit_create(out, r->repo, NULL, who, who, NULL, r->in.message, tree, 2, parents);
    return rc ? fail_git(r, rc, AMP_IOERR, AMP_CODE(git_error), t->ref) : 0;
}

/* A conflict in words: what the branch ("ours") and the work ("theirs") did to the file. */
static const char *conflict_text(const git_index_entry *base, const git_index_entry *ours,
                                 const git_index_entry *theirs)
{
    if (!base)
        return ours && theirs ? "both added it"
               : ours         ? "the branch added it"
                              : "the work added it";
    if (!ours)
        return theirs ? "the branch deleted it, the work changed it" : "both renamed or deleted it";
    return theirs ? "both changed it" : "the branch changed it, the work deleted it";
}

static int conflicts_reply(struct request *r, git_index *index)
{
    git_index_conflict_iterator *all = NULL;
    const git_index_entry *base, *ours, *theirs;
    int rc = git_index_conflict_iterator_new(&all, index);

    amp_jw_member_open(&r->out, "conflicts", '[');
    for (int n = 0; rc == 0 && n < CONFLICTS_MAX; n++) {
        if ((rc = git_index_conflict_next(&base, &ours, &theirs, all)) != 0)
            break;
        amp_jw_open(&r->out, '{');
        reply_text(r, "path", ours ? ours->path : theirs ? theirs->path : base->path);
        reply_text(r, "what", conflict_text(base, ours, theirs));
        amp_jw_close(&r->out, '}');
    }
    amp_jw_close(&r->out, ']');
    git_index_conflict_iterator_free(all);
    return rc && rc != GIT_ITEROVER ? fail_git(r, rc, AMP_IOERR, AMP_CODE(git_error), "the merge")
                                    : 0;
}

/* Merges the contents of the branch and of the commit. *conflict: they do not merge, and the reply
 * has the conflicts; otherwise out is the merge commit, which no ref reaches yet. */
static int contents_merge(struct request *r, const struct target *t, git_commit *commit,
                          bool *conflict, git_oid *out)
{
    CLEANUP(git_commit_cleanup) git_commit *now = NULL;
    CLEANUP(git_index_cleanup) git_index *index = NULL;
    git_oid tree;
    int rc = git_commit_lookup(&now, r->repo, &t->now);

    if (rc == 0)
        rc = git_merge_commits(&index, r->repo, now, commit, NULL);
    *conflict = rc == 0 && git_index_has_conflicts(index);
    if (*conflict)
        return conflicts_reply(r, index);
    if (rc == 0)
        rc = git_index_write_tree_to(&tree, index, r->repo);
    return rc ? fail_git(r, rc, AMP_IOERR, AMP_CODE(git_error), "the merge")
              : merge_make(r, t, commit, &tree, out);
}

static int id_read(struct request *r, const char *hex, git_oid *out)
{
    int rc = git_oid_fromstr(out, hex);

    return rc ? fail_git(r, rc, AMP_USAGE, AMP_CODE(bad_request), hex) : 0;
}

/* Refuses a branch that is not at the value that the caller saw. */
static int value_check(struct request *r, const struct target *t, const char *seen)
{
    git_oid value;

    if (id_read(r, seen, &value) < 0)
        return -1;
    return git_oid_equal(&t->now, &value) ? 0
                                          : amp_fail(r->err, AMP_NO, branch_moved,
                                                     "%s: no longer at %.12s", r->in.branch, seen);
}

/* Checks that the branch can move to the commit. *already: it has it; with in.forward: it is there.
 * *moved, with in.contents: the branch has other commits, so their contents must be merged. */
static int plan_check(struct request *r, const struct target *t, git_commit *commit, bool *already,
                      bool *moved)
{
    CLEANUP(git_commit_cleanup) git_commit *base = NULL;
    char at[GIT_OID_HEXSZ + 1], to[GIT_OID_HEXSZ + 1];
    const git_oid *oid = git_commit_id(commit);
    if (r->in.expect && value_check(r, t, r->in.expect) < 0)
        return -1;
    int has = r->in.forward ? git_oid_equal(&t->now, oid) : contains(r, &t->now, oid);

    *already = has > 0;
    if (has)
        return has < 0 ? -1 : 0;
    git_oid_tostr(at, sizeof at, &t->now);
    git_oid_tostr(to, sizeof to, oid);
    int fits = contains(r, oid, &t->now);
    if (fits < 0)
        return -1;
    *moved = !fits && r->in.contents;
    if (!fits && r->in.forward)
        return amp_fail(r->err, AMP_NO, target_behind,
                        "%s is at %.12s, which %.12s does not contain: its commits would be lost",
                        r->in.branch, at, to);
    if (!fits && !*moved)
        return amp_fail(
            r->err, AMP_NO, target_moved,
            "%s is at %.12s, which %.12s does not contain: the merged tree would be one "
            "that nobody approved",
            r->in.branch, at, to);
    if (!r->in.base)
        return 0;
    if (find_commit(r, r->repo, r->in.base, &base) < 0)
        return -1;
    int reviewed = contains(r, &t->now, git_commit_id(base));
    if (reviewed < 0)
        return -1;
    return reviewed ? 0
                    : amp_fail(r->err, AMP_NO, target_behind,
                               "%s is at %.12s, behind the commit %.12s where the reviewed work "
                               "starts: commits in between would land without a review",
                               r->in.branch, at, r->in.base);
}

/* ---- the note of a move ---- */

static int moving_path(struct request *r, char *path, size_t size)
{
    int n = snprintf(path, size, "%s" MOVING_FILE, git_repository_commondir(r->repo));

    return n > 0 && (size_t)n < size ? 0 : amp_fail(r->err, AMP_DATAERR, path_too_long, "%s", path);
}

static void moving_text(const struct target *t, const git_tree *to, char out[MOVING_MAX])
{
    char tree[GIT_OID_HEXSZ + 1];

    git_oid_tostr(tree, sizeof tree, git_tree_id(to));
    snprintf(out, MOVING_MAX, "%s %s\n", t->ref, tree);
}

static int moving_write(struct request *r, const struct target *t, const git_tree *to)
{
    char path[4096], text[MOVING_MAX];

    if (moving_path(r, path, sizeof path) < 0)
        return -1;
    moving_text(t, to, text);
    return amp_file_write_atomic(AT_FDCWD, path, 0600, amp_span_str(text), r->err);
}

/* Whether a move of the branch to that tree was begun and did not end. */
static bool moving_is(struct request *r, const struct target *t, const git_tree *to)
{
    char path[4096], text[MOVING_MAX];
    struct amp_error ignored, *err = r->err;
    AMP_BUF struct amp_buf have = {0};

    r->err = &ignored;
    amp_buf_init(&have, MOVING_MAX);
    moving_text(t, to, text);
    bool is = moving_path(r, path, sizeof path) == 0 &&
              amp_file_read(AT_FDCWD, path, MOVING_MAX, &have, &ignored) == 0 &&
              amp_span_is(amp_buf_span(&have), text);
    r->err = err;
    return is;
}

static void moving_remove(struct request *r)
{
    char path[4096];
    struct amp_error ignored, *err = r->err;

    r->err = &ignored;
    if (moving_path(r, path, sizeof path) == 0)
        unlink(path);
    r->err = err;
}

/* ---- the files of a worktree ---- */

struct files {
    git_repository *repo; /* of the worktree */
    git_tree *from, *to;
    git_strarray paths; /* that differ between them */
};

static void files_release(struct files *f)
{
    for (size_t i = 0; i < f->paths.count; i++)
        free(f->paths.strings[i]);
    free(f->paths.strings);
    git_tree_free(f->from);
    git_tree_free(f->to);
    git_repository_free(f->repo);
}

static int tree_of(git_repository *repo, const git_oid *oid, git_tree **out)
{
    CLEANUP(git_commit_cleanup) git_commit *commit = NULL;
    int rc = git_commit_lookup(&commit, repo, oid);

    return rc ? rc : git_commit_tree(out, commit);
}

/* The paths that differ; refuses those that git would write through a program. */
static int files_compare(struct request *r, struct files *f, const git_oid *from, const git_oid *to)
{
    CLEANUP(git_diff_cleanup) git_diff *diff = NULL;
    git_diff_options opt;

    git_diff_options_init(&opt, GIT_DIFF_OPTIONS_VERSION);
    opt.flags = GIT_DIFF_SKIP_BINARY_CHECK | GIT_DIFF_INCLUDE_TYPECHANGE;
    int rc = tree_of(f->repo, from, &f->from);
    if (rc == 0)
        rc = tree_of(f->repo, to, &f->to);
    if (rc == 0)
        rc = git_diff_tree_to_tree(&diff, f->repo, f->from, f->to, &opt);
    if (rc)
        return fail_git(r, rc, AMP_IOERR, AMP_CODE(git_error), "the changes");
    size_t n = git_diff_num_deltas(diff);
    if (!(f->paths.strings = calloc(n + 1, sizeof *f->paths.strings)))
        return amp_fail_memory(r->err);
    for (size_t i = 0; i < n; i++) {
        const git_diff_delta *d = git_diff_get_delta(diff, i);
        const char *filter = NULL, *path = d->new_file.path ? d->new_file.path : d->old_file.path;
        if (!(f->paths.strings[f->paths.count] = strdup(path)))
            return amp_fail_memory(r->err);
        f->paths.count++;
        if (git_attr_get(&filter, f->repo, GIT_ATTR_CHECK_FILE_THEN_INDEX, path, "filter") == 0 &&
            git_attr_value(filter) == GIT_ATTR_VALUE_STRING)
            return amp_fail(r->err, AMP_NO, filter_unsupported,
                            "%s: git writes this file through a program; check out another branch "
                            "in the worktree first",
                            path);
    }
    return 0;
}

/* Whether the file in the worktree is that of a tree; a file that neither has is equal. */
static bool file_is(const struct files *f, git_tree *tree, const char *path)
{
    git_tree_entry *entry = NULL;
    char full[4096];
    struct stat st;
    git_oid oid;
    bool same = false;
    int n = snprintf(full, sizeof full, "%s%s", git_repository_workdir(f->repo), path);
    bool has = git_tree_entry_bypath(&entry, tree, path) == 0;

    if (n < 0 || (size_t)n >= sizeof full)
        same = false;
    else if (lstat(full, &st) != 0)
        same = !has;
    else if (has && S_ISLNK(st.st_mode) == (git_tree_entry_filemode(entry) == GIT_FILEMODE_LINK) &&
             (S_ISREG(st.st_mode) || S_ISLNK(st.st_mode)))
        same = git_repository_hashfile(&oid, f->repo, path, GIT_OBJECT_BLOB, NULL) == 0 &&
               git_oid_equal(&oid, git_tree_entry_id(entry));
    git_tree_entry_free(entry);
    return same;
}

/* Whether the file was being written: it is missing, or the beginning of the new contents. */
static bool file_is_part(const struct files *f, const char *path)
{
    CLEANUP(git_tree_entry_cleanup) git_tree_entry *entry = NULL;
    CLEANUP(git_blob_cleanup) git_blob *blob = NULL;
    AMP_BUF struct amp_buf have = {0};
    struct amp_error why;
    char full[4096];
    struct stat st;
    int n = snprintf(full, sizeof full, "%s%s", git_repository_workdir(f->repo), path);

    if (n < 0 || (size_t)n >= sizeof full || git_tree_entry_bypath(&entry, f->to, path) != 0)
        return false;
    if (lstat(full, &st) != 0)
        return errno == ENOENT;
    if (git_blob_lookup(&blob, f->repo, git_tree_entry_id(entry)) != 0)
        return false;
    size_t max = (size_t)git_blob_rawsize(blob);
    amp_buf_init(&have, max + 1);
    return amp_file_read(AT_FDCWD, full, max, &have, &why) == 0 &&
           memcmp(have.data, git_blob_rawcontent(blob), have.len) == 0;
}

/* Whether each differing file has the old or the new contents; parts: or a part of the new. */
static bool files_are_known(const struct files *f, bool parts)
{
    for (size_t i = 0; i < f->paths.count; i++) {
        const char *path = f->paths.strings[i];
        if (!file_is(f, f->from, path) && !file_is(f, f->to, path) &&
            !(parts && file_is_part(f, path)))
            return false;
    }
    return true;
}

/* Whether an earlier move to the same commit left the worktree in between: the differing files are
 * known, and nothing else is changed. parts: as above. */
static bool is_interrupted(const struct files *f, bool parts)
{
    CLEANUP(git_status_list_cleanup) git_status_list *list = NULL;
    git_status_options opt;

    if (!files_are_known(f, parts))
        return false;
    git_status_options_init(&opt, GIT_STATUS_OPTIONS_VERSION);
    opt.show = GIT_STATUS_SHOW_INDEX_AND_WORKDIR;
    if (git_status_list_new(&list, f->repo, &opt) != 0)
        return false;
    for (size_t i = 0; i < git_status_list_entrycount(list); i++) {
        const git_status_entry *e = git_status_byindex(list, i);
        const git_diff_delta *d = e->head_to_index ? e->head_to_index : e->index_to_workdir;
        bool ours = false;
        for (size_t k = 0; !ours && k < f->paths.count; k++)
            ours = strcmp(f->paths.strings[k], d->new_file.path) == 0;
        if (!ours)
            return false;
    }
    return true;
}

enum files_how { FILES_TRY, FILES_SAFE, FILES_FORCE };

static int files_move(struct files *f, enum files_how how)
{
    static const unsigned strategies[] = {[FILES_TRY] =
                                              GIT_CHECKOUT_NONE | GIT_CHECKOUT_DONT_UPDATE_INDEX,
                                          [FILES_SAFE] = GIT_CHECKOUT_SAFE,
                                          [FILES_FORCE] = GIT_CHECKOUT_FORCE};
    git_checkout_options opt;

    git_checkout_options_init(&opt, GIT_CHECKOUT_OPTIONS_VERSION);
    opt.checkout_strategy = strategies[how];
    opt.checkout_strategy |=
        GIT_CHECKOUT_DISABLE_PATHSPEC_MATCH | GIT_CHECKOUT_DONT_OVERWRITE_IGNORED;
    opt.baseline = f->from;
    opt.paths = f->paths;
    /* An empty list would mean all files. */
    return f->paths.count ? git_checkout_tree(f->repo, (git_object *)f->to, &opt) : 0;
}

static int refuse_dirty(struct request *r, const char *path)
{
    return amp_fail(r->err, AMP_NO, worktree_dirty,
                    "%s has the branch %s checked out, with changes that are not committed", path,
                    r->in.branch);
}

static bool is_sparse(git_repository *repo)
{
    CLEANUP(git_config_cleanup) git_config *config = NULL;
    int value = 0;

    return git_repository_config_snapshot(&config, repo) == 0 &&
           git_config_get_bool(&value, config, "core.sparsecheckout") == 0 && value;
}

/* Opens the worktree that has the branch, and finds what changes in it between the commits. *f has
 * no repository if there is no such worktree. */
static int tree_prepare(struct request *r, const struct target *t, const git_oid *from,
                        const git_oid *to, struct files *f)
{
    if (!t->tree.path[0])
        return 0;
    if (t->is_agents)
        return amp_fail(r->err, AMP_NO, branch_checked_out,
                        "%s: the worktree %s of an agent has it checked out", r->in.branch,
                        t->tree.path);
    if (tree_open(r, t->tree.gitdir, t->tree.path, &f->repo) < 0)
        return -1;
    if (git_repository_state(f->repo) != GIT_REPOSITORY_STATE_NONE)
        return amp_fail(r->err, AMP_NO, worktree_unfinished,
                        "%s: a merge, rebase or the like was left unfinished", t->tree.path);
    if (is_sparse(f->repo))
        return amp_fail(r->err, AMP_NO, worktree_sparse,
                        "%s: a sparse checkout; check out another branch there first",
                        t->tree.path);
    return files_compare(r, f, from, to);
}

/* Finds out whether the files of `to` can be written into the worktree that has the branch at
 * `from`; write: writes them. */
static int tree_update(struct request *r, const struct target *t, const git_oid *from,
                       const git_oid *to, bool write)
{
    CLEANUP(files_release) struct files f = {0};

    if (tree_prepare(r, t, from, to, &f) < 0)
        return -1;
    if (!f.repo)
        return 0;
    bool begun = moving_is(r, t, f.to);
    int rc = has_changes(f.repo, false) ? GIT_ECONFLICT : files_move(&f, FILES_TRY);
    bool again = rc == GIT_ECONFLICT && is_interrupted(&f, begun);
    if (write && (rc == 0 || again)) {
        if (!begun && moving_write(r, t, f.to) < 0)
            return -1;
        rc = files_move(&f, again ? FILES_FORCE : FILES_SAFE);
        again = false;
    }
    if (rc == GIT_ECONFLICT && !again)
        return refuse_dirty(r, t->tree.path);
    return rc && !again ? fail_git(r, rc, AMP_IOERR, AMP_CODE(git_error), t->tree.path) : 0;
}

int op_land_plan(struct request *r)
{
    CLEANUP(git_commit_cleanup) git_commit *commit = NULL;
    struct target t;
    bool already, moved = false, conflict = false;
    git_oid to;

    AMP_CLOSE int lock = linked_lock(r);
    if (lock < 0 || target_find(r, &t) < 0 || find_commit(r, r->repo, r->in.commit, &commit) < 0 ||
        plan_check(r, &t, commit, &already, &moved) < 0)
        return -1;
    to = already ? t.now : *git_commit_id(commit);
    if (moved && contents_merge(r, &t, commit, &conflict, &to) < 0)
        return -1;
    if (!already && !moved && r->in.merge && merge_make(r, &t, commit, NULL, &to) < 0)
        return -1;
    if (!already && !conflict && r->in.files && tree_update(r, &t, &t.now, &to, false) < 0)
        return -1;
    reply_oid(r, "from", &t.now);
    reply_oid(r, "to", &to);
    reply_flag(r, "already", already);
    reply_flag(r, "merged", moved);
    reply_text(r, "worktree", t.tree.path);
    return 0;
}

/* Another process moved the branch after its files were written: they get the old contents again,
 * as far as nobody has changed them. */
static void tree_restore(struct request *r, const struct target *t, const git_oid *from,
                         const git_oid *to)
{
    CLEANUP(files_release) struct files f = {0};
    struct amp_error ignored, *err = r->err;

    r->err = &ignored;
    if (t->tree.path[0] && tree_open(r, t->tree.gitdir, t->tree.path, &f.repo) == 0 &&
        files_compare(r, &f, to, from) == 0 && files_are_known(&f, false))
        files_move(&f, FILES_FORCE);
    r->err = err;
}

/* ---- the move ---- */

int op_land_move(struct request *r)
{
    CLEANUP(git_reference_cleanup) git_reference *moved = NULL;
    struct target t;
    git_oid from, to;

    /* The client may be killed, and the move is completed. The next one waits for it. */
    prctl(PR_SET_PDEATHSIG, 0);
    AMP_CLOSE int lock = linked_lock(r);
    if (lock < 0)
        return -1;
    if (id_read(r, r->in.from, &from) < 0 || id_read(r, r->in.to, &to) < 0 ||
        target_find(r, &t) < 0 || value_check(r, &t, r->in.from) < 0)
        return -1;
    if (tree_update(r, &t, &from, &to, true) < 0)
        return -1;
    int rc = git_repository_set_ident(r->repo, r->in.name, r->in.email);
    if (rc == 0)
        rc = git_reference_create_matching(&moved, r->repo, t.ref, &to, 1, &from, r->in.message);
    if (rc == GIT_EMODIFIED)
        tree_restore(r, &t, &from, &to);
    if (rc == 0 || rc == GIT_EMODIFIED)
        moving_remove(r);
    if (rc == GIT_EMODIFIED)
        return amp_fail(r->err, AMP_NO, branch_moved, "%s: no longer at %.12s", r->in.branch,
                        r->in.from);
    return rc ? fail_git(r, rc, AMP_IOERR, AMP_CODE(git_error), r->in.branch) : 0;
}
