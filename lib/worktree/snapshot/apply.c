/* Making files as one tree has them, step by step in a transaction: see restore.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <amp/base/file.h>

#include "base/grow.h"
#include "worktree/snapshot/transaction.h"

/* Of files that are there. One that is not wanted is a step of the journal each. */
enum { FILES_MOST = 1000000 };

struct work {
    struct amp_restore *r;
    const struct amp_tree *want;
    int contents;
    struct amp_tree now;
    /* For each entry of want: */
    const struct amp_tree_entry **is; /* what is there now, or NULL */
    bool *changes;                    /* it has to be written */
    uint64_t *file;                   /* its file in a stage + 1, 0: none */
    unsigned *stage;
    struct amp_error *err;
};

static void work_release(struct work *w)
{
    amp_tree_release(&w->now);
    free(w->is);
    free(w->changes);
    free(w->file);
    free(w->stage);
}

static int rename_fail(const char *path, struct amp_error *err)
{
    return amp_fail_errno(err, AMP_IOERR, "%s: cannot put into place", path);
}

static const struct amp_tree_entry *parent_of(const struct amp_tree *t, const char *path)
{
    char above[PATH_MAX] = ".";
    const char *slash = strrchr(path, '/');
    if (strcmp(path, ".") == 0)
        return NULL;
    if (slash)
        amp_span_copy((struct amp_span){path, (size_t)(slash - path)}, above, sizeof above);
    return amp_tree_find(t, above);
}

static bool is_top(const struct amp_tree *t, const struct amp_tree_entry *e)
{
    const struct amp_tree_entry *above = parent_of(t, e->path);
    return e->type != AMP_TREE_WAY && e->type != AMP_TREE_NO_WAY &&
           (!above || above->type != AMP_TREE_DIR);
}

static bool now_skip(void *ctx, const char *path, const struct stat *st)
{
    const struct work *w = ctx;
    for (unsigned i = 0; i < w->r->n_stages; i++)
        if (strcmp(path, w->r->stage[i].path) == 0)
            return true;
    return w->r->s.skip && w->r->s.skip(w->r->s.ctx, path, st);
}

int amp_restore_open(struct amp_restore *r, const struct amp_tree *want, struct amp_error *err)
{
    for (size_t i = 0; geteuid() != 0 && i < want->n; i++) { /* those above come before */
        const struct amp_tree_entry *e = &want->v[i];
        AMP_CLOSE int dir = -1;
        struct stat st;
        if (e->type != AMP_TREE_DIR && e->type != AMP_TREE_WAY)
            continue;
        const char *name = amp_tree_above(r->s.root, e->path, &dir);
        if (!name || fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(st.st_mode) ||
            (st.st_mode & 0500) == 0500 || st.st_uid != geteuid())
            continue;
        if (amp_restore_note(r, err, "M %o %llu %s", st.st_mode & 07777,
                             (unsigned long long)st.st_ino, e->path) < 0)
            return -1;
        if (amp_restore_mode(dir, name, (st.st_mode & 07777) | 0700) < 0)
            return amp_fail_errno(err, AMP_IOERR, "%s: cannot change the permissions", e->path);
    }
    return 0;
}

static int now_read(struct work *w)
{
    struct amp_tree_scan scan = {.root = w->r->s.root,
                                 .skip = now_skip,
                                 .ctx = w,
                                 .contents = -1,
                                 .files = FILES_MOST,
                                 .like = w->want,
                                 .exact = true,
                                 .specials = true,
                                 .lenient = true,
                                 .stop = w->r->s.stop};
    amp_tree_release(&w->now);
    for (size_t i = 0; i < w->want->n; i++)
        if (is_top(w->want, &w->want->v[i]) &&
            amp_tree_add(&scan, w->want->v[i].path, &w->now, w->err) < 0)
            return -1;
    amp_tree_sort(&w->now);
    return 0;
}

