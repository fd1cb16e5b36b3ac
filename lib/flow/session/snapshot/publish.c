/*
 * What people find at a snapshot_path. It is written beside its place and renamed. STATE/snapshots/
 * at/ has the digests of what was written to a path, so that something else is never replaced.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/file.h>
#include <amp/base/id.h>
#include <amp/json/writer.h>

#include "base/grow.h"
#include "flow/session/snapshot/private.h"
#include "worktree/snapshot/restore.h"

#define DENIED   AMP_NOPERM, "E_PERMISSION_DENIED"
#define TREE_MAX ((size_t)1 << 30)
#define NOTE_MAX 512

static int base_open(const struct amp_shot *s, const struct amp_shot_output *o,
                     struct amp_error *err)
{
    char kept[PATH_MAX];
    snprintf(kept, sizeof kept, "%.*s/snapshots/kept", PATH_MAX - 32, s->of->state);
    if (o->in_state && amp_mkdirs(kept, 0700, err) < 0)
        return -1;
    const char *path = o->in_state ? kept : s->home;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? amp_fail_errno(err, AMP_IOERR, "%s", path) : fd;
}

static int path_fail(const struct amp_shot_output *o, struct amp_error *err)
{
    int sys = errno;
    if (sys == ELOOP || sys == ENOTDIR || sys == EXDEV)
        return amp_fail(err, DENIED, "snapshot_path %.200s: leads through %s", o->shown,
                        sys == ENOTDIR ? "a file" : "a link");
    if (sys == EACCES || sys == EPERM || sys == EROFS)
        return amp_fail(err, DENIED, "snapshot_path %.200s: %s", o->shown, strerror(sys));
    return amp_fail_errno(err, AMP_CANTCREAT, "snapshot_path %.200s", o->shown);
}

/* Makes the directories above the path, and notes those that were missing. */
static int above_make(struct amp_shot *s, const struct amp_shot_output *o, int base,
                      struct amp_error *err)
{
    char path[PATH_MAX];
    for (const char *end = o->shown_at; (end = strchr(end, '/')); end++) {
        amp_span_copy((struct amp_span){o->shown_at, (size_t)(end - o->shown_at)}, path,
                      sizeof path);
        AMP_CLOSE int fd = amp_open_beneath(base, path, O_PATH | O_DIRECTORY, 0, NULL), dir = -1;
        if (fd >= 0)
            continue;
        const char *name = errno == ENOENT ? amp_tree_above(base, path, &dir) : NULL;
        if (!name || mkdirat(dir, name, 0755) < 0)
            return path_fail(o, err);
        if (o->in_state)
            continue;
        if (amp_grow(&s->made, &s->cap_made, s->n_made, sizeof *s->made, err) < 0)
            return -1;
        if (!(s->made[s->n_made] = strdup(path)))
            return amp_fail_memory(err);
        s->n_made++;
    }
    return 0;
}

