/* A snapshot: what the TASK asks for, what is left out, and its description (private.h). */
#include "flow/session/snapshot/private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/file.h>
#include <amp/protocol/aop_policy.h>

#include "base/grow.h"
#include "protocol/compose/json.h"
#include "worktree/snapshot/attr.h"

#define META      "meta.json"
#define META_MAX  ((size_t)4 << 20)
#define DENIED    AMP_NOPERM, "E_PERMISSION_DENIED"
#define GIT_MS    600000 /* a call, for large workspaces */
#define WHO       "task-dispatch"
#define WHO_EMAIL "task-dispatch@localhost"

static const char *const names[] = {"copy", "diff", "stash"};
static const char *const strategies[] = {"COPY", "DIFF", "GIT_STASH"};

const char *amp_shot_name(enum amp_shot_kind k)
{
    return names[k];
}

const char *amp_shot_strategy(enum amp_shot_kind k)
{
    return strategies[k];
}

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
    int n = snprintf(s->dir, sizeof s->dir, "%s/snapshots/%s/%s/%lld", of->state, session, task,
                     (long long)of->attempt);
    if (n < 0 || (size_t)n >= sizeof s->dir - 16)
        return amp_fail(err, AMP_USAGE, "bad_path", "%.200s…: the path is too long", of->state);
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
    if (!s->complete && s->n_made > 0)
        amp_shot_unmake(s);
    for (size_t i = 0; i < s->n; i++)
        output_release(&s->v[i]);
    free(s->v);
    for (size_t i = 0; i < s->n_ignored; i++)
        free(s->ignored[i]);
    free(s->ignored);
    for (size_t i = 0; i < s->n_made; i++)
        free(s->made[i]);
    free(s->made);
    if (s->fd >= 0)
        close(s->fd);
    if (s->place_fd >= 0)
        close(s->place_fd);
    amp_git_close(s->own_git);
}