static bool is_dir(const struct amp_tree_entry *e)
{
    return e && (e->type == AMP_TREE_DIR || e->type == AMP_TREE_WAY);
}
static bool is_there(const struct amp_tree_entry *e)
{
    return e && e->type != AMP_TREE_ABSENT && e->type != AMP_TREE_NO_WAY;
}
static bool is_within(const char *path, const char *dir)
{
    size_t n = strlen(dir);
    return strncmp(path, dir, n) == 0 && path[n] == '/';
}

/* Notes the time of a directory that the next step changes, so that undoing restores it. */
static int time_note(struct work *w, const struct stat *st, const char *path)
{
    if (w->r->above == st->st_ino)
        return 0;
    w->r->above = st->st_ino;
    return amp_restore_note(w->r, w->err, "T %lld %ld %llu %s", (long long)st->st_mtim.tv_sec,
                            st->st_mtim.tv_nsec, (unsigned long long)st->st_ino, path);
}

/* The access control list of the directory above may give the owner less. */
static int dir_make(int dir, const char *name)
{
    return mkdirat(dir, name, 0700) < 0 ? -1 : amp_restore_mode(dir, name, 0700);
}

/* The stage on the file system where the path is or will be; -1. */
static int stage_for(struct work *w, const char *path)
{
    struct amp_restore *r = w->r;
    char above[PATH_MAX], text[PATH_MAX];
    struct stat st;
    int fd = -1;
    amp_span_copy(amp_span_str(path), above, sizeof above);
    do {
        char *slash = strrchr(above, '/');
        if (slash)
            *slash = '\0';
        else
            amp_span_copy(AMP_SPAN("."), above, sizeof above);
        fd = amp_open_beneath(r->s.root, above, O_PATH | O_DIRECTORY, 0, NULL);
    } while (fd < 0 && strcmp(above, ".") != 0);
    AMP_CLOSE int dir = fd;
    if (dir < 0 || fstat(dir, &st) < 0)
        return amp_fail_errno(w->err, AMP_IOERR, "%s: cannot open the directory above", path);
    for (unsigned i = 0; i < r->n_stages; i++)
        if (r->stage[i].dev == st.st_dev)
            return (int)i;
    if (r->n_stages == AMP_RESTORE_STAGES)
        return amp_fail(w->err, AMP_NO, "tree_limit", "more than %d file systems",
                        AMP_RESTORE_STAGES);
    /* In the root if it can be, so that the directory is not part of a tree that is compared. */
    struct stat root;
    if (fstat(r->s.root, &root) == 0 && root.st_dev == st.st_dev)
        amp_span_copy(AMP_SPAN("."), above, sizeof above), st = root;
    int n = strcmp(above, ".") == 0 ? snprintf(text, sizeof text, "%s", r->name)
                                    : snprintf(text, sizeof text, "%s/%s", above, r->name);
    if (n < 0 || (size_t)n >= sizeof text)
        return amp_fail(w->err, AMP_NO, "tree_limit", "%.200s…: the path is too long", path);
    struct amp_restore_stage *g = &r->stage[r->n_stages];
    if (time_note(w, &st, above) < 0 || amp_restore_note(r, w->err, "S %u %llu %s", r->n_stages,
                                                         (unsigned long long)st.st_dev, text) < 0)
        return -1;
    /* So that the directory is found and removed after a loss of power. */
    if (fsync(r->journal) < 0 || fsync(r->s.journal) < 0)
        return amp_fail_errno(w->err, AMP_IOERR, "cannot sync the journal");
    AMP_CLOSE int above_fd = -1;
    const char *name = amp_tree_above(r->s.root, text, &above_fd);
    if (!name || dir_make(above_fd, name) < 0)
        return amp_fail_errno(w->err, AMP_CANTCREAT, "cannot create %s", text);
    *g = (struct amp_restore_stage){
        .dev = st.st_dev,
        .fd = openat(above_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)};
    if (g->fd < 0)
        return amp_fail_errno(w->err, AMP_IOERR, "cannot open %s", text);
    amp_span_copy(amp_span_str(text), g->path, sizeof g->path);
    return (int)r->n_stages++;
}