void amp_shot_unmake(struct amp_shot *s)
{
    AMP_CLOSE int base = open(s->home, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    while (s->n_made > 0) {
        AMP_CLOSE int dir = -1;
        const char *name = amp_tree_above(base, s->made[--s->n_made], &dir);
        if (name)
            unlinkat(dir, name, AT_REMOVEDIR);
        free(s->made[s->n_made]);
    }
}

/* ---- what was written before ---- */

static int note_name(const struct amp_shot *s, const struct amp_shot_output *o, char *out,
                     size_t size, struct amp_error *err)
{
    char text[2 * PATH_MAX], dir[PATH_MAX], real[PATH_MAX], sum[AMP_SHA256_MAX];
    if (!realpath(o->in_state ? s->of->state : s->home, real))
        return amp_fail_errno(err, AMP_IOERR, "%s", s->home);
    snprintf(text, sizeof text, "%s/%s", real, o->shown_at);
    amp_sha256_hex(amp_span_str(text), sum);
    snprintf(dir, sizeof dir, "%.*s/snapshots/at", PATH_MAX - 128, s->of->state);
    if (amp_mkdirs(dir, 0700, err) < 0)
        return -1;
    int n = snprintf(out, size, "%s/%s", dir, sum);
    return n >= 0 && (size_t)n < size
               ? 0
               : amp_fail(err, AMP_USAGE, "bad_path", "%.200s…: the path is too long", dir);
}

/* 1: something is there; *out is its digest, or "" if it is larger than any snapshot. */
static int there_digest(int dir, const char *name, char out[AMP_TREE_DIGEST_MAX],
                        struct amp_error *err)
{
    AMP_CLEANUP(amp_tree_release) struct amp_tree t = {0};
    struct amp_tree_scan scan = {.root = dir,
                                 .contents = -1,
                                 .files = AMP_SHOT_FILES,
                                 .bytes = 2 * AMP_SHOT_BYTES, /* a difference has more than files */
                                 .specials = true,
                                 .lenient = true};
    struct amp_error why;
    out[0] = '\0';
    if (amp_tree_add(&scan, name, &t, &why) < 0)
        return strcmp(why.code, "tree_limit") == 0
                   ? 1
                   : amp_fail_again(err, why.status, "snapshot_path", &why);
    amp_tree_sort(&t);
    for (size_t i = 0; i < t.n; i++) /* whatever it is called */
        memmove(t.v[i].path, t.v[i].path + strlen(name), strlen(t.v[i].path + strlen(name)) + 1);
    amp_tree_digest(&t, out);
    return t.v[0].type != AMP_TREE_ABSENT;
}

static int other_fail(const struct amp_shot_output *o, struct amp_error *err)
{
    return amp_fail(err, DENIED,
                    "snapshot_path %.200s: there is something else than an unchanged snapshot; "
                    "remove it or name another path",
                    o->shown);
}

static int output_check(struct amp_shot *s, const struct amp_shot_output *o, struct amp_error *err)
{
    AMP_CLOSE int base = base_open(s, o, err), dir = -1;
    AMP_BUF struct amp_buf known = {0};
    char note[PATH_MAX], digest[AMP_TREE_DIGEST_MAX];
    struct amp_error none;
    amp_buf_init(&known, NOTE_MAX);
    if (base < 0 || above_make(s, o, base, err) < 0)
        return -1;
    const char *name = amp_tree_above(base, o->shown_at, &dir);
    if (!name)
        return path_fail(o, err);
    int there = there_digest(dir, name, digest, err);
    if (there <= 0)
        return there;
    if (note_name(s, o, note, sizeof note, err) < 0)
        return -1;
    if (*digest && amp_file_read(AT_FDCWD, note, NOTE_MAX, &known, &none) == 0 && known.len &&
        strstr(known.data, digest))
        return 0;
    return other_fail(o, err);
}

int amp_shot_publish_check(struct amp_shot *s, struct amp_error *err)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->v[i].shown_at && output_check(s, &s->v[i], err) < 0)
            return -1;
    return 0;
}

/* ---- writing ---- */

static int node_write(const struct amp_tree_entry *e, int contents, int dir, const char *name,
                      struct amp_error *err)
{
    const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, e->mtime};
    int rc = -1;
    if (e->type == AMP_TREE_LINK) {
        rc = symlinkat(e->target, dir, name);
    } else if (e->type == AMP_TREE_DIR) {
        rc = mkdirat(dir, name, 0700);
    } else {
        AMP_CLOSE int from = openat(contents, e->sum, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
        AMP_CLOSE int to =
            openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
        rc = from < 0 || to < 0 || amp_tree_copy(from, to, e->size) < 0 ||
                     fchmod(to, e->mode & 0777) < 0
                 ? -1
                 : 0;
    }
    if (rc == 0 && e->type != AMP_TREE_DIR)
        rc = utimensat(dir, name, times, AT_SYMLINK_NOFOLLOW);
    return rc ? amp_fail_errno(err, AMP_IOERR, "cannot write the snapshot of %s", e->path) : 0;
}

/* The part of an entry's path below `below`; "." for itself; NULL: it is elsewhere. */
static const char *rest_of(const char *path, const char *below)
{
    size_t n = strlen(below);
    if (strcmp(path, below) == 0)
        return ".";
    if (strcmp(below, ".") == 0)
        return path;
    return strncmp(path, below, n) == 0 && path[n] == '/' ? path + n + 1 : NULL;
}

static int entry_write(const struct amp_tree_entry *e, const char *rest, int contents, int root,
                       struct amp_error *err)
{
    AMP_CLOSE int above = -1;
    const char *name = amp_tree_above(root, rest, &above);
    return name ? node_write(e, contents, above, name, err)
                : amp_fail_errno(err, AMP_IOERR, "cannot write the snapshot of %s", e->path);
}

static int directory_end(const struct amp_tree_entry *e, const char *rest, int root,
                         struct amp_error *err)
{
    const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, e->mtime};
    AMP_CLOSE int fd = amp_open_beneath(root, rest, O_RDONLY | O_DIRECTORY, 0, NULL);
    return fd < 0 || fchmod(fd, e->mode & 0777) < 0 || futimens(fd, times) < 0
               ? amp_fail_errno(err, AMP_IOERR, "cannot write the snapshot of %s", e->path)
               : 0;
}

