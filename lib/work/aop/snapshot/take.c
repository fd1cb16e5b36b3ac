/*
 * Takes snapshots. The directory is made as N.new, and renamed when all of it is on disk; so after
 * a crash there is either a complete snapshot or one that the next call removes.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <amp/base/file.h>
#include <amp/json/writer.h>

#include "base/codes.h"
#include "work/aop/snapshot/private.h"

#define WHO       "task-dispatch"
#define WHO_EMAIL "task-dispatch@localhost"

/* A refusal of the TASK by its codes; everything else is a failure of this machine. */
static int tree_fail(struct amp_error *err)
{
    static const struct {
        const char *code, *as;
        enum amp_status status;
    } rows[] = {{AMP_CODE(not_beneath), AMP_CODE(E_PERMISSION_DENIED), AMP_NOPERM},
                {AMP_CODE(special_file), AMP_CODE(E_PERMISSION_DENIED), AMP_NOPERM},
                {"unreadable", AMP_CODE(E_PERMISSION_DENIED), AMP_NOPERM},
                {AMP_CODE(tree_limit), AMP_CODE(E_CONTEXT_OVERFLOW), AMP_NO}};
    const struct amp_error why = *err;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(why.code, rows[i].code) == 0)
            return amp_fail_text(err, rows[i].status, rows[i].as, "the snapshot: %s", why.what);
    return -1;
}

static int tree_take(struct amp_shot *s, struct amp_tree *t, struct amp_error *err)
{
    const struct amp_snapshot_of *of = s->of;
    AMP_BUF struct amp_buf text = {.max = AMP_SHOT_TREE_MAX};
    if (mkdirat(s->fd, AMP_SHOT_CONTENTS, 0700) < 0)
        return amp_fail_errno(err, AMP_CANTCREAT, "%s: cannot make the snapshot", s->dir);
    AMP_CLOSE int contents =
        openat(s->fd, AMP_SHOT_CONTENTS, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    const struct amp_tree_scan scan = {.root = s->place_fd,
                                       .skip = amp_shot_skip,
                                       .ctx = s,
                                       .contents = contents,
                                       .files = of->files ? of->files : AMP_SHOT_FILES,
                                       .bytes = of->bytes ? of->bytes : AMP_SHOT_BYTES,
                                       .stop = of->stop};
    for (size_t i = 0; i < s->n; i++)
        if (amp_tree_add(&scan, s->v[i].below, t, err) < 0)
            return tree_fail(err);
    amp_tree_sort(t);
    amp_tree_digest(t, s->digest);
    if (amp_tree_sync(t, contents) < 0)
        return amp_fail_errno(err, AMP_IOERR, "cannot sync %s", s->dir);
    return amp_tree_write(t, &text, err) < 0
               ? -1
               : amp_file_write_atomic(s->fd, "tree", 0600, amp_buf_span(&text), err);
}

/* ---- the commit ---- */

/* The repository of the workspace, and the directory in it. */
static int repository_find(struct amp_shot *s, char prefix[PATH_MAX], struct amp_error *err)
{
    struct amp_git_info info;
    struct amp_error why;
    char work[PATH_MAX], place[PATH_MAX];
    bool needs = false, wants = false;
    for (size_t i = 0; i < s->n; i++) {
        needs |= s->v[i].kind == AMP_SHOT_GIT_STASH;
        wants |= s->v[i].kind != AMP_SHOT_COPY;
    }
    if (!wants)
        return 0;
    if (amp_shot_git(s, err) < 0)
        return -1;
    int rc = amp_git_info(s->git, s->place, &info, &why);
    if (rc < 0 && !amp_code_is(why.code, repo_not_git))
        return amp_fail_again(err, why.status, "the snapshot", &why);
    if (rc < 0 || info.bare)
        return !needs ? 0
                      : amp_fail(err, AMP_NOPERM, E_PERMISSION_DENIED,
                                 "GIT_STASH: %.200s is not in a git repository", s->root);
    if (!realpath(info.workdir, work) || !realpath(s->place, place))
        return amp_fail_errno(err, AMP_IOERR, "%s", s->place);
    const char *below = place + strlen(work);
    snprintf(prefix, PATH_MAX, "%s%s", below + (*below == '/'), *below ? "/" : "");
    amp_span_copy(amp_span_str(info.common), s->repository, sizeof s->repository);
    return 0;
}

static int stash_write(const struct amp_shot *s, struct amp_error *err)
{
    AMP_BUF struct amp_buf text = {.max = 1 << 16};
    struct amp_jw w;
    amp_jw_init(&w, &text);
    amp_jw_open(&w, '{');
    amp_jw_member_text(&w, "strategy", "GIT_STASH");
    amp_jw_member_text(&w, "session_id", s->of->session);
    amp_jw_member_text(&w, "task_id", s->of->task);
    amp_jw_member_int(&w, "attempt", s->of->attempt);
    amp_jw_member_text(&w, "repository", s->repository);
    amp_jw_member_text(&w, "ref", s->ref);
    amp_jw_member_text(&w, "commit", s->oid);
    amp_jw_close(&w, '}');
    return amp_jw_end_line(&w, err) < 0
               ? -1
               : amp_file_write_atomic(s->fd, AMP_SHOT_STASH, 0600, amp_buf_span(&text), err);
}

static int commit_make(struct amp_shot *s, const char *prefix, struct amp_error *err)
{
    char dir[PATH_MAX + 8], patch[PATH_MAX + 16];
    snprintf(dir, sizeof dir, "%s.new", s->dir);
    snprintf(patch, sizeof patch, "%s/" AMP_SHOT_PATCH, dir);
    const struct amp_git_snapshot save = {.repo = s->place,
                                          .ref = s->ref,
                                          .dir = dir,
                                          .prefix = prefix,
                                          .patch = patch,
                                          .name = WHO,
                                          .email = WHO_EMAIL};
    return !*s->repository                                         ? 0
           : amp_git_snapshot_save(s->git, &save, s->oid, err) < 0 ? -1
                                                                   : stash_write(s, err);
}

/* ---- its directory ---- */

static int new_make(struct amp_shot *s, const char *name, struct amp_error *err)
{
    char above[PATH_MAX];
    snprintf(above, sizeof above, "%.*s", (int)(strrchr(s->dir, '/') - s->dir), s->dir);
    if (amp_mkdirs(above, 0700, err) < 0 || amp_restore_remove(AT_FDCWD, name, err) < 0)
        return -1;
    if (mkdir(name, 0700) < 0 ||
        (s->fd = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW)) < 0)
        return amp_fail_errno(err, AMP_CANTCREAT, "%s", name);
    return 0;
}

