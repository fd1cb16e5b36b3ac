/* The members of outlets, for outlets.c and give.c. */
#ifndef AMP_MESSAGE_ROUTE_OUTLET_PRIVATE_H
#define AMP_MESSAGE_ROUTE_OUTLET_PRIVATE_H

#include "message/route/outlet/hold.h"
#include "message/route/outlet/outlet.h"
#include "message/route/outlet/unacked.h"
#include "message/route/outlet/units.h"
#include "message/route/outlet/waiting.h"

struct outlet {
    struct amp_outlet_info is;
    char *spec;
    struct amp_port *port;      /* NULL: an action */
    struct amp_unacked unacked; /* of the port */
    uint32_t inbound;           /* limit of waiting and unread messages; 0: no limit */
    struct amp_waiting waiting; /* for the port */
    int64_t patience_ms;        /* the rest of the input's time to wait for it */
    bool blocks;                /* it was full when the input began to wait this time */
    uint64_t given, taken;
    uint64_t refused; /* buffer_full */
    bool leaving;     /* no route leads there any more */
    bool closed;
    bool listens; /* gets copies only; the router does not wait for it */
    char *agent;  /* whose port it is, or NULL: nobody's, or of several agents */
    bool shared;
    bool recalls;                  /* messages of its attempts may have to be taken back */
    uint8_t takes;                 /* units that its reader takes, AMP_TAKES_ */
    struct parcel_chunks *chunked; /* messages that are being sent in chunks */
    bool told;                     /* that messages are held */
};

struct amp_outlets {
    struct amp_route_run *run;
    const struct amp_outlets_options *opt;
    const struct amp_lane_rules *rules;
    struct amp_outlet_events events;
    struct amp_unacked_shared unacked;
    struct amp_route_hold hold;
    struct outlet *v[PORTS_MAX];
    uint32_t n;
    uint32_t stepping; /* the outlet whose port reports outcomes now */
    int64_t look_gap_ms;
};

/* give.c: gives a port what waits for it, a message, a chunk or a batch at a time. */

/* The limit of unread messages in the pipe of a bounded port; 0: none. */
uint32_t amp_outlet_ahead(const struct outlet *t);
bool amp_outlet_takes_more(const struct outlet *t);
/* Gives a message that need not wait. */
int amp_outlet_give(struct amp_outlets *o, struct outlet *t, struct parcel *j, int64_t since_ms,
                    struct amp_error *err);
/* Prepares a message that goes in chunks; *waits: it goes in a unit, at the next step. */
int amp_outlet_prepare(struct amp_outlets *o, struct outlet *t, struct parcel *j, bool *waits,
                       struct amp_error *err);
/* Gives the next of at least one waiting message, or several in a batch. */
void amp_outlet_give_next(struct amp_outlets *o, uint32_t outlet);
/* Reports that a message goes in the urgent lane. */
void amp_outlet_say_urgent(struct amp_outlets *o, const struct outlet *t, const struct parcel *j);
/* Reports the failure of a message that the port never got, or not completely. */
void amp_outlet_fail(struct amp_outlets *o, uint32_t outlet, struct parcel *j,
                     const struct amp_error *why);
/* The port that is stepped reports the outcome of a unit. */
void amp_outlet_unit_done(struct amp_outlets *o, struct outlet *t, struct parcel *unit,
                          const struct amp_error *why);
/* The reader is gone: unfinished messages in chunks are sent again; so is a kept one (unacked.h,
 * `again`). */
void amp_outlet_restart(struct amp_outlets *o, struct outlet *t);
int amp_outlet_again(void *outlets, struct amp_unacked *u, struct parcel *j, bool unread,
                     struct amp_error *err);

#endif