static int place_open(struct amp_shot *s, struct amp_error *err)
{
    s->place_fd = open(s->place, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return s->place_fd < 0 ? amp_fail_errno(err, AMP_IOERR, "the workspace %s", s->place) : 0;
}

static void trail_find(struct amp_shot *s, const char *trail)
{
    size_t n = strlen(s->place);
    while (n > 1 && s->place[n - 1] == '/')
        n--;
    if (!trail || strncmp(trail, s->place, n) != 0 || trail[n] != '/')
        return;
    trail += n + strspn(trail + n, "/");
    n = strlen(trail);
    while (n > 0 && trail[n - 1] == '/')
        n--;
    amp_span_copy((struct amp_span){trail, n}, s->trail, sizeof s->trail);
}

int amp_shot_place(struct amp_shot *s, struct amp_error *err)
{
    const struct amp_snapshot_of *of = s->of;
    if (!amp_span_copy(amp_span_str(of->root), s->root, sizeof s->root) ||
        !amp_span_copy(amp_span_str(of->place), s->place, sizeof s->place) ||
        !amp_span_copy(amp_span_str(of->home ? of->home : of->place), s->home, sizeof s->home))
        return amp_fail(err, DENIED, "the path of the workspace is too long");
    trail_find(s, of->trail);
    return place_open(s, err);
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
        return amp_fail(err, DENIED, "%s %.200s: not a valid path", what, path);
    struct amp_span below = amp_buf_span(&at), dir = amp_buf_span(&top);
    while (dir.n > 0 && dir.p[dir.n - 1] == '/')
        dir.n--;
    if (below.n < dir.n || memcmp(below.p, dir.p, dir.n) != 0 ||
        (below.n > dir.n && below.p[dir.n] != '/'))
        return amp_fail(err, DENIED, "%s %.200s: not below workspace_root", what, path);
    below.p += dir.n;
    below.n -= dir.n;
    while (below.n > 0 && *below.p == '/')
        below.p++, below.n--;
    *out = amp_span_dup(below.n ? below : AMP_SPAN("."));
    return *out ? 0 : amp_fail_memory(err);
}

static bool is_at_or_in(const char *path, const char *dir)
{
    size_t n = strlen(dir);
    return strcmp(dir, ".") == 0 ||
           (strncmp(path, dir, n) == 0 && (path[n] == '/' || path[n] == '\0'));
}

/* A snapshot_path below STATE/snapshots/kept is taken as it is; others are of the workspace. */
static int shown_find(struct amp_shot *s, struct amp_shot_output *o, struct amp_error *err)
{
    char kept[PATH_MAX];
    if (!*o->shown)
        return 0;
    snprintf(kept, sizeof kept, "%.*s/snapshots/kept", (int)(sizeof kept - 32), s->of->state);
    o->in_state = is_at_or_in(o->shown, kept);
    if (path_below(o->in_state ? kept : s->root, o->shown, "snapshot_path", &o->shown_at, err) < 0)
        return -1;
    if (strcmp(o->shown_at, ".") == 0 || (!o->in_state && is_at_or_in(o->shown_at, ".git")))
        return amp_fail(err, DENIED, "snapshot_path %.200s: reserved", o->shown);
    return 0;
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

static int output_add(struct amp_shot *s, const json_t *output, const json_t *shot,
                      struct amp_error *err)
{
    const char *path = amp_json_str(output, "path"), *shown = amp_json_str(shot, "snapshot_path");
    struct amp_shot_output *o = &s->v[s->n];
    if (!*path)
        return amp_fail(err, DENIED, "an expected output with rollback_snapshot has no path");
    *o = (struct amp_shot_output){.path = strdup(path), .shown = strdup(shown)};
    s->n++;
    if (!o->path || !o->shown)
        return amp_fail_memory(err);
    if (kind_find(shot, &o->kind) < 0)
        return amp_fail(err, AMP_NO, "E_SCHEMA_VALIDATION", "unknown snapshot_strategy");
    s->has[o->kind] = true;
    if (json_is_true(json_object_get(json_object_get(shot, "extensions"), "x_include_ignored")))
        s->with_ignored = true;
    if (path_below(s->root, path, "the expected output", &o->below, err) < 0)
        return -1;
    if (strcmp(o->below, ".git") == 0 || strncmp(o->below, ".git/", 5) == 0)
        return amp_fail(err, DENIED, "the expected output %.200s: reserved", path);
    return shown_find(s, o, err);
}

/* No snapshot is written over an artifact, above it, or over another snapshot. */
static int shown_check(const struct amp_shot *s, struct amp_error *err)
{
    for (size_t i = 0; i < s->n; i++) {
        const struct amp_shot_output *a = &s->v[i];
        for (size_t k = 0; a->shown_at && k < s->n; k++) {
            const struct amp_shot_output *b = &s->v[k];
            if (!a->in_state && is_at_or_in(b->below, a->shown_at))
                return amp_fail(err, DENIED,
                                "snapshot_path %.200s: the expected output %.200s is there",
                                a->shown, b->path);
            if (k == i || !b->shown_at || a->in_state != b->in_state ||
                (a->kind == AMP_SHOT_STASH && b->kind == AMP_SHOT_STASH &&
                 strcmp(a->shown_at, b->shown_at) == 0))
                continue;
            if (is_at_or_in(a->shown_at, b->shown_at))
                return amp_fail(err, DENIED, "snapshot_path %.200s: another snapshot is there",
                                a->shown);
        }
    }
    return 0;
}

/* The snapshot of an artifact may be that of an output, given once more. */
static void repeated_drop(struct amp_shot *s)
{
    struct amp_shot_output *last = &s->v[s->n - 1];
    for (size_t i = 0; i + 1 < s->n; i++)
        if (s->v[i].kind == last->kind && strcmp(s->v[i].below, last->below) == 0 &&
            strcmp(s->v[i].shown, last->shown) == 0) {
            output_release(last);
            s->n--;
            return;
        }
}

static int outputs_add(struct amp_shot *s, const json_t *outputs, struct amp_error *err)
{
    const json_t *output;
    size_t i;
    json_array_foreach (outputs, i, output) {
        const json_t *shot = json_object_get(output, "rollback_snapshot");
        if (!json_is_true(json_object_get(shot, "enabled")))
            continue;
        if (amp_grow(&s->v, &s->cap, s->n, sizeof *s->v, err) < 0 ||
            output_add(s, output, shot, err) < 0)
            return -1;
        repeated_drop(s);
    }
    return 0;
}

int amp_shot_plan(struct amp_shot *s, const json_t *message, struct amp_error *err)
{
    const json_t *phase, *point;
    size_t i, k;
    if (outputs_add(s, json_object_get(json_object_get(message, "task"), "expected_outputs"), err) <
        0)
        return -1;
    json_array_foreach (json_object_get(message, "phases"), i, phase)
        json_array_foreach (json_object_get(phase, "checkpoints"), k, point)
            if (outputs_add(s, json_object_get(point, "expected_artifacts"), err) < 0)
                return -1;
    return shown_check(s, err);
}

/* ---- what is left out ---- */

static int text_compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

int amp_shot_ignored(struct amp_shot *s, int dir, struct amp_error *err)
{
    AMP_BUF struct amp_buf list = {0};
    amp_buf_init(&list, (size_t)256 << 20);
    if (amp_file_read(dir, "ignored", list.max, &list, err) < 0)
        return -1;
    for (size_t at = 0; at < list.len; at += strlen(list.data + at) + 1) {
        size_t n = strlen(list.data + at);
        if (amp_grow(&s->ignored, &s->cap_ignored, s->n_ignored, sizeof *s->ignored, err) < 0)
            return -1;
        while (n > 0 && list.data[at + n - 1] == '/')
            n--;
        if (!(s->ignored[s->n_ignored] = amp_span_dup((struct amp_span){list.data + at, n})))
            return amp_fail_memory(err);
        s->n_ignored++;
    }
    if (s->n_ignored)
        qsort(s->ignored, s->n_ignored, sizeof *s->ignored, text_compare);
    return 0;
}

static bool is_left_out(const struct amp_shot *s, const char *path)
{
    if (*s->trail && strcmp(s->trail, path) == 0)
        return true;
    for (size_t i = 0; i < s->n; i++)
        if (s->v[i].shown_at && !s->v[i].in_state && strcmp(s->v[i].shown_at, path) == 0)
            return true;
    return false;
}

/* The repository of which this is the git directory, or the file that leads to it. */
static void nested_note(struct amp_shot *s, const char *path, const char *name)
{
    if (s->nested && name > path &&
        (amp_buf_add(s->nested, path, (size_t)(name - path - 1), NULL) < 0 ||
         amp_buf_add(s->nested, "", 1, NULL) < 0))
        s->nested_lost = true;
}

/* Whether this is the git directory of a repository that the snapshot has. */
static bool is_known(const struct amp_shot *s, const char *path, const char *name)
{
    const struct amp_buf *list = s->repositories;
    size_t n = name > path ? (size_t)(name - path - 1) : 0;
    for (size_t at = 0; list && at < list->len; at += strlen(list->data + at) + 1)
        if (strlen(list->data + at) == n && memcmp(list->data + at, path, n) == 0)
            return true;
    return !list;
}

bool amp_shot_skip(void *shot, const char *path, const struct stat *st)
{
    struct amp_shot *s = shot;
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    bool is_git = strcmp(name, ".git") == 0;
    if ((is_git && name == path && S_ISDIR(st->st_mode)) || is_left_out(s, path) ||
        (S_ISDIR(st->st_mode) && st->st_dev == s->state.st_dev && st->st_ino == s->state.st_ino))
        return true;
    if (s->kind != AMP_SHOT_STASH)
        return false;
    if (is_git && (S_ISDIR(st->st_mode) || S_ISREG(st->st_mode)))
        nested_note(s, path, name);
    if (is_git && S_ISDIR(st->st_mode) && is_known(s, path, name))
        return true;
    if (s->n_ignored && bsearch(&path, s->ignored, s->n_ignored, sizeof *s->ignored, text_compare))
        return true;
    return s->only && !amp_tree_find(s->only, path);
}

/* The directories above one path. */
static int ways_add(const struct amp_shot *s, const char *path, struct amp_tree *want,
                    struct amp_error *err)
{
    char above[PATH_MAX], parent[PATH_MAX] = ".";
    for (const char *end = path; (end = strchr(end, '/')); end++) {
        struct stat st;
        const struct amp_tree_entry *p = amp_tree_find(want, parent);
        amp_span_copy((struct amp_span){path, (size_t)(end - path)}, above, sizeof above);
        amp_span_copy(amp_span_str(above), parent, sizeof parent);
        AMP_CLOSE int fd = amp_open_beneath(s->place_fd, above, O_RDONLY | O_DIRECTORY, 0, NULL);
        AMP_FREE char *attrs = NULL;
        if (fd < 0 || fstat(fd, &st) < 0)
            return 0;
        if (amp_tree_find(want, above) || !p || p->type != AMP_TREE_DIR)
            continue;
        if (amp_attrs_read(fd, &attrs))
            return amp_fail_errno(err, AMP_IOERR, "%s: cannot read the extended attributes", above);
        if (amp_grow(&want->v, &want->cap, want->n, sizeof *want->v, err) < 0)
            return -1;
        want->v[want->n] = (struct amp_tree_entry){.path = strdup(above),
                                                   .type = AMP_TREE_DIR,
                                                   .mode = st.st_mode & 07777,
                                                   .mtime = st.st_mtim,
                                                   .uid = st.st_uid,
                                                   .gid = st.st_gid,
                                                   .attrs = attrs};
        attrs = NULL;
        if (!want->v[want->n++].path)
            return amp_fail_memory(err);
        amp_tree_sort(want);
    }
    return 0;
}

int amp_shot_ways(const struct amp_shot *s, struct amp_tree *want, struct amp_error *err)
{
    if (ways_add(s, s->trail, want, err) < 0)
        return -1;
    for (size_t i = 0; i < s->n; i++)
        if (s->v[i].shown_at && !s->v[i].in_state && ways_add(s, s->v[i].shown_at, want, err) < 0)
            return -1;
    return 0;
}

void amp_shot_args(const struct amp_shot *s, enum amp_shot_kind k, const char *suffix,
                   char dir[PATH_MAX], char ref[600], struct amp_git_snapshot *out)
{
    snprintf(dir, PATH_MAX, "%.*s%s/%s", PATH_MAX - 32, s->dir, suffix, names[k]);
    snprintf(ref, 600, "%s/%s", s->ref, names[k]);
    *out = (struct amp_git_snapshot){.gitdir = s->gitdir,
                                     .place = s->place,
                                     .ref = ref,
                                     .dir = dir,
                                     .name = WHO,
                                     .email = WHO_EMAIL};
}

void amp_shot_digest(const struct amp_shot *s, char out[AMP_SHA256_MAX])
{
    char text[(AMP_SHOT_KINDS + 1) * AMP_SHA256_MAX + 1];
    snprintf(text, sizeof text, "%s\n%s\n%s\n%s", s->digest[AMP_SHOT_COPY],
             s->digest[AMP_SHOT_DIFF], s->digest[AMP_SHOT_STASH], s->git_digest);
    amp_sha256_hex(amp_span_str(text), out);
}

/* ---- meta.json ---- */

static json_t *output_json(const struct amp_shot_output *o)
{
    return json_pack("{s:o,s:o,s:o,s:s,s:b}", "path", amp_json_text(o->path), "snapshot_path",
                     amp_json_text(o->shown), "below", amp_json_text(o->below), "strategy",
                     strategies[o->kind], "kept_in_state", o->in_state);
}

int amp_shot_write(const struct amp_shot *s, struct amp_error *err)
{
    json_auto_t *outputs = json_array(), *groups = json_object(), *meta = NULL;
    for (size_t i = 0; i < s->n; i++)
        if (json_array_append_new(outputs, output_json(&s->v[i])))
            return amp_fail_memory(err);
    for (int k = 0; k < AMP_SHOT_KINDS; k++)
        if (s->has[k] && json_object_set_new(
                             groups, names[k],
                             json_pack("{s:s,s:s}", "digest", s->digest[k], "commit", s->oid[k])))
            return amp_fail_memory(err);
    meta = json_pack("{s:s,s:s,s:I,s:s,s:s,s:s,s:s,s:s,s:b,s:s,s:O,s:O}", "session", s->of->session,
                     "task", s->of->task, "attempt", (json_int_t)s->of->attempt, "root", s->root,
                     "place", s->place, "home", s->home, "gitdir", s->gitdir, "trail", s->trail,
                     "with_ignored", s->with_ignored, "git_digest", s->git_digest, "groups", groups,
                     "outputs", outputs);
    char *text = meta ? json_dumps(meta, JSON_COMPACT) : NULL;
    if (!text)
        return amp_fail_memory(err);
    int rc = amp_file_write_atomic(s->fd, META, 0600, amp_span_str(text), err);
    free(text);
    return rc;
}

static int damaged(const struct amp_shot *s, struct amp_error *err)
{
    return amp_fail(err, AMP_DATAERR, "snapshot_damaged", "%s/" META " is damaged", s->dir);
}

static bool text_take(const json_t *from, const char *key, char *out, size_t size)
{
    const char *text = json_string_value(json_object_get(from, key));
    return text && amp_span_copy(amp_span_str(text), out, size);
}

static bool output_take(struct amp_shot *s, const json_t *from)
{
    struct amp_shot_output *o = &s->v[s->n];
    const char *path = amp_json_str(from, "path"), *shown = amp_json_str(from, "snapshot_path"),
               *below = amp_json_str(from, "below"), *strategy = amp_json_str(from, "strategy");
    struct amp_error err;
    if (!*path || !*below)
        return false;
    s->n++;
    *o = (struct amp_shot_output){
        .path = strdup(path), .shown = strdup(shown), .below = strdup(below)};
    for (o->kind = 0; o->kind < AMP_SHOT_KINDS && strcmp(strategy, strategies[o->kind]) != 0;)
        o->kind++;
    return o->path && o->shown && o->below && o->kind < AMP_SHOT_KINDS &&
           shown_find(s, o, &err) == 0;
}

int amp_shot_read(struct amp_shot *s, struct amp_error *err)
{
    AMP_BUF struct amp_buf text = {0};
    const json_t *group, *output;
    const char *key;
    size_t i;
    s->fd = open(s->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (s->fd < 0)
        return errno == ENOENT ? 1 : amp_fail_errno(err, AMP_IOERR, "%s", s->dir);
    amp_buf_init(&text, META_MAX);
    if (amp_file_read(s->fd, META, META_MAX, &text, err) < 0)
        return -1;
    json_auto_t *meta = json_loadb(text.data, text.len, 0, NULL);
    json_t *groups = json_object_get(meta, "groups"), *outputs = json_object_get(meta, "outputs");
    if (!text_take(meta, "root", s->root, sizeof s->root) ||
        !text_take(meta, "place", s->place, sizeof s->place) ||
        !text_take(meta, "home", s->home, sizeof s->home) ||
        !text_take(meta, "gitdir", s->gitdir, sizeof s->gitdir) ||
        !text_take(meta, "trail", s->trail, sizeof s->trail) ||
        !text_take(meta, "git_digest", s->git_digest, sizeof s->git_digest))
        return damaged(s, err);
    s->with_ignored = json_is_true(json_object_get(meta, "with_ignored"));
    json_object_foreach (groups, key, group)
        for (int k = 0; k < AMP_SHOT_KINDS; k++)
            if (strcmp(key, names[k]) == 0) {
                s->has[k] = text_take(group, "digest", s->digest[k], sizeof s->digest[k]) &&
                            text_take(group, "commit", s->oid[k], sizeof s->oid[k]);
                if (!s->has[k])
                    return damaged(s, err);
            }
    s->v = calloc(json_array_size(outputs) + 1, sizeof *s->v);
    if (!s->v)
        return amp_fail_memory(err);
    json_array_foreach (outputs, i, output)
        if (!output_take(s, output))
            return damaged(s, err);
    return 0;
}
