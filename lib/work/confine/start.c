/* The start of a confined command: its plan (libexec/confine/plan.c), which the helper gets on
 * descriptor 3, and the helper's report. */
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <amp/base/file.h>
#include <amp/json/writer.h>

#include "base/codes.h"
#include "work/confine/private.h"
#include "json/text.h"

/* ---- the paths that the command may use: the worktree, the tool's places, the policy's grants
 * ---- */

#define PLACES_MAX 500 /* the helper's limit is 512 */

struct place {
    char *from, *at; /* owned; from NULL: covered */
    bool write;
    bool granted; /* by the policy */
};
struct places {
    struct place v[PLACES_MAX];
    size_t n;
};

static void places_release(struct places *p)
{
    for (size_t i = 0; i < p->n; i++) {
        free(p->v[i].from);
        free(p->v[i].at);
    }
    p->n = 0;
}

/* Whether path is dir or beneath it. */
static bool is_beneath(const char *path, const char *dir)
{
    size_t n = strlen(dir);
    while (n > 1 && dir[n - 1] == '/')
        n--;
    return n == 1 || (strncmp(path, dir, n) == 0 && (path[n] == '/' || !path[n]));
}

static int place_add(struct places *p, const char *from, const char *at, bool write,
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
    if (p->n == PLACES_MAX)
        return amp_fail(err, AMP_CONFIG, bad_policy, "the policy grants more than %d paths",
                        PLACES_MAX);
    struct place new = {.from = from ? strdup(from) : NULL, .at = strdup(at), .write = write};
    if ((from && !new.from) || !new.at) {
        free(new.from);
        free(new.at);
        return amp_fail_memory(err);
    }
    p->v[p->n++] = new;
    return 0;
}

/* A grant of the policy, resolved: refuses what no policy may grant. */
static int grant_add(const struct amp_confine *c, struct places *p, const char *glob,
                     const char *real, const char *at, bool write, struct amp_error *err)
{
    static const char *const never[] = {"/proc", "/dev", NULL};
    for (const char *const *h = c->hidden; h && *h; h++)
        if (is_beneath(real, *h) || is_beneath(*h, real))
            return amp_fail(err, AMP_CONFIG, bad_policy, "'%.100s' would grant %.200s", glob, *h);
    for (const char *const *n = never; *n; n++)
        if (is_beneath(real, *n) || is_beneath(at, *n))
            return amp_fail(err, AMP_CONFIG, bad_policy, "'%.100s' would grant %s", glob, *n);
    if (strcmp(real, "/") == 0 || strcmp(at, "/") == 0)
        return amp_fail(err, AMP_CONFIG, bad_policy, "'%.100s' would grant /", glob);
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
        return amp_fail(err, AMP_CONFIG, bad_policy, "'%.100s' is too long", glob);
    if (glob[0] == '~' && (!c->home || (glob[1] && glob[1] != '/')))
        return amp_fail(err, AMP_CONFIG, bad_policy,
                        "'%.100s': only ~/ is possible, and HOME must be set", glob);
    while (n > 1 && pattern[n - 1] == '/')
        pattern[--n] = '\0';
    /* A path in the worktree has names that an agent chose: it must not leave the worktree. */
    if (is_beneath(pattern, c->worktree))
        return realpath(c->worktree, root) ? 0 : 1;
    snprintf(fixed, sizeof fixed, "%.*s", (int)fixed_part(pattern), pattern);
    return realpath(fixed, root) ? 0 : 1;
}

static int glob_add(const struct amp_confine *c, struct places *p, const char *glob_text,
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
        if (realpath(found.gl_pathv[i], real) && is_beneath(real, root))
            rc = grant_add(c, p, glob_text, real, found.gl_pathv[i], write, err);
    }
    globfree(&found);
    return rc;
}

static int by_target(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    return strcmp(x->at, y->at);
}

/* A path of the worktree, resolved; absent and hidden paths and links out of it are left out. */
static int inside_add(const struct amp_confine *c, struct places *p, const char *worktree,
                      const char *path, bool write, struct amp_error *err)
{
    char full[PATH_MAX * 2], real[PATH_MAX], hidden[PATH_MAX];
    snprintf(full, sizeof full, "%s/%s", worktree, path);
    if (!realpath(full, real) || !is_beneath(real, worktree))
        return 0;
    for (const char *const *h = c->hidden; h && *h; h++)
        if (realpath(*h, hidden) && is_beneath(real, hidden))
            return 0;
    return place_add(p, real, real, write, err);
}

/* Whether a place of the tool shows something else at the path already. */
static bool is_covered(const struct amp_confine *c, const char *path)
{
    for (size_t i = 0; i < c->n_places; i++) {
        const struct amp_confine_place *q = &c->places[i];
        if (q->at && (!q->path || strcmp(q->path, q->at) != 0) && is_beneath(path, q->at))
            return true;
    }
    return false;
}

/* Mounts the directories of the worktree above a hidden path on themselves, with the rights that
 * they have: the command could rename them otherwise, and put a directory of its own at the path.
 */
