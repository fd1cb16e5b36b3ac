/* Holds back the commands of exec-each ports that people suspended (hitl-prompt-suspend(1)): of all
 * messages, of those of a task, and of those to an agent. */
#ifndef AMP_ROUTE_OUTLET_HOLD_H
#define AMP_ROUTE_OUTLET_HOLD_H

#include "flow/pause/watch.h"
#include "port/port.h"
#include "route/run.h"

struct amp_reader;

/* Zeroed: closed. It must not be moved after amp_route_hold_init. */
struct amp_route_hold {
    struct amp_port_hold port;
    const struct amp_route_run *run;
    struct amp_pause_watch pauses; /* opened by the first look */
    struct amp_reader *reader;
};
/* Without a state directory nothing is held. */
void amp_route_hold_init(struct amp_route_hold *h, const struct amp_route_run *run);
void amp_route_hold_release(struct amp_route_hold *h);

#endif
