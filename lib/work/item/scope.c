/* The scopes of jobs, and whether two of them overlap. */
#include "work/item/scope.h"

#include <stdlib.h>
#include <string.h>

#include <amp/json/writer.h>

#include "base/codes.h"
#include "json/record.h"

static const struct amp_rec_field scope_fields[] = {
    AMP_REC_WORDS(struct amp_scope, "repositories", repos, false),
    AMP_REC_WORDS(struct amp_scope, "branches", branches, false),
    AMP_REC_WORDS(struct amp_scope, "paths", paths, false),
    AMP_REC_WORDS(struct amp_scope, "resources", resources, false),
    AMP_REC(BOOL, struct amp_scope, "exclusive", exclusive),
};
AMP_REC_TABLE(scope_rec, "a scope", struct amp_scope, scope_fields);

/* ---- reading ---- */

static int refuse(struct amp_error *err, const char *what)
{
    return amp_fail(err, AMP_NO, bad_scope, "scope: %s", what);
}

/* A misspelled member must not mean "everything". */
static int members_check(const struct amp_tape *t, struct amp_error *err)
{
    if (t->tok[0].type != AMP_JSON_OBJECT)
        return refuse(err, "not an object");
    for (uint32_t key = 1; key < t->tok[0].next; key = t->tok[key + 1].next) {
        size_t i = 0, n = sizeof scope_fields / sizeof *scope_fields;
        while (i < n && !amp_tok_is(t, key, amp_span_str(scope_fields[i].key)))
            i++;
        if (i == n)
            return amp_fail(err, AMP_NO, bad_scope,
                            "scope: \"%.*s\" is not repositories, branches, paths, resources or "
                            "exclusive",
                            AMP_CLIP(amp_tok_raw(t, key), 40));
    }
    return 0;
}

static int list_check(const struct amp_span *v, uint32_t n, struct amp_error *err)
{
    if (n > AMP_SCOPE_LIST_MAX)
        return refuse(err, "a list has more than 256 items");
    for (uint32_t i = 0; i < n; i++)
        if (v[i].n == 0 || v[i].n > AMP_SCOPE_ITEM_MAX || memchr(v[i].p, '\0', v[i].n))
            return refuse(err, "an item is empty, longer than 1024 bytes, or has a NUL");
    return 0;
}

int amp_scope_parse(struct amp_span json, struct amp_buf *mem, struct amp_scope *out,
                    struct amp_error *err)
{
    AMP_TAPE struct amp_tape t = {0};
    struct amp_error why;

    *out = (struct amp_scope){0};
    if (json.n == 0)
        return 0;
    amp_rec_tape(&t);
    if (amp_rec_scan(&t, json, "a scope", &why) < 0)
        return amp_code_is(why.code, no_memory) ? (*err = why, -1) : refuse(err, why.what);
    if (members_check(&t, err) < 0)
        return -1;
    if (amp_rec_read(&scope_rec, &t, 0, mem, out, &why) < 0)
        return amp_code_is(why.code, no_memory) ? (*err = why, -1) : refuse(err, why.what);
    return list_check(out->repos, out->n_repos, err) < 0 ||
                   list_check(out->branches, out->n_branches, err) < 0 ||
                   list_check(out->paths, out->n_paths, err) < 0 ||
                   list_check(out->resources, out->n_resources, err) < 0
               ? -1
               : 0;
}

static bool scope_is_empty(const struct amp_scope *s)
{
    return s->n_repos + s->n_branches + s->n_paths + s->n_resources == 0 && !s->exclusive;
}

/* ---- writing ---- */

static int text_compare(const void *a, const void *b)
{
    const struct amp_span *x = a, *y = b;
    size_t n = x->n < y->n ? x->n : y->n;
    int by = n ? memcmp(x->p, y->p, n) : 0;

    return by ? by : (x->n > y->n) - (x->n < y->n);
}

static uint32_t list_sort(struct amp_span *v, uint32_t n)
{
    uint32_t kept = 0;

    if (n > 1)
        qsort(v, n, sizeof *v, text_compare);
    for (uint32_t i = 0; i < n; i++)
        if (kept == 0 || !amp_span_eq(v[i], v[kept - 1]))
            v[kept++] = v[i];
    return kept;
}

