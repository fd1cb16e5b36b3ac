/*
 * Puts HEAD, the branch under it and the index of a snapshot's repositories back. The files are
 * restored before by the caller. First everything is checked and the new indexes are written as
 * index.lock; then the refs move, and the indexes are renamed. If a ref cannot be moved, those
 * before it go back. Commits that no ref would reach are kept under in.keep.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <amp/base/file.h>

#include "snapshot.h"

struct head {
    char name[1100]; /* of the branch, in full; "": detached */
    git_oid oid;
    bool born;
};

struct change {
    git_repository *repo;
    char path[PATH_MAX];
    struct head want, was; /* was: of HEAD */
    git_oid tip;           /* of the branch want.name */
    bool has_tip, moves_branch, moves_head, locked, moved;
};

struct reset {
    struct request *r;
    git_tree *tree;
    struct change *v;
    size_t n;
};

static void reset_release(struct reset *x)
{
    char lock[PATH_MAX + 16];
    for (size_t i = 0; i < x->n; i++) {
        if (x->v[i].locked) {
            snprintf(lock, sizeof lock, "%sindex.lock", git_repository_path(x->v[i].repo));
            unlink(lock);
        }
        git_repository_free(x->v[i].repo);
    }
    free(x->v);
    git_tree_free(x->tree);
}

static int blob_of(struct reset *x, size_t i, const char *name, git_blob **out)
{
    CLEANUP(git_tree_entry_cleanup) git_tree_entry *e = NULL;
    char path[64];
    snprintf(path, sizeof path, "repository/%zu/%s", i, name);
    int rc = git_tree_entry_bypath(&e, x->tree, path);
    return rc ? rc : git_blob_lookup(out, x->r->repo, git_tree_entry_id(e));
}

static bool head_read(const char *text, struct head *h)
{
    const char *end = strchr(text, '\n');
    *h = (struct head){0};
    if (!end || (strncmp(text, "ref: ", 5) == 0 &&
                 !amp_span_copy((struct amp_span){text + 5, (size_t)(end - text) - 5}, h->name,
                                sizeof h->name)))
        return false;
    h->born = end[1] != '-';
    char hex[GIT_OID_HEXSZ + 1];
    amp_span_copy((struct amp_span){end + 1, strnlen(end + 1, GIT_OID_HEXSZ)}, hex, sizeof hex);
    return !h->born || git_oid_fromstr(&h->oid, hex) == 0;
}

static bool head_same(const struct head *a, const struct head *b)
{
    return strcmp(a->name, b->name) == 0 && a->born == b->born &&
           (!a->born || git_oid_equal(&a->oid, &b->oid));
}

static int head_find(struct reset *x, size_t i)
{
    CLEANUP(git_blob_cleanup) git_blob *blob = NULL;
    struct change *c = &x->v[i];
    char text[1300];
    int rc = blob_of(x, i, "HEAD", &blob);
    if (rc)
        return fail_git(x->r, rc, AMP_NO, "snapshot_damaged", c->path);
    snprintf(text, sizeof text, "%.*s", (int)git_blob_rawsize(blob),
             (const char *)git_blob_rawcontent(blob));
    if (!head_read(text, &c->want))
        return amp_fail(x->r->err, AMP_NO, "snapshot_damaged", "%s: HEAD is damaged", c->path);
    rc = head_text(c->repo, text, sizeof text);
    if (rc || !head_read(text, &c->was))
        return fail_git(x->r, rc, AMP_IOERR, "git_error", c->path);
    const struct place place = {c->repo, c->path};
    if (c->want.name[0] && strncmp(c->want.name, "refs/", 5) != 0)
        return amp_fail(x->r->err, AMP_NO, "snapshot_damaged", "%s: HEAD is damaged", c->path);
    if (place_check(x->r, &place, c->want.name) < 0)
        return -1;
    c->moves_head = !head_same(&c->want, &c->was);
    c->has_tip = c->want.name[0] && git_reference_name_to_id(&c->tip, c->repo, c->want.name) == 0;
    c->moves_branch = c->want.name[0] && (c->has_tip != c->want.born ||
                                          (c->has_tip && !git_oid_equal(&c->tip, &c->want.oid)));
    return 0;
}

