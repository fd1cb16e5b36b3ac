/*
 * Restoring files: see restore.h. The journal is a file of texts, each with a NUL, one per step,
 * written before the step:
 *
 *     S STAGE DEV PATH     the directory PATH with what is written and what was replaced
 *     X STAGE N INO PATH       the file N of the stage, which has this inode, and PATH change
 * places I STAGE N PATH           the file N becomes PATH, which does not exist O STAGE N PATH PATH
 * becomes the file N M MODE PATH              the permissions were MODE T SECONDS NANOSECONDS PATH
 * the modification time was this
 *
 * "journal" exists while a transaction may have to be undone; renamed to "journal.done" it only
 * says which directories are to be removed.
 */
#include "worktree/snapshot/restore.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <amp/base/file.h>
#include <amp/base/id.h>

#include "base/grow.h"

#define JOURNAL "journal"
#define DONE    "journal.done"
#define STAGE   ".amp-rollback-"

enum { STAGES_MOST = 16, JOURNAL_MOST = 1 << 30 };
/* Files and directories that are synced one by one; with more, the file system is. */
enum { SYNCS_MOST = 64 };

struct stage {
    char path[PATH_MAX]; /* below the root */
    dev_t dev;
    int fd;
};

struct amp_restore {
    struct amp_restore_spec s;
    char name[64]; /* of the stages */
    int journal;   /* open for appending, or -1 */
    struct stage stage[STAGES_MOST];
    unsigned n_stages;
    uint64_t next; /* the number of the next file in a stage */
    unsigned syncs;
};

/* ---- small things ---- */

static int rename_fail(const char *path, struct amp_error *err)
{
    return amp_fail_errno(err, AMP_IOERR, "%s: cannot put into place", path);
}

static int note(struct amp_restore *r, struct amp_error *err, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static int note(struct amp_restore *r, struct amp_error *err, const char *fmt, ...)
{
    char text[PATH_MAX + 128];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (n < 0 || (size_t)n >= sizeof text)
        return amp_fail(err, AMP_INTERNAL, "bad_journal", "a step is too long");
    return amp_write_all(r->journal, (struct amp_span){text, (size_t)n + 1}, err);
}

/* A file is synced before its rename, a directory after one. Only the end of the transaction needs
 * it: until then, the snapshot has everything. */
static int file_sync(struct amp_restore *r, int fd)
{
    if (r->syncs > SYNCS_MOST)
        return 0;
    return ++r->syncs > SYNCS_MOST ? 0 : fsync(fd);
}

/* The same for a directory that is open as a path only. */
static int dir_sync(struct amp_restore *r, int dir)
{
    if (r->syncs > SYNCS_MOST || ++r->syncs > SYNCS_MOST)
        return 0;
    AMP_CLOSE int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? 0 : fsync(fd); /* not readable: its owner's matter */
}

/* chmod without following a link. */
static int mode_set(int dir, const char *name, unsigned mode)
{
    struct stat st;
    char proc[64];
    AMP_CLOSE int fd = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0)
        return -1;
    if (S_ISLNK(st.st_mode)) {
        errno = ELOOP;
        return -1;
    }
    snprintf(proc, sizeof proc, "/proc/self/fd/%d", fd);
    return chmod(proc, mode);
}

static int time_set(int dir, const char *name, struct timespec mtime)
{
    const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, mtime};
    return utimensat(dir, name, times, AT_SYMLINK_NOFOLLOW);
}

