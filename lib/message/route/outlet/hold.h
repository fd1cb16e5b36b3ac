/*
 * Whether people hold a message back (hitl-prompt-suspend(1)): because they suspended everything,
 * the agent that gets it, or the task whose work it is. The answers of the router, copies of --tee,
 * and chunks and batches that a port has are never held.
 */
#ifndef AMP_MESSAGE_ROUTE_OUTLET_HOLD_H
#define AMP_MESSAGE_ROUTE_OUTLET_HOLD_H

#include "message/pause/watch.h"
#include "message/route/parcel.h"
#include "message/route/run.h"

struct amp_reader;

/* Zeroed: closed. It must not be moved after amp_route_hold_init. */
struct amp_route_hold {
    const struct amp_route_run *run;
    struct amp_pause_watch pauses; /* opened by the first look */
    struct amp_reader *reader;
    uint64_t rev; /* of the suspensions at the last look */
};
/* Without a state directory nothing is held. */
void amp_route_hold_init(struct amp_route_hold *h, const struct amp_route_run *run);
void amp_route_hold_release(struct amp_route_hold *h);

/* Reads the suspensions if the log was written since the last look; true: they changed. */
bool amp_route_hold_look(struct amp_route_hold *h);
/* Whether anything is suspended. */
static inline bool amp_route_hold_any(const struct amp_route_hold *h)
{
    return h->pauses.now.n_v > 0;
}
/* The suspension that holds the message, valid until the next look, or NULL. A message for several
 * recipients goes to a port as one, so one suspended recipient holds it. agent: whose port it is,
 * or NULL. runs: a command is run for it, so every message of a suspended task is held, otherwise
 * only new work. */
const struct amp_pause *amp_route_hold_find(struct amp_route_hold *h, const struct parcel *j,
                                            const char *agent, bool runs);

#endif