/* The entry at `below` and what is in it, as `name` in dir. 1: it does not exist. */
static int copy_write(const struct amp_tree *t, const char *below, int contents, int dir,
                      const char *name, struct amp_error *err)
{
    const struct amp_tree_entry *top = amp_tree_find(t, below), *end = t->v + t->n;
    const char *rest;
    if (!top || top->type == AMP_TREE_ABSENT)
        return 1;
    if (node_write(top, contents, dir, name, err) < 0)
        return -1;
    if (top->type != AMP_TREE_DIR)
        return 0;
    AMP_CLOSE int root = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (root < 0)
        return amp_fail_errno(err, AMP_IOERR, "cannot open %s", name);
    for (const struct amp_tree_entry *e = t->v; e < end; e++)
        if (e != top && strchr("fld", e->type) && (rest = rest_of(e->path, below)) &&
            entry_write(e, rest, contents, root, err) < 0)
            return -1;
    /* The permissions and times of directories, from the inside out. */
    for (const struct amp_tree_entry *e = end; e-- > t->v;)
        if (e->type == AMP_TREE_DIR && (rest = rest_of(e->path, below)) &&
            directory_end(e, rest, root, err) < 0)
            return -1;
    return 0;
}

/* A new file, open for writing. */
static int file_make(int dir, const char *name, struct amp_error *err)
{
    int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
    return fd < 0 ? amp_fail_errno(err, AMP_CANTCREAT, "cannot create %s", name) : fd;
}

static int head_write(const struct amp_shot *s, const struct amp_shot_output *o,
                      struct amp_buf *out, struct amp_error *err)
{
    struct amp_jw w;
    char path[PATH_MAX], ref[600];
    struct amp_git_snapshot args;
    amp_shot_args(s, o->kind, "", path, ref, &args);
    amp_jw_init(&w, out);
    amp_jw_open(&w, '{');
    amp_jw_member_text(&w, "strategy", amp_shot_strategy(o->kind));
    amp_jw_member_text(&w, "session_id", s->of->session);
    amp_jw_member_text(&w, "task_id", s->of->task);
    amp_jw_member_int(&w, "attempt", s->of->attempt);
    amp_jw_member_text(&w, "path", o->path);
    amp_jw_some_str(&w, "repository", amp_span_str(s->gitdir));
    if (*s->oid[o->kind]) {
        amp_jw_member_text(&w, "ref", ref);
        amp_jw_member_text(&w, "commit", s->oid[o->kind]);
    }
    amp_jw_member_text(&w, "digest", s->digest[o->kind]);
    amp_jw_close(&w, '}');
    return amp_jw_end_line(&w, err);
}

static int stash_write(const struct amp_shot *s, const struct amp_shot_output *o, int dir,
                       const char *name, struct amp_error *err)
{
    AMP_BUF struct amp_buf text = {0};
    amp_buf_init(&text, 1 << 16);
    if (head_write(s, o, &text, err) < 0)
        return -1;
    AMP_CLOSE int fd = file_make(dir, name, err);
    return fd < 0 ? -1 : amp_write_all(fd, amp_buf_span(&text), err);
}

