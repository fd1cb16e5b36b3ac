/* The rollback, its event, and the end of a snapshot. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <amp/base/clock.h>
#include <amp/base/file.h>

#include "flow/session/snapshot/private.h"
#include "protocol/aop/event.h"
#include "worktree/snapshot/restore.h"

#define TREE_MAX ((size_t)1 << 30)
#define LOCK_MS  30000
#define IGNORE   ".gitignore"
#define NOW_MOST 1000000 /* files that are there */
/* Of directories in the workspace: the limit of libgit2. */
#define GIT_DEEPEST 100

void amp_snapshot_result_release(struct amp_snapshot_result *r)
{
    for (size_t i = 0; i < r->n; i++) {
        free(r->v[i].path);
        free(r->v[i].restored_from);
    }
    free(r->v);
    *r = (struct amp_snapshot_result){0};
}

static int result_fill(const struct amp_shot *s, bool restored, struct amp_snapshot_result *out,
                       struct amp_error *err)
{
    out->v = calloc(s->n + 1, sizeof *out->v);
    if (!out->v)
        return amp_fail_memory(err);
    for (size_t i = 0; i < s->n; i++) {
        out->v[i] = (struct amp_snapshot_file){.path = strdup(s->v[i].path),
                                               .restored_from = strdup(s->v[i].shown),
                                               .restored = restored};
        out->n++;
        if (!out->v[i].path || !out->v[i].restored_from)
            return amp_fail_memory(err);
    }
    amp_shot_digest(s, out->digest);
    return 0;
}

/* ---- one strategy ---- */

struct group {
    struct amp_shot *s;
    enum amp_shot_kind k;
    struct amp_tree want;
    int dir, contents;
    char path[PATH_MAX], ref[600], keep[700];
    struct amp_git_snapshot args;
    struct amp_buf repositories;
};

static void group_release(struct group *g)
{
    g->s->repositories = NULL;
    amp_buf_release(&g->repositories);
    amp_tree_release(&g->want);
    if (g->dir >= 0)
        close(g->dir);
    if (g->contents >= 0)
        close(g->contents);
}