static int owner_set(int dir, const char *name, const struct amp_tree_entry *e)
{
    struct stat st;
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return -1;
    return st.st_uid == e->uid && st.st_gid == e->gid
               ? 0
               : amp_restore_owner(dir, name, e->uid, e->gid);
}

static int file_write(struct work *w, const struct amp_tree_entry *e, int stage, const char *name)
{
    const struct timespec times[2] = {{.tv_nsec = UTIME_NOW}, e->mtime};
    AMP_CLOSE int from = openat(w->contents, e->sum, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    AMP_CLOSE int to =
        openat(stage, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    struct stat st;
    if (from < 0 || fstat(from, &st) < 0 || st.st_size != e->size)
        return amp_fail(w->err, AMP_IOERR, "snapshot_damaged", "%s: its contents are damaged",
                        e->path);
    /* The mode comes after what changes it. */
    return to < 0 || amp_tree_copy(from, to, e->size) < 0 || owner_set(stage, name, e) < 0 ||
                   amp_attrs_set(to, e->attrs) < 0 || fchmod(to, e->mode) < 0 ||
                   futimens(to, times) < 0 || amp_restore_file_sync(w->r, to) < 0
               ? amp_fail_errno(w->err, AMP_IOERR, "%s: cannot write", e->path)
               : 0;
}

static int link_write(struct work *w, const struct amp_tree_entry *e, int stage, const char *name)
{
    return symlinkat(e->target, stage, name) < 0 || owner_set(stage, name, e) < 0 ||
                   amp_restore_time(stage, name, e->mtime) < 0
               ? amp_fail_errno(w->err, AMP_IOERR, "%s: cannot make the link", e->path)
               : 0;
}

/* The index of the entry that comes first among the names of a file; i, if it has only one. */
static size_t first_of(const struct work *w, size_t i)
{
    const struct amp_tree_entry *e = &w->want->v[i];
    return e->same ? (size_t)(amp_tree_find(w->want, e->same) - w->want->v) : i;
}

/* Another name of a file that was written before. */
static int name_write(struct work *w, size_t i, int stage, const char *name)
{
    char first[32];
    size_t of = first_of(w, i);
    snprintf(first, sizeof first, "%llu", (unsigned long long)w->file[of] - 1);
    return linkat(w->r->stage[w->stage[of]].fd, first, stage, name, 0) < 0
               ? amp_fail_errno(w->err, AMP_IOERR, "%s: cannot link to %s", w->want->v[i].path,
                                w->want->v[of].path)
               : 0;
}

/* Writes what the entry i needs to become what is wanted. */
static int entry_write(struct work *w, size_t i)
{
    const struct amp_tree_entry *e = &w->want->v[i];
    char name[32];
    int stage = stage_for(w, e->path);
    if (stage < 0)
        return -1;
    int fd = w->r->stage[stage].fd;
    snprintf(name, sizeof name, "%llu", (unsigned long long)w->r->next);
    int rc = e->same                    ? name_write(w, i, fd, name)
             : e->type == AMP_TREE_FILE ? file_write(w, e, fd, name)
             : e->type == AMP_TREE_LINK ? link_write(w, e, fd, name)
             : dir_make(fd, name) < 0
                 ? amp_fail_errno(w->err, AMP_IOERR, "%s: cannot make the directory", e->path)
                 : 0;
    w->stage[i] = (unsigned)stage;
    w->file[i] = ++w->r->next;
    return rc;
}

/* What is there now; NULL: nothing, also if `gone` is above it, the last path that is replaced. */
static const struct amp_tree_entry *entry_now(struct work *w, const char *path, const char *gone)
{
    const struct amp_tree_entry *c =
        gone && is_within(path, gone) ? NULL : amp_tree_find(&w->now, path);
    return is_there(c) ? c : NULL;
}

static bool contents_same(const struct amp_tree_entry *e, const struct amp_tree_entry *c)
{
    if (e->type == AMP_TREE_DIR || e->type == AMP_TREE_WAY)
        return is_dir(c);
    return c->type == e->type && strcmp(c->sum, e->sum) == 0 &&
           (e->attrs && c->attrs ? strcmp(e->attrs, c->attrs) == 0 : e->attrs == c->attrs);
}

static void changes_find(struct work *w)
{
    const char *gone = NULL;
    for (size_t i = 0; i < w->want->n; i++) {
        const struct amp_tree_entry *e = &w->want->v[i], *c = entry_now(w, e->path, gone);
        w->is[i] = c;
        w->changes[i] = is_there(e) && e->type != AMP_TREE_SPECIAL && !(c && contents_same(e, c));
        if (w->changes[i] && (!gone || !is_within(e->path, gone)))
            gone = e->path;
    }
}

struct inode { /* of a file that is to stay */
    dev_t dev;
    uint64_t ino;
    size_t first;
};

static int inode_compare(const void *a, const void *b)
{
    const struct inode *x = a, *y = b;
    if (x->dev != y->dev)
        return x->dev < y->dev ? -1 : 1;
    if (x->ino != y->ino)
        return x->ino < y->ino ? -1 : 1;
    return (x->first > y->first) - (x->first < y->first);
}

/* All names of a file are written if one of them has to be, if they are not names of one file any
 * more, or if a file that is wanted apart from it is the same now. */
static int names_change(struct work *w)
{
    AMP_FREE struct inode *v = calloc(w->want->n + 1, sizeof *v);
    AMP_FREE bool *apart = calloc(w->want->n + 1, sizeof *apart);
    size_t n = 0;
    if (!v || !apart)
        return amp_fail_memory(w->err);
    for (size_t i = 0; i < w->want->n; i++) {
        size_t first = first_of(w, i);
        const struct amp_tree_entry *c = w->is[i], *f = w->is[first];
        if (w->want->v[i].type != AMP_TREE_FILE)
            continue;
        if (w->changes[i] || w->changes[first] || c->dev != f->dev || c->ino != f->ino)
            apart[first] = true;
        else if (c->has_names)
            v[n++] = (struct inode){c->dev, c->ino, first};
    }
    if (n)
        qsort(v, n, sizeof *v, inode_compare);
    for (size_t k = 1; k < n; k++)
        if (v[k].dev == v[k - 1].dev && v[k].ino == v[k - 1].ino && v[k].first != v[k - 1].first)
            apart[v[k].first] = true;
    for (size_t i = 0; i < w->want->n; i++)
        w->changes[i] |= apart[first_of(w, i)];
    return 0;
}

static int all_write(struct work *w)
{
    changes_find(w);
    if (names_change(w) < 0)
        return -1;
    for (size_t i = 0; i < w->want->n; i++) {
        if (!w->changes[i])
            continue;
        if (w->r->s.stop && *w->r->s.stop)
            return amp_fail(w->err, AMP_INTERRUPTED, "interrupted", "interrupted");
        if (strcmp(w->want->v[i].path, ".") == 0)
            return amp_fail(w->err, AMP_IOERR, "not_beneath", "the directory is gone");
        if (entry_write(w, i) < 0)
            return -1;
    }
    return 0;
}

/* Opens the directory above. Makes one of ours writable, which the end of the work undoes for one
 * that is wanted. */
static int above_open(struct work *w, const char *path, int *dir, const char **name)
{
    struct stat st;
    char above[PATH_MAX] = ".", proc[64];
    *name = amp_tree_above(w->r->s.root, path, dir);
    if (!*name || fstat(*dir, &st) < 0)
        return amp_fail_errno(w->err, AMP_IOERR, "%s: cannot open the directory above", path);
    if (*name > path)
        amp_span_copy((struct amp_span){path, (size_t)(*name - path - 1)}, above, sizeof above);
    if (time_note(w, &st, above) < 0)
        return -1;
    if ((st.st_mode & 0300) == 0300 || geteuid() == 0 || !parent_of(w->want, path))
        return 0;
    if (amp_restore_note(w->r, w->err, "M %o %llu %s", st.st_mode & 07777,
                         (unsigned long long)st.st_ino, above) < 0)
        return -1;
    snprintf(proc, sizeof proc, "/proc/self/fd/%d", *dir);
    return chmod(proc, (st.st_mode & 07777) | 0700) < 0
               ? amp_fail_errno(w->err, AMP_IOERR, "%s: cannot change the permissions", above)
               : 0;
}

/* A directory that cannot be written cannot be moved to another one. */
static int movable_make(struct work *w, int dir, const char *name, const char *path)
{
    struct stat st;
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(st.st_mode) ||
        (st.st_mode & 0200))
        return 0;
    return amp_restore_note(w->r, w->err, "M %o %llu %s", st.st_mode & 07777,
                            (unsigned long long)st.st_ino, path) < 0
               ? -1
           : amp_restore_mode(dir, name, (st.st_mode & 07777) | 0700) < 0
               ? amp_fail_errno(w->err, AMP_IOERR, "%s: cannot change the permissions", path)
               : 0;
}

static int path_displace(struct work *w, const char *path)
{
    AMP_CLOSE int dir = -1;
    const char *name;
    char file[32];
    int stage = stage_for(w, path);
    if (stage < 0 || above_open(w, path, &dir, &name) < 0 || movable_make(w, dir, name, path) < 0)
        return -1;
    unsigned long long n = w->r->next++;
    snprintf(file, sizeof file, "%llu", n);
    if (amp_restore_note(w->r, w->err, "O %d %llu %s", stage, n, path) < 0)
        return -1;
    if (amp_restore_move(dir, name, w->r->stage[stage].fd, file) < 0)
        return errno == ENOENT ? 0 : rename_fail(path, w->err);
    return amp_restore_dir_sync(w->r, dir) < 0
               ? amp_fail_errno(w->err, AMP_IOERR, "%s: cannot sync", path)
               : 0;
}

/* Puts the file of the entry i into place; c is what is there, or NULL. */
static int path_install(struct work *w, size_t i, const struct amp_tree_entry *c)
{
    const struct amp_tree_entry *e = &w->want->v[i];
    AMP_CLOSE int dir = -1;
    const char *name;
    char file[32];
    struct stat st;
    unsigned long long n = w->file[i] - 1;
    int stage = w->r->stage[w->stage[i]].fd;
    if (above_open(w, e->path, &dir, &name) < 0 || (c && movable_make(w, dir, name, e->path) < 0))
        return -1;
    snprintf(file, sizeof file, "%llu", n);
    if (fstatat(stage, file, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return rename_fail(e->path, w->err);
    bool swaps = c != NULL;
    int rc = c ? amp_restore_note(w->r, w->err, "X %u %llu %llu %s", w->stage[i], n,
                                  (unsigned long long)st.st_ino, e->path)
               : amp_restore_note(w->r, w->err, "I %u %llu %s", w->stage[i], n, e->path);
    if (rc < 0)
        return -1;
    if (swaps && (rc = renameat2(stage, file, dir, name, RENAME_EXCHANGE)) < 0 && errno == EINVAL) {
        /* A file system without this: in two steps. */
        swaps = false;
        if (path_displace(w, e->path) < 0 ||
            amp_restore_note(w->r, w->err, "I %u %llu %s", w->stage[i], n, e->path) < 0)
            return -1;
    }
    if (!swaps)
        rc = amp_restore_move(stage, file, dir, name);
    return rc < 0 || amp_restore_dir_sync(w->r, dir) < 0 ? rename_fail(e->path, w->err) : 0;
}

static int meta_fail(struct work *w, const struct amp_tree_entry *e, const char *what)
{
    return amp_fail_errno(w->err, AMP_IOERR, "%s: cannot change the %s", e->path, what);
}

/* The owners, if they differ: before the mode, which a change of them changes. 1: they did. */
static int owner_change(struct work *w, const struct amp_tree_entry *e, int at, const char *name,
                        const struct stat *st)
{
    if (st->st_uid == e->uid && st->st_gid == e->gid)
        return 0;
    if (amp_restore_note(w->r, w->err, "U %u %u %llu %s", st->st_uid, st->st_gid,
                         (unsigned long long)st->st_ino, e->path) < 0)
        return -1;
    return amp_restore_owner(at, name, e->uid, e->gid) < 0 ? meta_fail(w, e, "owner") : 1;
}

/* Those of a directory; a file with others was written anew. What is longer than any that are
 * recorded is not put back if this is undone. */
static int attrs_change(struct work *w, const struct amp_tree_entry *e, int at, const char *name,
                        const struct stat *st)
{
    AMP_FREE char *now = NULL;
    AMP_CLOSE int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int rc = fd < 0 ? -1 : amp_attrs_read(fd, &now);
    if (rc < 0)
        return meta_fail(w, e, "extended attributes");
    if (rc == 0 && (now && e->attrs ? strcmp(now, e->attrs) == 0 : now == e->attrs))
        return 0;
    if (rc == 0 && amp_restore_note(w->r, w->err, "A %llu %s %s", (unsigned long long)st->st_ino,
                                    now ? now : "-", e->path) < 0)
        return -1;
    return amp_attrs_set(fd, e->attrs) < 0 ? meta_fail(w, e, "extended attributes") : 1;
}

static int mode_change(struct work *w, const struct amp_tree_entry *e, int at, const char *name,
                       const struct stat *st)
{
    if (amp_restore_note(w->r, w->err, "M %o %llu %s", st->st_mode & 07777,
                         (unsigned long long)st->st_ino, e->path) < 0)
        return -1;
    return amp_restore_mode(at, name, e->mode) < 0 ? meta_fail(w, e, "permissions") : 0;
}

/* Owners, extended attributes, permissions and time of a file or directory, if they differ. */
static int meta_set(struct work *w, const struct amp_tree_entry *e)
{
    AMP_CLOSE int dir = -1;
    struct stat st;
    bool root = strcmp(e->path, ".") == 0;
    const char *name = root ? "." : amp_tree_above(w->r->s.root, e->path, &dir);
    int at = root ? w->r->s.root : dir, owner = 0, attrs = 0;
    if (!name || fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return amp_fail_errno(w->err, AMP_IOERR, "%s: cannot open", e->path);
    if (e->type != AMP_TREE_WAY && (owner = owner_change(w, e, at, name, &st)) < 0)
        return -1;
    if (e->type == AMP_TREE_DIR && (attrs = attrs_change(w, e, at, name, &st)) < 0)
        return -1;
    if (e->type != AMP_TREE_LINK && ((st.st_mode & 07777) != e->mode || owner || attrs) &&
        mode_change(w, e, at, name, &st) < 0)
        return -1;
    if (e->type == AMP_TREE_WAY ||
        (st.st_mtim.tv_sec == e->mtime.tv_sec && st.st_mtim.tv_nsec == e->mtime.tv_nsec))
        return 0;
    if (amp_restore_note(w->r, w->err, "T %lld %ld %llu %s", (long long)st.st_mtim.tv_sec,
                         st.st_mtim.tv_nsec, (unsigned long long)st.st_ino, e->path) < 0)
        return -1;
    return amp_restore_time(at, name, e->mtime) < 0 ? meta_fail(w, e, "time") : 0;
}

/* What is there but not wanted: directly in a directory that belongs to the tree and stays. */
static int extras_displace(struct work *w)
{
    for (size_t i = 0; i < w->now.n; i++) {
        const struct amp_tree_entry *c = &w->now.v[i], *e = amp_tree_find(w->want, c->path);
        const struct amp_tree_entry *above = parent_of(w->want, c->path);
        bool is_extra = e ? !is_there(e) && (e->type == AMP_TREE_ABSENT || !is_dir(c))
                          : above && above->type == AMP_TREE_DIR;
        if (is_there(c) && is_extra && path_displace(w, c->path) < 0)
            return -1;
    }
    return 0;
}

/* Directories that did not exist and have nothing else in them now. */
static int ways_remove(struct work *w)
{
    for (size_t i = w->want->n; i-- > 0;) {
        const struct amp_tree_entry *e = &w->want->v[i];
        AMP_CLOSE int dir = -1;
        const char *name = NULL;
        if (e->type != AMP_TREE_NO_WAY)
            continue;
        name = amp_tree_above(w->r->s.root, e->path, &dir);
        AMP_DIR DIR *d = name ? amp_dir_open(dir, name) : NULL;
        const struct dirent *x = NULL;
        while (d && (x = readdir(d)) &&
               (strcmp(x->d_name, ".") == 0 || strcmp(x->d_name, "..") == 0))
            ;
        if (d && !x && path_displace(w, e->path) < 0)
            return -1;
    }
    return 0;
}

static int all_move(struct work *w)
{
    if (extras_displace(w) < 0)
        return -1;
    for (size_t i = 0; i < w->want->n; i++) {
        if (w->r->s.stop && *w->r->s.stop)
            return amp_fail(w->err, AMP_INTERRUPTED, "interrupted", "interrupted");
        if (w->file[i] && path_install(w, i, w->is[i]) < 0)
            return -1;
    }
    if (ways_remove(w) < 0)
        return -1;
    for (size_t i = w->want->n; i-- > 0;) /* what is in a directory comes before it */
        if (is_there(&w->want->v[i]) && w->want->v[i].type != AMP_TREE_SPECIAL &&
            meta_set(w, &w->want->v[i]) < 0)
            return -1;
    return 0;
}

static int all_compare(struct work *w)
{
    char want[AMP_TREE_DIGEST_MAX], now[AMP_TREE_DIGEST_MAX];
    if (now_read(w) < 0)
        return -1;
    for (size_t i = 0; i < w->now.n; i++) {
        const struct amp_tree_entry *e = amp_tree_find(w->want, w->now.v[i].path);
        if (e && e->type == AMP_TREE_NO_WAY) /* it has something else in it, and stays */
            w->now.v[i].type = AMP_TREE_NO_WAY;
    }
    amp_tree_digest(w->want, want);
    amp_tree_digest(&w->now, now);
    if (strcmp(want, now) == 0)
        return 0;
    for (size_t i = 0; i < w->want->n; i++) {
        const struct amp_tree_entry *c = amp_tree_find(&w->now, w->want->v[i].path);
        if (!c || !amp_tree_same(c, &w->want->v[i]))
            return amp_fail(w->err, AMP_NO, "digest_differs", "%s: changed meanwhile",
                            w->want->v[i].path);
    }
    return amp_fail(w->err, AMP_NO, "digest_differs", "a file was created meanwhile");
}

int amp_restore_apply(struct amp_restore *r, const struct amp_tree *want, int contents,
                      struct amp_error *err)
{
    AMP_CLEANUP(work_release)
    struct work w = {.r = r, .want = want, .contents = contents, .err = err};
    w.is = calloc(want->n + 1, sizeof *w.is);
    w.changes = calloc(want->n + 1, sizeof *w.changes);
    w.file = calloc(want->n + 1, sizeof *w.file);
    w.stage = calloc(want->n + 1, sizeof *w.stage);
    if (!w.is || !w.changes || !w.file || !w.stage)
        return amp_fail_memory(err);
    return amp_restore_open(r, want, err) < 0 || now_read(&w) < 0 || all_write(&w) < 0 ||
                   all_move(&w) < 0
               ? -1
               : all_compare(&w);
}