/* The head, the list, an empty line, and what HEAD does not have: "SUM SIZE", LF, bytes, LF. */
static int diff_write(const struct amp_shot *s, const struct amp_shot_output *o,
                      const struct amp_tree *t, int contents, int dir, const char *name,
                      struct amp_error *err)
{
    AMP_BUF struct amp_buf text = {0};
    char last[AMP_TREE_SUM_MAX] = "";
    amp_buf_init(&text, TREE_MAX);
    AMP_CLOSE int fd = file_make(dir, name, err);
    if (fd < 0 || head_write(s, o, &text, err) < 0 || amp_tree_write(t, &text, err) < 0 ||
        amp_buf_str(&text, "\n", err) < 0 || amp_write_all(fd, amp_buf_span(&text), err) < 0)
        return -1;
    for (const struct amp_tree_entry *e = t->v; e < t->v + t->n; e++) {
        AMP_CLOSE int from = e->type != AMP_TREE_FILE || strcmp(e->sum, last) == 0
                                 ? -1
                                 : openat(contents, e->sum, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
        if (from < 0)
            continue; /* HEAD has it */
        amp_buf_reset(&text);
        amp_span_copy(amp_span_str(e->sum), last, sizeof last);
        if (amp_buf_fmt(&text, err, "%s %lld\n", e->sum, (long long)e->size) < 0 ||
            amp_write_all(fd, amp_buf_span(&text), err) < 0)
            return -1;
        if (amp_tree_copy(from, fd, e->size) < 0)
            return amp_fail_errno(err, AMP_IOERR, "cannot write %s", name);
        if (amp_write_all(fd, AMP_SPAN("\n"), err) < 0)
            return -1;
    }
    return 0;
}

static int note_write(const struct amp_shot *s, const struct amp_shot_output *o, const char *one,
                      const char *two, struct amp_error *err)
{
    char name[PATH_MAX], text[NOTE_MAX];
    if (note_name(s, o, name, sizeof name, err) < 0)
        return -1;
    snprintf(text, sizeof text, "%s\n%s\n", one, two);
    return amp_file_write_atomic(AT_FDCWD, name, 0600, amp_span_str(text), err);
}

/* Puts what was written into place; what is there is an earlier snapshot. */
static int output_place(const struct amp_shot *s, const struct amp_shot_output *o, int dir,
                        const char *from, const char *name, struct amp_error *err)
{
    char was[AMP_TREE_DIGEST_MAX], now[AMP_TREE_DIGEST_MAX];
    int there = there_digest(dir, name, was, err);
    if (there > 0 && !*was)
        return other_fail(o, err);
    if (there < 0 || there_digest(dir, from, now, err) < 0 ||
        note_write(s, o, now, there ? was : "", err) < 0)
        return -1;
    int rc = there ? renameat2(dir, from, dir, name, RENAME_EXCHANGE)
                   : amp_restore_move(dir, from, dir, name);
    if (rc < 0 && there && errno == EINVAL) { /* a file system without this */
        if (amp_restore_remove(dir, name, err) < 0)
            return -1;
        rc = amp_restore_move(dir, from, dir, name);
        there = false;
    }
    if (rc < 0)
        return path_fail(o, err);
    if (!there)
        return 0;
    /* Written meanwhile: it goes back, and the caller removes the snapshot. */
    if (there_digest(dir, from, now, err) < 0 || strcmp(now, was) != 0)
        return renameat2(dir, from, dir, name, RENAME_EXCHANGE) < 0 ? path_fail(o, err)
                                                                    : other_fail(o, err);
    return amp_restore_remove(dir, from, err);
}

/* The entries of one output, which belong to the tree of all. */
static int part_write(const struct amp_shot *s, const struct amp_shot_output *o,
                      const struct amp_tree *t, int contents, int dir, const char *name,
                      struct amp_error *err)
{
    struct amp_tree part = {.v = calloc(t->n + 1, sizeof *part.v)};
    if (!part.v)
        return amp_fail_memory(err);
    for (size_t i = 0; i < t->n; i++)
        if (rest_of(t->v[i].path, o->below))
            part.v[part.n++] = t->v[i];
    int rc = diff_write(s, o, &part, contents, dir, name, err);
    free(part.v);
    return rc;
}

/* The same for each attempt, so that the next one removes what a killed one left. */
static void temporary_name(const struct amp_shot *s, const struct amp_shot_output *o, char *out,
                           size_t size)
{
    char text[3 * PATH_MAX], sum[AMP_SHA256_MAX];
    snprintf(text, sizeof text, "%s\n%s\n%s\n%s", s->of->state, s->of->session, s->of->task,
             o->shown_at);
    amp_sha256_hex(amp_span_str(text), sum);
    snprintf(out, size, ".amp-snapshot-%s", sum);
}

static int output_publish(const struct amp_shot *s, const struct amp_shot_output *o,
                          const struct amp_tree *t, struct amp_error *err)
{
    AMP_CLOSE int base = base_open(s, o, err), dir = -1, contents = -1;
    char temporary[96], path[64];
    struct amp_error none;
    if (base < 0)
        return -1;
    const char *name = amp_tree_above(base, o->shown_at, &dir);
    if (!name)
        return path_fail(o, err);
    snprintf(path, sizeof path, "%s/contents", amp_shot_name(o->kind));
    contents = openat(s->fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (contents < 0)
        return amp_fail_errno(err, AMP_IOERR, "%s/%s", s->dir, path);
    temporary_name(s, o, temporary, sizeof temporary);
    if (amp_restore_remove(dir, temporary, err) < 0)
        return -1;
    int rc = o->kind == AMP_SHOT_COPY   ? copy_write(t, o->below, contents, dir, temporary, err)
             : o->kind == AMP_SHOT_DIFF ? part_write(s, o, t, contents, dir, temporary, err)
                                        : stash_write(s, o, dir, temporary, err);
    if (rc == 0)
        rc = output_place(s, o, dir, temporary, name, err);
    if (rc < 0)
        amp_restore_remove(dir, temporary, &none);
    return rc < 0 ? -1 : 0;
}

int amp_shot_publish(struct amp_shot *s, const struct amp_tree *trees, struct amp_error *err)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->v[i].shown_at && output_publish(s, &s->v[i], &trees[s->v[i].kind], err) < 0)
            return -1;
    return 0;
}
