/*
 * Outlets, the destinations of routes: ports and actions, each with a number. Messages wait for a
 * port in its lanes; unacknowledged messages are kept (unacked.h). Outlet 0 is the router's own
 * output.
 */
#ifndef AMP_MESSAGE_ROUTE_OUTLET_OUTLET_H
#define AMP_MESSAGE_ROUTE_OUTLET_OUTLET_H

#include "message/delivery/inbox/inbox.h"
#include "message/delivery/inbox/lane.h"
#include "message/port/port.h"
#include "message/route/outlet/units.h"
#include "message/route/parcel.h"
#include "message/route/run.h"

#define PORTS_MAX     1100 /* above the number of agents that a message may name */
#define INBOUND_AGENT 10   /* messages that may wait for an agent, by default */

/* The action of a route: a port, or another. */
enum amp_outlet_action {
    AMP_OUTLET_PORT,
    AMP_OUTLET_AGENTS, /* delivers to the message's recipients */
    AMP_OUTLET_REJECT, /* answers */
    AMP_OUTLET_DEAD,   /* makes a dead letter */
    AMP_OUTLET_INBOX,  /* puts the message into the inbox of an agent */
};
#define AMP_OUTLET_ACTION_NAMES " inbox:AGENT agents reject dead"

struct amp_outlets_options {
    struct amp_port_options port;
    const char *const *inbounds; /* [PORT=]N: messages that may wait for each, or for that one */
    int n_inbounds;
    int64_t patience_ms;           /* the longest wait of the input for a full port's reader */
    uint32_t credits;              /* of an agent's port; 0: no limit */
    bool fair;                     /* the producers of a lane take turns */
    uint32_t producer_waiting;     /* messages of one producer that may wait; 0: any number */
    struct amp_units_wanted units; /* chunks and batches */
};

struct amp_outlet_events {
    void *ctx;
    /* The outcome of a parcel that was offered to the outlet (why NULL: delivered). kept: the
     * outlet uses the parcel until `leave`. */
    void (*done)(void *ctx, struct parcel *j, uint32_t outlet, const struct amp_error *why,
                 bool kept);
    void (*leave)(void *ctx, struct parcel *j);
    /* A line that was written without a parcel failed. */
    void (*failed)(void *ctx, struct amp_span line, uint32_t outlet, const struct amp_error *why);
};

struct amp_outlets;
/* The caller owns options and lane rules and may change them between messages. */
int amp_outlets_new(struct amp_route_run *run, const struct amp_outlets_options *opt,
                    const struct amp_lane_rules *lanes, const struct amp_outlet_events *events,
                    struct amp_outlets **out, struct amp_error *err);
void amp_outlets_free(struct amp_outlets *o);
/* Opens outlet 0: standard output (NULL, "-"), or a file or FIFO. */
int amp_outlets_output(struct amp_outlets *o, const char *path, struct amp_error *err);
/* Looks up suspensions. With credits, writes to the log wake the router from now on. */
void amp_outlets_start(struct amp_outlets *o);
/* Composes the spec of a file or FIFO of that name. */
int amp_outlet_spec_of(const char *path, struct amp_buf *spec, struct amp_error *err);
enum amp_outlet_use {
    AMP_OUTLET_FOR_ROUTE,
    AMP_OUTLET_FOR_AGENT,  /* port of one agent: has a limit by default, and credits */
    AMP_OUTLET_FOR_COPIES, /* --tee: the router does not wait for it, if it gets only copies */
};
/* The number of the outlet with that spec, which is opened only once. USAGE bad_port, bad_inbound,
 * too_many, and the errors of opening a port. */
int amp_outlets_open(struct amp_outlets *o, const char *spec, enum amp_outlet_use use,
                     uint32_t *outlet, struct amp_error *err);
/* Checks that the outlet is usable: it has a store if it needs one, and an inbox's name is valid.
 * USAGE no_state, bad_agent. */
