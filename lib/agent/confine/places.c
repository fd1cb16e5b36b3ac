/* The paths that a command may use: the worktree, the tool's places, and the grants of the policy,
 * whose globs are resolved to real paths here. */
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/confine/private.h"
#include "json/text.h"

void confine_places_release(struct confine_places *p)
{
    for (size_t i = 0; i < p->n; i++) {
        free(p->v[i].from);
        free(p->v[i].at);
    }
    p->n = 0;
}

bool confine_is_beneath(const char *path, const char *dir)
{
    size_t n = strlen(dir);
    while (n > 1 && dir[n - 1] == '/')
        n--;
    return n == 1 || (strncmp(path, dir, n) == 0 && (path[n] == '/' || !path[n]));
}

static int place_add(struct confine_places *p, const char *from, const char *at, bool write,
                     struct amp_error *err)
{
    if ((from && amp_utf8_path(from, err) < 0) || amp_utf8_path(at, err) < 0)
        return -1;
    for (size_t i = 0; i < p->n; i++)
        if (p->v[i].from && from && strcmp(p->v[i].from, from) == 0 &&
            strcmp(p->v[i].at, at) == 0) {
            p->v[i].write |= write;
            return 0;
        }
    if (p->n == CONFINE_PLACES_MAX)
        return amp_fail(err, AMP_CONFIG, "bad_policy", "the policy grants more than %d paths",
                        CONFINE_PLACES_MAX);
    struct confine_place new = {
        .from = from ? strdup(from) : NULL, .at = strdup(at), .write = write};
    if ((from && !new.from) || !new.at) {
        free(new.from);
        free(new.at);
        return amp_fail_memory(err);
    }
    p->v[p->n++] = new;
    return 0;
}

/* A grant of the policy, resolved: refuses what no policy may grant. */
static int grant_add(const struct amp_confine *c, struct confine_places *p, const char *glob,
                     const char *real, const char *at, bool write, struct amp_error *err)
{
    static const char *const never[] = {"/proc", "/dev", NULL};
    for (const char *const *h = c->hidden; h && *h; h++)
        if (confine_is_beneath(real, *h) || confine_is_beneath(*h, real))
            return amp_fail(err, AMP_CONFIG, "bad_policy", "'%.100s' would grant %.200s", glob, *h);
    for (const char *const *n = never; *n; n++)
        if (confine_is_beneath(real, *n) || confine_is_beneath(at, *n))
            return amp_fail(err, AMP_CONFIG, "bad_policy", "'%.100s' would grant %s", glob, *n);
    if (strcmp(real, "/") == 0 || strcmp(at, "/") == 0)
        return amp_fail(err, AMP_CONFIG, "bad_policy", "'%.100s' would grant /", glob);
    if (place_add(p, real, at, write, err) < 0)
        return -1;
    for (size_t i = 0; i < p->n; i++)
        p->v[i].granted |= strcmp(p->v[i].at, at) == 0;
    return 0;
}

/* Splits off the fixed part of an absolute glob: the directory before its first wildcard. */
static size_t fixed_part(const char *glob)
{
    size_t n = strcspn(glob, "*?[");
    if (!glob[n])
        return n;
    while (n > 0 && glob[n - 1] != '/')
        n--;
    return n;
}

/* The absolute form of a glob, and the directory that its matches must not leave, resolved. */
static int glob_place(const struct amp_confine *c, const char *glob, char *pattern, size_t size,
                      char *root, struct amp_error *err)
{
    bool relative = glob[0] != '/' && glob[0] != '~';
    char fixed[PATH_MAX];
    int n = relative && strcmp(glob, ".") != 0 ? snprintf(pattern, size, "%s/%s", c->worktree, glob)
            : relative                         ? snprintf(pattern, size, "%s", c->worktree)
            : glob[0] == '~' ? snprintf(pattern, size, "%s%s", c->home ? c->home : "", glob + 1)
                             : snprintf(pattern, size, "%s", glob);
    if (n < 0 || (size_t)n >= size || n >= PATH_MAX)
        return amp_fail(err, AMP_CONFIG, "bad_policy", "'%.100s' is too long", glob);
    if (glob[0] == '~' && (!c->home || (glob[1] && glob[1] != '/')))
        return amp_fail(err, AMP_CONFIG, "bad_policy",
                        "'%.100s': only ~/ is possible, and HOME must be set", glob);
    while (n > 1 && pattern[n - 1] == '/')
        pattern[--n] = '\0';
    /* A path in the worktree has names that an agent chose: it must not leave the worktree. */
    if (confine_is_beneath(pattern, c->worktree))
        return realpath(c->worktree, root) ? 0 : 1;
    snprintf(fixed, sizeof fixed, "%.*s", (int)fixed_part(pattern), pattern);
    return realpath(fixed, root) ? 0 : 1;
}

static int glob_add(const struct amp_confine *c, struct confine_places *p, const char *glob_text,
                    bool write, struct amp_error *err)
{
    char pattern[PATH_MAX + 8], root[PATH_MAX], real[PATH_MAX];
    glob_t found = {0};
    int rc = glob_place(c, glob_text, pattern, sizeof pattern, root, err);
    if (rc)
        return rc < 0 ? -1 : 0; /* its directory does not exist */
    int status = glob(pattern, GLOB_NOSORT, NULL, &found);
    if (status == GLOB_NOSPACE)
        return amp_fail_memory(err);
    rc = 0;
    for (size_t i = 0; status == 0 && i < found.gl_pathc && rc == 0; i++) {
        /* Links that lead out of the fixed part are not followed. */
        if (realpath(found.gl_pathv[i], real) && confine_is_beneath(real, root))
            rc = grant_add(c, p, glob_text, real, found.gl_pathv[i], write, err);
    }
    globfree(&found);
    return rc;
}