/* A protected branch that moved was not moved by the work, which may not. In a repository inside of
 * the workspace it may: nothing guards its branches there, and the policy in it is within the reach
 * of the work. What it committed is kept. */
static int branch_check(struct reset *x, const struct change *c)
{
    struct amp_rule rule;
    if (!c->moves_branch || strcmp(c->path, ".") != 0)
        return 0;
    if (load_rule(x->r, c->repo, &rule) < 0)
        return -1;
    return amp_rule_protects(&rule, amp_span_str(c->want.name))
               ? refuse_branch(x->r, c->want.name, NULL)
               : 0;
}

/* Whether the lock is one that a reset left when it was killed: the same bytes, or, if nothing has
 * written to it for 10 s, the first of them. */
static bool lock_is_ours(const char *path, struct amp_span want)
{
    AMP_BUF struct amp_buf text = {0};
    struct amp_error none;
    struct stat st;
    amp_buf_init(&text, INDEX_MAX);
    if (lstat(path, &st) < 0 || !S_ISREG(st.st_mode) ||
        amp_file_read(AT_FDCWD, path, INDEX_MAX, &text, &none) < 0 || text.len > want.n ||
        (text.len && memcmp(text.data, want.p, text.len) != 0))
        return false;
    return text.len == want.n || time(NULL) - st.st_mtime > 10;
}

/* Writes the index as its lock file, unless it has these bytes. */
static int index_write(struct reset *x, size_t i)
{
    CLEANUP(git_blob_cleanup) git_blob *blob = NULL;
    AMP_BUF struct amp_buf now = {0};
    struct change *c = &x->v[i];
    char path[PATH_MAX + 16];
    struct amp_error none;
    int rc = blob_of(x, i, "index", &blob);
    if (rc && rc != GIT_ENOTFOUND)
        return fail_git(x->r, rc, AMP_NO, "snapshot_damaged", c->path);
    struct amp_span want =
        blob ? (struct amp_span){git_blob_rawcontent(blob), (size_t)git_blob_rawsize(blob)}
             : (struct amp_span){0};
    amp_buf_init(&now, INDEX_MAX);
    snprintf(path, sizeof path, "%sindex", git_repository_path(c->repo));
    bool exists = amp_file_read(AT_FDCWD, path, INDEX_MAX, &now, &none) == 0;
    if (exists == (blob != NULL) && amp_span_eq(amp_buf_span(&now), want))
        return 0;
    snprintf(path, sizeof path, "%sindex.lock", git_repository_path(c->repo));
    if (lock_is_ours(path, want))
        unlink(path);
    AMP_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (fd < 0 && errno == EEXIST)
        return amp_fail(x->r->err, AMP_TEMPFAIL, "git_locked", "%s: another git has the lock",
                        path);
    if (fd < 0)
        return amp_fail_errno(x->r->err, AMP_CANTCREAT, "cannot create %s", path);
    c->locked = true;
    if (amp_write_all(fd, want, x->r->err) < 0)
        return -1;
    return fsync(fd) < 0 ? amp_fail_errno(x->r->err, AMP_IOERR, "cannot sync %s", path) : 0;
}

static int index_move(struct reset *x, size_t i)
{
    struct change *c = &x->v[i];
    CLEANUP(git_blob_cleanup) git_blob *blob = NULL;
    char from[PATH_MAX + 16], to[PATH_MAX + 16];
    if (!c->locked)
        return 0;
    snprintf(from, sizeof from, "%sindex.lock", git_repository_path(c->repo));
    snprintf(to, sizeof to, "%sindex", git_repository_path(c->repo));
    if (blob_of(x, i, "index", &blob) == GIT_ENOTFOUND) { /* there was none */
        git_error_clear();
        return unlink(to) < 0 && errno != ENOENT
                   ? amp_fail_errno(x->r->err, AMP_IOERR, "cannot remove %s", to)
                   : 0;
    }
    if (rename(from, to) < 0)
        return amp_fail_errno(x->r->err, AMP_IOERR, "cannot replace %s", to);
    c->locked = false;
    return 0;
}

