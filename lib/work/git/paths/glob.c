/* Path patterns. Both functions walk a table of positions, so that no pattern takes long. */
#include "work/git/paths/glob.h"

#include <string.h>

#include "base/codes.h"

#define DEPTH_MAX 1024 /* components of a path; the rest is not compared */

struct parts {
    struct amp_span v[AMP_GLOB_PARTS + 1];
    int n;
    bool below; /* a slash at the end: not the directory itself */
    bool exact; /* stars at the end: nothing below what matches */
};

static bool is_any(struct amp_span part)
{
    return amp_span_is(part, "**");
}

/* Takes the next component of a path; false at its end. */
static bool part_next(struct amp_span *rest, struct amp_span *part)
{
    while (rest->n && *rest->p == '/')
        rest->p++, rest->n--;
    const char *end = rest->n ? memchr(rest->p, '/', rest->n) : NULL;
    *part = (struct amp_span){rest->p, end ? (size_t)(end - rest->p) : rest->n};
    rest->p += part->n;
    rest->n -= part->n;
    return part->n > 0;
}

static const char *pattern_split(struct amp_span pattern, struct parts *out)
{
    struct amp_span part, rest = pattern;
    *out = (struct parts){.below = pattern.n > 1 && pattern.p[pattern.n - 1] == '/'};
    if (pattern.n == 0 || pattern.n > AMP_GLOB_MAX)
        return "empty or longer than 255 bytes";
    for (size_t i = 0; i < pattern.n; i++)
        if ((unsigned char)pattern.p[i] < 0x20 || pattern.p[i] == 0x7f)
            return "a control character";
    const char *slash = memchr(pattern.p, '/', pattern.n - out->below);
    if (!slash)
        out->v[out->n++] = AMP_SPAN("**");
    while (part_next(&rest, &part)) {
        if (out->n == AMP_GLOB_PARTS)
            return "more than 32 components";
        if (amp_span_is(part, ".") || amp_span_is(part, ".."))
            return "a component \".\" or \"..\"";
        out->v[out->n++] = part;
    }
    if (out->n <= (slash ? 0 : 1))
        return "no component";
    struct amp_span last = out->v[out->n - 1];
    out->exact = !out->below && (memchr(last.p, '*', last.n) || memchr(last.p, '?', last.n));
    return NULL;
}

int amp_glob_check(struct amp_span pattern, struct amp_error *err)
{
    struct parts p;
    const char *why = pattern_split(pattern, &p);
    return why ? amp_fail(err, AMP_USAGE, bad_pattern, "%.*s: not a pattern of paths: %s",
                          AMP_CLIP(pattern, 200), why)
               : 0;
}

bool amp_glob_match(struct amp_span pattern, struct amp_span path)
{
    /* at[i]: the components of the pattern so far match the first i of the path. */
    bool at[DEPTH_MAX + 1] = {true}, next[DEPTH_MAX + 1];
    struct amp_span parts[DEPTH_MAX];
    struct parts p;
    int n = 0;
    if (pattern_split(pattern, &p))
        return false;
    while (n < DEPTH_MAX && part_next(&path, &parts[n]))
        n++;
    for (int k = 0; k < p.n; k++) {
        bool before = false;
        for (int i = 0; i <= n; i++) {
            before = before || at[i];
            next[i] =
                is_any(p.v[k]) ? before : i > 0 && at[i - 1] && amp_span_glob(parts[i - 1], p.v[k]);
        }
        memcpy(at, next, sizeof(bool) * (size_t)(n + 1));
    }
    for (int i = 1; i <= n; i++)
        if (at[i] && (i < n ? !p.exact : !p.below))
            return true;
    return false;
}

/* Whether some component matches both. */
static bool parts_overlap(struct amp_span a, struct amp_span b)
{
    bool row[2][AMP_GLOB_MAX + 2] = {{true}};
    for (size_t i = 0; i <= a.n; i++) {
        bool *at = row[i % 2], *down = row[(i + 1) % 2];
        memset(down, 0, sizeof row[0]);
        for (size_t j = 0; j <= b.n; j++) {
            if (!at[j])
                continue;
            if (i == a.n && j == b.n)
                return true;
            bool star_a = i < a.n && a.p[i] == '*', star_b = j < b.n && b.p[j] == '*';
            if (star_a || (star_b && i < a.n))
                down[j] = true; /* the star is empty, or takes a's character */
            if (star_b || (star_a && j < b.n))
                at[j + 1] = true;
            if (i < a.n && j < b.n && !star_a && !star_b &&
                (a.p[i] == b.p[j] || a.p[i] == '?' || b.p[j] == '?'))
                down[j + 1] = true;
        }
    }
    return false;
}

bool amp_glob_overlap(struct amp_span a, struct amp_span b)
{
    bool at[AMP_GLOB_PARTS + 2][AMP_GLOB_PARTS + 2] = {{true}};
    struct parts p, q;
    if (pattern_split(a, &p) || pattern_split(b, &q))
        return true;
    for (int i = 0; i <= p.n; i++)
        for (int j = 0; j <= q.n; j++) {
            if (!at[i][j])
                continue;
            if ((i == p.n && j == q.n) || (i == p.n && !p.exact) || (j == q.n && !q.exact))
                return true; /* the rest of the other is below */
            bool any_p = i < p.n && is_any(p.v[i]), any_q = j < q.n && is_any(q.v[j]);
            at[i + 1][j] = at[i + 1][j] || any_p || any_q;
            at[i][j + 1] = at[i][j + 1] || any_p || any_q;
            if (i < p.n && j < q.n && !any_p && !any_q && parts_overlap(p.v[i], q.v[j]))
                at[i + 1][j + 1] = true;
        }
    return false;
}
