/* A port of the router, what waits for it in lanes, and what it has unacknowledged. */
#ifndef AMP_ROUTE_AMP_OUTLET_H
#define AMP_ROUTE_AMP_OUTLET_H

#include "message/inbox/lane.h"
#include "port/port.h"
#include "route/job.h"
#include "route/outlet/unacked.h"

/* A message that waits for one port. */
struct place {
    struct place *next;
    struct job *job;
    enum amp_lane lane;
    int64_t since_ms;
};

/* What a route does with its messages, beside giving them to a port. */
enum amp_outlet_action {
    AMP_OUTLET_PORT,
    AMP_OUTLET_AGENTS, /* delivers to whoever the message is for */
    AMP_OUTLET_REJECT, /* answers */
    AMP_OUTLET_DEAD,   /* keeps it */
    AMP_OUTLET_INBOX,  /* puts it into the inbox of the agent `arg` */
    AMP_OUTLET_ACTIONS,
};
#define AMP_OUTLET_ACTION_NAMES " inbox:AGENT agents reject dead"

/* Where a route leads: an action, or a port and what waits for it. */
struct amp_outlet {
    char *spec;
    enum amp_outlet_action action;
    const char *arg;       /* what stands behind the colon of an action, within spec */
    struct amp_port *port; /* NULL: an action */
    uint32_t inbound;      /* messages that may wait or lie unread there; 0: as many as fit */
    struct amp_lanes lanes;
    struct amp_lane_keys keys;
    struct {
        struct place *first, **last;
    } line[AMP_LANE_COUNT];
    uint32_t n;
    size_t bytes;
    /* How long the input may still wait for it: what it takes earns a little. */
    int64_t patience_ms;
    bool blocks; /* it was full when the input began to wait this time */
    uint64_t given, taken;
    struct unacked unacked;
    uint64_t refused; /* buffer_full */
    bool leaving;     /* no route leads there any more */
    bool closed;
    bool listens; /* gets copies, and nobody waits for it */
};

/* lanes.c */
#define INBOUND_AGENT 10 /* messages, of an agent's buffer unless said otherwise */
/* USAGE bad_port; what opening a port says. */
int amp_outlet_add(struct router *r, uint32_t port, const char *spec, uint32_t inbound,
                   const struct amp_port_options *opt, struct amp_error *err);
void amp_outlet_release(struct router *r, struct amp_outlet *t);
void amp_outlets_free(struct router *r);
/* Takes a message for the port, or "buffer_full". */
int amp_outlet_offer(struct router *r, uint32_t port, struct job *j, struct amp_error *err);
/* Gives the port what it has use for, and lets it do what it can. */
void amp_outlet_step(struct router *r, uint32_t port);
/* Whether the input had better wait for room there: its reader was quick so far. */
bool amp_outlet_holds(struct router *r, uint32_t port);
size_t amp_outlet_pending(const struct router *r,
                          uint32_t port); /* bytes, also those of the port */
/* As amp_port_finish, once nothing waits in its lanes. 1 also says that it is closed now. */
int amp_outlet_finish(struct router *r, uint32_t port);
/* Lowers *timeout_ms to when to look again. */
void amp_outlets_watch(struct router *r, int *timeout_ms);
bool amp_outlets_quiet(const struct router *r);
/* Charges the ports that the input waited for. */
void amp_outlets_charge(struct router *r);
void amp_outlets_say(const struct router *r); /* what they counted */

#endif
