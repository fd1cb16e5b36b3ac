/* Starts a command within the walls, reads its output, and ends it at its limit. */
#include "work/attempt/walls/walled.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <amp/base/file.h>

#include "base/process/runner.h"
#include "work/confine/gate.h"

#define READ_TURNS 16

struct walls {
    struct amp_gate gate;
    char scratch[PATH_MAX]; /* "": none */
    int lock;               /* of scratch */
    const char **env;
    int from[2]; /* standard output and error; -1: none, or at their end */
};

static void walls_release(struct walls *x)
{
    struct amp_error e;

    amp_gate_end(&x->gate);
    if (*x->scratch)
        amp_confine_scratch_remove(x->scratch, &e);
    amp_auto_close(&x->lock);
    amp_auto_close(&x->from[0]);
    amp_auto_close(&x->from[1]);
    free(x->env);
}

static bool is_confined(const struct amp_walled *x)
{
    return x->confine && x->confine->demand != AMP_CONFINE_OFF;
}

/* ---- the start ---- */

/* The strings are those of x->envp. */
static int env_make(const struct amp_walled *x, struct walls *w, struct amp_error *err)
{
    size_t n = 0, kept = 0;

    while (x->envp[n])
        n++;
    if (!(w->env = calloc(n + 2, sizeof *w->env)))
        return amp_fail_memory(err);
    for (size_t i = 0; i < n; i++)
        if (is_confined(x)
                ? amp_confine_env_passes(x->policy, x->envp[i])
                : strncmp(x->envp[i], "AMP_", 4) != 0 && strncmp(x->envp[i], "GIT_", 4) != 0)
            w->env[kept++] = x->envp[i];
    w->env[kept] = "GIT_CONFIG_NOSYSTEM=1";
    return 0;
}

static int walls_make(const struct amp_walled *x, struct walls *w, struct amp_error *err)
{
    char run[PATH_MAX + 8];

    if (x->confine->level != AMP_LEVEL_FULL) {
        snprintf(run, sizeof run, "%s/run", x->state_dir);
        if ((w->lock = amp_confine_scratch_make(run, w->scratch, sizeof w->scratch, err)) < 0)
            return -1;
    }
    if (x->policy->network != AMP_NETWORK_EGRESS_RESTRICTED)
        return 0;
    AMP_CLOSE int log = amp_gate_log(x->state_dir, err);
    return log < 0 ? -1 : amp_gate_start(x->policy, x->client, log, STDERR_FILENO, &w->gate, err);
}

/* A mount point cannot be replaced. */
static bool cover_find(const char *dir, char *path, size_t size)
{
    struct stat st;

    snprintf(path, size, "%s/.git", dir);
    return lstat(path, &st) == 0 && (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode));
}

static bool is_covered(const struct amp_walled *x, const char *path)
{
    for (size_t i = 0; i < x->n_places; i++)
        if (x->places[i].at && strcmp(x->places[i].at, path) == 0)
            return true;
    return false;
}

static int confined_start(const struct amp_walled *x, struct walls *w,
                          const struct amp_child_spec *spec, struct amp_child *child,
                          struct amp_error *err)
{
    char dot_git[PATH_MAX + 8];
    const char *const hidden[] = {x->state_dir, NULL};
    size_t n = 0;

    if (walls_make(x, w, err) < 0)
        return -1;
    AMP_FREE struct amp_confine_place *places = calloc(x->n_places + 1, sizeof *places);
    if (!places)
        return amp_fail_memory(err);
    for (; n < x->n_places; n++)
        places[n] = x->places[n];
    if (x->confine->level == AMP_LEVEL_FULL && cover_find(spec->cwd, dot_git, sizeof dot_git) &&
        !is_covered(x, dot_git))
        places[n++] = (struct amp_confine_place){.path = dot_git, .at = dot_git};
    const struct amp_confine c = {.policy = x->policy,
                                  .report = x->confine,
                                  .worktree = spec->cwd,
                                  .home = x->home,
                                  .hidden = hidden,
                                  .places = places,
                                  .n_places = n,
                                  .scratch = *w->scratch ? w->scratch : NULL,
                                  .gate_fd = w->gate.fd};
    return amp_confine_start(&c, spec, child, err);
}

static int pipe_open(int *from, int *to, struct amp_error *err)
{
    int p[2];

    if (pipe2(p, O_CLOEXEC) < 0)
        return amp_fail_errno(err, AMP_IOERR, "cannot make a pipe");
    *from = p[0];
    *to = p[1];
    fcntl(*from, F_SETFL, O_NONBLOCK);
    return 0;
}

static int command_start(const struct amp_walled *x, struct walls *w,
                         const struct amp_child_spec *spec, struct amp_child *child,
                         struct amp_error *err)
{
    struct amp_child_spec own = *spec;
    AMP_CLOSE int out = -1;
    AMP_CLOSE int errs = -1;

    if (x->take && (pipe_open(&w->from[0], &out, err) < 0 ||
                    (!x->merged && pipe_open(&w->from[1], &errs, err) < 0)))
        return -1;
    if (x->take) {
        own.fd_out = out;
        own.fd_err = x->merged ? out : errs;
    }
    if (x->envp && env_make(x, w, err) < 0)
        return -1;
    own.envp = x->envp ? w->env : spec->envp;
    return is_confined(x) ? confined_start(x, w, &own, child, err)
                          : amp_child_start(&own, child, err);
}

/* ---- until its end ---- */

/* Reads some of what is there: a command that writes without end does not keep the caller from its
 * time limit. */
static void output_read(const struct amp_walled *x, struct walls *w, int which)
{
    char part[65536];
    int *fd = &w->from[which];

    for (int turns = 0; *fd >= 0 && turns < READ_TURNS; turns++) {
        ssize_t n = read(*fd, part, sizeof part);
        if (n < 0)
            return;
        if (n == 0) {
            close(*fd);
            *fd = -1;
            return;
        }
        x->take(x->ctx, which == 1, (struct amp_span){part, (size_t)n});
    }
}

int amp_walled_run(const struct amp_walled *x, const struct amp_child_spec *spec,
                   struct amp_child_end *end, struct amp_error *err)
{
    AMP_CLEANUP(walls_release)
    struct walls w = {.gate = AMP_GATE_NONE, .lock = -1, .from = {-1, -1}};
    struct amp_child child;
    int64_t wait_ms = 0; /* the first look is at the caller's reasons to stop */
    int rc = 0, stopped = 0;

    if (command_start(x, &w, spec, &child, err) < 0)
        return -1;
    struct amp_runner run = amp_runner_of(&child, x->limit_ms, x->grace_ms);
    while (rc == 0) {
        struct pollfd p[3] = {{.fd = child.pidfd, .events = POLLIN},
                              {.fd = w.from[0], .events = POLLIN},
                              {.fd = w.from[1], .events = POLLIN}};
        int stops = x->wait(x->ctx, p, 3, wait_ms, err);
        if (stops < 0) {
            amp_child_kill_tree(&run.child, SIGKILL);
            amp_child_poll(&run.child, end, NULL);
            return -1;
        }
        if (stops > 0) {
            stopped = 1;
            amp_runner_hurry(&run, x->grace_ms);
        }
        output_read(x, &w, 0);
        output_read(x, &w, 1);
        rc = amp_runner_look(&run, end, err);
        wait_ms = amp_runner_wait(&run);
    }
    output_read(x, &w, 0);
    output_read(x, &w, 1);
    return rc < 0 ? -1 : stopped;
}
