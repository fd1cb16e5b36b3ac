/* The state of files: see tree.h. */
#include "work/git/snapshot/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/file.h>
#include <sodium.h>

#include "base/codes.h"
#include "base/grow.h"
#include "work/git/snapshot/path.h"

enum { TRIES = 3, DEPTH_MOST = 512 };

static void entry_release(struct amp_tree_entry *e)
{
    free(e->path);
    free(e->target);
}

void amp_tree_release(struct amp_tree *t)
{
    for (size_t i = 0; i < t->n; i++)
        entry_release(&t->v[i]);
    free(t->v);
    *t = (struct amp_tree){0};
}

/* ---- scanning ---- */

struct walk {
    const struct amp_tree_scan *s;
    struct amp_tree *t;
    char path[PATH_MAX];
    unsigned depth;
    struct amp_error *err;
};

static int walk_fail(struct walk *w, const char *what)
{
    return amp_fail_errno(w->err, AMP_IOERR, "%s: %s", w->path, what);
}

static struct amp_tree_entry *entry_add(struct walk *w, char type, const struct stat *st)
{
    struct amp_tree *t = w->t;
    if (w->s->stop && *w->s->stop) {
        amp_fail(w->err, AMP_INTERRUPTED, interrupted, "%s: interrupted", w->path);
        return NULL;
    }
    if (w->s->files && (int64_t)t->n >= w->s->files) {
        amp_fail(w->err, AMP_NO, tree_limit, "more than %lld files", (long long)w->s->files);
        return NULL;
    }
    if (amp_grow(&t->v, &t->cap, t->n, sizeof *t->v, w->err) < 0)
        return NULL;
    struct amp_tree_entry *e = &t->v[t->n];
    *e = (struct amp_tree_entry){.type = type, .path = strdup(w->path)};
    if (!e->path) {
        amp_fail_memory(w->err);
        return NULL;
    }
    if (st) {
        e->mode = st->st_mode & 07777;
        e->mtime = st->st_mtim;
        e->ctime = st->st_ctim;
        e->ino = st->st_ino;
    }
    t->n++;
    return e;
}

/* Adds an entry that has vanished since its name was read, only if it was asked for itself. */
static int gone_add(struct walk *w)
{
    return w->depth > 0 || entry_add(w, AMP_TREE_ABSENT, NULL) ? 0 : -1;
}

static void sum_text(const void *p, size_t n, char out[AMP_TREE_SUM_MAX])
{
    unsigned char sum[crypto_hash_sha256_BYTES];
    crypto_hash_sha256(sum, p, n);
    sodium_bin2hex(out, AMP_TREE_SUM_MAX, sum, sizeof sum);
}

static int link_add(struct walk *w, int dir, const char *name, const struct stat *st)
{
    char target[PATH_MAX];
    ssize_t n = readlinkat(dir, name, target, sizeof target - 1);
    if (n < 0)
        return walk_fail(w, "cannot read the link");
    target[n] = '\0';
    struct amp_tree_entry *e = entry_add(w, AMP_TREE_LINK, st);
    if (!e)
        return -1;
    e->mode = 0777;
    e->size = n;
    sum_text(target, (size_t)n, e->sum);
    e->target = strdup(target);
    return e->target ? 0 : amp_fail_memory(w->err);
}

static bool stat_same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_mode == b->st_mode && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
           a->st_mtim.tv_nsec == b->st_mtim.tv_nsec && a->st_ctim.tv_sec == b->st_ctim.tv_sec &&
           a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

/* Hashes a file of so many bytes, and writes it to `out` unless that is -1. */
static int contents_read(struct walk *w, int fd, int64_t now, int out, int64_t *size,
                         char sum[AMP_TREE_SUM_MAX])
{
    int64_t room = w->s->bytes ? w->s->bytes - w->t->bytes : INT64_MAX;
    if (now > room)
        return amp_fail(w->err, AMP_NO, tree_limit, "more than %lld bytes", (long long)w->s->bytes);
    if (amp_tree_copy(fd, out, now, w->s->stop, size, sum) == 0)
        return 0;
    return w->s->stop && *w->s->stop
               ? amp_fail(w->err, AMP_INTERRUPTED, interrupted, "%s: interrupted", w->path)
               : walk_fail(w, "cannot read, or save, the contents");
}

