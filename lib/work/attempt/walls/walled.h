/*
 * A command beside the agent's: the preparation of a worktree, a check of the work, the check of a
 * merge. It executes what agents wrote, so it gets the walls of work/confine/confine.h, without the
 * state directory and with .git read-only.
 */
#ifndef AMP_WORK_ATTEMPT_WALLS_WALLED_H
#define AMP_WORK_ATTEMPT_WALLS_WALLED_H

#include <amp/base/child.h>

#include "work/confine/confine.h"

struct pollfd;
struct amp_walled {
    const struct amp_confine_policy *policy;
    const struct amp_confine_report *confine; /* NULL, or its demand is OFF: there are no walls */
    const struct amp_confine_place *places;   /* it gets these beyond the policy */
    size_t n_places;
    const char *state_dir; /* absolute */
    const char *home;      /* the starter's HOME, or NULL */
    const char *client;    /* its name in the records of the gate */
    /* The environment of which it gets what passes the walls; without walls all but AMP_* and
     * GIT_*. NULL: that of the spec. */
    char *const *envp;
    int64_t limit_ms, grace_ms; /* limit_ms < 0: no limit */
    /* Waits until a descriptor is ready, at most wait_ms (-1: any time). 1: the command is to be
     * ended; 0: it goes on; -1: failure. */
    int (*wait)(void *ctx, struct pollfd *fds, unsigned n, int64_t wait_ms, struct amp_error *err);
    /* Takes a piece of its standard output, or of its standard error. NULL: the spec has their
     * descriptors. */
    void (*take)(void *ctx, bool errs, struct amp_span more);
    void *ctx;
    bool merged; /* standard error is written to standard output */
};

/* Runs the spec's command in its cwd to its end, and fills `end`. 0; 1: it was ended because `wait`
 * said so; -1: it could not be started (as amp_confine_start), or `wait` failed. */
int amp_walled_run(const struct amp_walled *x, const struct amp_child_spec *spec,
                   struct amp_child_end *end, struct amp_error *err);

#endif