int amp_restore_remove(int dir, const char *name, struct amp_error *err)
{
    if (unlinkat(dir, name, 0) == 0 || errno == ENOENT)
        return 0;
    if (errno != EISDIR && errno != EPERM)
        return amp_fail_errno(err, AMP_IOERR, "cannot remove %s", name);
    AMP_DIR DIR *d = amp_dir_open(dir, name);
    if (!d && errno == EACCES && mode_set(dir, name, 0700) == 0)
        d = amp_dir_open(dir, name);
    if (!d)
        return amp_fail_errno(err, AMP_IOERR, "cannot remove %s", name);
    const struct dirent *e;
    bool tried = false;
    while ((e = readdir(d))) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        if (!tried && (tried = true) && fchmod(dirfd(d), 0700) < 0)
            return amp_fail_errno(err, AMP_IOERR, "cannot remove %s", name);
        if (amp_restore_remove(dirfd(d), e->d_name, err) < 0)
            return -1;
    }
    return unlinkat(dir, name, AT_REMOVEDIR) == 0 || errno == ENOENT
               ? 0
               : amp_fail_errno(err, AMP_IOERR, "cannot remove %s", name);
}

/* ---- the journal read again ---- */

/* Opens the stage of a journal. Its descriptor is -1 if it is gone, or was never made. */
static void stage_open(struct amp_restore *r, const char *path, unsigned long long dev)
{
    struct stat st;
    if (r->n_stages == STAGES_MOST)
        return;
    struct stage *g = &r->stage[r->n_stages++];
    *g = (struct stage){.dev = (dev_t)dev};
    amp_span_copy(amp_span_str(path), g->path, sizeof g->path);
    g->fd = amp_open_beneath(r->s.root, path, O_RDONLY | O_DIRECTORY, 0, NULL);
    if (g->fd < 0 || (fstat(g->fd, &st) == 0 && st.st_dev == g->dev))
        return;
    close(g->fd);
    g->fd = -1;
}

static int journal_read(struct amp_restore *r, const char *name, struct amp_buf *text,
                        struct amp_error *err)
{
    if (amp_file_read(r->s.journal, name, JOURNAL_MOST, text, err) < 0)
        return -1;
    /* A step whose note was cut was not begun. */
    while (text->len && text->data[text->len - 1])
        text->len--;
    for (size_t at = 0; at < text->len; at += strlen(text->data + at) + 1) {
        unsigned long long dev;
        unsigned i;
        int end = 0;
        if (sscanf(text->data + at, "S %u %llu%n", &i, &dev, &end) == 2 &&
            text->data[at + (size_t)end] == ' ')
            stage_open(r, text->data + at + end + 1, dev);
    }
    return 0;
}

struct step {
    char kind;
    unsigned stage;
    unsigned long long n, ino;
    long long seconds;
    long nanoseconds;
    unsigned mode;
    const char *path;
};

static bool step_read(const char *text, struct step *s)
{
    int end = 0; /* before the space and the path, which may begin with spaces */
    *s = (struct step){.kind = text[0]};
    switch (s->kind) {
    case 'X':
        sscanf(text, "X %u %llu %llu%n", &s->stage, &s->n, &s->ino, &end);
        break;
    case 'I':
        sscanf(text, "I %u %llu%n", &s->stage, &s->n, &end);
        break;
    case 'O':
        sscanf(text, "O %u %llu%n", &s->stage, &s->n, &end);
        break;
    case 'M':
        sscanf(text, "M %o %llu%n", &s->mode, &s->ino, &end);
        break;
    case 'T':
        sscanf(text, "T %lld %ld %llu%n", &s->seconds, &s->nanoseconds, &s->ino, &end);
        break;
    default:
        break;
    }
    s->path = text + end + 1;
    return end > 0 && text[end] == ' ';
}

static int undo_fail(const struct step *s, struct amp_error *err)
{
    return amp_fail_errno(err, AMP_IOERR, "%s: cannot be put back", s->path);
}

