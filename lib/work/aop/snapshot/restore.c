/* The rollback, its event, and the end of a snapshot. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/file.h>
#include <amp/base/id.h>

#include "base/codes.h"
#include "message/protocol/aop/event.h"
#include "work/aop/snapshot/private.h"

#define LOCK_MS 30000

void amp_snapshot_result_release(struct amp_snapshot_result *r)
{
    for (size_t i = 0; i < r->n; i++) {
        free(r->v[i].path);
        free(r->v[i].restored_from);
    }
    free(r->v);
    *r = (struct amp_snapshot_result){0};
}

/* same: for each path, whether it is as it was. */
static int result_fill(const struct amp_shot *s, const bool *same, struct amp_snapshot_result *out,
                       struct amp_error *err)
{
    out->v = calloc(s->n + 1, sizeof *out->v);
    if (!out->v)
        return amp_fail_memory(err);
    for (size_t i = 0; i < s->n; i++) {
        out->v[i] = (struct amp_snapshot_file){.path = strdup(s->v[i].path),
                                               .restored_from = strdup(s->v[i].shown),
                                               .restored = same[i]};
        out->n++;
        if (!out->v[i].path || !out->v[i].restored_from)
            return amp_fail_memory(err);
    }
    amp_span_copy(amp_span_str(s->digest), out->digest, sizeof out->digest);
    return 0;
}

static int tree_load(const struct amp_shot *s, struct amp_tree *t, struct amp_error *err)
{
    AMP_BUF struct amp_buf text = {.max = AMP_SHOT_TREE_MAX};
    char digest[AMP_TREE_DIGEST_MAX];
    if (amp_file_read(s->fd, "tree", text.max, &text, err) < 0 ||
        amp_tree_read(amp_buf_span(&text), t, err) < 0)
        return -1;
    amp_tree_digest(t, digest);
    return strcmp(digest, s->digest) == 0
               ? 0
               : amp_fail(err, AMP_DATAERR, snapshot_damaged, "%s/tree is damaged", s->dir);
}

static int shot_restore(struct amp_shot *s, bool *same, struct amp_error *err)
{
    AMP_CLEANUP(amp_tree_release) struct amp_tree t = {0};
    AMP_CLOSE int contents =
        openat(s->fd, AMP_SHOT_CONTENTS, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    char stage[AMP_SHA256_MAX + 16] = ".amp-rollback-";
    struct amp_error late;
    amp_sha256_hex(amp_span_str(s->dir), stage + strlen(stage));
    const struct amp_restore_spec spec = {.root = s->place_fd,
                                          .contents = contents,
                                          .stage = stage,
                                          .skip = amp_shot_skip,
                                          .ctx = s,
                                          .stop = s->of->stop};
    if (tree_load(s, &t, err) < 0)
        return -1;
    int rc = amp_restore(&spec, &t, err);
    for (size_t i = 0; i < s->n; i++) {
        int is = amp_restore_same(&spec, &t, s->v[i].below, rc < 0 ? &late : err);
        same[i] = is > 0;
        if (is == 0 && rc == 0)
            amp_fail(err, AMP_NO, digest_differs, "%s: changed meanwhile", s->v[i].path);
        rc = is > 0 ? rc : -1;
    }
    return rc;
}

static int lock_take(const struct amp_shot *s, struct amp_error *err)
{
    AMP_CLOSE int lock = openat(s->fd, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (lock < 0)
        return amp_fail_errno(err, AMP_IOERR, "%s/lock", s->dir);
    if (amp_lock(lock, LOCK_MS, err) < 0)
        return -1;
    int fd = lock;
    lock = -1;
    return fd;
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
    AMP_FREE bool *same = calloc(s.n + 1, sizeof *same);
    AMP_CLOSE int lock = rc < 0 ? -1 : lock_take(&s, &why);
    if (of->place)
        amp_span_copy(amp_span_str(of->place), s.place, sizeof s.place);
    if (!same)
        return amp_fail_memory(err);
    rc = lock < 0 || amp_shot_place_open(&s, &why) < 0 ? -1 : shot_restore(&s, same, &why);
    if (result_fill(&s, same, out, err) < 0)
        return -1;
    if (rc == 0)
        return 0;
    return why.status == AMP_INTERRUPTED
               ? amp_fail_again(err, AMP_INTERRUPTED, "the rollback", &why)
               : amp_fail(err, AMP_NO, E_ROLLBACK_FAILED, "the rollback failed: %s", why.what);
}

int amp_shot_forget(struct amp_shot *s, struct amp_error *err)
{
    char name[PATH_MAX + 8];
    struct amp_error why;
    int rc = amp_shot_read(s, err);
    if (rc)
        return rc < 0 ? -1 : 0;
    AMP_CLOSE int lock = lock_take(s, err);
    if (lock < 0 || (*s->repository && amp_shot_git(s, err) < 0))
        return -1;
    /* Without the repository there is no ref either. */
    if (*s->repository && amp_git_snapshot_drop(s->git, s->repository, s->ref, &why) < 0 &&
        !amp_code_is(why.code, repo_not_git))
        return amp_fail_again(err, why.status, "the snapshot", &why);
    /* Under the name of an incomplete one, so that a part of it is not taken for a snapshot. */
    snprintf(name, sizeof name, "%s.new", s->dir);
    if (amp_restore_remove(AT_FDCWD, name, err) < 0)
        return -1;
    return rename(s->dir, name) < 0 ? amp_fail_errno(err, AMP_IOERR, "%s", s->dir)
                                    : amp_restore_remove(AT_FDCWD, name, err);
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
            .code = r->v[i].restored ? (struct amp_span){0} : AMP_CODE_SPAN(E_ROLLBACK_FAILED)};
    int rc = amp_aop_rollback_initiated(&about, amp_span_str(trigger), files, r->n, out, err);
    free(files);
    return rc;
}
