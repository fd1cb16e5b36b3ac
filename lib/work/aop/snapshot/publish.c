/*
 * Writes what people find at a snapshot_path. It is written beside its place and renamed.
 * STATE/snapshots/ at/ has the digests of what was written to a path, so that something else is
 * never replaced.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/file.h>
#include <amp/base/id.h>

#include "base/codes.h"
#include "work/aop/snapshot/private.h"
#include "work/git/snapshot/path.h"

static int home_open(const struct amp_shot *s, struct amp_error *err)
{
    int fd = open(s->home, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? amp_fail_errno(err, AMP_IOERR, "%s", s->home) : fd;
}

static int path_fail(const struct amp_shot_output *o, struct amp_error *err)
{
    int sys = errno;
    if (sys == ELOOP || sys == ENOTDIR || sys == EXDEV)
        return amp_fail(err, AMP_NOPERM, E_PERMISSION_DENIED,
                        "snapshot_path %.200s: leads through %s", o->shown,
                        sys == ENOTDIR ? "a file" : "a link");
    if (sys == EACCES || sys == EPERM || sys == EROFS)
        return amp_fail(err, AMP_NOPERM, E_PERMISSION_DENIED, "snapshot_path %.200s: %s", o->shown,
                        strerror(sys));
    return amp_fail_errno(err, AMP_CANTCREAT, "snapshot_path %.200s", o->shown);
}

static int note_name(const struct amp_shot *s, const struct amp_shot_output *o,
                     char out[PATH_MAX + 128], struct amp_error *err)
{
    char text[2 * PATH_MAX], sum[AMP_SHA256_MAX];
    snprintf(text, sizeof text, "%s/%s", s->home, o->shown_at);
    amp_sha256_hex(amp_span_str(text), sum);
    int at = snprintf(out, PATH_MAX + 128, "%s/snapshots/at", s->of->state);
    if (amp_mkdirs(out, 0700, err) < 0)
        return -1;
    snprintf(out + at, (size_t)(PATH_MAX + 128 - at), "/%s", sum);
    return 0;
}

/* 1: something is there; *out is its digest, or "" if it is larger than any snapshot. */
static int there_digest(int dir, const char *name, char out[AMP_TREE_DIGEST_MAX],
                        struct amp_error *err)
{
    AMP_CLEANUP(amp_tree_release) struct amp_tree t = {0};
    const struct amp_tree_scan scan = {.root = dir,
                                       .contents = -1,
                                       .files = AMP_SHOT_FILES,
                                       .bytes = 2 * AMP_SHOT_BYTES, /* a difference is larger */
                                       .specials = true,
                                       .lenient = true};
    struct amp_error why;
    out[0] = '\0';
    if (amp_tree_add(&scan, name, &t, &why) < 0)
        return amp_code_is(why.code, tree_limit)
                   ? 1
                   : amp_fail_again(err, why.status, "snapshot_path", &why);
    amp_tree_sort(&t);
    for (size_t i = 0; i < t.n; i++) /* whatever it is called */
        memmove(t.v[i].path, t.v[i].path + strlen(name), strlen(t.v[i].path + strlen(name)) + 1);
    amp_tree_digest(&t, out);
    return t.v[0].type != AMP_TREE_ABSENT;
}

/* 1: an unchanged snapshot is there; 0: nothing is. */
static int output_check(const struct amp_shot *s, const struct amp_shot_output *o, int dir,
                        const char *name, struct amp_error *err)
{
    AMP_BUF struct amp_buf known = {.max = AMP_TREE_DIGEST_MAX};
    char note[PATH_MAX + 128], digest[AMP_TREE_DIGEST_MAX];
    struct amp_error none;
    int there = there_digest(dir, name, digest, err);
    if (there <= 0)
        return there;
    if (note_name(s, o, note, err) < 0)
        return -1;
    if (*digest && amp_file_read(AT_FDCWD, note, known.max, &known, &none) == 0 &&
        amp_span_eq(amp_buf_span(&known), amp_span_str(digest)))
        return 1;
    return amp_fail(err, AMP_NOPERM, E_PERMISSION_DENIED,
                    "snapshot_path %.200s: there is something else than an unchanged snapshot; "
                    "remove it or name another path",
                    o->shown);
}

/* All attempts use one name, so that the next one removes what a killed one left. */
static int leftover_remove(const struct amp_shot *s, const struct amp_shot_output *o, int dir,
                           char as[96], struct amp_error *err)
{
    char text[3 * PATH_MAX], sum[AMP_SHA256_MAX];
    snprintf(text, sizeof text, "%s\n%s\n%s\n%s", s->of->state, s->of->session, s->of->task,
             o->shown_at);
    amp_sha256_hex(amp_span_str(text), sum);
    snprintf(as, 96, ".amp-snapshot-%s", sum);
    return amp_restore_remove(dir, as, err);
}