static int above_pin(const struct amp_confine *c, struct places *p, const char *worktree,
                     const char *hidden, struct amp_error *err)
{
    char dir[PATH_MAX];
    amp_span_copy(amp_span_str(hidden), dir, sizeof dir);
    for (char *slash; (slash = strrchr(dir, '/')) != NULL;) {
        const struct place *in = NULL;
        *slash = '\0';
        if (strcmp(dir, worktree) == 0 || !is_beneath(dir, worktree))
            break;
        for (size_t i = 0; i < p->n; i++)
            if (is_beneath(dir, p->v[i].at) && (!in || strlen(p->v[i].at) > strlen(in->at)))
                in = &p->v[i];
        if (in && !is_covered(c, dir) && place_add(p, dir, dir, in->write, err) < 0)
            return -1;
    }
    return 0;
}

/* Covers the paths in the worktree that must stay hidden; rules of files cannot do that. */
static int hidden_cover(const struct amp_confine *c, struct places *p, const char *worktree,
                        struct amp_error *err)
{
    char real[PATH_MAX];
    for (const char *const *h = c->hidden; h && *h; h++) {
        if (!realpath(*h, real) || !is_beneath(real, worktree))
            continue;
        /* A worktree with two paths would show it at the other one. */
        if (!c->report->means.namespaces || strcmp(real, worktree) == 0 ||
            strcmp(c->worktree, worktree) != 0)
            return amp_fail(err, AMP_CONFIG, bad_policy, "the worktree %.150s contains %.150s",
                            worktree, real);
        if (!is_covered(c, real) &&
            (above_pin(c, p, worktree, real, err) < 0 || place_add(p, NULL, real, false, err) < 0))
            return -1;
    }
    return 0;
}

