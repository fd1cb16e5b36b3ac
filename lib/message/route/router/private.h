/* The members of the router, for the files of this folder. */
#ifndef AMP_MESSAGE_ROUTE_ROUTER_PRIVATE_H
#define AMP_MESSAGE_ROUTE_ROUTER_PRIVATE_H

#include <amp/base/pipe.h>

#include "message/route/address/addressing.h"
#include "message/route/admission/admission.h"
#include "message/route/admission/producers.h"
#include "message/route/keeper/keeper.h"
#include "message/route/router/router.h"
#include "message/route/rules/rules.h"

struct amp_router {
    const struct amp_router_options *opt;
    struct amp_lane_rules *lanes;
    struct amp_route_run run;
    struct amp_parcels parcels;
    struct amp_outlets *outlets;
    struct amp_rules *rules;
    struct amp_keeper *keeper;
    struct amp_addressing *addressing;
    struct amp_admission *admission;
    struct amp_producers *producers; /* NULL: their rates are not limited */
    bool to_agents;                  /* messages may go to agents by their names */

    struct amp_input in;
    struct amp_intake intake;
    struct {
        struct parcel *first, *last; /* in the order of arrival */
        uint32_t n;
    } undecided;
    struct {
        uint32_t *outlets; /* that get copies */
        uint32_t n, away;
        uint64_t lost;
    } tees;
    struct {
        bool open;                      /* messages may take the direct path, */
        struct amp_check_options check; /* with these checks */
    } direct;
    uint64_t unmatched_acks, records; /* records: for no agent */
};

/* tee.c: copies of routed messages. */
int amp_tee_start(struct amp_router *r, struct amp_error *err);
bool amp_tee_uses(const struct amp_router *r, uint32_t outlet);
void amp_tee_copy(struct amp_router *r, const struct parcel *j);
void amp_tee_end(struct amp_router *r);

/* direct.c. Decides whether messages may take the direct path; called after the rules are set. */
void amp_direct_set(struct amp_router *r);
/* Routes the line on the direct path; false: it must take the other one. */
bool amp_direct_take(struct amp_router *r, struct amp_span line);

/* decide.c: the queue of undecided messages. Adds these, a chain by `next`. */
void amp_decide_add(struct amp_router *r, struct parcel *first);
void amp_decide_pass(void *router, struct parcel *first); /* the same, then a step */
/* Sends messages to the jq worker, and dispatches decided messages in order. */
void amp_decide_step(struct amp_router *r);

/* dispatch.c */
void amp_dispatch(struct amp_router *r, struct parcel *j);
/* Whether the input should wait until a port of the message has room. */
bool amp_dispatch_holds(struct amp_router *r, const struct parcel *j);
/* A port no longer uses the parcel. */
void amp_dispatch_leave(void *router, struct parcel *j);
/* Frees the recipients that the message was not offered to. */
void amp_dispatch_drop(struct amp_router *r, struct parcel *j);
/* The outcome of a message at its port. */
void amp_dispatch_done(void *router, struct parcel *j, uint32_t outlet, const struct amp_error *why,
                       bool kept);
void amp_dispatch_failed(void *router, struct amp_span line, uint32_t outlet,
                         const struct amp_error *why);

#endif
