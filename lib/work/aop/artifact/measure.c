/*
 * Artifacts: see artifact.h. A measure is a tree of the place (work/git/snapshot/tree.h). Expected
 * outputs are always hashed; of the other files, those up to HASH_BYTES. A file that was not hashed
 * has changed if its inode, its size or the time of its last change (ctime, which no program can
 * set) has.
 */
#include "work/aop/artifact/artifact.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/buf.h>
#include <amp/base/file.h>
#include <amp/json/writer.h>
#include <amp/protocol/aop_policy.h>

#include "base/codes.h"
#include "message/protocol/compose/json.h"
#include "work/git/snapshot/tree.h"

#define FILES_MOST 1000000
#define BYTES_MOST ((int64_t)4 << 30)
#define HASH_BYTES ((int64_t)256 << 20)
#define ITEMS_MOST 1000
#define TEXT_MAX   ((size_t)1 << 30)

struct amp_measure {
    struct amp_tree tree;
};

void amp_measure_free(struct amp_measure *m)
{
    if (m)
        amp_tree_release(&m->tree);
    free(m);
}

/* ---- paths ---- */

struct places {
    char root[PATH_MAX]; /* canonical, without a slash at its end */
    struct stat state;
    bool has_state;
    char **skip; /* the audit trail and snapshot_paths, below the root */
    size_t n;
};

static void places_release(struct places *p)
{
    for (size_t i = 0; i < p->n; i++)
        free(p->skip[i]);
    free(p->skip);
}

static const json_t *outputs_of(const json_t *message)
{
    return json_object_get(json_object_get(message, "task"), "expected_outputs");
}

/* The path below the root, "." for itself; NULL: elsewhere, or not valid. The caller frees it. */
static char *path_below(const struct places *p, const char *root, const char *path)
{
    AMP_BUF struct amp_buf at = {.max = PATH_MAX};
    size_t n = strlen(p->root);
    if (amp_aop_resolve(amp_span_str(root), amp_span_str(path), &at, NULL) < 0 || at.len < n ||
        memcmp(at.data, p->root, n) != 0 || (at.len > n && at.data[n] != '/'))
        return NULL;
    while (n < at.len && at.data[n] == '/')
        n++;
    return at.len > n ? amp_span_dup((struct amp_span){at.data + n, at.len - n}) : strdup(".");
}

static int places_find(const struct amp_measure_of *of, const json_t *message, struct places *p,
                       struct amp_error *err)
{
    AMP_BUF struct amp_buf root = {.max = PATH_MAX};
    const json_t *outputs = outputs_of(message), *output;
    size_t i;
    if (amp_aop_resolve(amp_span_str(of->root), amp_span_str(of->root), &root, err) < 0)
        return -1;
    while (root.len > 0 && root.data[root.len - 1] == '/')
        root.len--;
    amp_span_copy(amp_buf_span(&root), p->root, sizeof p->root);
    p->has_state = of->state && stat(of->state, &p->state) == 0;
    p->skip = calloc(json_array_size(outputs) + 2, sizeof *p->skip);
    if (!p->skip)
        return amp_fail_memory(err);
    size_t n = strlen(of->place);
    if (of->trail && strncmp(of->trail, of->place, n) == 0 && of->trail[n] == '/') {
        char *trail = strdup(of->trail + n + strspn(of->trail + n, "/"));
        if (!trail)
            return amp_fail_memory(err);
        for (n = strlen(trail); n > 0 && trail[n - 1] == '/';)
            trail[--n] = '\0';
        p->skip[p->n++] = trail;
    }
    json_array_foreach (outputs, i, output) {
        const char *path =
            amp_json_str(json_object_get(output, "rollback_snapshot"), "snapshot_path");
        char *below = *path ? path_below(p, of->root, path) : NULL;
        if (below)
            p->skip[p->n++] = below;
    }
    return 0;
}

static enum amp_tree_skip path_skip(void *ctx, const char *path, const struct stat *st)
{
    const struct places *p = ctx;
    const char *slash = strrchr(path, '/');
    if (strcmp(slash ? slash + 1 : path, ".git") == 0 ||
        (p->has_state && S_ISDIR(st->st_mode) && st->st_dev == p->state.st_dev &&
         st->st_ino == p->state.st_ino))
        return AMP_TREE_LEAVE;
    for (size_t i = 0; i < p->n; i++)
        if (strcmp(p->skip[i], path) == 0)
            return AMP_TREE_LEAVE;
    return AMP_TREE_TAKE;
}

/* ---- measuring ---- */