int amp_outlet_usable(const struct amp_outlets *o, uint32_t outlet, struct amp_error *err);
uint32_t amp_outlets_n(const struct amp_outlets *o);
/* The outlet is the port of that agent. */
int amp_outlet_own(struct amp_outlets *o, uint32_t outlet, struct amp_span agent,
                   struct amp_error *err);
/* Frees the outlets from number n on, which must be unused. */
void amp_outlets_drop(struct amp_outlets *o, uint32_t n);

struct amp_outlet_info {
    const char *spec;
    enum amp_outlet_action action;
    const char *arg; /* the text after the colon of an action, or NULL */
    bool network;    /* its messages leave this machine */
    bool prompt;     /* written messages have arrived, and any number may wait */
};
/* Whether messages go in chunks or batches to receivers that take them. */
bool amp_outlets_units(const struct amp_outlets *o);
/* Valid as long as the outlet. */
const struct amp_outlet_info *amp_outlet_info(const struct amp_outlets *o, uint32_t outlet);
/* Fills the limit and the lane of a message in an inbox. */
void amp_outlet_inbox_terms(struct amp_outlets *o, uint32_t outlet, const struct parcel *j,
                            struct amp_inbox_options *opt);

/* Records whether a message needs an acknowledgement, or which message it acknowledges. */
void amp_outlets_look(struct amp_outlets *o, struct parcel *j, const struct amp_view *v);
/* Accepts a message for the port; "buffer_full" if it has no room. */
int amp_outlet_offer(struct amp_outlets *o, uint32_t outlet, struct parcel *j,
                     struct amp_error *err);
/* Writes an answer to the router's own output. */
int amp_outlets_answer(struct amp_outlets *o, struct parcel *answer, struct amp_error *err);
/* Writes a line at once, without a parcel; false: the port has no room for it now. */
bool amp_outlet_write(struct amp_outlets *o, uint32_t outlet, struct amp_span line);
/* Gives the port the messages that it has room for, and steps it. */
void amp_outlet_step(struct amp_outlets *o, uint32_t outlet);
void amp_outlets_step(struct amp_outlets *o);
/* Whether the input should wait for room in the port, because its reader has been quick. */
bool amp_outlet_holds(struct amp_outlets *o, uint32_t outlet);
/* Charges the time of the input's wait so far (run.h held_ms) to the ports that it waits for. */
void amp_outlets_charge(struct amp_outlets *o);

/* For the poll loop: at most AMP_OUTLETS_FDS descriptors; lowers *timeout_ms. Returns how many. */
enum { AMP_OUTLETS_FDS = PORTS_MAX * AMP_PORT_FDS + 2 };
uint32_t amp_outlets_watch(struct amp_outlets *o, struct pollfd *fds, int *timeout_ms);
/* After the wait, with the same descriptors; n 0: it ended without an event. */
void amp_outlets_woken(struct amp_outlets *o, const struct pollfd *fds, uint32_t n);
/* Whether only messages are left whose acknowledgements wake the router, or whose resumption; at
 * the end of input only the latter. */
bool amp_outlets_quiet(const struct amp_outlets *o, bool ended);
/* Whether the router's own output has room for the answers to more input. */
bool amp_outlets_has_room(const struct amp_outlets *o);

/* Outlets without a route deliver their messages and are closed. */
void amp_outlets_retire(struct amp_outlets *o, bool (*used)(void *ctx, uint32_t outlet), void *ctx);
void amp_outlets_close_retired(struct amp_outlets *o);
/* At the end of input: closes the empty outlets. true: all are closed. */
bool amp_outlets_finish(struct amp_outlets *o);
/* After a signal: messages that connected readers have are recorded as delivered. */
void amp_outlets_stop(struct amp_outlets *o);

void amp_outlets_measure(const struct amp_outlets *o); /* the gauges */
void amp_outlets_say(const struct amp_outlets *o);     /* reports their counts */

#endif