static int move_undo(struct amp_restore *r, const struct step *s, struct amp_error *err)
{
    struct stat st;
    char file[32];
    AMP_CLOSE int dir = -1;
    if (s->stage >= r->n_stages || r->stage[s->stage].fd < 0)
        return 0; /* the process ended before it made the stage */
    int stage = r->stage[s->stage].fd;
    snprintf(file, sizeof file, "%llu", s->n);
    bool is_staged = fstatat(stage, file, &st, AT_SYMLINK_NOFOLLOW) == 0;
    if (s->kind == 'X'   ? !is_staged || (unsigned long long)st.st_ino == s->ino
        : s->kind == 'I' ? is_staged
                         : !is_staged)
        return 0; /* not done, or undone */
    const char *name = amp_tree_above(r->s.root, s->path, &dir);
    if (!name)
        return undo_fail(s, err);
    int rc = s->kind == 'X'   ? renameat2(stage, file, dir, name, RENAME_EXCHANGE)
             : s->kind == 'I' ? renameat2(dir, name, stage, file, RENAME_NOREPLACE)
                              : renameat2(stage, file, dir, name, RENAME_NOREPLACE);
    return rc ? undo_fail(s, err) : 0;
}

static int meta_undo(struct amp_restore *r, const struct step *s, struct amp_error *err)
{
    struct stat st;
    AMP_CLOSE int dir = -1;
    const char *name = amp_tree_above(r->s.root, s->path, &dir);
    if (!name || fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
        (unsigned long long)st.st_ino != s->ino)
        return 0; /* undone: something else is there again */
    int rc = s->kind == 'M' ? mode_set(dir, name, s->mode)
                            : time_set(dir, name, (struct timespec){s->seconds, s->nanoseconds});
    return rc ? undo_fail(s, err) : 0;
}

static int step_undo(struct amp_restore *r, const struct step *s, struct amp_error *err)
{
    return s->kind == 'M' || s->kind == 'T' ? meta_undo(r, s, err) : move_undo(r, s, err);
}

/* later: in a later call, where something else may be in the way by now. It stays: what is wanted
 * is restored after this anyway. */
static int steps_undo(struct amp_restore *r, const struct amp_buf *text, bool later,
                      struct amp_error *err)
{
    size_t end = text->len;
    while (end > 0) {
        size_t at = end - 1;
        struct step s;
        while (at > 0 && text->data[at - 1])
            at--;
        if (step_read(text->data + at, &s) && step_undo(r, &s, err) < 0 && !later)
            return -1;
        end = at;
    }
    return 0;
}

/* The time of the directory that has the stage stays. */
static int stage_remove(struct amp_restore *r, const struct stage *g, struct amp_error *err)
{
    AMP_CLOSE int dir = -1;
    struct stat st;
    const char *name = amp_tree_above(r->s.root, g->path, &dir);
    if (!name || fstat(dir, &st) < 0)
        return amp_fail_errno(err, AMP_IOERR, "cannot remove %s", g->path);
    if (amp_restore_remove(dir, name, err) < 0)
        return -1;
    return time_set(dir, ".", st.st_mtim) < 0
               ? amp_fail_errno(err, AMP_IOERR, "cannot set the time above %s", g->path)
               : 0;
}

static int stages_remove(struct amp_restore *r, struct amp_error *err)
{
    int rc = 0;
    for (unsigned i = 0; i < r->n_stages; i++) {
        if (r->stage[i].fd < 0)
            continue;
        if (stage_remove(r, &r->stage[i], err) < 0)
            rc = -1;
        close(r->stage[i].fd);
    }
    r->n_stages = 0;
    return rc;
}

static int journal_drop(struct amp_restore *r, const char *name, struct amp_error *err)
{
    if (unlinkat(r->s.journal, name, 0) < 0 && errno != ENOENT)
        return amp_fail_errno(err, AMP_IOERR, "cannot remove the journal");
    return 0;
}