static int tree_fail(struct amp_error *err)
{
    const struct amp_error why = *err;
    if (amp_code_is(why.code, not_beneath))
        return amp_fail(err, AMP_NOPERM, E_PERMISSION_DENIED, "an artifact: %s", why.what);
    if (amp_code_is(why.code, tree_limit))
        return amp_fail(err, AMP_NO, E_CONTEXT_OVERFLOW, "the files of the workspace: %s",
                        why.what);
    return -1;
}

static int measure_scan(const struct amp_measure_of *of, const json_t *message, struct places *p,
                        struct amp_tree *t, struct amp_error *err)
{
    AMP_CLOSE int root = open(of->place, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    const json_t *outputs = outputs_of(message), *output;
    size_t i;
    struct amp_tree_scan scan = {.root = root,
                                 .skip = path_skip,
                                 .ctx = p,
                                 .contents = -1,
                                 .files = of->files ? of->files : FILES_MOST,
                                 .bytes = of->bytes ? of->bytes : BYTES_MOST,
                                 .specials = true,
                                 .lenient = true,
                                 .stop = of->stop};
    if (root < 0)
        return amp_fail_errno(err, AMP_IOERR, "%s", of->place);
    json_array_foreach (outputs, i, output) {
        const char *path = amp_json_str(output, "path");
        if (!*path)
            continue;
        AMP_FREE char *below = path_below(p, of->root, path);
        if (!below)
            return amp_fail(err, AMP_NOPERM, E_PERMISSION_DENIED,
                            "the expected output %.200s is not below workspace_root", path);
        /* The whole place is measured below. */
        if (strcmp(below, ".") != 0 && amp_tree_add(&scan, below, t, err) < 0)
            return tree_fail(err);
    }
    scan.hash_bytes = t->bytes + HASH_BYTES;
    return amp_tree_add(&scan, ".", t, err) < 0 ? tree_fail(err) : 0;
}

static int measure_write(const struct amp_tree *t, const char *file, struct amp_error *err)
{
    AMP_BUF struct amp_buf text = {0};
    amp_buf_init(&text, TEXT_MAX);
    return amp_tree_write(t, &text, err) < 0
               ? -1
               : amp_file_write_atomic(AT_FDCWD, file, 0600, amp_buf_span(&text), err);
}

int amp_measure_take(const struct amp_measure_of *of, const json_t *message, const char *file,
                     struct amp_measure **out, struct amp_error *err)
{
    AMP_CLEANUP(places_release) struct places p = {0};
    struct amp_measure *m = calloc(1, sizeof *m);
    if (!m)
        return amp_fail_memory(err);
    int rc = places_find(of, message, &p, err);
    if (rc == 0)
        rc = measure_scan(of, message, &p, &m->tree, err);
    amp_tree_sort(&m->tree);
    if (rc == 0 && file)
        rc = measure_write(&m->tree, file, err);
    if (rc < 0)
        amp_measure_free(m);
    else
        *out = m;
    return rc;
}

int amp_measure_load(const char *file, struct amp_measure **out, struct amp_error *err)
{
    AMP_BUF struct amp_buf text = {0};
    amp_buf_init(&text, TEXT_MAX);
    if (amp_file_read(AT_FDCWD, file, TEXT_MAX, &text, err) < 0)
        return -1;
    struct amp_measure *m = calloc(1, sizeof *m);
    if (!m)
        return amp_fail_memory(err);
    int rc = amp_tree_read(amp_buf_span(&text), &m->tree, err);
    if (rc < 0)
        amp_measure_free(m);
    else
        *out = m;
    return rc;
}

/* ---- comparing ---- */

struct compare {
    const struct amp_measure_of *of;
    const struct places *p;
    const struct amp_tree *before, *after;
    struct amp_artifacts *out;
    struct amp_error *err;
};

static bool is_there(const struct amp_tree_entry *e)
{
    return e && e->type != AMP_TREE_ABSENT && e->type != AMP_TREE_NO_WAY;
}

static bool entry_changed(const struct amp_tree_entry *a, const struct amp_tree_entry *b)
{
    bool file = (a->type == AMP_TREE_FILE || a->type == AMP_TREE_UNHASHED) &&
                (b->type == AMP_TREE_FILE || b->type == AMP_TREE_UNHASHED);
    if (!file || (a->type == AMP_TREE_FILE && b->type == AMP_TREE_FILE))
        return !amp_tree_same(a, b);
    return a->ino != b->ino || a->size != b->size || a->ctime.tv_sec != b->ctime.tv_sec ||
           a->ctime.tv_nsec != b->ctime.tv_nsec;
}

static bool is_in(const char *path, const char *dir)
{
    size_t n = strlen(dir);
    return strcmp(dir, ".") == 0 || (strncmp(path, dir, n) == 0 && path[n] == '/');
}

/* Digests the contents of a directory, without the directory itself. */
static void below_digest(const struct amp_tree *t, const char *dir, char out[AMP_TREE_DIGEST_MAX],
                         int64_t *bytes)
{
    struct amp_tree part = {.v = calloc(t->n + 1, sizeof *part.v)};
    *bytes = 0;
    for (size_t i = 0; part.v && i < t->n; i++) {
        if (!is_in(t->v[i].path, dir) || strcmp(t->v[i].path, dir) == 0 || !is_there(&t->v[i]))
            continue;
        part.v[part.n] = t->v[i];
        part.v[part.n].path += strcmp(dir, ".") == 0 ? 0 : strlen(dir) + 1;
        if (part.v[part.n].type == AMP_TREE_FILE || part.v[part.n].type == AMP_TREE_UNHASHED)
            *bytes += part.v[part.n].size;
        part.n++;
    }
    amp_tree_digest(&part, out);
    free(part.v);
}

static bool tree_changed(struct compare *c, const struct amp_tree_entry *a,
                         const struct amp_tree_entry *b)
{
    char one[AMP_TREE_DIGEST_MAX], two[AMP_TREE_DIGEST_MAX];
    int64_t bytes;
    if (entry_changed(a, b))
        return true;
    if (a->type != AMP_TREE_DIR && a->type != AMP_TREE_WAY)
        return false;
    below_digest(c->before, a->path, one, &bytes);
    below_digest(c->after, b->path, two, &bytes);
    return strcmp(one, two) != 0;
}

/* A file that was not hashed is hashed for the report. */
static int hash_late(struct compare *c, const char *path, char out[AMP_TREE_SUM_MAX], int64_t *size)
{
    AMP_CLEANUP(amp_tree_release) struct amp_tree t = {0};
    AMP_CLOSE int root = open(c->of->place, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    struct amp_tree_scan scan = {.root = root, .contents = -1, .stop = c->of->stop};
    struct amp_error why;
    if (root < 0 || amp_tree_add(&scan, path, &t, &why) < 0)
        return root >= 0 && why.status == AMP_INTERRUPTED
                   ? amp_fail_again(c->err, AMP_INTERRUPTED, "the artifacts", &why)
                   : 1;
    for (size_t i = 0; i < t.n; i++)
        if (t.v[i].type == AMP_TREE_FILE && strcmp(t.v[i].path, path) == 0) {
            memcpy(out, t.v[i].sum, AMP_TREE_SUM_MAX);
            *size = t.v[i].size;
            return 0;
        }
    return 1;
}

static int hash_put(struct compare *c, json_t *item, const struct amp_tree_entry *e)
{
    char sum[AMP_TREE_SUM_MAX] = "", text[16 + AMP_TREE_SUM_MAX];
    int64_t size = e->size;
    switch (e->type) {
    case AMP_TREE_FILE:
    case AMP_TREE_LINK:
        memcpy(sum, e->sum, sizeof sum);
        break;
    case AMP_TREE_DIR:
    case AMP_TREE_WAY:
        below_digest(c->after, e->path, sum, &size);
        break;
    case AMP_TREE_UNHASHED:
        if (hash_late(c, e->path, sum, &size) < 0)
            return -1;
        break;
    default: {
        json_t *x = json_pack("{s:b}", "x_special", true);
        return json_object_set_new(item, "extensions", x) ? amp_fail_memory(c->err) : 0;
    }
    }
    snprintf(text, sizeof text, "%s:%s", "sha256", sum);
    if ((*sum && json_object_set_new(item, "hash", json_string(text))) ||
        json_object_set_new(item, "size_bytes", json_integer(size)))
        return amp_fail_memory(c->err);
    return 0;
}

/* A path of the file system as JSON: bytes that are not UTF-8 become U+FFFD. */
static json_t *path_json(const char *root, const char *below)
{
    AMP_BUF struct amp_buf text = {.max = 4 * PATH_MAX}, path = {.max = 2 * PATH_MAX};
    struct amp_jw w;
    if (amp_buf_fmt(&path, NULL, "%s/%s", root, below) < 0)
        return NULL;
    amp_jw_init(&w, &text);
    amp_jw_str(&w, amp_buf_span(&path));
    return amp_jw_end(&w, NULL) < 0 ? NULL : json_loadb(text.data, text.len, JSON_DECODE_ANY, NULL);
}

static int item_add(struct compare *c, const char *type, json_t *path, const char *status,
                    const struct amp_tree_entry *now)
{
    json_t *item = json_pack("{s:s,s:o,s:s}", "type", type, "path", path, "status", status);
    if (!item || json_array_append_new(c->out->items, item))
        return amp_fail_memory(c->err);
    return is_there(now) ? hash_put(c, item, now) : 0;
}

static int output_compare(struct compare *c, const json_t *output)
{
    const char *path = amp_json_str(output, "path"), *type = amp_json_str(output, "type");
    AMP_FREE char *below = *path ? path_below(c->p, c->of->root, path) : NULL;
    if (!below)
        return 0;
    const struct amp_tree_entry *a = amp_tree_find(c->before, below),
                                *b = amp_tree_find(c->after, below);
    if (!is_there(a) && !is_there(b))
        return json_array_append_new(c->out->missing, amp_json_text(path)) ? amp_fail_memory(c->err)
                                                                           : 0;
    bool file = !*type || strcmp(type, "FILE") == 0;
    if (file && is_there(b) && (b->type == AMP_TREE_LINK || b->type == AMP_TREE_SPECIAL) &&
        json_array_append_new(c->out->missing, amp_json_text(path)))
        return amp_fail_memory(c->err);
    const char *status = !is_there(a)            ? "CREATED"
                         : !is_there(b)          ? "DELETED"
                         : tree_changed(c, a, b) ? "UPDATED"
                                                 : "UNCHANGED";
    return item_add(c, *type ? type : "FILE", amp_json_text(path), status, b);
}

/* Whether an expected output is or contains the path. */
static bool is_expected(struct compare *c, const json_t *message, const char *path)
{
    const json_t *output;
    size_t i;
    json_array_foreach (outputs_of(message), i, output) {
        const char *of = amp_json_str(output, "path");
        AMP_FREE char *below = *of ? path_below(c->p, c->of->root, of) : NULL;
        if (below && (strcmp(below, path) == 0 || is_in(path, below)))
            return true;
    }
    return false;
}

static bool is_file(const struct amp_tree_entry *e)
{
    return is_there(e) && e->type != AMP_TREE_DIR && e->type != AMP_TREE_WAY;
}

/* One path of both trees, by either of which it may be missing or a directory. */
static int other_compare(struct compare *c, const json_t *message, const struct amp_tree_entry *a,
                         const struct amp_tree_entry *b, int64_t most)
{
    const char *status = !is_file(a) ? "CREATED" : !is_file(b) ? "DELETED" : "UPDATED";
    const char *path = is_file(b) ? b->path : is_file(a) ? a->path : NULL;
    if (!path || (is_file(a) && is_file(b) && !entry_changed(a, b)) ||
        is_expected(c, message, path))
        return 0;
    if ((int64_t)json_array_size(c->out->items) >= most) {
        c->out->omitted++;
        return 0;
    }
    json_t *at = path_json(c->p->root, path);
    return at ? item_add(c, "FILE", at, status, is_file(b) ? b : NULL) : amp_fail_memory(c->err);
}

static int others_compare(struct compare *c, const json_t *message, int64_t most)
{
    for (size_t i = 0; i < c->after->n; i++) /* by path: those that are there now */
        if (other_compare(c, message, amp_tree_find(c->before, c->after->v[i].path),
                          &c->after->v[i], most) < 0)
            return -1;
    for (size_t i = 0; i < c->before->n; i++)
        if (!is_file(amp_tree_find(c->after, c->before->v[i].path)) &&
            other_compare(c, message, &c->before->v[i], NULL, most) < 0)
            return -1;
    return 0;
}

int amp_measure_compare(const struct amp_measure_of *of, const json_t *message,
                        const struct amp_measure *before, const struct amp_measure *after,
                        int64_t most, struct amp_artifacts *out, struct amp_error *err)
{
    AMP_CLEANUP(places_release) struct places p = {0};
    struct compare c = {of, &p, &before->tree, &after->tree, out, err};
    const json_t *outputs = outputs_of(message), *output;
    size_t i;
    *out = (struct amp_artifacts){.items = json_array(), .missing = json_array()};
    if (!out->items || !out->missing) {
        amp_artifacts_release(out);
        return amp_fail_memory(err);
    }
    int rc = places_find(of, message, &p, err);
    json_array_foreach (outputs, i, output)
        rc = rc ? rc : output_compare(&c, output);
    if (rc == 0)
        rc = others_compare(&c, message, most ? most : ITEMS_MOST);
    if (rc < 0)
        amp_artifacts_release(out);
    return rc;
}

void amp_artifacts_release(struct amp_artifacts *a)
{
    json_decref(a->items);
    json_decref(a->missing);
    *a = (struct amp_artifacts){0};
}