int amp_scope_write(struct amp_scope *s, struct amp_buf *out, struct amp_error *err)
{
    if (scope_is_empty(s))
        return 0;
    s->n_repos = list_sort(s->repos, s->n_repos);
    s->n_branches = list_sort(s->branches, s->n_branches);
    s->n_paths = list_sort(s->paths, s->n_paths);
    s->n_resources = list_sort(s->resources, s->n_resources);
    return amp_rec_write(&scope_rec, s, out, err);
}

/* ---- overlap ---- */

static bool has_wildcard(struct amp_span s)
{
    return memchr(s.p, '*', s.n) != NULL;
}

/* Whether some text matches both patterns. If both have a star, what is before the first and after
 * the last one must agree as far as both have it; what is between stars can always be arranged. */
static bool globs_meet(struct amp_span a, struct amp_span b)
{
    if (!has_wildcard(a) || !has_wildcard(b))
        return has_wildcard(a)   ? amp_span_glob(b, a)
               : has_wildcard(b) ? amp_span_glob(a, b)
                                 : amp_span_eq(a, b);
    size_t before_a = (size_t)((const char *)memchr(a.p, '*', a.n) - a.p);
    size_t before_b = (size_t)((const char *)memchr(b.p, '*', b.n) - b.p);
    size_t after_a = a.n - 1 - (size_t)((const char *)memrchr(a.p, '*', a.n) - a.p);
    size_t after_b = b.n - 1 - (size_t)((const char *)memrchr(b.p, '*', b.n) - b.p);
    size_t before = before_a < before_b ? before_a : before_b;
    size_t after = after_a < after_b ? after_a : after_b;

    return memcmp(a.p, b.p, before) == 0 &&
           memcmp(a.p + a.n - after, b.p + b.n - after, after) == 0;
}

/* One is the other's directory, or the same; of texts without wildcards. */
static bool is_inside(struct amp_span a, struct amp_span b)
{
    while (a.n > 1 && a.p[a.n - 1] == '/')
        a.n--;
    return b.n >= a.n && memcmp(a.p, b.p, a.n) == 0 &&
           (b.n == a.n || b.p[a.n] == '/' || (a.n == 1 && a.p[0] == '/'));
}

/* Whether two different absolute repositories lie in each other: branches and paths say nothing
 * then, since they begin at different roots. */
static bool repos_nest(struct amp_span a, struct amp_span b)
{
    return a.n && b.n && a.p[0] == '/' && b.p[0] == '/' && !has_wildcard(a) && !has_wildcard(b) &&
           !amp_span_eq(a, b) && (is_inside(a, b) || is_inside(b, a));
}

typedef bool (*meet_fn)(struct amp_span a, struct amp_span b);

static bool lists_meet(const struct amp_span *a, uint32_t n_a, const struct amp_span *b,
                       uint32_t n_b, meet_fn meet)
{
    for (uint32_t i = 0; i < n_a; i++)
        for (uint32_t k = 0; k < n_b; k++)
            if (meet(a[i], b[k]))
                return true;
    return false;
}

/* An absent list means all. */
static bool dimensions_meet(const struct amp_span *a, uint32_t n_a, const struct amp_span *b,
                            uint32_t n_b, meet_fn meet)
{
    return n_a == 0 || n_b == 0 || lists_meet(a, n_a, b, n_b, meet);
}

static bool has_places(const struct amp_scope *s)
{
    return s->n_repos + s->n_branches + s->n_paths > 0;
}

static bool places_meet(const struct amp_scope *a, const struct amp_scope *b, meet_fn patterns)
{
    return has_places(a) && has_places(b) &&
           dimensions_meet(a->repos, a->n_repos, b->repos, b->n_repos, globs_meet) &&
           dimensions_meet(a->branches, a->n_branches, b->branches, b->n_branches, globs_meet) &&
           dimensions_meet(a->paths, a->n_paths, b->paths, b->n_paths, patterns);
}

/* The repository and the path, if a path without a repository is inside the absolute repository of
 * the other scope, or around it. Its branch says nothing, since the path has none. */
static bool path_reaches(const struct amp_scope *p, const struct amp_scope *r, meet_fn patterns,
                         struct amp_span *path, struct amp_span *repo)
{
    for (uint32_t i = 0; p->n_repos == 0 && i < p->n_paths; i++)
        for (uint32_t k = 0; k < r->n_repos; k++) {
            struct amp_span rest = *path = p->paths[i];
            *repo = r->repos[k];
            if (path->p[0] != '/' || repo->p[0] != '/' || has_wildcard(*repo))
                continue;
            if (is_inside(*path, *repo))
                return true;
            if (!is_inside(*repo, *path))
                continue;
            while (repo->n > 1 && repo->p[repo->n - 1] == '/')
                repo->n--;
            rest.p += repo->n > 1 ? repo->n : 0;
            rest.n -= repo->n > 1 ? repo->n : 0;
            if (dimensions_meet(&rest, 1, r->paths, r->n_paths, patterns))
                return true;
        }
    return false;
}

