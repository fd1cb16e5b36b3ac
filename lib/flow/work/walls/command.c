/*
 * Commands beside the agent's: the preparation of a worktree, and checks of the work. They execute
 * what the worktree has, such as the scripts of a package or the tests that an agent wrote, so they
 * get the walls of the agent.
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <amp/base/file.h>
#include <amp/base/pipe.h>

#include "base/process/runner.h"
#include "flow/effective.h"
#include "flow/session/check.h"
#include "flow/work/walls/confined.h"

#define CHECK_GRACE_MS 2000
#define READ_TURNS     16

struct walls {
    struct amp_gate gate;
    char scratch[PATH_MAX]; /* "": none */
    int lock;               /* of scratch */
    struct amp_env env;
};

static void walls_release(struct walls *x)
{
    struct amp_error e;

    amp_gate_end(&x->gate);
    if (*x->scratch)
        amp_confine_scratch_remove(x->scratch, &e);
    amp_auto_close(&x->lock);
    free(x->env.v);
}
#define WALLS AMP_CLEANUP(walls_release) struct walls

static bool env_passes(const struct amp_worker *w, const char *variable)
{
    return amp_worker_confines(w)
               ? amp_confine_env_passes(w->opt->policy, variable)
               : strncmp(variable, "AMP_", 4) != 0 && strncmp(variable, "GIT_", 4) != 0;
}

/* The variables that pass into the sandbox; the strings are those of the worker. */
static int env_make(struct amp_worker *w, struct amp_env *e, struct amp_error *err)
{
    static char no_system[] = "GIT_CONFIG_NOSYSTEM=1";
    size_t n = 0;

    while (w->opt->envp && w->opt->envp[n])
        n++;
    if (!(e->v = calloc(n + 2, sizeof *e->v)))
        return amp_fail_memory(err);
    for (size_t i = 0; i < n; i++)
        if (env_passes(w, w->opt->envp[i]))
            e->v[e->n++] = w->opt->envp[i];
    e->v[e->n++] = no_system;
    return 0;
}

static int walls_make(struct amp_worker *w, const struct amp_confine_policy *policy,
                      struct walls *x, struct amp_error *err)
{
    char run[PATH_MAX + 8];

    if (w->opt->confine->level != AMP_LEVEL_FULL) {
        snprintf(run, sizeof run, "%s/run", w->state_dir);
        x->lock = amp_confine_scratch_make(run, x->scratch, sizeof x->scratch, err);
        if (x->lock < 0)
            return -1;
    }
    if (policy->network != AMP_NETWORK_EGRESS_RESTRICTED)
        return 0;
    AMP_CLOSE int log = amp_gate_log(w->state_dir, err);
    return log < 0 ? -1 : amp_gate_start(policy, w->opt->agent, log, STDERR_FILENO, &x->gate, err);
}

/* A mount point cannot be replaced. */
static bool cover_find(const char *dir, char *path, size_t size)
{
    struct stat st;

    snprintf(path, size, "%s/.git", dir);
    return lstat(path, &st) == 0 && (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode));
}

static bool is_covered(const struct amp_confine_place *places, size_t n, const char *path)
{
    for (size_t i = 0; i < n; i++)
        if (places[i].at && strcmp(places[i].at, path) == 0)
            return true;
    return false;
}

/* k: the attempt whose access the command gets; NULL: it is none of an attempt. */
static int command_start(struct amp_worker *w, const struct amp_assignment *k, struct walls *x,
                         const struct amp_child_spec *spec, struct amp_child *child,
                         struct amp_error *err)
{
    AMP_FREE struct amp_confine_place *places = NULL;
    char dot_git[PATH_MAX + 8];
    const char *const hidden[] = {w->state_dir, NULL};
    size_t n = 0, more = k ? k->n_places : 0;

    if (!amp_worker_confines(w))
        return amp_child_start(spec, child, err);
    AMP_CLEANUP(amp_access_release) struct amp_confine_policy policy = *w->opt->policy;
    if ((k && amp_access_restrict(k->v, &policy, err) < 0) || walls_make(w, &policy, x, err) < 0)
        return -1;
    if (!(places = calloc(more + 1, sizeof *places)))
        return amp_fail_memory(err);
    for (; n < more; n++)
        places[n] = k->places[n];
    if (w->opt->confine->level == AMP_LEVEL_FULL &&
        cover_find(spec->cwd, dot_git, sizeof dot_git) && !is_covered(places, n, dot_git))
        places[n++] = (struct amp_confine_place){.path = dot_git, .at = dot_git};
    const struct amp_confine c = {
        .policy = &policy,
        .report = w->opt->confine,
        .worktree = spec->cwd,
        .home = amp_confined_home(w),
        .hidden = hidden,
        .places = places,
        .n_places = n,
        .scratch = *x->scratch ? x->scratch : NULL,
        .gate_fd = x->gate.fd,
    };
    return amp_confine_start(&c, spec, child, err);
}

static const char *const *env_of(const struct walls *x)
{
    const char *const *envp;

    memcpy(&envp, &x->env.v, sizeof envp);
    return envp;
}