static bool journal_exists(const struct amp_restore *r, const char *name)
{
    return faccessat(r->s.journal, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static int journal_undo(struct amp_restore *r, bool later, struct amp_error *err)
{
    AMP_BUF struct amp_buf text = {0};
    amp_buf_init(&text, JOURNAL_MOST);
    if (journal_read(r, JOURNAL, &text, err) < 0 || steps_undo(r, &text, later, err) < 0)
        return -1;
    /* With files of the stages gone, the steps could not be undone again. */
    if (renameat(r->s.journal, JOURNAL, r->s.journal, DONE) < 0)
        return amp_fail_errno(err, AMP_IOERR, "cannot end the journal");
    return stages_remove(r, err) < 0 ? -1 : journal_drop(r, DONE, err);
}

static int journal_finish(struct amp_restore *r, struct amp_error *err)
{
    AMP_BUF struct amp_buf text = {0};
    amp_buf_init(&text, JOURNAL_MOST);
    if (journal_read(r, DONE, &text, err) < 0 || stages_remove(r, err) < 0)
        return -1;
    return journal_drop(r, DONE, err);
}

static void stages_close(struct amp_restore *r)
{
    for (unsigned i = 0; i < r->n_stages; i++)
        if (r->stage[i].fd >= 0)
            close(r->stage[i].fd);
    r->n_stages = 0;
}

static void restore_free(struct amp_restore *r)
{
    stages_close(r);
    if (r->journal >= 0)
        close(r->journal);
    free(r);
}

int amp_restore_begin(const struct amp_restore_spec *spec, struct amp_restore **out,
                      struct amp_error *err)
{
    struct amp_restore *r = calloc(1, sizeof *r);
    char id[AMP_UUID_MAX];
    if (!r)
        return amp_fail_memory(err);
    r->s = *spec;
    r->journal = -1;
    if ((journal_exists(r, DONE) && journal_finish(r, err) < 0) ||
        (journal_exists(r, JOURNAL) && journal_undo(r, true, err) < 0)) {
        restore_free(r);
        return -1;
    }
    amp_uuid4(id);
    snprintf(r->name, sizeof r->name, STAGE "%s", id);
    r->journal = openat(spec->journal, JOURNAL,
                        O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (r->journal < 0) {
        amp_fail_errno(err, AMP_CANTCREAT, "cannot create the journal");
        restore_free(r);
        return -1;
    }
    *out = r;
    return 0;
}

static int journal_end(struct amp_restore *r, struct amp_error *err)
{
    if ((r->syncs > SYNCS_MOST && syncfs(r->s.root) < 0) ||
        renameat(r->s.journal, JOURNAL, r->s.journal, DONE) < 0)
        return amp_fail_errno(err, AMP_IOERR, "cannot end the journal");
    fsync(r->s.journal); /* if it is lost with the power, another rollback gives the same files */
    return 0;
}

int amp_restore_end(struct amp_restore *r, bool keep, struct amp_error *err)
{
    struct amp_error late;
    int rc = 0;
    if (!r)
        return 0;
    if (keep && journal_end(r, err) == 0) {
        rc = stages_remove(r, err) < 0 || journal_drop(r, DONE, err) < 0;
    } else {
        stages_close(r);
        if (journal_undo(r, false, &late) < 0) {
            rc = -1;
            if (err)
                *err = late;
        } else if (keep) {
            rc = -1; /* err says why it could not be kept */
        }
    }
    restore_free(r);
    return rc;
}

/* ---- the work of one tree ---- */

struct work {
    struct amp_restore *r;
    const struct amp_tree *want;
    int contents;
    struct amp_tree now;
    uint64_t *file; /* for each entry of want: its file in a stage + 1, 0: none */
    unsigned *stage;
    struct amp_error *err;
};

static void work_release(struct work *w)
{
    amp_tree_release(&w->now);
    free(w->file);
    free(w->stage);
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

static int now_read(struct work *w)
{
    struct amp_tree_scan scan = {.root = w->r->s.root,
                                 .skip = now_skip,
                                 .ctx = w,
                                 .contents = -1,
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
    if (r->n_stages == STAGES_MOST)
        return amp_fail(w->err, AMP_NO, "tree_limit", "more than %d file systems", STAGES_MOST);
    /* In the root if it can be, so that the directory is not part of a tree that is compared. */
    struct stat root;
    if (fstat(r->s.root, &root) == 0 && root.st_dev == st.st_dev)
        amp_span_copy(AMP_SPAN("."), above, sizeof above);
    int n = strcmp(above, ".") == 0 ? snprintf(text, sizeof text, "%s", r->name)
                                    : snprintf(text, sizeof text, "%s/%s", above, r->name);
    if (n < 0 || (size_t)n >= sizeof text)
        return amp_fail(w->err, AMP_NO, "tree_limit", "%.200s…: the path is too long", path);
    struct stage *g = &r->stage[r->n_stages];
    if (note(r, w->err, "S %u %llu %s", r->n_stages, (unsigned long long)st.st_dev, text) < 0)
        return -1;
    AMP_CLOSE int above_fd = -1;
    const char *name = amp_tree_above(r->s.root, text, &above_fd);
    if (!name || mkdirat(above_fd, name, 0700) < 0)
        return amp_fail_errno(w->err, AMP_CANTCREAT, "cannot create %s", text);
    *g = (struct stage){
        .dev = st.st_dev,
        .fd = openat(above_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)};
    if (g->fd < 0)
        return amp_fail_errno(w->err, AMP_IOERR, "cannot open %s", text);
    amp_span_copy(amp_span_str(text), g->path, sizeof g->path);
    return (int)r->n_stages++;
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
    return to < 0 || amp_tree_copy(from, to, e->size) < 0 || fchmod(to, e->mode) < 0 ||
                   futimens(to, times) < 0 || file_sync(w->r, to) < 0
               ? amp_fail_errno(w->err, AMP_IOERR, "%s: cannot write", e->path)
               : 0;
}

static int link_write(struct work *w, const struct amp_tree_entry *e, int stage, const char *name)
{
    return symlinkat(e->target, stage, name) < 0 || time_set(stage, name, e->mtime) < 0
               ? amp_fail_errno(w->err, AMP_IOERR, "%s: cannot make the link", e->path)
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
    int rc = e->type == AMP_TREE_FILE   ? file_write(w, e, fd, name)
             : e->type == AMP_TREE_LINK ? link_write(w, e, fd, name)
             : mkdirat(fd, name, 0700)
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
    return c->type == e->type && strcmp(c->sum, e->sum) == 0;
}

static int all_write(struct work *w)
{
    const char *gone = NULL;
    for (size_t i = 0; i < w->want->n; i++) {
        const struct amp_tree_entry *e = &w->want->v[i], *c = entry_now(w, e->path, gone);
        if (!is_there(e) || e->type == AMP_TREE_SPECIAL || (c && contents_same(e, c)))
            continue;
        if (w->r->s.stop && *w->r->s.stop)
            return amp_fail(w->err, AMP_INTERRUPTED, "interrupted", "interrupted");
        if (strcmp(e->path, ".") == 0)
            return amp_fail(w->err, AMP_IOERR, "not_beneath", "the directory is gone");
        if (entry_write(w, i) < 0)
            return -1;
        if (!gone || !is_within(e->path, gone))
            gone = e->path;
    }
    return 0;
}

/* Makes a directory of ours writable, which the end of the work undoes for one that is wanted. */
static int above_open(struct work *w, const char *path, int *dir, const char **name)
{
    struct stat st;
    *name = amp_tree_above(w->r->s.root, path, dir);
    if (!*name || fstat(*dir, &st) < 0)
        return amp_fail_errno(w->err, AMP_IOERR, "%s: cannot open the directory above", path);
    if ((st.st_mode & 0300) == 0300 || geteuid() == 0 || !parent_of(w->want, path))
        return 0;
    char above[PATH_MAX] = ".";
    if (*name > path)
        amp_span_copy((struct amp_span){path, (size_t)(*name - path - 1)}, above, sizeof above);
    if (note(w->r, w->err, "M %o %llu %s", st.st_mode & 07777, (unsigned long long)st.st_ino,
             above) < 0)
        return -1;
    char proc[64];
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
    return note(w->r, w->err, "M %o %llu %s", st.st_mode & 07777, (unsigned long long)st.st_ino,
                path) < 0
               ? -1
           : mode_set(dir, name, (st.st_mode & 07777) | 0700) < 0
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
    if (note(w->r, w->err, "O %d %llu %s", stage, n, path) < 0)
        return -1;
    if (renameat2(dir, name, w->r->stage[stage].fd, file, RENAME_NOREPLACE) < 0)
        return errno == ENOENT ? 0 : rename_fail(path, w->err);
    return dir_sync(w->r, dir) < 0 ? amp_fail_errno(w->err, AMP_IOERR, "%s: cannot sync", path) : 0;
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
    int rc = c ? note(w->r, w->err, "X %u %llu %llu %s", w->stage[i], n,
                      (unsigned long long)st.st_ino, e->path)
               : note(w->r, w->err, "I %u %llu %s", w->stage[i], n, e->path);
    if (rc < 0)
        return -1;
    return renameat2(stage, file, dir, name, c ? RENAME_EXCHANGE : RENAME_NOREPLACE) < 0 ||
                   dir_sync(w->r, dir) < 0
               ? rename_fail(e->path, w->err)
               : 0;
}

/* The permissions and the time of a file or directory, if they differ. */
static int meta_set(struct work *w, const struct amp_tree_entry *e)
{
    AMP_CLOSE int dir = -1;
    struct stat st;
    bool root = strcmp(e->path, ".") == 0;
    const char *name = root ? "." : amp_tree_above(w->r->s.root, e->path, &dir);
    int at = root ? w->r->s.root : dir;
    if (!name || fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return amp_fail_errno(w->err, AMP_IOERR, "%s: cannot open", e->path);
    if (e->type != AMP_TREE_LINK && (st.st_mode & 07777) != e->mode) {
        if (note(w->r, w->err, "M %o %llu %s", st.st_mode & 07777, (unsigned long long)st.st_ino,
                 e->path) < 0)
            return -1;
        if (mode_set(at, name, e->mode) < 0)
            return amp_fail_errno(w->err, AMP_IOERR, "%s: cannot change the permissions", e->path);
    }
    if (e->type == AMP_TREE_WAY ||
        (st.st_mtim.tv_sec == e->mtime.tv_sec && st.st_mtim.tv_nsec == e->mtime.tv_nsec))
        return 0;
    if (note(w->r, w->err, "T %lld %ld %llu %s", (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec,
             (unsigned long long)st.st_ino, e->path) < 0)
        return -1;
    return time_set(at, name, e->mtime) < 0
               ? amp_fail_errno(w->err, AMP_IOERR, "%s: cannot set the time", e->path)
               : 0;
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
    const char *gone = NULL;
    if (extras_displace(w) < 0)
        return -1;
    for (size_t i = 0; i < w->want->n; i++) {
        const struct amp_tree_entry *e = &w->want->v[i], *c = entry_now(w, e->path, gone);
        if (w->r->s.stop && *w->r->s.stop)
            return amp_fail(w->err, AMP_INTERRUPTED, "interrupted", "interrupted");
        if (!w->file[i])
            continue;
        if (path_install(w, i, c) < 0)
            return -1;
        if (!gone || !is_within(e->path, gone))
            gone = e->path;
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
    w.file = calloc(want->n + 1, sizeof *w.file);
    w.stage = calloc(want->n + 1, sizeof *w.stage);
    if (!w.file || !w.stage)
        return amp_fail_memory(err);
    return now_read(&w) < 0 || all_write(&w) < 0 || all_move(&w) < 0 ? -1 : all_compare(&w);
}