/* After a failure: nothing is left. */
static void new_drop(struct amp_shot *s, const char *name)
{
    struct amp_error none;
    if (*s->oid)
        amp_git_snapshot_drop(s->git, s->repository, s->ref, &none);
    amp_restore_remove(AT_FDCWD, name, &none);
}

static int new_finish(struct amp_shot *s, const char *name, struct amp_error *err)
{
    if (fsync(s->fd) < 0 || rename(name, s->dir) < 0)
        return amp_fail_errno(err, AMP_IOERR, "cannot rename %s", name);
    *strrchr(s->dir, '/') = '\0';
    return amp_fsync_dir(AT_FDCWD, s->dir, err);
}

/* Removes old snapshots. The next call retries what fails. */
static void snapshots_prune(const struct amp_shot *s)
{
    char path[PATH_MAX];
    const time_t before = time(NULL) - AMP_SNAPSHOT_KEEP_S;
    snprintf(path, sizeof path, "%.*s/snapshots", PATH_MAX - 16, s->of->state);
    AMP_DIR DIR *d = amp_dir_open(AT_FDCWD, path);
    for (const struct dirent *e; d && (e = readdir(d));) {
        AMP_CLEANUP(amp_shot_release)
        struct amp_shot old = {.of = s->of, .git = s->git, .fd = -1, .place_fd = -1};
        struct amp_error none;
        struct stat st;
        int n = snprintf(old.dir, sizeof old.dir, "%s/%s/meta.json", path, e->d_name);
        if (n < 0 || (size_t)n >= sizeof old.dir || lstat(old.dir, &st) < 0 ||
            st.st_mtime >= before)
            continue;
        *strrchr(old.dir, '/') = '\0';
        amp_shot_forget(&old, &none);
    }
}

static int shot_take(struct amp_shot *s, const json_t *message, const char *name,
                     struct amp_error *err)
{
    AMP_CLEANUP(amp_tree_release) struct amp_tree t = {0};
    char prefix[PATH_MAX] = "";
    return repository_find(s, prefix, err) < 0 || amp_shot_publish_check(s, err) < 0 ||
                   tree_take(s, &t, err) < 0 || commit_make(s, prefix, err) < 0 ||
                   amp_shot_write(s, message, err) < 0 || amp_shot_publish(s, &t, err) < 0
               ? -1
               : new_finish(s, name, err);
}

int amp_snapshot_take(const struct amp_snapshot_of *of, const json_t *message,
                      struct amp_error *err)
{
    AMP_CLEANUP(amp_shot_release) struct amp_shot s = {.fd = -1, .place_fd = -1};
    char name[PATH_MAX + 8];
    if (amp_shot_init(&s, of, err) < 0 || amp_shot_place(&s, err) < 0 ||
        amp_shot_plan(&s, message, err) < 0)
        return -1;
    if (!s.n)
        return 0;
    if (access(s.dir, F_OK) == 0)
        return 1;
    snprintf(name, sizeof name, "%s.new", s.dir);
    if (new_make(&s, name, err) < 0 || shot_take(&s, message, name, err) < 0) {
        new_drop(&s, name);
        return -1;
    }
    snapshots_prune(&s);
    return 1;
}

int amp_snapshot_newest(const char *state, const char *session, const char *task, int64_t *attempt,
                        struct amp_error *err)
{
    char path[PATH_MAX], a[80], b[80], prefix[164], *end;
    amp_shot_id(session, a);
    amp_shot_id(task, b);
    *attempt = 0;
    size_t n = (size_t)snprintf(prefix, sizeof prefix, "%s.%s.", a, b);
    snprintf(path, sizeof path, "%.*s/snapshots", PATH_MAX - 16, state);
    AMP_DIR DIR *d = amp_dir_open(AT_FDCWD, path);
    if (!d)
        return errno == ENOENT ? 0 : amp_fail_errno(err, AMP_IOERR, "%s", path);
    for (const struct dirent *e; (e = readdir(d));) {
        long long at = strncmp(e->d_name, prefix, n) == 0 ? strtoll(e->d_name + n, &end, 10) : 0;
        if (at > *attempt && !*end)
            *attempt = at;
    }
    return 0;
}