/* One turn of the worker while a command runs; p[0] is its pidfd. */
static int command_turn(struct amp_worker *w, struct amp_runner *run, struct pollfd *p, unsigned n,
                        struct amp_child_end *end, struct amp_error *err)
{
    if (*w->opt->stop && !w->opt->wait) {
        amp_runner_stop(run);
        amp_poll(p, (int)n, amp_runner_wait(run), NULL);
    } else if (amp_worker_turn(w, p, n, amp_runner_wait(run), err) < 0) {
        amp_child_kill_tree(&run->child, SIGKILL);
        amp_child_poll(&run->child, end, NULL);
        return -1;
    }
    return amp_runner_look(run, end, err);
}

/* ---- the post-create command of a worktree ---- */

static int prepare_run(void *ctx, const struct amp_child_spec *spec, struct amp_child_end *end,
                       struct amp_error *err)
{
    struct amp_worker *w = ctx;
    WALLS x = {.gate = AMP_GATE_NONE, .lock = -1};
    struct amp_child child;
    struct amp_child_spec inner = *spec;

    if (amp_worker_confines(w)) {
        if (env_make(w, &x.env, err) < 0)
            return -1;
        inner.envp = env_of(&x);
        inner.new_session = true;
    }
    if (command_start(w, NULL, &x, &inner, &child, err) < 0)
        return -1;
    struct amp_runner run = amp_runner_of(&child, w->opt->prepare.command_ms, AMP_PREPARE_GRACE);
    for (;;) {
        struct pollfd p = {.fd = child.pidfd, .events = POLLIN};
        int rc = command_turn(w, &run, &p, 1, end, err);
        if (rc)
            return rc < 0 ? -1 : 0;
    }
}

struct amp_prepare amp_confined_prepare_of(struct amp_worker *w)
{
    struct amp_prepare p = w->opt->prepare;

    p.run = prepare_run;
    p.ctx = w;
    return p;
}

/* ---- a check ---- */

struct reading {
    int from;
    struct amp_checks_stream *to;
};

static int reading_open(struct reading *r, int *write_end, struct amp_error *err)
{
    int p[2];

    if (pipe2(p, O_CLOEXEC) < 0)
        return amp_fail_errno(err, AMP_INTERNAL, "cannot make a pipe");
    r->from = p[0];
    *write_end = p[1];
    fcntl(r->from, F_SETFL, O_NONBLOCK);
    return 0;
}

/* Reads what is there. */
static void reading_take(struct reading *r)
{
    char b[65536];

    for (int turns = 0; r->from >= 0 && turns < READ_TURNS; turns++) {
        ssize_t n = read(r->from, b, sizeof b);
        if (n < 0)
            return;
        if (n == 0) {
            close(r->from);
            r->from = -1;
            return;
        }
        amp_checks_stream_add(r->to, (struct amp_span){b, (size_t)n});
    }
}

static void reading_close(struct reading *r)
{
    if (r->from >= 0)
        close(r->from);
}

static int check_start(struct amp_worker *w, const struct amp_assignment *k, struct walls *x,
                       struct amp_checks_command *c, struct reading *from_out,
                       struct reading *from_errs, struct amp_child *child, struct amp_error *err)
{
    AMP_CLOSE int out = -1;
    AMP_CLOSE int errs = -1;

    if (reading_open(from_out, &out, err) < 0 || reading_open(from_errs, &errs, err) < 0 ||
        env_make(w, &x->env, err) < 0)
        return -1;
    const struct amp_child_spec spec = {.argv = c->argv,
                                        .envp = env_of(x),
                                        .cwd = c->cwd,
                                        .fd_in = -1,
                                        .fd_out = out,
                                        .fd_err = errs,
                                        .new_session = true,
                                        .owns_tree = true};
    return command_start(w, k, x, &spec, child, err);
}

/* Whether the work is to stop, for whatever reason. */
static bool is_stopping(const struct amp_worker *w)
{
    return *w->opt->stop || w->paused || w->halted || w->ask.what != AMP_ASK_NOTHING;
}

int amp_confined_check(struct amp_worker *w, const struct amp_assignment *k,
                       struct amp_checks_command *c, struct amp_error *err)
{
    WALLS x = {.gate = AMP_GATE_NONE, .lock = -1};
    AMP_CLEANUP(reading_close) struct reading out = {-1, &c->out};
    AMP_CLEANUP(reading_close) struct reading errs = {-1, &c->errs};
    struct amp_child child;
    bool stopped = false;

    int rc = check_start(w, k, &x, c, &out, &errs, &child, err);
    if (rc < 0) {
        if (!amp_worker_is_cause(err))
            return -1;
        snprintf(c->trouble, sizeof c->trouble, "%s: %.200s", err->code, err->what);
        return 0;
    }
    struct amp_runner run = amp_runner_of(&child, c->limit_ms, CHECK_GRACE_MS);
    do {
        struct pollfd p[3] = {{.fd = child.pidfd, .events = POLLIN},
                              {.fd = out.from, .events = POLLIN},
                              {.fd = errs.from, .events = POLLIN}};
        if (is_stopping(w)) {
            stopped = true;
            amp_runner_hurry(&run, CHECK_GRACE_MS);
        }
        rc = command_turn(w, &run, p, 3, &c->end, err);
        reading_take(&out);
        reading_take(&errs);
    } while (rc == 0);
    return rc < 0 ? -1 : stopped;
}