static int branch_set(git_repository *repo, const struct head *h)
{
    CLEANUP(git_reference_cleanup) git_reference *ref = NULL;
    if (h->born)
        return git_reference_create(&ref, repo, h->name, &h->oid, 1, "amp: rollback");
    int rc = git_reference_remove(repo, h->name);
    return rc == GIT_ENOTFOUND ? 0 : rc;
}

static int head_set(git_repository *repo, const struct head *h)
{
    CLEANUP(git_reference_cleanup) git_reference *ref = NULL;
    return h->name[0]
               ? git_reference_symbolic_create(&ref, repo, "HEAD", h->name, 1, "amp: rollback")
               : git_repository_set_head_detached(repo, &h->oid);
}

static int tips_keep(struct reset *x, size_t i)
{
    struct change *c = &x->v[i];
    char ref[1024];
    bool kept;
    const git_oid *to = c->want.born ? &c->want.oid : NULL;
    snprintf(ref, sizeof ref, "%s%s%zu", x->r->in.keep, "-", i);
    if (c->moves_branch && c->has_tip &&
        keep_tip(x->r, c->repo, &c->tip, c->want.name, to, ref, &kept) < 0)
        return -1;
    if (!c->moves_head || c->was.name[0] || !c->was.born)
        return 0;
    snprintf(ref, sizeof ref, "%s%s%zu-head", x->r->in.keep, "-", i);
    return keep_tip(x->r, c->repo, &c->was.oid, NULL, to, ref, &kept);
}

static int heads_move(struct reset *x, size_t i)
{
    struct change *c = &x->v[i];
    if (!c->moves_branch && !c->moves_head)
        return 0;
    if (tips_keep(x, i) < 0)
        return -1;
    int rc = git_repository_set_ident(c->repo, x->r->in.name, x->r->in.email);
    c->moved = true;
    if (rc == 0 && c->moves_branch)
        rc = branch_set(c->repo, &c->want);
    if (rc == 0 && c->moves_head)
        rc = head_set(c->repo, &c->want);
    return rc ? fail_git(x->r, rc, AMP_IOERR, "git_error", c->path) : 0;
}

static void heads_undo(struct reset *x)
{
    for (size_t i = x->n; i-- > 0;) {
        struct change *c = &x->v[i];
        struct head branch = c->want;
        branch.born = c->has_tip;
        branch.oid = c->tip;
        if (c->moved && c->moves_branch)
            branch_set(c->repo, &branch);
        if (c->moved && c->moves_head)
            head_set(c->repo, &c->was);
    }
}

static int changes_find(struct reset *x, struct snapshot *s)
{
    struct request *r = x->r;
    CLEANUP(places_release) struct places p = {0};
    if (snapshot_tree(r, r->repo, &x->tree) < 0 || places_open(r, s, &p) < 0)
        return -1;
    x->v = calloc(p.n, sizeof *x->v);
    if (!x->v)
        return amp_fail_memory(r->err);
    for (; x->n < p.n; x->n++) {
        x->v[x->n].repo = p.v[x->n].repo;
        p.v[x->n].repo = NULL;
        amp_span_copy(amp_span_str(p.v[x->n].path), x->v[x->n].path, sizeof x->v[x->n].path);
    }
    return 0;
}

int op_snapshot_reset(struct request *r)
{
    CLEANUP(snapshot_release) struct snapshot s = {.dir = -1};
    CLEANUP(reset_release) struct reset x = {.r = r};
    int rc = 0;
    /* The client may be killed, and the reset is completed. */
    prctl(PR_SET_PDEATHSIG, 0);
    if (snapshot_open(r, &s) < 0 || changes_find(&x, &s) < 0)
        return -1;
    for (size_t i = 0; i < x.n; i++)
        if (head_find(&x, i) < 0 || branch_check(&x, &x.v[i]) < 0)
            return -1;
    for (size_t i = 0; i < x.n; i++)
        if (index_write(&x, i) < 0)
            return -1;
    for (size_t i = 0; rc == 0 && i < x.n; i++)
        rc = heads_move(&x, i);
    if (rc)
        heads_undo(&x);
    for (size_t i = 0; rc == 0 && i < x.n; i++)
        rc = index_move(&x, i);
    return rc;
}
