/* See restore.h. */
#include "work/git/snapshot/restore.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/file.h>

#include "base/codes.h"
#include "work/git/snapshot/path.h"

static int path_fail(const char *path, const char *what, struct amp_error *err)
{
    return amp_fail_errno(err, AMP_IOERR, "%s: cannot %s", path, what);
}

static bool is_dir(const struct amp_tree_entry *e)
{
    return e && (e->type == AMP_TREE_DIR || e->type == AMP_TREE_WAY);
}
static bool is_there(const struct amp_tree_entry *e)
{
    return e && e->type != AMP_TREE_ABSENT && e->type != AMP_TREE_NO_WAY;
}

/* ---- making what a tree has ---- */

struct making {
    int contents;
    unsigned mask, open; /* the permissions that are set, and what directories have in addition */
    volatile const int *stop;
    struct amp_error *err;
};

static int file_make(struct making *m, const struct amp_tree_entry *e, int dir, const char *name)
{
    const struct timespec times[2] = {{.tv_nsec = UTIME_NOW}, e->mtime};
    AMP_CLOSE int from = openat(m->contents, e->sum, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    AMP_CLOSE int to = openat(dir, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    char sum[AMP_TREE_SUM_MAX];
    int64_t size;
    if (to < 0)
        return path_fail(e->path, "write", m->err);
    if (from >= 0 && amp_tree_copy(from, to, e->size, m->stop, &size, sum) < 0)
        return path_fail(e->path, "write", m->err);
    if (from < 0 || strcmp(sum, e->sum) != 0)
        return amp_fail(m->err, AMP_NO, snapshot_damaged, "%s: its contents are damaged", e->path);
    return fchmod(to, e->mode & m->mask) < 0 || futimens(to, times) < 0
               ? path_fail(e->path, "write", m->err)
               : 0;
}

static int link_make(struct making *m, const struct amp_tree_entry *e, int dir, const char *name)
{
    const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, e->mtime};
    return symlinkat(e->target, dir, name) < 0 ||
                   utimensat(dir, name, times, AT_SYMLINK_NOFOLLOW) < 0
               ? path_fail(e->path, "make the link", m->err)
               : 0;
}

/* *i: the entry, then the one after what is below it. The tree has no more than 512 directories in
 * each other. */
static int entry_make(struct making *m, const struct amp_tree *t, size_t *i, int dir,
                      const char *name)
{
    const struct amp_tree_entry *e = &t->v[(*i)++];
    if (e->type == AMP_TREE_FILE)
        return file_make(m, e, dir, name);
    if (e->type == AMP_TREE_LINK)
        return link_make(m, e, dir, name);
    if (!is_dir(e))
        return 0;
    if (mkdirat(dir, name, 0700) < 0)
        return path_fail(e->path, "make the directory", m->err);
    AMP_CLOSE int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return path_fail(e->path, "open the directory", m->err);
    while (*i < t->n && amp_tree_is_in(t->v[*i].path, e->path)) {
        const char *path = t->v[*i].path, *slash = strrchr(path, '/');
        if (entry_make(m, t, i, fd, slash ? slash + 1 : path) < 0)
            return -1;
    }
    return fchmod(fd, (e->mode & m->mask) | m->open) < 0
               ? path_fail(e->path, "change the permissions", m->err)
               : 0;
}

int amp_restore_make(const struct amp_tree *t, const char *path, int contents, unsigned mask,
                     int dir, const char *as, struct amp_error *err)
{
    struct making m = {.contents = contents, .mask = mask, .err = err};
    size_t i = (size_t)(amp_tree_find(t, path) - t->v);
    return entry_make(&m, t, &i, dir, as);
}

/* ---- what is there now ---- */

struct work {
    const struct amp_restore_spec *s;
    const struct amp_tree *want;
    uint64_t *unit; /* for each entry of want: its number in a stage; 0: it stays */
    struct making m;
    bool counts; /* names that the tree lacks are only counted: */
    size_t extras;
    struct amp_error *err;
};

static bool time_is(const struct stat *st, const struct amp_tree_entry *e)
{
    return st->st_mtim.tv_sec == e->mtime.tv_sec && st->st_mtim.tv_nsec == e->mtime.tv_nsec;
}

static bool file_is(int dir, const char *name, const struct amp_tree_entry *e)
{
    AMP_CLOSE int fd = openat(dir, name, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY);
    char sum[AMP_TREE_SUM_MAX];
    int64_t size;
    return fd >= 0 && amp_tree_copy(fd, -1, e->size, NULL, &size, sum) == 0 &&
           strcmp(sum, e->sum) == 0;
}

/* Whether an entry that exists in the tree is there, with this time if it is a file or link. */
static bool entry_is(const struct amp_restore_spec *s, const struct amp_tree_entry *e, bool timed)
{
    AMP_CLOSE int dir = -1;
    const char *name = amp_tree_above(s->root, e->path, &dir);
    char target[PATH_MAX];
    struct stat st;
    if (!name || fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return false;
    if (is_dir(e))
        return S_ISDIR(st.st_mode) && (timed || (st.st_mode & 07777) == e->mode);
    if (timed && !time_is(&st, e))
        return false;
    if (e->type == AMP_TREE_FILE)
        return S_ISREG(st.st_mode) && (st.st_mode & 07777) == e->mode && st.st_size == e->size &&
               file_is(dir, name, e);
    ssize_t n = readlinkat(dir, name, target, sizeof target - 1);
    target[n < 0 ? 0 : n] = '\0';
    return n > 0 && strcmp(target, e->target) == 0;
}

/* ---- the restore ---- */

/* Removes the stage in a directory. */
static int stage_remove(struct work *w, const char *path)
{
    AMP_CLOSE int dir = amp_open_beneath(w->s->root, path, O_PATH | O_DIRECTORY, 0, NULL);
    return dir < 0 ? 0 : amp_restore_remove(dir, w->s->stage, w->err);
}

static int stages_remove(struct work *w)
{
    if (stage_remove(w, ".") < 0)
        return -1;
    for (size_t i = 0; i < w->want->n; i++)
        if (is_dir(&w->want->v[i]) && stage_remove(w, w->want->v[i].path) < 0)
            return -1;
    return 0;
}

/* Makes the directories of the tree accessible, or gives them their permissions. */
static int modes_set(struct work *w, bool open)
{
    for (size_t k = 0; k < w->want->n; k++) { /* the one above comes first, or last */
        const struct amp_tree_entry *e = &w->want->v[open ? k : w->want->n - 1 - k];
        AMP_CLOSE int dir = -1;
        struct stat st;
        if (!is_dir(e))
            continue;
        const char *name = amp_tree_above(w->s->root, e->path, &dir);
        if (!name || fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(st.st_mode))
            continue;
        unsigned is = st.st_mode & 07777, mode = open ? is | 0700 : e->mode;
        if (is == mode || (open && (geteuid() == 0 || st.st_uid != geteuid())))
            continue;
        if (amp_restore_mode(dir, name, mode) < 0)
            return path_fail(e->path, "change the permissions", w->err);
    }
    return 0;
}

/* The stage beside a path, and the directory that both are in. */
static const char *stage_open(struct work *w, const char *path, int *dir, int *stage)
{
    const char *name = amp_tree_above(w->s->root, path, dir);
    if (name && (mkdirat(*dir, w->s->stage, 0700) == 0 || errno == EEXIST))
        *stage = openat(*dir, w->s->stage, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return *stage < 0 ? NULL : name;
}

/* Writes the topmost entries that differ, each with what is below it. */
static int units_write(struct work *w)
{
    uint64_t number = 0;
    char name[32];
    for (size_t i = 0; i < w->want->n;) {
        const struct amp_tree_entry *e = &w->want->v[i];
        AMP_CLOSE int dir = -1, stage = -1;
        if (!is_there(e) || entry_is(w->s, e, true)) {
            i++;
            continue;
        }
        if (strcmp(e->path, ".") == 0 || !stage_open(w, e->path, &dir, &stage))
            return path_fail(e->path, "make a directory beside it", w->err);
        w->unit[i] = ++number;
        snprintf(name, sizeof name, "%llu", (unsigned long long)number);
        if (entry_make(&w->m, w->want, &i, stage, name) < 0)
            return -1;
    }
    return 0;
}

/* A file system that is not the root's. */
static int syncfs_other(const struct work *w, int stage)
{
    struct stat a, b;
    if (fstat(stage, &a) < 0 || fstat(w->s->root, &b) < 0)
        return -1;
    return a.st_dev == b.st_dev ? 0 : syncfs(stage);
}

/* Replaces a path by what was written for it. */
static int unit_move(struct work *w, const char *path, uint64_t number)
{
    AMP_CLOSE int dir = -1, stage = -1;
    char new[32], old[40];
    struct stat st;
    const char *name = stage_open(w, path, &dir, &stage);
    snprintf(new, sizeof new, "%llu", (unsigned long long)number);
    snprintf(old, sizeof old, "%s.old", new);
    if (!name)
        return path_fail(path, "open the directory above", w->err);
    bool is = fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
    /* A directory that cannot be written cannot be moved to another one. */
    if (is && S_ISDIR(st.st_mode) && !(st.st_mode & 0200))
        amp_restore_mode(dir, name, 0700);
    int rc = is ? renameat2(stage, new, dir, name, RENAME_EXCHANGE)
                : amp_restore_move(stage, new, dir, name);
    if (rc < 0 && is && errno == EINVAL)
        rc = amp_restore_move(dir, name, stage, old) < 0 ? -1
                                                         : amp_restore_move(stage, new, dir, name);
    /* Before the end nothing has to be durable: the contents are in the snapshot. */
    return rc < 0 || syncfs_other(w, stage) < 0 ? path_fail(path, "replace", w->err) : 0;
}

static int extras_remove(struct work *w, int dir, const char *name, const char *path);

/* Removes or counts what the tree lacks: name in dir, whose path is `above`. */
static int extra_remove(struct work *w, int dir, const char *name, const char *above)
{
    enum amp_tree_skip skip = AMP_TREE_TAKE;
    char path[PATH_MAX];
    struct stat st;
    int n = strcmp(above, ".") == 0 ? snprintf(path, sizeof path, "%s", name)
                                    : snprintf(path, sizeof path, "%s/%s", above, name);
    bool fits = n >= 0 && (size_t)n < sizeof path; /* a longer one is not in the tree */
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || strcmp(name, w->s->stage) == 0)
        return 0;
    const struct amp_tree_entry *e = fits ? amp_tree_find(w->want, path) : NULL;
    if (is_there(e) || fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return 0;
    if (fits && w->s->skip)
        skip = w->s->skip(w->s->ctx, path, &st);
    if (skip == AMP_TREE_LEAVE)
        return 0;
    if (skip == AMP_TREE_ABOVE && S_ISDIR(st.st_mode))
        return extras_remove(w, dir, name, path);
    w->extras++;
    return w->counts ? 0 : amp_restore_remove(dir, name, w->err);
}

static int extras_remove(struct work *w, int dir, const char *name, const char *path)
{
    AMP_DIR DIR *d = amp_dir_open(dir, name);
    if (!d && errno == EACCES && amp_restore_mode(dir, name, 0700) == 0)
        d = amp_dir_open(dir, name);
    for (const struct dirent *x; d && (x = readdir(d));)
        if (extra_remove(w, dirfd(d), x->d_name, path) < 0)
            return -1;
    return d ? 0 : path_fail(path, "read the directory", w->err);
}

static int names_remove(struct work *w, const char *below)
{
    for (size_t i = w->want->n; i-- > 0;) {
        const struct amp_tree_entry *e = &w->want->v[i];
        AMP_CLOSE int dir = -1;
        char above[PATH_MAX] = ".";
        const char *name = NULL;
        if ((e->type != AMP_TREE_DIR && is_there(e)) || !amp_tree_is_in(e->path, below) ||
            !(name = amp_tree_above(w->s->root, e->path, &dir)))
            continue;
        if (name > e->path)
            amp_span_copy((struct amp_span){e->path, (size_t)(name - e->path) - 1}, above,
                          sizeof above);
        struct stat st;
        if (e->type == AMP_TREE_DIR) {
            if (extras_remove(w, dir, name, e->path) < 0)
                return -1;
        } else if (e->type == AMP_TREE_NO_WAY &&
                   (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || S_ISDIR(st.st_mode))) {
            (void)(w->counts || unlinkat(dir, name, AT_REMOVEDIR)); /* unless it has more */
        } else if (extra_remove(w, dir, name, above) < 0) {
            return -1;
        }
    }
    return 0;
}

int amp_restore_same(const struct amp_restore_spec *s, const struct amp_tree *want,
                     const char *path, struct amp_error *err)
{
    struct work w = {.s = s, .want = want, .counts = true, .err = err};
    for (const struct amp_tree_entry *e = want->v; e < want->v + want->n; e++)
        if (is_there(e) && amp_tree_is_in(e->path, path) && !entry_is(s, e, false))
            return 0;
    return names_remove(&w, path) < 0 ? -1 : w.extras == 0;
}

static int work_do(struct work *w)
{
    if (modes_set(w, true) < 0 || stages_remove(w) < 0 || units_write(w) < 0)
        return -1;
    for (size_t i = 0; i < w->want->n; i++)
        if (w->unit[i] && unit_move(w, w->want->v[i].path, w->unit[i]) < 0)
            return -1;
    return names_remove(w, ".");
}

int amp_restore(const struct amp_restore_spec *s, const struct amp_tree *want,
                struct amp_error *err)
{
    struct amp_error late;
    struct work w = {
        .s = s,
        .want = want,
        .unit = calloc(want->n + 1, sizeof *w.unit),
        .m = {.contents = s->contents, .mask = 07777, .open = 0700, .stop = s->stop, .err = err},
        .err = err};
    if (!w.unit)
        return amp_fail_memory(err);
    int rc = work_do(&w);
    if (rc < 0 && s->stop && *s->stop)
        amp_fail(err, AMP_INTERRUPTED, interrupted, "interrupted");
    w.err = rc < 0 ? &late : err;
    if (stages_remove(&w) < 0 || modes_set(&w, false) < 0)
        rc = -1;
    else if (rc == 0 && syncfs(s->root) < 0)
        rc = path_fail(".", "sync", err);
    free(w.unit);
    return rc;
}
