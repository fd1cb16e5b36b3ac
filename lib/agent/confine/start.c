/* The start of a confined command: its plan (libexec/confine/plan.c), which the helper gets on
 * descriptor 3, and the helper's report. */
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <amp/base/file.h>
#include <amp/json/writer.h>

#include "agent/confine/private.h"

#define PLAN_MAX ((size_t)4 << 20)
#define HOME_NONE                                                                                  \
    "/var/home" /* where a sandbox of its own has HOME if it cannot keep its place                 \
                 */

enum { FD_PLAN = 3, FD_STATUS, FD_GATE };

/* Where HOME is in the sandbox's own root: at its usual place, unless that is part of the system.
 */
static const char *home_of(const struct amp_confine *c)
{
    static const char *const taken[] = {"/usr", "/bin", "/sbin", "/lib", "/lib64", "/opt",
                                        "/etc", "/dev", "/proc", "/nix", "/sys",   NULL};
    if (!c->home || c->home[0] != '/' || !c->home[strspn(c->home, "/")] || strstr(c->home, "/..") ||
        strlen(c->home) >= PATH_MAX - 8)
        return HOME_NONE;
    for (const char *const *t = taken; *t; t++)
        if (confine_is_beneath(c->home, *t))
            return HOME_NONE;
    return c->home;
}

/* Whether a grant of the policy is in the starter's HOME: then HOME keeps its value without
 * namespaces. */
static bool home_granted(const struct amp_confine *c, const struct confine_places *p)
{
    for (size_t i = 0; c->home && c->home[0] == '/' && i < p->n; i++)
        if (p->v[i].granted && confine_is_beneath(p->v[i].at, c->home) &&
            !confine_is_beneath(p->v[i].at, c->worktree))
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
                      const struct confine_places *p, struct amp_buf *out, struct amp_error *err)
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
    struct confine_places *p = calloc(1, sizeof *p);
    amp_buf_init(&plan, PLAN_MAX);
    int rc = !p ? amp_fail_memory(err) : confine_places_collect(c, p, err);
    if (rc == 0)
        rc = plan_write(c, spec, p, &plan, err);
    if (p)
        confine_places_release(p);
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
    char code[48] = "confinement_unavailable";
    const char *word = strchr(text, ' ');
    const char *rest = word ? strchr(word + 1, ' ') : NULL;
    if (!rest)
        return amp_fail(err, AMP_NOPERM, code, "the sandbox cannot be set up");
    amp_span_copy((struct amp_span){word + 1, (size_t)(rest - word - 1)}, code, sizeof code);
    enum amp_status status = strncmp(text, "77 ", 3) == 0   ? AMP_NOPERM
                             : strncmp(text, "78 ", 3) == 0 ? AMP_CONFIG
                                                            : AMP_UNAVAILABLE;
    return amp_fail(err, status, code, "%s", rest + 1);
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
        return amp_fail(err, AMP_INTERNAL, "bad_spec", "a confined command gets no descriptors");
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