/* Saves the contents under their sum. */
static int contents_save(struct walk *w, int fd, int64_t now, int64_t *size,
                         char sum[AMP_TREE_SUM_MAX])
{
    static const char temporary[] = "new";
    AMP_CLOSE int out = openat(w->s->contents, temporary,
                               O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (out < 0)
        return walk_fail(w, "cannot save the contents");
    if (contents_read(w, fd, now, out, size, sum) < 0)
        return -1;
    if (w->t->n < AMP_TREE_SYNCS && fsync(out) < 0)
        return walk_fail(w, "cannot sync the contents");
    return renameat(w->s->contents, temporary, w->s->contents, sum)
               ? walk_fail(w, "cannot save the contents")
               : 0;
}

/* 1: the file changed meanwhile. */
static int contents_take(struct walk *w, int fd, struct stat *st, char sum[AMP_TREE_SUM_MAX])
{
    struct stat after;
    int64_t size;
    if (fstat(fd, st) < 0)
        return walk_fail(w, "cannot read");
    if ((w->s->contents < 0 ? contents_read(w, fd, st->st_size, -1, &size, sum)
                            : contents_save(w, fd, st->st_size, &size, sum)) < 0)
        return -1;
    if (fstat(fd, &after) < 0)
        return walk_fail(w, "cannot read");
    return !stat_same(st, &after) || size != st->st_size;
}

static int unreadable_add(struct walk *w, const struct stat *st)
{
    if (!w->s->lenient)
        return amp_fail(w->err, AMP_NOPERM, unreadable, "%s: permission denied", w->path);
    return entry_add(w, AMP_TREE_UNREADABLE, st) ? 0 : -1;
}

static int changing_add(struct walk *w, const struct stat *st)
{
    struct amp_tree_entry *e = NULL;
    if (!w->s->hash_bytes)
        return amp_fail(w->err, AMP_TEMPFAIL, file_changing, "%s: changes while it is read",
                        w->path);
    if ((e = entry_add(w, AMP_TREE_UNHASHED, st)))
        e->size = st->st_size;
    return e ? 0 : -1;
}

static int file_add(struct walk *w, int dir, const char *name, const struct stat *seen)
{
    char sum[AMP_TREE_SUM_MAX];
    struct stat st = *seen;
    int rc = 1;
    if (w->s->hash_bytes && w->t->bytes + seen->st_size > w->s->hash_bytes)
        return changing_add(w, seen);
    AMP_CLOSE int fd = openat(dir, name, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY);
    if (fd < 0 && errno == EACCES)
        return unreadable_add(w, seen);
    if (fd < 0 && errno == ENOENT)
        return gone_add(w);
    if (fd < 0)
        return walk_fail(w, "cannot read");
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return changing_add(w, seen);
    for (int i = 0; rc > 0 && i < TRIES; i++)
        rc = contents_take(w, fd, &st, sum);
    if (rc > 0)
        return changing_add(w, &st);
    struct amp_tree_entry *e = rc ? NULL : entry_add(w, AMP_TREE_FILE, &st);
    if (!e)
        return -1;
    memcpy(e->sum, sum, sizeof sum);
    e->size = st.st_size;
    w->t->bytes += st.st_size;
    return 0;
}

static int node_add(struct walk *w, int dir, const char *name);

static int name_compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void names_free(char **v, size_t n)
{
    while (n > 0)
        free(v[--n]);
    free(v);
}

/* The names in a directory, sorted, so that the same files give the same order of work. */
static int names_read(struct walk *w, int fd, char ***out, size_t *n)
{
    size_t cap = 0;
    const struct dirent *e = NULL;
    AMP_DIR DIR *d = amp_dir_open(fd, ".");
    *out = NULL;
    *n = 0;
    if (!d)
        return walk_fail(w, "cannot read the directory");
    /* Its names may be more than there is memory for. */
    int64_t most = w->s->files ? w->s->files - (int64_t)w->t->n : INT64_MAX;
    while (errno = 0, (e = readdir(d))) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        if ((int64_t)*n >= most)
            return amp_fail(w->err, AMP_NO, tree_limit, "more than %lld files",
                            (long long)w->s->files);
        if (amp_grow(out, &cap, *n, sizeof **out, w->err) < 0)
            return -1;
        if (!((*out)[*n] = strdup(e->d_name)))
            return amp_fail_memory(w->err);
        ++*n;
    }
    if (errno)
        return walk_fail(w, "cannot read the directory");
    if (*n)
        qsort(*out, *n, sizeof **out, name_compare);
    return 0;
}

