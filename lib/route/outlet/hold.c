/* Looks up whether a message is suspended. A state that cannot be read holds nothing: the router
 * reports it at its next access. */
#include "route/outlet/hold.h"

#include <amp/protocol/protocol.h>

static uint64_t hold_look(void *ctx)
{
    struct amp_route_hold *h = ctx;
    const struct amp_pause *any;
    if (!h->pauses.store)
        amp_pause_watch_open(&h->pauses, h->run->store);
    if (amp_pause_watch_due(&h->pauses))
        (void)amp_pause_look(&h->pauses, AMP_SPAN(""), AMP_SPAN(""), &any, NULL);
    return h->pauses.now.rev;
}

static bool hold_held(void *ctx, struct amp_span line)
{
    static const struct amp_check_options any = {0};
    struct amp_route_hold *h = ctx;
    struct amp_view v;
    if (h->pauses.now.n_v == 0)
        return false;
    if (amp_pauses_find(&h->pauses.now, AMP_SPAN(""), AMP_SPAN("")))
        return true;
    if (!h->reader && !(h->reader = amp_reader_new(NULL, NULL)))
        return true;
    if (amp_reader_line(h->reader, line, &any, &v, NULL, NULL, NULL) <= 0)
        return false;
    if (amp_pauses_find(&h->pauses.now, v.task, AMP_SPAN("")))
        return true;
    for (uint32_t i = 0; i < v.n_to; i++)
        if (amp_pauses_find(&h->pauses.now, AMP_SPAN(""), v.to[i]))
            return true;
    return false;
}

static int hold_fd(void *ctx)
{
    return amp_pause_watch_fd(&((struct amp_route_hold *)ctx)->pauses);
}

static int64_t hold_wait(void *ctx)
{
    return amp_pause_watch_wait(&((struct amp_route_hold *)ctx)->pauses);
}

void amp_route_hold_init(struct amp_route_hold *h, const struct amp_route_run *run)
{
    *h = (struct amp_route_hold){.run = run,
                                 .port = {.look = hold_look,
                                          .held = hold_held,
                                          .fd = hold_fd,
                                          .wait = hold_wait,
                                          .grace_ms = AMP_PAUSE_GRACE_MS,
                                          .ctx = h}};
}

void amp_route_hold_release(struct amp_route_hold *h)
{
    amp_pause_watch_close(&h->pauses);
    amp_reader_free(h->reader);
    h->reader = NULL;
}
