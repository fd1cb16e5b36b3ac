/* The channels of the filter, in its loop. */
#include <poll.h>
#include <stdlib.h>

#include "flow/work/io.h"
#include "hitl.h"

#define FDS_MAX AMP_WORKER_FDS

int hitl_channels_open(struct hitl_channels *c, struct amp_decider *d,
                       const struct amp_list *notify, struct amp_error *err)
{
    json_t *config = NULL;

    if (hitl_config(&config, err) < 0)
        return -1;
    const struct amp_channels_options opt = {.decider = d,
                                             .config = config,
                                             .notify = notify->v,
                                             .home = getenv("HOME"),
                                             .note = d->opt.note};
    if (amp_channels_open(&opt, &c->channels, err) < 0)
        return -1;
    if (!amp_channels_any(c->channels))
        return 0;
    c->waking = true;
    return amp_wake_open(&c->wake, amp_store_dir(d->w.store), err);
}

void hitl_channels_close(struct hitl_channels *c)
{
    struct amp_error err;

    if (c->waking) {
        /* After a signal the next run tells the channels. */
        if (!amp_stop && amp_channels_finish(c->channels, HITL_FINISH_MS, &err) < 0)
            amp_warn("%s", err.what);
        amp_wake_close(&c->wake);
    }
    amp_channels_close(c->channels);
    *c = (struct hitl_channels){0};
}

int hitl_channels_turn(struct hitl_channels *c, struct amp_worker *w, struct pollfd *fds,
                       unsigned n_fds, int64_t wait_ms, struct amp_error *err)
{
    struct pollfd all[FDS_MAX];
    unsigned n = n_fds;

    _Static_assert(AMP_CHANNELS_FDS + 16 <= AMP_WORKER_FDS, "the descriptors of a turn fit");
    if (amp_decider_wait(w->ctx, &wait_ms, err) < 0)
        return -1;
    if (!c->waking)
        return amp_worker_turn(w, fds, n_fds, wait_ms, err);
    for (unsigned i = 0; i < n_fds; i++)
        all[i] = fds[i];
    n += amp_channels_watch(c->channels, all + n, &wait_ms);
    all[n++] = (struct pollfd){.fd = c->wake.log, .events = POLLIN};
    bool wrote = w->io->dirty;
    if (amp_worker_turn(w, all, n, wait_ms, err) < 0)
        return -1;
    for (unsigned i = 0; i < n_fds; i++)
        fds[i].revents = all[i].revents;
    int others = amp_wake_drain(&c->wake, err);
    if (others < 0)
        return -1;
    /* Decisions of hitl-prompt receive and answer, which this process emits. */
    w->io->dirty |= others > 0;
    return amp_channels_step(c->channels, others > 0 || wrote, err);
}