static int worktree_add(const struct amp_confine *c, struct places *p, const char *real,
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

/* Collects them resolved, parents before children. Fails as amp_confine_start does; *p has to be
 * released also then. */
static int places_collect(const struct amp_confine *c, struct places *p, struct amp_error *err)
{
    char real[PATH_MAX];
    if (!realpath(c->worktree, real))
        return amp_fail_errno(err, AMP_UNAVAILABLE, "%s", c->worktree);
    if (strcmp(real, "/") == 0)
        return amp_fail(err, AMP_CONFIG, bad_policy, "/ cannot be a worktree");
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

/* ---- the plan ---- */

#define PLAN_MAX ((size_t)4 << 20)
#define HOME_NONE                                                                                  \
    "/var/home" /* where a sandbox of its own has HOME if it cannot keep its place                 \
                 */

enum { FD_PLAN = 3, FD_STATUS, FD_GATE };

/* In the sandbox's own root, HOME is at its usual place, unless that is part of the system. */
static const char *home_of(const struct amp_confine *c)
{
    static const char *const taken[] = {"/usr", "/bin", "/sbin", "/lib", "/lib64", "/opt",
                                        "/etc", "/dev", "/proc", "/nix", "/sys",   NULL};
    if (!c->home || c->home[0] != '/' || !c->home[strspn(c->home, "/")] || strstr(c->home, "/..") ||
        strlen(c->home) >= PATH_MAX - 8)
        return HOME_NONE;
    for (const char *const *t = taken; *t; t++)
        if (is_beneath(c->home, *t))
            return HOME_NONE;
    return c->home;
}

/* Whether a grant of the policy is in the starter's HOME: then HOME keeps its value without
 * namespaces. */
static bool home_granted(const struct amp_confine *c, const struct places *p)
{
    for (size_t i = 0; c->home && c->home[0] == '/' && i < p->n; i++)
        if (p->v[i].granted && is_beneath(p->v[i].at, c->home) &&
            !is_beneath(p->v[i].at, c->worktree))
            return true;
    return false;
}

static void plan_limits(struct amp_jw *w, const struct amp_confine_limits *l)
{
    amp_jw_member_open(w, "limits", '{');
    amp_jw_member_int(w, "processes", l->processes);
    amp_jw_member_int(w, "memory_bytes", l->memory_bytes);
    amp_jw_member_int(w, "file_bytes", l->file_bytes);
    amp_jw_member_int(w, "open_files", l->open_files);
    amp_jw_member_int(w, "cpu_seconds", l->cpu_seconds);
    amp_jw_close(w, '}');
}

static int plan_write(const struct amp_confine *c, const struct amp_child_spec *spec,
                      const struct places *p, struct amp_buf *out, struct amp_error *err)
{
    const struct amp_confine_means *m = &c->report->means;
    struct amp_jw w;
    amp_jw_init(&w, out);
    amp_jw_open(&w, '{');
    amp_jw_member_bool(&w, "namespaces", m->namespaces);
    amp_jw_member_bool(&w, "landlock", m->landlock > 0);
    amp_jw_member_bool(&w, "seccomp", m->seccomp);
    amp_jw_member_text(&w, "network", amp_network_name(c->policy->network));
    amp_jw_member_text(&w, "signals",
                       spec->owns_tree    ? "none"
                       : spec->keep_group ? "command"
                                          : "group");
    if (m->namespaces)
        amp_jw_member_text(&w, "home", home_of(c));
    else if (home_granted(c, p))
        amp_jw_member_text(&w, "home", c->home);
    if (c->scratch)
        amp_jw_member_text(&w, "scratch", c->scratch);
    amp_jw_member_open(&w, "paths", '[');
    for (size_t i = 0; i < p->n; i++) {
        amp_jw_open(&w, '{');
        if (p->v[i].from)
            amp_jw_member_text(&w, "from", p->v[i].from);
        amp_jw_member_text(&w, "at", p->v[i].at);
        amp_jw_member_bool(&w, "write", p->v[i].write);
        amp_jw_close(&w, '}');
    }
    amp_jw_close(&w, ']');
    plan_limits(&w, &c->policy->limits);
    amp_jw_member_int(&w, "status_fd", FD_STATUS);
    if (c->policy->network == AMP_NETWORK_EGRESS_RESTRICTED && c->gate_fd >= 0)
        amp_jw_member_int(&w, "gate_fd", FD_GATE);
    amp_jw_close(&w, '}');
    return amp_jw_end(&w, err);
}

static int plan_file(const struct amp_confine *c, const struct amp_child_spec *spec,
                     struct amp_error *err)
{
    AMP_BUF struct amp_buf plan = {0};
    struct places *p = calloc(1, sizeof *p);
    amp_buf_init(&plan, PLAN_MAX);
    int rc = !p ? amp_fail_memory(err) : places_collect(c, p, err);
    if (rc == 0)
        rc = plan_write(c, spec, p, &plan, err);
    if (p)
        places_release(p);
    free(p);
    if (rc < 0)
        return -1;
    int fd = memfd_create("plan", MFD_CLOEXEC);
    if (fd < 0)
        return amp_fail_errno(err, AMP_IOERR, "cannot make a file for the plan");
    if (amp_write_all(fd, amp_buf_span(&plan), err) < 0 || lseek(fd, 0, SEEK_SET) < 0) {
        close(fd);
        return -1;
    }
    return fd;
}

/* The helper's report "STATUS CODE TEXT" as an error of the start. */
static int report_explain(const char *text, struct amp_error *err)
{
    char code[48];
    const char *word = strchr(text, ' ');
    const char *rest = word ? strchr(word + 1, ' ') : NULL;
    if (!rest)
        return amp_fail(err, AMP_NOPERM, confinement_unavailable, "the sandbox cannot be set up");
    amp_span_copy((struct amp_span){word + 1, (size_t)(rest - word - 1)}, code, sizeof code);
    enum amp_status status = strncmp(text, "77 ", 3) == 0   ? AMP_NOPERM
                             : strncmp(text, "78 ", 3) == 0 ? AMP_CONFIG
                                                            : AMP_UNAVAILABLE;
    return amp_fail_text(err, status, code, "%s", rest + 1);
}

static const char **helper_argv(const char *helper, const char *const *argv)
{
    size_t n = 0;
    while (argv[n])
        n++;
    const char **out = calloc(n + 3, sizeof *out);
    if (!out)
        return NULL;
    out[0] = helper;
    out[1] = "--";
    memcpy(out + 2, argv, n * sizeof *argv);
    return out;
}

int amp_confine_start(const struct amp_confine *c, const struct amp_child_spec *spec,
                      struct amp_child *out, struct amp_error *err)
{
    char helper[PATH_MAX], text[1024];
    int status[2];
    if (c->report->demand == AMP_CONFINE_OFF)
        return amp_child_start(spec, out, err);
    if (spec->n_fds || !spec->argv || !spec->argv[0])
        return amp_fail(err, AMP_INTERNAL, bad_spec, "a confined command gets no descriptors");
    if (amp_helper_path(CONFINE_HELPER, helper, sizeof helper, err) < 0)
        return -1;
    AMP_FREE const char **argv = helper_argv(helper, spec->argv);
    if (!argv)
        return amp_fail_memory(err);
    AMP_CLOSE int plan = plan_file(c, spec, err);
    if (plan < 0)
        return -1;
    if (pipe2(status, O_CLOEXEC) < 0)
        return amp_fail_errno(err, AMP_INTERNAL, "cannot make a pipe");
    AMP_CLOSE int status_in = status[0];
    const int fds[] = {plan, status[1], c->gate_fd};
    struct amp_child_spec inner = *spec;
    inner.argv = argv;
    inner.fds = fds;
    inner.n_fds = c->policy->network == AMP_NETWORK_EGRESS_RESTRICTED && c->gate_fd >= 0 ? 3 : 2;
    struct amp_child child;
    int rc = amp_child_start(&inner, &child, err);
    close(status[1]);
    if (rc < 0)
        return -1;
    if (confine_pipe_read(status_in, text, sizeof text) > 0) {
        struct amp_child_end end;
        amp_child_wait(&child, CONFINE_HELPER_MS, 0, NULL, &end, NULL);
        return report_explain(text, err);
    }
    *out = child;
    return 0;
}