static bool paths_reach(const struct amp_scope *a, const struct amp_scope *b, meet_fn patterns,
                        struct amp_span *path, struct amp_span *repo)
{
    return path_reaches(a, b, patterns, path, repo) || path_reaches(b, a, patterns, path, repo);
}

bool amp_scope_overlap(const struct amp_scope *a, const struct amp_scope *b, bool same_type,
                       bool (*patterns)(struct amp_span, struct amp_span))
{
    struct amp_span path, repo;

    return (same_type && (a->exclusive || b->exclusive)) ||
           lists_meet(a->resources, a->n_resources, b->resources, b->n_resources, globs_meet) ||
           lists_meet(a->repos, a->n_repos, b->repos, b->n_repos, repos_nest) ||
           places_meet(a, b, patterns) || paths_reach(a, b, patterns, &path, &repo);
}

/* ---- what they have in common ---- */

#define COMMON_MOST 16

static void common_put(struct amp_jw *w, struct amp_span x, struct amp_span y)
{
    if (amp_span_eq(x, y)) {
        amp_jw_str(w, x);
        return;
    }
    amp_jw_open(w, '[');
    amp_jw_str(w, x);
    amp_jw_str(w, y);
    amp_jw_close(w, ']');
}

static bool repos_meet(struct amp_span a, struct amp_span b)
{
    return repos_nest(a, b) || globs_meet(a, b);
}

/* all: a list that one of them lacks stands for everything. */
static void dimension_put(struct amp_jw *w, const char *key, const struct amp_span *a, uint32_t n_a,
                          const struct amp_span *b, uint32_t n_b, bool all, meet_fn meet)
{
    uint32_t put = 0;

    if (n_a + n_b == 0 || (!all && (n_a == 0 || n_b == 0 || !lists_meet(a, n_a, b, n_b, meet))))
        return;
    amp_jw_member_open(w, key, '[');
    for (uint32_t i = 0; i < n_a && put < COMMON_MOST; i++)
        for (uint32_t k = 0; k < n_b && put < COMMON_MOST; k++)
            if (meet(a[i], b[k])) {
                common_put(w, a[i], b[k]);
                put++;
            }
    for (uint32_t i = 0; n_b == 0 && i < n_a && put < COMMON_MOST; i++, put++)
        amp_jw_str(w, a[i]);
    for (uint32_t k = 0; n_a == 0 && k < n_b && put < COMMON_MOST; k++, put++)
        amp_jw_str(w, b[k]);
    amp_jw_close(w, ']');
}

int amp_scope_common(const struct amp_scope *a, const struct amp_scope *b, bool same_type,
                     bool (*patterns)(struct amp_span, struct amp_span), struct amp_buf *out,
                     struct amp_error *err)
{
    bool nest = lists_meet(a->repos, a->n_repos, b->repos, b->n_repos, repos_nest);
    bool places = !nest && places_meet(a, b, patterns);
    struct amp_span path, repo;
    struct amp_jw w;

    amp_jw_init(&w, out);
    amp_jw_open(&w, '{');
    if (nest || places)
        dimension_put(&w, "repositories", a->repos, a->n_repos, b->repos, b->n_repos, places,
                      repos_meet);
    if (places) {
        dimension_put(&w, "branches", a->branches, a->n_branches, b->branches, b->n_branches, true,
                      globs_meet);
        dimension_put(&w, "paths", a->paths, a->n_paths, b->paths, b->n_paths, true, patterns);
    }
    if (!places && paths_reach(a, b, patterns, &path, &repo)) {
        amp_jw_member_open(&w, "paths", '[');
        common_put(&w, path, repo);
        amp_jw_close(&w, ']');
    }
    dimension_put(&w, "resources", a->resources, a->n_resources, b->resources, b->n_resources,
                  false, globs_meet);
    if (same_type && (a->exclusive || b->exclusive))
        amp_jw_member_bool(&w, "exclusive", true);
    amp_jw_close(&w, '}');
    return amp_jw_end(&w, err);
}
