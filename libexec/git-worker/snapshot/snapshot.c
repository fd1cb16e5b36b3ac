/*
 * Snapshots of a repository's files (lib/worktree/git/snapshot.h). One is a commit under a ref of
 * refs/amp/snapshots/, on top of HEAD. Its tree:
 *
 *     contents/XX/YYYY…    the contents of files, byte for byte, by their SHA-256 XXYYYY…
 *     files/…              the same by path, to be read with git show; names that git refuses are
 *                          left out
 *     tree                 the list of the files
 *     repository/N/…       of the workspace (0) and the repositories in it: path, HEAD, index, and
 *                          objects/ with what the index names
 *
 * A snapshot of the kind DIFF has only contents, those which HEAD has as well.
 */
#include "snapshot.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <amp/base/file.h>

#include "base/grow.h"
#include "worktree/snapshot/restore.h"

int snapshot_open(struct request *r, struct snapshot *s)
{
    *s = (struct snapshot){.dir = -1};
    if (strncmp(r->in.ref, SNAPSHOT_REFS, sizeof SNAPSHOT_REFS - 1) != 0)
        return amp_fail(r->err, AMP_INTERNAL, "bad_request", "%s: not a snapshot's ref", r->in.ref);
    if (r->in.worktree && tree_open(r, r->in.repo, r->in.worktree, &s->repo) < 0)
        return -1;
    if (r->in.path && (s->dir = open(r->in.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
        return amp_fail_errno(r->err, AMP_IOERR, "%s", r->in.path);
    return 0;
}

void snapshot_release(struct snapshot *s)
{
    git_repository_free(s->repo);
    if (s->dir >= 0)
        close(s->dir);
}

/* ---- the repositories in the workspace ---- */

void places_release(struct places *p)
{
    for (size_t i = 0; i < p->n; i++) {
        git_repository_free(p->v[i].repo);
        free(p->v[i].path);
    }
    free(p->v);
    *p = (struct places){0};
}

static int place_add(struct request *r, struct places *p, const char *path, git_repository *repo)
{
    if (amp_grow(&p->v, &p->cap, p->n, sizeof *p->v, r->err) < 0) {
        git_repository_free(repo);
        return -1;
    }
    p->v[p->n] = (struct place){.repo = repo, .path = strdup(path)};
    return p->v[p->n++].path ? 0 : amp_fail_memory(r->err);
}

static int place_open(struct request *r, const char *path, git_repository **out)
{
    char full[PATH_MAX];
    int n = snprintf(full, sizeof full, "%s/%s", r->in.worktree, path);
    if (n < 0 || (size_t)n >= sizeof full)
        return amp_fail(r->err, AMP_DATAERR, "repo_not_git", "%s: the path is too long", path);
    int rc = git_repository_open_ext(out, full, GIT_REPOSITORY_OPEN_NO_SEARCH, NULL);
    return rc ? fail_git(r, rc, AMP_DATAERR, "repo_not_git", path) : 0;
}

int places_open(struct request *r, struct snapshot *s, struct places *p)
{
    AMP_BUF struct amp_buf list = {0};
    git_repository *top = NULL;
    amp_buf_init(&list, LIST_MAX);
    if (tree_open(r, r->in.repo, r->in.worktree, &top) < 0 || place_add(r, p, ".", top) < 0)
        return -1;
    if (faccessat(s->dir, REPOSITORIES, F_OK, 0) < 0)
        return 0;
    if (amp_file_read(s->dir, REPOSITORIES, LIST_MAX, &list, r->err) < 0)
        return -1;
    for (size_t at = 0; at < list.len; at += strlen(list.data + at) + 1) {
        git_repository *repo = NULL;
        if (place_open(r, list.data + at, &repo) < 0 || place_add(r, p, list.data + at, repo) < 0)
            return -1;
    }
    return 0;
}

/* Whether the directory is reached without a link, or does not exist. */
static bool is_plain(int gitdir, const char *path)
{
    AMP_CLOSE int fd = amp_open_beneath(gitdir, path, O_PATH | O_DIRECTORY, 0, NULL);
    return fd >= 0 || errno == ENOENT;
}

/* Whether a git directory is below a directory, after all links. */
static bool is_below(const char *gitdir, const char *dir, const char *part)
{
    char real[PATH_MAX], top[PATH_MAX];
    if (!realpath(gitdir, real) || !realpath(dir, top))
        return false;
    size_t n = strlen(top), m = strlen(part);
    return strncmp(real, top, n) == 0 && strncmp(real + n, part, m) == 0;
}

int place_check(struct request *r, const struct place *p, const char *branch)
{
    static const char *const dirs[] = {"objects", "refs/heads", "refs/amp/kept", "logs/refs/heads"};
    char path[1200];
    if (strcmp(p->path, ".") == 0)
        return 0;
    AMP_CLOSE int fd = open(git_repository_path(p->repo), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const char *gitdir = git_repository_path(p->repo);
    bool plain = fd >= 0 && strcmp(gitdir, git_repository_commondir(p->repo)) == 0 &&
                 (is_below(gitdir, r->in.worktree, "/") ||
                  is_below(gitdir, git_repository_commondir(r->repo), "/modules/") ||
                  is_below(gitdir, git_repository_commondir(r->repo), "/worktrees/"));
    for (size_t i = 0; plain && i < sizeof dirs / sizeof *dirs; i++)
        plain = is_plain(fd, dirs[i]);
    for (int logs = 0; plain && branch && *branch && logs < 2; logs++) {
        snprintf(path, sizeof path, "%s%s", logs ? "logs/" : "", branch);
        *strrchr(path, '/') = '\0';
        plain = is_plain(fd, path);
    }
    return plain ? 0
                 : amp_fail(r->err, AMP_NOPERM, "not_a_file",
                            "%s: its git directory leads elsewhere", p->path);
}

/* "ref: NAME" or "detached", a LF, and the commit or "-" if there is none. */
int head_text(git_repository *repo, char *out, size_t size)
{
    CLEANUP(git_reference_cleanup) git_reference *head = NULL;
    char hex[GIT_OID_HEXSZ + 1] = "-";
    git_oid oid;
    int rc = git_reference_lookup(&head, repo, "HEAD");
    if (rc)
        return rc;
    bool symbolic = git_reference_type(head) == GIT_REFERENCE_SYMBOLIC;
    rc = git_reference_name_to_id(&oid, repo, "HEAD");
    if (rc == 0)
        git_oid_tostr(hex, sizeof hex, &oid);
    else if (rc != GIT_ENOTFOUND)
        return rc;
    snprintf(out, size, "%s%s\n%s\n", symbolic ? "ref: " : "detached",
             symbolic ? git_reference_symbolic_target(head) : "", hex);
    return 0;
}

/* One text with a NUL per entry: the mode, the object, the stage, flags that git keeps, the path.
 * Times and inodes are not in it. */
static int index_text(git_repository *repo, struct amp_buf *out, struct amp_error *err)
{
    CLEANUP(git_index_cleanup) git_index *index = NULL;
    if (git_repository_index(&index, repo) || git_index_read(index, 1))
        return amp_fail(err, AMP_IOERR, "git_error", "cannot read the index");
    for (size_t i = 0; i < git_index_entrycount(index); i++) {
        const git_index_entry *e = git_index_get_byindex(index, i);
        char hex[GIT_OID_HEXSZ + 1];
        unsigned kept =
            e->flags_extended & (GIT_INDEX_ENTRY_SKIP_WORKTREE | GIT_INDEX_ENTRY_INTENT_TO_ADD);
        git_oid_tostr(hex, sizeof hex, &e->id);
        if (amp_buf_fmt(out, err, "%o %s %d %u %u %s", e->mode, hex, git_index_entry_stage(e),
                        e->flags & GIT_INDEX_ENTRY_VALID, kept, e->path) < 0 ||
            amp_buf_add(out, "", 1, err) < 0)
            return -1;
    }
    return 0;
}

/* The digest of HEAD and the index of all repositories; also the path of the first one's HEAD. */
static int places_digest(struct request *r, const struct places *p, char out[AMP_SHA256_MAX])
{
    AMP_BUF struct amp_buf text = {0};
    char head[1200];
    amp_buf_init(&text, STATE_MAX);
    for (size_t i = 0; i < p->n; i++) {
        int rc = head_text(p->v[i].repo, head, sizeof head);
        if (rc)
            return fail_git(r, rc, AMP_IOERR, "git_error", p->v[i].path);
        if (amp_buf_str(&text, p->v[i].path, r->err) < 0 || amp_buf_add(&text, "", 1, r->err) < 0 ||
            amp_buf_str(&text, head, r->err) < 0 || index_text(p->v[i].repo, &text, r->err) < 0)
            return -1;
    }
    amp_sha256_hex(amp_buf_span(&text), out);
    return 0;
}

int op_snapshot_state(struct request *r)
{
    CLEANUP(snapshot_release) struct snapshot s = {.dir = -1};
    CLEANUP(places_release) struct places p = {0};
    char digest[AMP_SHA256_MAX];
    if (snapshot_open(r, &s) < 0 || places_open(r, &s, &p) < 0 || places_digest(r, &p, digest) < 0)
        return -1;
    reply_text(r, "digest", digest);
    return 0;
}

/* ---- ignored files ---- */

int op_snapshot_ignored(struct request *r)
{
    CLEANUP(snapshot_release) struct snapshot s = {.dir = -1};
    CLEANUP(git_status_list_cleanup) git_status_list *list = NULL;
    AMP_BUF struct amp_buf out = {0};
    git_status_options opt;
    amp_buf_init(&out, LIST_MAX);
    if (snapshot_open(r, &s) < 0)
        return -1;
    git_status_options_init(&opt, GIT_STATUS_OPTIONS_VERSION);
    opt.show = GIT_STATUS_SHOW_WORKDIR_ONLY;
    opt.flags = GIT_STATUS_OPT_INCLUDE_IGNORED | GIT_STATUS_OPT_INCLUDE_UNTRACKED |
                GIT_STATUS_OPT_RECURSE_UNTRACKED_DIRS | GIT_STATUS_OPT_NO_REFRESH |
                GIT_STATUS_OPT_EXCLUDE_SUBMODULES;
    /* What a rollback moved away may be too deep for the library. */
    int rc = git_ignore_add_rule(s.repo, "/" AMP_RESTORE_STAGE "*/\n");
    if (rc == 0)
        rc = git_status_list_new(&list, s.repo, &opt);
    for (size_t i = 0; rc == 0 && i < git_status_list_entrycount(list); i++) {
        const git_status_entry *e = git_status_byindex(list, i);
        if (!(e->status & GIT_STATUS_IGNORED) || !e->index_to_workdir)
            continue;
        const char *path = e->index_to_workdir->new_file.path;
        if (strncmp(path, AMP_RESTORE_STAGE, sizeof AMP_RESTORE_STAGE - 1) == 0)
            continue; /* by the rule above; one that others made is removed as any other file */
        if (amp_buf_add(&out, path, strlen(path) + 1, r->err) < 0)
            return -1;
    }
    const git_error *why = rc ? git_error_last() : NULL;
    if (why && strstr(why->message, "nesting too deep"))
        return fail_git(r, rc, AMP_NO, "tree_limit", r->in.worktree);
    if (rc)
        return fail_git(r, rc, AMP_IOERR, "git_error", r->in.worktree);
    return amp_file_write_atomic(s.dir, IGNORED, 0600, amp_buf_span(&out), r->err);
}

/* ---- saving ---- */

struct blobs { /* the objects of HEAD's tree, sorted */
    git_oid *v;
    size_t n, cap;
};

static int blob_collect(const char *root, const git_tree_entry *e, void *ctx)
{
    struct blobs *b = ctx;
    (void)root;
    if (git_tree_entry_type(e) != GIT_OBJECT_BLOB)
        return 0;
    if (amp_grow(&b->v, &b->cap, b->n, sizeof *b->v, NULL) < 0)
        return -1;
    b->v[b->n++] = *git_tree_entry_id(e);
    return 0;
}

static int oid_compare(const void *a, const void *b)
{
    return git_oid_cmp(a, b);
}

static int head_blobs(git_repository *repo, struct blobs *b)
{
    CLEANUP(git_object_cleanup) git_object *tree = NULL;
    git_oid head;
    if (git_reference_name_to_id(&head, repo, "HEAD") == GIT_ENOTFOUND)
        return 0;
    CLEANUP(git_object_cleanup) git_object *commit = NULL;
    int rc = git_object_lookup(&commit, repo, &head, GIT_OBJECT_COMMIT);
    if (rc == 0)
        rc = git_object_peel(&tree, commit, GIT_OBJECT_TREE);
    if (rc == 0)
        rc = git_tree_walk((git_tree *)tree, GIT_TREEWALK_PRE, blob_collect, b);
    if (rc == 0 && b->n)
        qsort(b->v, b->n, sizeof *b->v, oid_compare);
    return rc;
}

/* A tree that is made in memory. */
static int entry_put(git_index *to, const char *path, const git_oid *oid, uint32_t mode)
{
    git_index_entry e = {.mode = mode, .id = *oid, .path = path};
    return git_index_add(to, &e);
}

static int text_put(git_repository *repo, git_index *to, const char *path, const void *p, size_t n)
{
    git_oid oid;
    int rc = git_blob_create_from_buffer(&oid, repo, n ? p : "", n);
    return rc ? rc : entry_put(to, path, &oid, GIT_FILEMODE_BLOB);
}

/* Reads the file of the contents into an object, without filters; only if HEAD has it, if b. */
static int contents_put(git_repository *repo, int dir, const char *sum, const struct blobs *b,
                        git_oid *oid, bool *has)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "/proc/self/fd/%d/" CONTENTS "/%s", dir, sum);
    *has = true;
    if (b) {
        int rc = git_odb_hashfile(oid, path, GIT_OBJECT_BLOB);
        *has = rc == 0 && b->n && bsearch(oid, b->v, b->n, sizeof *b->v, oid_compare);
        return rc;
    }
    return git_blob_create_from_disk(oid, repo, path);
}

static int files_put(struct request *r, struct snapshot *s, git_repository *repo, git_index *to,
                     const struct blobs *b)
{
    CLEANUP(amp_tree_release) struct amp_tree t = {0};
    AMP_BUF struct amp_buf text = {0};
    char name[PATH_MAX + 16];
    amp_buf_init(&text, STATE_MAX);
    if (amp_file_read(s->dir, TREE, STATE_MAX, &text, r->err) < 0 ||
        amp_tree_read(amp_buf_span(&text), &t, r->err) < 0)
        return -1;
    for (const struct amp_tree_entry *e = t.v; e < t.v + t.n; e++) {
        git_oid oid;
        bool has = true;
        int rc = 0;
        if (e->type == AMP_TREE_FILE)
            rc = contents_put(repo, s->dir, e->sum, b, &oid, &has);
        else if (e->type == AMP_TREE_LINK && !b)
            rc = git_blob_create_from_buffer(&oid, repo, e->target, strlen(e->target));
        else
            continue;
        snprintf(name, sizeof name, CONTENTS "/%.2s/%s", e->sum, e->sum + 2);
        if (rc == 0 && has && e->type == AMP_TREE_FILE)
            rc = entry_put(to, name, &oid, GIT_FILEMODE_BLOB);
        if (rc)
            return fail_git(r, rc, AMP_IOERR, "git_error", e->path);
        snprintf(name, sizeof name, "files/%s", e->path);
        if (!b && entry_put(to, name, &oid,
                            e->type == AMP_TREE_LINK ? GIT_FILEMODE_LINK
                            : e->mode & 0100         ? GIT_FILEMODE_BLOB_EXECUTABLE
                                                     : GIT_FILEMODE_BLOB))
            git_error_clear(); /* such as .git: contents/ has it */
    }
    int rc = b ? 0 : text_put(repo, to, TREE, text.data, text.len);
    return rc ? fail_git(r, rc, AMP_IOERR, "git_error", TREE) : 0;
}

/* What the index names, so that it is kept as long as the snapshot: only of the workspace's own
 * repository, whose object store this is. */
static int index_objects_put(git_repository *repo, git_index *to)
{
    CLEANUP(git_index_cleanup) git_index *index = NULL;
    char name[128], hex[GIT_OID_HEXSZ + 1];
    int rc = git_repository_index(&index, repo);
    for (size_t i = 0; rc == 0 && i < git_index_entrycount(index); i++) {
        const git_index_entry *e = git_index_get_byindex(index, i);
        if ((e->mode & 0170000) == 0160000) /* a commit of another repository */
            continue;
        git_oid_tostr(hex, sizeof hex, &e->id);
        snprintf(name, sizeof name, "repository/0/objects/%.2s/%s", hex, hex + 2);
        rc = entry_put(to, name, &e->id, GIT_FILEMODE_BLOB);
    }
    return rc;
}

static int places_put(struct request *r, const struct places *p, git_repository *repo,
                      git_index *to)
{
    char name[64], head[1200];
    for (size_t i = 0; i < p->n; i++) {
        AMP_BUF struct amp_buf index = {0};
        char path[PATH_MAX];
        amp_buf_init(&index, INDEX_MAX);
        if (place_check(r, &p->v[i], NULL) < 0)
            return -1;
        int rc = head_text(p->v[i].repo, head, sizeof head);
        snprintf(name, sizeof name, "repository/%zu/path", i);
        if (rc == 0)
            rc = text_put(repo, to, name, p->v[i].path, strlen(p->v[i].path));
        snprintf(name, sizeof name, "repository/%zu/HEAD", i);
        if (rc == 0)
            rc = text_put(repo, to, name, head, strlen(head));
        if (rc)
            return fail_git(r, rc, AMP_IOERR, "git_error", p->v[i].path);
        snprintf(path, sizeof path, "%sindex", git_repository_path(p->v[i].repo));
        if (access(path, F_OK) < 0)
            continue;
        if (amp_file_read(AT_FDCWD, path, INDEX_MAX, &index, r->err) < 0)
            return -1;
        snprintf(name, sizeof name, "repository/%zu/index", i);
        rc = text_put(repo, to, name, index.data, index.len);
        if (rc)
            return fail_git(r, rc, AMP_IOERR, "git_error", p->v[i].path);
    }
    int rc = index_objects_put(p->v[0].repo, to);
    return rc ? fail_git(r, rc, AMP_IOERR, "git_error", "the index") : 0;
}

static int snapshot_commit(struct request *r, git_repository *repo, git_index *of, git_oid *out)
{
    CLEANUP(git_tree_cleanup) git_tree *tree = NULL;
    CLEANUP(git_commit_cleanup) git_commit *parent = NULL;
    CLEANUP(git_signature_cleanup) git_signature *who = NULL;
    CLEANUP(git_reference_cleanup) git_reference *ref = NULL;
    const git_commit *parents[1];
    git_oid id, head;
    int rc = git_index_write_tree_to(&id, of, repo);
    if (rc == 0)
        rc = git_tree_lookup(&tree, repo, &id);
    if (rc == 0 && git_reference_name_to_id(&head, repo, "HEAD") == 0)
        rc = git_commit_lookup(&parent, repo, &head);
    if (rc == 0)
        rc = git_signature_now(&who, r->in.name, r->in.email);
    parents[0] = parent;
    if (rc == 0)
        rc = git_commit_create(out, repo, NULL, who, who, NULL, "Snapshot before an agent's work\n",
                               tree, parent ? 1 : 0, parents);
    if (rc == 0)
        rc = git_reference_create(&ref, repo, r->in.ref, out, 1, "amp: snapshot");
    return rc ? fail_git(r, rc, AMP_IOERR, "git_error", r->in.ref) : 0;
}

/* Removes the files of the contents that the commit has. */
static int contents_drop(struct request *r, int dir, git_index *of)
{
    char path[128];
    for (size_t i = 0; i < git_index_entrycount(of); i++) {
        const char *at = git_index_get_byindex(of, i)->path;
        if (strncmp(at, CONTENTS "/", sizeof CONTENTS) != 0)
            continue;
        at += sizeof CONTENTS;
        snprintf(path, sizeof path, CONTENTS "/%.2s%s", at, at + 3);
        if (unlinkat(dir, path, 0) < 0 && errno != ENOENT)
            return amp_fail_errno(r->err, AMP_IOERR, "cannot remove %s", path);
    }
    return 0;
}

int op_snapshot_save(struct request *r)
{
    CLEANUP(snapshot_release) struct snapshot s = {.dir = -1};
    CLEANUP(places_release) struct places p = {0};
    CLEANUP(git_index_cleanup) git_index *of = NULL;
    struct blobs b = {0};
    char digest[AMP_SHA256_MAX] = "";
    git_oid oid;
    if (snapshot_open(r, &s) < 0)
        return -1;
    /* The client removes the files when it has the reply. */
    git_libgit2_opts(GIT_OPT_ENABLE_FSYNC_GITDIR, 1);
    int rc = git_index_new(&of);
    if (rc == 0 && !r->in.files)
        rc = head_blobs(s.repo, &b);
    if (rc)
        rc = fail_git(r, rc, AMP_IOERR, "git_error", r->in.worktree);
    if (rc == 0)
        rc = files_put(r, &s, s.repo, of, r->in.files ? NULL : &b);
    if (rc == 0 && r->in.files)
        rc = places_open(r, &s, &p) < 0 || places_digest(r, &p, digest) < 0
                 ? -1
                 : places_put(r, &p, s.repo, of);
    if (rc == 0)
        rc = snapshot_commit(r, s.repo, of, &oid);
    git_libgit2_opts(GIT_OPT_ENABLE_FSYNC_GITDIR, 0);
    free(b.v);
    if (rc || contents_drop(r, s.dir, of) < 0)
        return -1;
    reply_oid(r, "oid", &oid);
    reply_text(r, "digest", digest);
    return 0;
}

/* ---- loading ---- */

int snapshot_tree(struct request *r, git_repository *repo, git_tree **out)
{
    CLEANUP(git_commit_cleanup) git_commit *commit = NULL;
    git_oid oid;
    int rc = git_reference_name_to_id(&oid, repo, r->in.ref);
    if (rc == 0)
        rc = git_commit_lookup(&commit, repo, &oid);
    if (rc == 0)
        rc = git_commit_tree(out, commit);
    return rc ? fail_git(r, rc, AMP_NO, "snapshot_damaged", r->in.ref) : 0;
}

struct loading {
    struct request *r;
    git_repository *repo;
    int dir;
};

static int blob_write(struct loading *l, const git_tree_entry *e, const char *path)
{
    CLEANUP(git_blob_cleanup) git_blob *blob = NULL;
    AMP_CLOSE int fd =
        openat(l->dir, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return amp_fail_errno(l->r->err, AMP_CANTCREAT, "cannot create %s", path);
    int rc = git_blob_lookup(&blob, l->repo, git_tree_entry_id(e));
    if (rc)
        return fail_git(l->r, rc, AMP_NO, "snapshot_damaged", path);
    return amp_write_all(
        fd, (struct amp_span){git_blob_rawcontent(blob), (size_t)git_blob_rawsize(blob)},
        l->r->err);
}

static int entry_load(const char *root, const git_tree_entry *e, void *ctx)
{
    char path[128];
    if (git_tree_entry_type(e) != GIT_OBJECT_BLOB)
        return 0;
    int n = snprintf(path, sizeof path, CONTENTS "/%.2s%s", root, git_tree_entry_name(e));
    return n < 0 || (size_t)n >= sizeof path ? 0 : blob_write(ctx, e, path);
}

int op_snapshot_load(struct request *r)
{
    CLEANUP(snapshot_release) struct snapshot s = {.dir = -1};
    CLEANUP(git_tree_cleanup) git_tree *tree = NULL, *contents = NULL;
    if (snapshot_open(r, &s) < 0 || snapshot_tree(r, r->repo, &tree) < 0)
        return -1;
    const git_tree_entry *e = git_tree_entry_byname(tree, CONTENTS);
    if (!e)
        return 0;
    struct loading l = {r, r->repo, s.dir};
    int rc = git_tree_lookup(&contents, r->repo, git_tree_entry_id(e));
    if (rc)
        return fail_git(r, rc, AMP_NO, "snapshot_damaged", r->in.ref);
    return git_tree_walk(contents, GIT_TREEWALK_PRE, entry_load, &l) ? -1 : 0;
}

int op_snapshot_drop(struct request *r)
{
    CLEANUP(snapshot_release) struct snapshot s = {.dir = -1};
    if (snapshot_open(r, &s) < 0)
        return -1;
    int rc = git_reference_remove(r->repo, r->in.ref);
    return rc && rc != GIT_ENOTFOUND ? fail_git(r, rc, AMP_IOERR, "git_error", r->in.ref) : 0;
}