static int by_target(const void *a, const void *b)
{
    const struct confine_place *x = a, *y = b;
    return strcmp(x->at, y->at);
}

/* A path of the worktree, resolved; absent and hidden paths and links out of it are left out. */
static int inside_add(const struct amp_confine *c, struct confine_places *p, const char *worktree,
                      const char *path, bool write, struct amp_error *err)
{
    char full[PATH_MAX * 2], real[PATH_MAX], hidden[PATH_MAX];
    snprintf(full, sizeof full, "%s/%s", worktree, path);
    if (!realpath(full, real) || !confine_is_beneath(real, worktree))
        return 0;
    for (const char *const *h = c->hidden; h && *h; h++)
        if (realpath(*h, hidden) && confine_is_beneath(real, hidden))
            return 0;
    return place_add(p, real, real, write, err);
}

/* Whether a place of the tool shows something else at the path already. */
static bool is_covered(const struct amp_confine *c, const char *path)
{
    for (size_t i = 0; i < c->n_places; i++) {
        const struct amp_confine_place *q = &c->places[i];
        if (q->at && (!q->path || strcmp(q->path, q->at) != 0) && confine_is_beneath(path, q->at))
            return true;
    }
    return false;
}

/* Mounts the directories of the worktree above a hidden path on themselves, with the rights that
 * they have: the command could rename them otherwise, and put a directory of its own at the path.
 */
static int above_pin(const struct amp_confine *c, struct confine_places *p, const char *worktree,
                     const char *hidden, struct amp_error *err)
{
    char dir[PATH_MAX];
    amp_span_copy(amp_span_str(hidden), dir, sizeof dir);
    for (char *slash; (slash = strrchr(dir, '/')) != NULL;) {
        const struct confine_place *in = NULL;
        *slash = '\0';
        if (strcmp(dir, worktree) == 0 || !confine_is_beneath(dir, worktree))
            break;
        for (size_t i = 0; i < p->n; i++)
            if (confine_is_beneath(dir, p->v[i].at) && (!in || strlen(p->v[i].at) > strlen(in->at)))
                in = &p->v[i];
        if (in && !is_covered(c, dir) && place_add(p, dir, dir, in->write, err) < 0)
            return -1;
    }
    return 0;
}

/* What must stay hidden and is in the worktree is covered; rules of files cannot do that. */
static int hidden_cover(const struct amp_confine *c, struct confine_places *p, const char *worktree,
                        struct amp_error *err)
{
    char real[PATH_MAX];
    for (const char *const *h = c->hidden; h && *h; h++) {
        if (!realpath(*h, real) || !confine_is_beneath(real, worktree))
            continue;
        /* A worktree with two paths would show it at the other one. */
        if (!c->report->means.namespaces || strcmp(real, worktree) == 0 ||
            strcmp(c->worktree, worktree) != 0)
            return amp_fail(err, AMP_CONFIG, "bad_policy", "the worktree %.150s contains %.150s",
                            worktree, real);
        if (!is_covered(c, real) &&
            (above_pin(c, p, worktree, real, err) < 0 || place_add(p, NULL, real, false, err) < 0))
            return -1;
    }
    return 0;
}

static int worktree_add(const struct amp_confine *c, struct confine_places *p, const char *real,
                        const char *at, struct amp_error *err)
{
    const struct amp_confine_policy *policy = c->policy;
    bool write = !policy->read_only && !policy->only_write;
    if (!policy->only_read && place_add(p, real, at, write, err) < 0)
        return -1;
    for (char **path = policy->only_read; path && *path; path++)
        if (inside_add(c, p, real, *path, write, err) < 0)
            return -1;
    for (char **path = policy->read_only ? NULL : policy->only_write; path && *path; path++)
        if (inside_add(c, p, real, *path, true, err) < 0)
            return -1;
    return 0;
}

int confine_places_collect(const struct amp_confine *c, struct confine_places *p,
                           struct amp_error *err)
{
    char real[PATH_MAX];
    if (!realpath(c->worktree, real))
        return amp_fail_errno(err, AMP_UNAVAILABLE, "%s", c->worktree);
    if (strcmp(real, "/") == 0)
        return amp_fail(err, AMP_CONFIG, "bad_policy", "/ cannot be a worktree");
    if (worktree_add(c, p, real, real, err) < 0 || hidden_cover(c, p, real, err) < 0 ||
        (strcmp(real, c->worktree) && worktree_add(c, p, real, c->worktree, err) < 0))
        return -1;
    for (int kind = AMP_GRANT_READ; kind <= AMP_GRANT_WRITE; kind++)
        for (char **g = c->policy->grants[kind]; g && *g; g++)
            if (glob_add(c, p, *g, kind == AMP_GRANT_WRITE, err) < 0)
                return -1;
    for (size_t i = 0; i < c->n_places; i++) {
        const struct amp_confine_place *q = &c->places[i];
        if (q->path && !realpath(q->path, real))
            return amp_fail_errno(err, AMP_UNAVAILABLE, "%s", q->path);
        if (place_add(p, q->path ? real : NULL, q->at ? q->at : q->path, q->write, err) < 0)
            return -1;
    }
    qsort(p->v, p->n, sizeof *p->v, by_target);
    return 0;
}
