/*
 * Messages that a port has and that are not acknowledged. A reader that dies is taken to have lost
 * them: the next one gets them again, before all that waits. For that a port keeps those that need
 * an acknowledgement and are in the ledger; their entries in the outbox are closed when the ledger
 * says that they were read. An agent's port with credits keeps them without a ledger too, and takes
 * no more than its credits until an acknowledgement passes the router or is in the ledger.
 */
#ifndef AMP_ROUTE_UNACKED_H
#define AMP_ROUTE_UNACKED_H

#include "flow/wake.h"
#include "port/port.h"
#include "route/job.h"
#include "route/run.h"

#define UNACKED_MAX 1024 /* of a port without credits; past it the oldest is let go */

/* What the ports of a router share here. */
struct amp_unacked_shared {
    struct amp_route_run *run;
    /* A message that was kept is acknowledged, or no longer kept: its port is done with it. */
    void (*leave)(void *ctx, struct job *j);
    void *ctx;
    struct amp_wake wake; /* with credits: acknowledgements come by the log; else its log is -1 */
    uint64_t log_moves;   /* how often it woke us; 0: not opened */
};
/* With credits a writer to the log wakes the router. */
void amp_unacked_shared_open(struct amp_unacked_shared *s, bool credits);
void amp_unacked_shared_close(struct amp_unacked_shared *s);
void amp_unacked_shared_wake(struct amp_unacked_shared *s);

struct amp_unacked;
/* Of one port, which lives longer. */
int amp_unacked_new(struct amp_unacked_shared *s, struct amp_port *port, const char *spec,
                    struct amp_unacked **out, struct amp_error *err);
void amp_unacked_free(struct amp_unacked *u);
/* 0, as at first: any number. */
void amp_unacked_limit(struct amp_unacked *u, uint32_t credits);
uint32_t amp_unacked_credits(const struct amp_unacked *u);
/* Messages that need an acknowledgement and have none, those under way too. */
uint32_t amp_unacked_away(const struct amp_unacked *u);
bool amp_unacked_full(const struct amp_unacked *u); /* no credit is left */
void amp_unacked_given(struct amp_unacked *u, const struct job *j);
/* The port reports that it was delivered, or failed. true: it is kept, `leave` follows later. */
bool amp_unacked_done(struct amp_unacked *u, struct job *j, bool delivered);
/* Lets go of what the acknowledgement that passes is about. */
void amp_unacked_hear(struct amp_unacked *u, const struct amp_view *ack);
/* Lets go of what the ledger says was read, where that gives credit to what waits. */
void amp_unacked_turn(struct amp_unacked *u);
/* Milliseconds until the next amp_unacked_turn; -1: after a change of the log or the input. */
int64_t amp_unacked_due(const struct amp_unacked *u);
/* The port's reader has closed it. */
void amp_unacked_lost(struct amp_unacked *u);
/* Releases all messages: the port is closed, or the router ends while the reader is connected. */
void amp_unacked_end(struct amp_unacked *u);

/* Whether a message that an earlier run left open was READ, so it is not delivered again: 1 yes, 0
 * no, -1 error. */
int amp_unacked_was_read(struct amp_route_run *run, const struct job *j, struct amp_error *err);

#endif