int amp_shot_publish_check(const struct amp_shot *s, struct amp_error *err)
{
    AMP_CLOSE int home = home_open(s, err);
    for (size_t i = 0; home >= 0 && i < s->n; i++) {
        AMP_CLOSE int dir = -1;
        char as[96];
        if (!s->v[i].shown_at)
            continue;
        const char *name = amp_tree_above(home, s->v[i].shown_at, &dir);
        if (!name && errno != ENOENT)
            return path_fail(&s->v[i], err);
        if (name && (leftover_remove(s, &s->v[i], dir, as, err) < 0 ||
                     output_check(s, &s->v[i], dir, name, err) < 0))
            return -1;
    }
    return home < 0 ? -1 : 0;
}

/* Makes the directories above the path, and opens the last of them. */
static const char *above_make(int home, const char *path, int *dir)
{
    char above[PATH_MAX];
    for (const char *end = path; (end = strchr(end, '/')); end++) {
        AMP_CLOSE int fd = -1;
        amp_span_copy((struct amp_span){path, (size_t)(end - path)}, above, sizeof above);
        const char *name = amp_tree_above(home, above, &fd);
        if (!name || (mkdirat(fd, name, 0755) < 0 && errno != EEXIST))
            return NULL;
    }
    return amp_tree_above(home, path, dir);
}

static int copy_write(int from, const char *name, int dir, const char *as, struct amp_error *err)
{
    AMP_CLOSE int in = openat(from, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    AMP_CLOSE int out = openat(dir, as, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
    char sum[AMP_TREE_SUM_MAX];
    int64_t size;
    return in < 0 || out < 0 || amp_tree_copy(in, out, INT64_MAX, NULL, &size, sum) < 0
               ? amp_fail_errno(err, AMP_IOERR, "cannot write %s", as)
               : 0;
}

/* 1: there is nothing to be shown. */
static int output_write(const struct amp_shot *s, const struct amp_shot_output *o,
                        const struct amp_tree *t, int dir, const char *as, struct amp_error *err)
{
    if (o->kind != AMP_SHOT_COPY && *s->oid)
        return copy_write(s->fd, o->kind == AMP_SHOT_DIFF ? AMP_SHOT_PATCH : AMP_SHOT_STASH, dir,
                          as, err);
    AMP_CLOSE int contents =
        openat(s->fd, AMP_SHOT_CONTENTS, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    const struct amp_tree_entry *e = amp_tree_find(t, o->below);
    if (!e || e->type == AMP_TREE_ABSENT)
        return 1;
    return amp_restore_make(t, o->below, contents, 0777, dir, as, err);
}

/* Puts what was written into place, unless something else than a snapshot is there. */
static int output_place(const struct amp_shot *s, const struct amp_shot_output *o, int dir,
                        const char *from, const char *name, struct amp_error *err)
{
    char note[PATH_MAX + 128], digest[AMP_TREE_DIGEST_MAX];
    int there = output_check(s, o, dir, name, err);
    if (there < 0 || (there > 0 && amp_restore_remove(dir, name, err) < 0) ||
        note_name(s, o, note, err) < 0 || there_digest(dir, from, digest, err) < 0 ||
        amp_file_write_atomic(AT_FDCWD, note, 0600, amp_span_str(digest), err) < 0)
        return -1;
    return amp_restore_move(dir, from, dir, name) < 0 ? path_fail(o, err) : 0;
}

static int output_publish(const struct amp_shot *s, const struct amp_shot_output *o,
                          const struct amp_tree *t, int home, struct amp_error *err)
{
    AMP_CLOSE int dir = -1;
    char as[96];
    struct amp_error none;
    const char *name = above_make(home, o->shown_at, &dir);
    if (!name)
        return path_fail(o, err);
    if (leftover_remove(s, o, dir, as, err) < 0)
        return -1;
    int rc = output_write(s, o, t, dir, as, err);
    if (rc == 0)
        rc = output_place(s, o, dir, as, name, err);
    if (rc < 0)
        amp_restore_remove(dir, as, &none);
    return rc < 0 ? -1 : 0;
}

int amp_shot_publish(const struct amp_shot *s, const struct amp_tree *t, struct amp_error *err)
{
    AMP_CLOSE int home = home_open(s, err);
    for (size_t i = 0; home >= 0 && i < s->n; i++)
        if (s->v[i].shown_at && output_publish(s, &s->v[i], t, home, err) < 0)
            return -1;
    return home < 0 ? -1 : 0;
}