/* Adds the contents of a directory. */
static int below_add(struct walk *w, int fd)
{
    char **names;
    size_t n, at = strlen(w->path);
    bool top = strcmp(w->path, ".") == 0;
    if (w->depth == DEPTH_MOST)
        return amp_fail(w->err, AMP_NO, tree_limit, "%s: more than %d directories deep", w->path,
                        DEPTH_MOST);
    int rc = names_read(w, fd, &names, &n);
    w->depth++;
    for (size_t i = 0; rc == 0 && i < n; i++) {
        int len = snprintf(w->path + (top ? 0 : at), sizeof w->path - (top ? 0 : at), "%s%s",
                           top ? "" : "/", names[i]);
        if (len < 0 || (size_t)len >= sizeof w->path - (top ? 0 : at))
            rc = amp_fail(w->err, AMP_NO, tree_limit, "%.200s…: the path is too long", w->path);
        else
            rc = node_add(w, fd, names[i]);
        if (top)
            w->path[1] = '\0', w->path[0] = '.';
        else
            w->path[at] = '\0';
    }
    w->depth--;
    names_free(names, n);
    return rc;
}

static int dir_add(struct walk *w, int dir, const char *name, const struct stat *seen)
{
    struct stat st;
    AMP_CLOSE int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 && errno == EACCES)
        return unreadable_add(w, seen);
    if (fd < 0 && errno == ENOENT)
        return gone_add(w);
    if (fd < 0 || fstat(fd, &st) < 0)
        return walk_fail(w, "cannot read the directory");
    if ((st.st_mode & 0500) != 0500 && geteuid() != 0) /* listed, but not searched */
        return unreadable_add(w, seen);
    return entry_add(w, AMP_TREE_DIR, &st) ? below_add(w, fd) : -1;
}

/* Adds what is called name in dir; w->path is its path. */
static int node_add(struct walk *w, int dir, const char *name)
{
    struct stat st;
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
        if (errno != ENOENT)
            return walk_fail(w, "cannot read");
        return gone_add(w);
    }
    if (w->s->skip && w->s->skip(w->s->ctx, w->path, &st) == AMP_TREE_LEAVE)
        return 0;
    if (S_ISDIR(st.st_mode))
        return dir_add(w, dir, name, &st);
    if (S_ISREG(st.st_mode))
        return file_add(w, dir, name, &st);
    if (S_ISLNK(st.st_mode))
        return link_add(w, dir, name, &st);
    if (!w->s->specials)
        return amp_fail(w->err, AMP_NOPERM, special_file,
                        "%s: a FIFO, socket or device cannot be recorded", w->path);
    return entry_add(w, AMP_TREE_SPECIAL, &st) ? 0 : -1;
}

static int beneath_fail(const char *path, const char *why, struct amp_error *err)
{
    return amp_fail(err, AMP_NOPERM, not_beneath, "%s: %s", path, why);
}

/* Says what a parent of the path is if it is not a directory. */
static int way_refuse(struct walk *w, int parent, const char *name, int sys)
{
    struct stat st;
    if (sys != ELOOP && sys != ENOTDIR && sys != EXDEV) {
        errno = sys;
        return walk_fail(w, "cannot open");
    }
    if (!w->s->lenient)
        return beneath_fail(w->path, sys == ENOTDIR ? "not a directory" : "a link", w->err);
    /* O_PATH reads nothing, so this is no lack of permission. */
    return fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ? walk_fail(w, "cannot read")
                                                               : node_add(w, parent, name);
}

/* The missing directories from the current one on, and the path itself. */
static int absent_add(struct walk *w, const char *path)
{
    for (const char *end = path + strlen(w->path); *end; end = strchrnul(end + 1, '/')) {
        amp_span_copy((struct amp_span){path, (size_t)(end - path)}, w->path, sizeof w->path);
        if (!entry_add(w, AMP_TREE_NO_WAY, NULL))
            return -1;
    }
    amp_span_copy(amp_span_str(path), w->path, sizeof w->path);
    return entry_add(w, AMP_TREE_ABSENT, NULL) ? 0 : -1;
}

/* The directories above the path. *dir is the last one; 1: the path cannot exist, and its entries
 * are added. */
static int ways_add(struct walk *w, const char *path, int *dir)
{
    const char *name = path;
    for (const char *end = path; (end = strchr(end, '/')); name = ++end) {
        struct stat st;
        amp_span_copy((struct amp_span){path, (size_t)(end - path)}, w->path, sizeof w->path);
        AMP_CLOSE int fd = amp_open_beneath(w->s->root, w->path, O_PATH | O_DIRECTORY, 0, NULL);
        if (fd < 0 && errno == ENOENT)
            return absent_add(w, path) < 0 ? -1 : 1;
        if (fd < 0) {
            char last[NAME_MAX + 1];
            int sys = errno;
            amp_span_copy((struct amp_span){name, (size_t)(end - name)}, last, sizeof last);
            return way_refuse(w, *dir < 0 ? w->s->root : *dir, last, sys) < 0 ? -1 : 1;
        }
        if (fstat(fd, &st) < 0)
            return walk_fail(w, "cannot open");
        if (!entry_add(w, AMP_TREE_WAY, &st))
            return -1;
        if (*dir >= 0)
            close(*dir);
        *dir = fd;
        fd = -1;
    }
    return 0;
}

