/* Decides what a snapshot has and leaves out, by its TASK, and describes it (private.h). */
#include "work/aop/snapshot/private.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/file.h>
#include <amp/base/id.h>
#include <amp/protocol/aop_policy.h>

#include "base/codes.h"
#include "base/grow.h"
#include "message/protocol/compose/json.h"
#include "work/git/snapshot/path.h"

#define META     "meta.json"
#define META_MAX ((size_t)64 << 20)
#define GIT_MS   600000 /* a call, for large workspaces */

static const char *const strategies[] = {"COPY", "GIT_STASH", "DIFF"};

void amp_shot_id(const char *id, char out[80])
{
    size_t n = strlen(id);
    if (n > 0 && n <= 64 &&
        strspn(id, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-") == n &&
        id[0] != '-') {
        amp_span_copy((struct amp_span){id, n}, out, 80);
        return;
    }
    out[0] = '%';
    amp_sha256_hex((struct amp_span){id, n}, out + 1);
}

int amp_shot_init(struct amp_shot *s, const struct amp_snapshot_of *of, struct amp_error *err)
{
    char session[80], task[80];
    *s = (struct amp_shot){.of = of, .fd = -1, .place_fd = -1};
    amp_shot_id(of->session, session);
    amp_shot_id(of->task, task);
    int n = snprintf(s->dir, sizeof s->dir, "%s/snapshots/%s.%s.%lld", of->state, session, task,
                     (long long)of->attempt);
    if (n < 0 || (size_t)n >= sizeof s->dir - 16)
        return amp_fail(err, AMP_USAGE, bad_path, "%.200s…: the path is too long", of->state);
    snprintf(s->ref, sizeof s->ref, "refs/amp/snapshots/%s/%s/%lld", session, task,
             (long long)of->attempt);
    return stat(of->state, &s->state) < 0 ? amp_fail_errno(err, AMP_IOERR, "%s", of->state) : 0;
}

static void output_release(struct amp_shot_output *o)
{
    free(o->path);
    free(o->shown);
    free(o->below);
    free(o->shown_at);
}

void amp_shot_release(struct amp_shot *s)
{
    for (size_t i = 0; i < s->n; i++)
        output_release(&s->v[i]);
    free(s->v);
    if (s->fd >= 0)
        close(s->fd);
    if (s->place_fd >= 0)
        close(s->place_fd);
    amp_git_close(s->own_git);
}

int amp_shot_place_open(struct amp_shot *s, struct amp_error *err)
{
    s->place_fd = open(s->place, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return s->place_fd < 0 ? amp_fail_errno(err, AMP_IOERR, "the workspace %s", s->place) : 0;
}

static void trail_find(struct amp_shot *s, const char *trail)
{
    size_t n = strlen(s->place);
    while (n > 1 && s->place[n - 1] == '/')
        s->place[--n] = '\0';
    if (!trail || !amp_tree_is_in(trail, s->place))
        return;
    snprintf(s->trail, sizeof s->trail, "%s", trail + n + strspn(trail + n, "/"));
    for (n = strlen(s->trail); n > 0 && s->trail[n - 1] == '/';)
        s->trail[--n] = '\0';
}

int amp_shot_place(struct amp_shot *s, struct amp_error *err)
{
    const struct amp_snapshot_of *of = s->of;
    if (!amp_span_copy(amp_span_str(of->root), s->root, sizeof s->root) ||
        !amp_span_copy(amp_span_str(of->place), s->place, sizeof s->place) ||
        !amp_span_copy(amp_span_str(of->home ? of->home : of->place), s->home, sizeof s->home))
        return amp_fail(err, AMP_NOPERM, E_PERMISSION_DENIED,
                        "the path of the workspace is too long");
    trail_find(s, of->trail);
    return amp_shot_place_open(s, err);
}

int amp_shot_git(struct amp_shot *s, struct amp_error *err)
{
    const struct amp_git_options opt = {.time_limit_ms = GIT_MS, .stop = s->of->stop};
    if (s->git)
        return 0;
    if (!s->of->git && amp_git_open(&opt, &s->own_git, err) < 0)
        return -1;
    s->git = s->of->git ? s->of->git : s->own_git;
    return 0;
}

/* ---- the plan ---- */

/* The path below the directory `root` of the TASK; "." for itself. */
static int path_below(const char *root, const char *path, const char *what, char **out,
                      struct amp_error *err)
{
    AMP_BUF struct amp_buf at = {0}, top = {0};
    amp_buf_init(&at, PATH_MAX);
    amp_buf_init(&top, PATH_MAX);
    if (amp_aop_resolve(amp_span_str(root), amp_span_str(root), &top, err) < 0 ||
        amp_aop_resolve(amp_span_str(root), amp_span_str(path), &at, err) < 0)
        return amp_fail(err, AMP_NOPERM, E_PERMISSION_DENIED, "%s %.200s: not a valid path", what,
                        path);
    while (top.len > 0 && top.data[top.len - 1] == '/')
        top.data[--top.len] = '\0';
    if (top.len > 0 && !amp_tree_is_in(at.data, top.data))
        return amp_fail(err, AMP_NOPERM, E_PERMISSION_DENIED, "%s %.200s: not below workspace_root",
                        what, path);
    const char *below = at.data + top.len + strspn(at.data + top.len, "/");
    *out = strdup(*below ? below : ".");
    return *out ? 0 : amp_fail_memory(err);
}

static int shown_find(struct amp_shot *s, struct amp_shot_output *o, struct amp_error *err)
{
    if (!*o->shown)
        return 0;
    if (path_below(s->root, o->shown, "snapshot_path", &o->shown_at, err) < 0)
        return -1;
    return strcmp(o->shown_at, ".") == 0 || amp_tree_is_in(o->shown_at, ".git")
               ? amp_fail(err, AMP_NOPERM, E_PERMISSION_DENIED, "snapshot_path %.200s: reserved",
                          o->shown)
               : 0;
}

static int kind_find(const json_t *shot, enum amp_shot_kind *k)
{
    const char *strategy = amp_json_str(shot, "snapshot_strategy");
    for (*k = 0; *k < AMP_SHOT_KINDS; ++*k)
        if (strcmp(strategy, strategies[*k]) == 0)
            return 0;
    *k = AMP_SHOT_COPY;
    return *strategy ? -1 : 0;
}

/* The snapshot of an artifact may be that of an output, given once more. */
static bool is_repeated(const struct amp_shot *s, const struct amp_shot_output *o)
{
    for (const struct amp_shot_output *a = s->v; a < o; a++)
        if (a->kind == o->kind && strcmp(a->below, o->below) == 0 &&
            strcmp(a->shown, o->shown) == 0)
            return true;
    return false;
}

static int output_add(struct amp_shot *s, const char *path, const json_t *shot,
                      struct amp_error *err)
{
    if (amp_grow(&s->v, &s->cap, s->n, sizeof *s->v, err) < 0)
        return -1;
    struct amp_shot_output *o = &s->v[s->n++];
    *o = (struct amp_shot_output){.path = strdup(path),
                                  .shown = strdup(amp_json_str(shot, "snapshot_path"))};
    if (!o->path || !o->shown)
        return amp_fail_memory(err);
    if (kind_find(shot, &o->kind) < 0)
        return amp_fail(err, AMP_NO, E_SCHEMA_VALIDATION, "unknown snapshot_strategy");
    if (path_below(s->root, path, "the expected output", &o->below, err) < 0)
        return -1;
    if (amp_tree_is_in(o->below, ".git"))
        return amp_fail(err, AMP_NOPERM, E_PERMISSION_DENIED,
                        "the expected output %.200s: reserved", path);
    if (shown_find(s, o, err) < 0)
        return -1;
    if (is_repeated(s, o))
        output_release(&s->v[--s->n]);
    return 0;
}

/* No snapshot is written over an artifact, above it, or over another snapshot. The git strategies
 * show the same for all outputs. */
static int shown_check(const struct amp_shot *s, struct amp_error *err)
{
    for (size_t i = 0; i < s->n; i++) {
        const struct amp_shot_output *a = &s->v[i];
        for (size_t k = 0; a->shown_at && k < s->n; k++) {
            const struct amp_shot_output *b = &s->v[k];
            if (amp_tree_is_in(b->below, a->shown_at))
                return amp_fail(err, AMP_NOPERM, E_PERMISSION_DENIED,
                                "snapshot_path %.200s: the expected output %.200s is there",
                                a->shown, b->path);
            bool shared = a->kind != AMP_SHOT_COPY && a->kind == b->kind && b->shown_at &&
                          strcmp(a->shown_at, b->shown_at) == 0;
            if (k != i && b->shown_at && !shared && amp_tree_is_in(a->shown_at, b->shown_at))
                return amp_fail(err, AMP_NOPERM, E_PERMISSION_DENIED,
                                "snapshot_path %.200s: another snapshot is there", a->shown);
        }
    }
    return 0;
}

/* An output without a path stands for what the TASK may write. */
static int outputs_add(struct amp_shot *s, const json_t *outputs, const json_t *write_paths,
                       struct amp_error *err)
{
    const json_t *output, *one;
    size_t i, k;
    json_array_foreach (outputs, i, output) {
        const json_t *shot = json_object_get(output, "rollback_snapshot");
        const char *path = amp_json_str(output, "path");
        if (!json_is_true(json_object_get(shot, "enabled")))
            continue;
        if (!*path && !json_array_size(write_paths))
            return amp_fail(err, AMP_NOPERM, E_PERMISSION_DENIED,
                            "rollback_snapshot: neither its expected output has a path, nor the "
                            "TASK has write_paths");
        if (*path && output_add(s, path, shot, err) < 0)
            return -1;
        json_array_foreach (write_paths, k, one)
            if (!*path && output_add(s, json_string_value(one), shot, err) < 0)
                return -1;
    }
    return 0;
}

int amp_shot_plan(struct amp_shot *s, const json_t *message, struct amp_error *err)
{
    const json_t *task = json_object_get(message, "task"), *phase, *point;
    const json_t *files = json_object_get(json_object_get(task, "access"), "filesystem");
    const json_t *write = json_object_get(files, "write_paths");
    size_t i, k;
    if (outputs_add(s, json_object_get(task, "expected_outputs"), write, err) < 0)
        return -1;
    json_array_foreach (json_object_get(message, "phases"), i, phase)
        json_array_foreach (json_object_get(phase, "checkpoints"), k, point)
            if (outputs_add(s, json_object_get(point, "expected_artifacts"), write, err) < 0)
                return -1;
    return shown_check(s, err);
}

/* ---- what is left out ---- */

enum amp_tree_skip amp_shot_skip(void *shot, const char *path, const struct stat *st)
{
    const struct amp_shot *s = shot;
    enum amp_tree_skip skip = AMP_TREE_TAKE;
    bool dir = S_ISDIR(st->st_mode);
    if (dir && (strcmp(path, ".git") == 0 ||
                (st->st_dev == s->state.st_dev && st->st_ino == s->state.st_ino)))
        return AMP_TREE_LEAVE;
    for (size_t i = 0; i <= s->n; i++) {
        const char *out = i < s->n ? s->v[i].shown_at : s->trail;
        if (!out || !*out)
            continue;
        if (strcmp(out, path) == 0)
            return AMP_TREE_LEAVE;
        if (amp_tree_is_in(out, path))
            skip = AMP_TREE_ABOVE;
    }
    return skip;
}

/* ---- meta.json ---- */

#define TEXT(name)                                                                                 \
    {                                                                                              \
#name, offsetof(struct amp_shot, name), sizeof((struct amp_shot *)0)->name                 \
    }
static const struct {
    const char *key;
    size_t at, size;
} texts[] = {TEXT(root),       TEXT(place), TEXT(home),  TEXT(trail),
             TEXT(repository), TEXT(ref),   TEXT(digest)};
#define TEXTS (sizeof texts / sizeof *texts)

int amp_shot_write(const struct amp_shot *s, const json_t *message, struct amp_error *err)
{
    json_auto_t *meta = json_pack("{s:O}", "message", message);
    for (size_t i = 0; meta && i < TEXTS; i++)
        if (json_object_set_new(meta, texts[i].key, json_string((const char *)s + texts[i].at)) < 0)
            return amp_fail_memory(err);
    AMP_FREE char *text = meta ? json_dumps(meta, JSON_COMPACT) : NULL;
    return text ? amp_file_write_atomic(s->fd, META, 0600, amp_span_str(text), err)
                : amp_fail_memory(err);
}

int amp_shot_read(struct amp_shot *s, struct amp_error *err)
{
    AMP_BUF struct amp_buf text = {.max = META_MAX};
    s->fd = open(s->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (s->fd < 0)
        return errno == ENOENT ? 1 : amp_fail_errno(err, AMP_IOERR, "%s", s->dir);
    if (amp_file_read(s->fd, META, META_MAX, &text, err) < 0)
        return -1;
    json_auto_t *meta = json_loadb(text.data, text.len, 0, NULL);
    for (size_t i = 0; i < TEXTS; i++) {
        const char *value = json_string_value(json_object_get(meta, texts[i].key));
        if (!value || !amp_span_copy(amp_span_str(value), (char *)s + texts[i].at, texts[i].size))
            return amp_fail(err, AMP_DATAERR, snapshot_damaged, "%s/" META " is damaged", s->dir);
    }
    return amp_shot_plan(s, json_object_get(meta, "message"), err);
}
