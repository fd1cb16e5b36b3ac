/* The commands of a worker beside the agent's: the preparation of a worktree, and checks of the
 * work. The worker goes on reading and writing while they run. */
#include <poll.h>
#include <stdio.h>

#include <amp/base/pipe.h>

#include "work/attempt/walls/confined.h"
#include "work/attempt/walls/kept.h"
#include "work/attempt/walls/walled.h"
#include "work/confine/effective.h"

#define CHECK_GRACE_MS 2000

struct walled_command {
    struct amp_worker *w;
    struct amp_walled_check *check; /* NULL: a preparation */
    bool failed;                    /* the worker's turn failed */
};

static bool is_stopping(const struct walled_command *c)
{
    const struct amp_worker *w = c->w;

    return c->check ? *w->opt->stop || w->paused || w->halted || w->ask.what != AMP_ASK_NOTHING
                    : *w->opt->stop && !w->opt->wait;
}

static int command_wait(void *ctx, struct pollfd *fds, unsigned n, int64_t wait_ms,
                        struct amp_error *err)
{
    struct walled_command *c = ctx;
    struct amp_worker *w = c->w;

    if (*w->opt->stop && !w->opt->wait) {
        amp_poll(fds, n, wait_ms, NULL);
    } else if (amp_worker_turn(w, fds, n, wait_ms, err) < 0) {
        c->failed = true;
        return -1;
    }
    return is_stopping(c);
}

static struct amp_walled walled_of(struct walled_command *c)
{
    struct amp_worker *w = c->w;

    return (struct amp_walled){.policy = w->opt->policy,
                               .confine = w->opt->confine,
                               .state_dir = w->state_dir,
                               .home = amp_confined_home(w),
                               .client = w->opt->agent,
                               .wait = command_wait,
                               .ctx = c};
}

/* ---- the post-create command of a worktree ---- */

static int prepare_run(void *ctx, const struct amp_child_spec *spec, struct amp_child_end *end,
                       struct amp_error *err)
{
    struct walled_command c = {.w = ctx};
    struct amp_walled x = walled_of(&c);
    struct amp_child_spec inner = *spec;

    x.limit_ms = c.w->opt->prepare.command_ms;
    x.grace_ms = AMP_PREPARE_GRACE;
    if (amp_worker_confines(c.w)) {
        x.envp = c.w->opt->envp;
        inner.new_session = true;
    }
    return amp_walled_run(&x, &inner, end, err) < 0 ? -1 : 0;
}

struct amp_prepare amp_confined_prepare_of(struct amp_worker *w)
{
    struct amp_prepare p = w->opt->prepare;

    p.run = prepare_run;
    p.ctx = w;
    return p;
}

/* ---- a check ---- */

static void check_take(void *ctx, bool errs, struct amp_span more)
{
    struct walled_command *c = ctx;

    amp_kept_add(errs ? &c->check->errs : &c->check->out, more);
}

int amp_confined_check(struct amp_worker *w, const struct amp_assignment *k,
                       struct amp_walled_check *c, struct amp_error *err)
{
    struct walled_command of = {.w = w, .check = c};
    struct amp_walled x = walled_of(&of);
    const struct amp_child_spec spec = {
        .argv = c->argv, .cwd = c->cwd, .fd_in = -1, .new_session = true, .owns_tree = true};

    AMP_CLEANUP(amp_access_release) struct amp_confine_policy policy = {0};
    if (amp_worker_confines(w)) {
        policy = *w->opt->policy;
        if (amp_access_restrict(k->v, &policy, err) < 0)
            return -1;
        x.policy = &policy;
    }
    x.places = k->places;
    x.n_places = k->n_places;
    x.envp = w->opt->envp;
    x.limit_ms = c->limit_ms;
    x.grace_ms = CHECK_GRACE_MS;
    x.take = check_take;
    int rc = amp_walled_run(&x, &spec, &c->end, err);
    if (rc >= 0 || of.failed || !amp_worker_is_cause(err))
        return rc;
    snprintf(c->trouble, sizeof c->trouble, "%s: %.200s", err->code, err->what);
    return 0;
}