int amp_tree_add(const struct amp_tree_scan *s, const char *path, struct amp_tree *t,
                 struct amp_error *err)
{
    AMP_FREE struct walk *w = calloc(1, sizeof *w);
    AMP_CLOSE int dir = -1;
    if (!w)
        return amp_fail_memory(err);
    if (!amp_tree_path_valid(path))
        return beneath_fail(path, "not a path below the directory", err);
    *w = (struct walk){.s = s, .t = t, .err = err};
    int rc = ways_add(w, path, &dir);
    if (rc)
        return rc < 0 ? -1 : 0;
    amp_span_copy(amp_span_str(path), w->path, sizeof w->path);
    const char *slash = strrchr(path, '/');
    return node_add(w, dir < 0 ? s->root : dir, slash ? slash + 1 : path);
}

int amp_tree_sync(const struct amp_tree *t, int contents)
{
    return t->n > AMP_TREE_SYNCS ? syncfs(contents) : fsync(contents);
}

/* ---- lists ---- */

/* '/' is before all other bytes, so that what is in a directory comes right after it. */
static int path_order(const char *a, const char *b)
{
    while (*a && *a == *b)
        a++, b++;
    unsigned x = *a == '/' ? 1 : (unsigned char)*a * 2u, y = *b == '/' ? 1 : (unsigned char)*b * 2u;
    return (x > y) - (x < y);
}

static int entry_compare(const void *a, const void *b)
{
    const struct amp_tree_entry *x = a, *y = b;
    int order = path_order(x->path, y->path);
    bool a_less = x->type == AMP_TREE_WAY || x->type == AMP_TREE_UNHASHED;
    return order ? order : a_less - (y->type == AMP_TREE_WAY || y->type == AMP_TREE_UNHASHED);
}

void amp_tree_sort(struct amp_tree *t)
{
    size_t kept = 0;
    if (!t->n)
        return;
    qsort(t->v, t->n, sizeof *t->v, entry_compare);
    for (size_t i = 1; i < t->n; i++) {
        if (strcmp(t->v[kept].path, t->v[i].path) == 0)
            entry_release(&t->v[i]);
        else
            t->v[++kept] = t->v[i];
    }
    t->n = kept + 1;
}

static int path_compare(const void *key, const void *e)
{
    return path_order(key, ((const struct amp_tree_entry *)e)->path);
}

const struct amp_tree_entry *amp_tree_find(const struct amp_tree *t, const char *path)
{
    return t->n ? bsearch(path, t->v, t->n, sizeof *t->v, path_compare) : NULL;
}

bool amp_tree_same(const struct amp_tree_entry *a, const struct amp_tree_entry *b)
{
    if (a->type != b->type)
        return false;
    bool has_mode = a->type == AMP_TREE_FILE || a->type == AMP_TREE_DIR || a->type == AMP_TREE_WAY;
    return (!has_mode || a->mode == b->mode) && strcmp(a->sum, b->sum) == 0;
}

void amp_tree_digest(const struct amp_tree *t, char out[AMP_TREE_DIGEST_MAX])
{
    crypto_hash_sha256_state state;
    unsigned char digest[crypto_hash_sha256_BYTES];
    char head[128];
    crypto_hash_sha256_init(&state);
    for (const struct amp_tree_entry *e = t->v; e < t->v + t->n; e++) {
        if (e->type == AMP_TREE_NO_WAY)
            continue;
        int n = snprintf(head, sizeof head, "%c ", e->type);
        if (e->type == AMP_TREE_FILE || e->type == AMP_TREE_DIR || e->type == AMP_TREE_WAY)
            n += snprintf(head + n, sizeof head - (size_t)n, "%o ", e->mode);
        if (e->sum[0])
            n += snprintf(head + n, sizeof head - (size_t)n, "%s ", e->sum);
        crypto_hash_sha256_update(&state, (unsigned char *)head, (size_t)n);
        crypto_hash_sha256_update(&state, (unsigned char *)e->path, strlen(e->path) + 1);
    }
    crypto_hash_sha256_final(&state, digest);
    sodium_bin2hex(out, AMP_TREE_DIGEST_MAX, digest, sizeof digest);
}