/* Reads the list of files; makes the contents that are in the repository files again. */
static int group_open(struct group *g, struct amp_error *err)
{
    struct amp_shot *s = g->s;
    AMP_BUF struct amp_buf text = {0};
    amp_buf_init(&text, TREE_MAX);
    amp_shot_args(s, g->k, "", g->path, g->ref, &g->args);
    snprintf(g->keep, sizeof g->keep, "refs/amp/kept/rollback/%s-%lld", g->ref + 19,
             (long long)amp_now_ms());
    g->args.keep = g->keep;
    g->dir = openat(s->fd, amp_shot_name(g->k), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (g->dir < 0)
        return amp_fail_errno(err, AMP_IOERR, "%s", g->path);
    if (*s->oid[g->k] &&
        (amp_shot_git(s, err) < 0 || amp_git_snapshot_load(s->git, &g->args, err) < 0))
        return -1;
    g->contents = openat(g->dir, "contents", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (g->contents < 0)
        return amp_fail_errno(err, AMP_IOERR, "%s/contents", g->path);
    amp_buf_init(&g->repositories, TREE_MAX);
    if (g->k == AMP_SHOT_STASH &&
        amp_file_read(g->dir, "repositories", TREE_MAX, &g->repositories, err) < 0)
        return -1;
    s->repositories = g->k == AMP_SHOT_STASH ? &g->repositories : NULL;
    if (amp_file_read(g->dir, "tree", TREE_MAX, &text, err) < 0 ||
        amp_tree_read(amp_buf_span(&text), &g->want, err) < 0)
        return -1;
    char digest[AMP_TREE_DIGEST_MAX];
    amp_tree_digest(&g->want, digest);
    return strcmp(digest, s->digest[g->k]) == 0
               ? amp_shot_ways(s, &g->want, err)
               : amp_fail(err, AMP_DATAERR, "snapshot_damaged", "%s/tree is damaged", g->path);
}

/* Adds that the path does not exist; also the directories above. */
static int absent_add(const struct group *g, const char *path, struct amp_tree *out,
                      struct amp_error *err)
{
    static const struct amp_tree none;
    struct amp_tree_scan scan = {.root = g->s->place_fd,
                                 .contents = -1,
                                 .like = &none, /* nothing below it */
                                 .specials = true,
                                 .lenient = true};
    size_t before = out->n;
    if (amp_tree_add(&scan, path, out, err) < 0)
        return -1;
    for (size_t i = before; i < out->n; i++)
        if (strcmp(out->v[i].path, path) == 0) {
            out->v[i].type = AMP_TREE_ABSENT;
            out->v[i].sum[0] = '\0';
        }
    return 0;
}

/* The length of the first one among the directories above the path, and the path, that the tree
 * lacks (or, if `absent`, has as one that does not exist); 0: none. */
static size_t above_find(const struct amp_tree *t, const char *path, bool absent)
{
    char above[PATH_MAX];
    for (const char *end = path; *end;) {
        end = strchrnul(end + 1, '/');
        amp_span_copy((struct amp_span){path, (size_t)(end - path)}, above, sizeof above);
        const struct amp_tree_entry *e = amp_tree_find(t, above);
        if (absent ? e && e->type == AMP_TREE_ABSENT : !e)
            return (size_t)(end - path);
    }
    return 0;
}

/* New directories that have what git cannot read, because it is unreadable or too deep. */
static int unreadable_find(const struct group *g, const struct amp_tree *now, struct amp_tree *out,
                           struct amp_error *err)
{
    char top[PATH_MAX] = "";
    for (size_t i = 0; i < now->n; i++) {
        const char *path = now->v[i].path;
        size_t n = strlen(top);
        if (now->v[i].type != AMP_TREE_UNREADABLE ||
            (n && strncmp(path, top, n) == 0 && path[n] == '/') ||
            !(n = above_find(&g->want, path, false)))
            continue;
        amp_span_copy((struct amp_span){path, n}, top, sizeof top);
        if (absent_add(g, top, out, err) < 0)
            return -1;
    }
    amp_tree_sort(out);
    return 0;
}

/* New files named .gitignore, and new repositories, would hide others from git. A tree in which
 * they, and what git cannot read, do not exist. */
static int rules_find(struct group *g, struct amp_tree *out, struct amp_error *err)
{
    AMP_CLEANUP(amp_tree_release) struct amp_tree now = {0};
    struct amp_tree_scan scan = {.root = g->s->place_fd,
                                 .skip = amp_shot_skip,
                                 .ctx = g->s,
                                 .contents = -1,
                                 .files = NOW_MOST,
                                 .hash_bytes = 1, /* only names are of interest */
                                 .specials = true,
                                 .lenient = true,
                                 .deepest = GIT_DEEPEST,
                                 .stop = g->s->of->stop};
    if (amp_tree_add(&scan, ".", &now, err) < 0)
        return -1;
    amp_tree_sort(&now);
    if (unreadable_find(g, &now, out, err) < 0)
        return -1;
    for (size_t i = 0, n = out->n; i < now.n; i++) {
        const char *path = now.v[i].path, *slash = strrchr(path, '/');
        const char *name = slash ? slash + 1 : path;
        const struct amp_tree gone = {.v = out->v, .n = n};
        if ((strcmp(name, IGNORE) == 0 || strcmp(name, ".git") == 0) &&
            !amp_tree_find(&g->want, path) && !above_find(&gone, path, true) &&
            absent_add(g, path, out, err) < 0)
            return -1;
    }
    amp_tree_sort(out);
    return 0;
}

/* Everything but new files; then git knows which of these are ignored by the old rules. */
static int ignored_find(struct group *g, struct amp_restore *r, struct amp_error *err)
{
    AMP_CLEANUP(amp_tree_release) struct amp_tree rules = {0};
    struct amp_shot *s = g->s;
    if (amp_shot_ignored(s, g->dir, err) < 0 || amp_restore_open(r, &g->want, err) < 0 ||
        rules_find(g, &rules, err) < 0 || amp_restore_apply(r, &rules, g->contents, err) < 0)
        return -1;
    s->only = &g->want;
    int rc = amp_restore_apply(r, &g->want, g->contents, err);
    s->only = NULL;
    if (rc < 0)
        return -1;
    /* The list of the snapshot stays as it was: git-worker writes its list into a directory. */
    char path[PATH_MAX];
    struct amp_git_snapshot args = g->args;
    AMP_CLOSE int fd = -1;
    if (mkdirat(g->dir, "now", 0700) < 0 && errno != EEXIST)
        return amp_fail_errno(err, AMP_CANTCREAT, "%s/now", g->path);
    snprintf(path, sizeof path, "%.*s/now", PATH_MAX - 8, g->path);
    args.dir = path;
    fd = openat(g->dir, "now", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    return fd < 0 || amp_git_snapshot_ignored(s->git, &args, err) < 0
               ? -1
               : amp_shot_ignored(s, fd, err);
}

static int stash_finish(struct group *g, struct amp_error *err)
{
    char digest[AMP_SHA256_MAX];
    if (amp_git_snapshot_reset(g->s->git, &g->args, err) < 0 ||
        amp_git_snapshot_state(g->s->git, &g->args, digest, err) < 0)
        return -1;
    return strcmp(digest, g->s->git_digest) == 0
               ? 0
               : amp_fail(err, AMP_NO, "digest_differs", "the repository changed meanwhile");
}

static int group_restore(struct amp_shot *s, enum amp_shot_kind k, struct amp_restore *r,
                         struct amp_error *err)
{
    AMP_CLEANUP(group_release) struct group g = {.s = s, .k = k, .dir = -1, .contents = -1};
    bool stash = k == AMP_SHOT_STASH;
    s->kind = k;
    if (group_open(&g, err) < 0 || (stash && !s->with_ignored && ignored_find(&g, r, err) < 0) ||
        amp_restore_apply(r, &g.want, g.contents, err) < 0)
        return -1;
    return stash ? stash_finish(&g, err) : 0;
}

static int shot_restore(struct amp_shot *s, struct amp_error *err)
{
    AMP_CLOSE int journal =
        openat(s->fd, "journal", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    struct amp_restore *r = NULL;
    struct amp_error late;
    if (journal < 0)
        return amp_fail_errno(err, AMP_IOERR, "%s/journal", s->dir);
    struct amp_restore_spec spec = {.root = s->place_fd,
                                    .journal = journal,
                                    .skip = amp_shot_skip,
                                    .ctx = s,
                                    .stop = s->of->stop};
    if (amp_restore_begin(&spec, &r, err) < 0)
        return -1;
    int rc = 0;
    for (enum amp_shot_kind k = 0; rc == 0 && k < AMP_SHOT_KINDS; k++)
        rc = s->has[k] ? group_restore(s, k, r, err) : 0;
    if (rc == 0) /* what cannot be removed is removed by the next rollback */
        return amp_restore_end(r, true, err) < 0 ? -1 : 0;
    if (amp_restore_end(r, false, &late) < 0)
        amp_fail(err, AMP_IOERR, "not_undone", "%s; to be completed by another rollback",
                 late.what);
    return -1;
}

static int place_find(struct amp_shot *s, struct amp_error *err)
{
    s->place_fd = open(s->of->place ? s->of->place : s->place,
                       O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (s->place_fd < 0)
        return amp_fail_errno(err, AMP_IOERR, "the workspace %s",
                              s->of->place ? s->of->place : s->place);
    if (s->of->place)
        amp_span_copy(amp_span_str(s->of->place), s->place, sizeof s->place);
    return 0;
}

int amp_snapshot_restore(const struct amp_snapshot_of *of, struct amp_snapshot_result *out,
                         struct amp_error *err)
{
    AMP_CLEANUP(amp_shot_release) struct amp_shot s = {.fd = -1, .place_fd = -1};
    struct amp_error why;
    *out = (struct amp_snapshot_result){0};
    int rc = amp_shot_init(&s, of, &why);
    if (rc == 0 && (rc = amp_shot_read(&s, &why)) > 0)
        return 1;
    AMP_CLOSE int lock =
        s.fd < 0 ? -1 : openat(s.fd, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (rc == 0 && lock < 0)
        rc = amp_fail_errno(&why, AMP_IOERR, "%s/lock", s.dir);
    if (rc == 0)
        rc = amp_lock(lock, LOCK_MS, &why) < 0 || place_find(&s, &why) < 0 ? -1
                                                                           : shot_restore(&s, &why);
    if (result_fill(&s, rc == 0, out, err) < 0)
        return -1;
    if (rc == 0)
        return 0;
    return why.status == AMP_INTERRUPTED
               ? amp_fail_again(err, AMP_INTERRUPTED, "the rollback", &why)
               : amp_fail(err, AMP_NO, "E_ROLLBACK_FAILED", "the rollback failed: %s", why.what);
}

int amp_snapshot_forget(const struct amp_snapshot_of *of, struct amp_error *err)
{
    AMP_CLEANUP(amp_shot_release) struct amp_shot s = {.fd = -1, .place_fd = -1};
    char path[PATH_MAX], ref[600];
    struct amp_git_snapshot args;
    if (amp_shot_init(&s, of, err) < 0)
        return -1;
    int rc = amp_shot_read(&s, err);
    if (rc)
        return rc < 0 ? -1 : 0;
    AMP_CLOSE int lock = openat(s.fd, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (lock < 0)
        return amp_fail_errno(err, AMP_IOERR, "%s/lock", s.dir);
    if (amp_lock(lock, LOCK_MS, err) < 0)
        return -1;
    for (enum amp_shot_kind k = 0; k < AMP_SHOT_KINDS; k++) {
        if (!*s.oid[k])
            continue;
        amp_shot_args(&s, k, "", path, ref, &args);
        args.place = args.dir = NULL;
        if (amp_shot_git(&s, err) < 0 || amp_git_snapshot_drop(s.git, &args, err) < 0)
            return -1;
    }
    char above[PATH_MAX];
    amp_span_copy(amp_span_str(s.dir), above, sizeof above);
    char *slash = strrchr(above, '/');
    *slash = '\0';
    AMP_CLOSE int fd = open(above, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    /* Under the name of an incomplete one, so that a part of it is not taken for a snapshot. */
    snprintf(path, sizeof path, "%s.new", slash + 1);
    if (fd < 0 || amp_restore_remove(fd, path, err) < 0)
        return fd < 0 ? amp_fail_errno(err, AMP_IOERR, "%s", above) : -1;
    if (renameat(fd, slash + 1, fd, path) < 0)
        return amp_fail_errno(err, AMP_IOERR, "%s", s.dir);
    return amp_restore_remove(fd, path, err);
}

int amp_snapshot_event(const struct amp_snapshot_of *of, const struct amp_snapshot_result *r,
                       const char *trigger, int64_t now_ms, struct amp_buf *out,
                       struct amp_error *err)
{
    const struct amp_aop_about about = {
        .session = amp_span_str(of->session), .task = amp_span_str(of->task), .now_ms = now_ms};
    struct amp_aop_rolled_back *files = calloc(r->n + 1, sizeof *files);
    if (!files)
        return amp_fail_memory(err);
    for (size_t i = 0; i < r->n; i++)
        files[i] = (struct amp_aop_rolled_back){
            .path = amp_span_str(r->v[i].path),
            .restored_from = amp_span_str(r->v[i].restored_from),
            .status = r->v[i].restored ? AMP_SPAN("SUCCESS") : AMP_SPAN("FAILED"),
            .code = r->v[i].restored ? (struct amp_span){0} : AMP_SPAN("E_ROLLBACK_FAILED")};
    int rc = amp_aop_rollback_initiated(&about, amp_span_str(trigger), files, r->n, out, err);
    free(files);
    return rc;
}
