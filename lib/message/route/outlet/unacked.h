/*
 * The messages that a port has delivered and whose acknowledgements are missing. If a reader ends,
 * they may be lost with it, so the next reader gets them again before the waiting messages. For
 * that a port keeps messages that need an acknowledgement and are in the ledger; their entries in
 * the outbox are closed when the ledger has them as read. An agent's port with credits keeps them
 * without a ledger too. It takes no more messages than its credits until an acknowledgement passes
 * the router or is in the ledger. Only outlets.c and give.c use the members.
 */
#ifndef AMP_MESSAGE_ROUTE_OUTLET_UNACKED_H
#define AMP_MESSAGE_ROUTE_OUTLET_UNACKED_H

#include "message/port/port.h"
#include "message/route/parcel.h"
#include "message/route/run.h"
#include "message/store/wake.h"

#define UNACKED_MAX 1024 /* of a port without credits; beyond it the oldest is dropped */

struct amp_unacked;
/* Shared by the ports of a router. */
struct amp_unacked_shared {
    struct amp_route_run *run;
    /* A kept message is acknowledged or dropped: its port no longer uses the parcel. */
    void (*leave)(void *ctx, struct parcel *j);
    void *ctx;
    /* A kept message that was sent in chunks must be sent again, before all others of the port.
     * unread: its last chunk was not read. */
    int (*again)(void *ctx, struct amp_unacked *u, struct parcel *j, bool unread,
                 struct amp_error *err);
    void *again_ctx;
    struct amp_wake wake; /* with credits: of the log; else its descriptors are -1 */
    uint64_t log_moves;   /* how often the log changed, from 1 on */
};
/* With credits, writes to the log wake the router from now on. */
void amp_unacked_shared_open(struct amp_unacked_shared *s, bool credits);
void amp_unacked_shared_wake(struct amp_unacked_shared *s);

/* The unacknowledged messages of one port. */
struct amp_unacked {
    struct amp_unacked_shared *shared;
    struct amp_route_run *run;
    struct amp_port *port; /* NULL: an action, which has none */
    const char *spec;
    struct amp_unacked_kept {
        struct parcel *parcel;
        uint64_t number; /* of the line, as the port counts */
    } * v;               /* in the order of their numbers */
    size_t cap;
    uint32_t n;
    size_t bytes;
    uint32_t credits; /* 0: any number */
    uint32_t away;    /* unacknowledged messages, and those in the port's queue */
    int64_t looked_ms;
    uint64_t moves; /* log_moves at the last look at the ledger */
};
bool amp_unacked_full(const struct amp_unacked *u); /* no credit is left */
/* The port reports the outcome of a message. true: it is kept, and `leave` follows later. */
bool amp_unacked_done(struct amp_unacked *u, struct parcel *j, bool delivered);
/* Drops the messages that this acknowledgement is about. */
void amp_unacked_hear(struct amp_unacked *u, const struct amp_view *ack);
/* Drops the messages that the ledger has as read, if it may have changed. */
void amp_unacked_turn(struct amp_unacked *u);
/* Milliseconds until the next amp_unacked_turn; -1: after a change of the log or the input. */
int64_t amp_unacked_due(const struct amp_unacked *u);
/* The port's reader has closed it. */
void amp_unacked_lost(struct amp_unacked *u);
/* Drops all messages: the port is closed, or the router ends while the reader is connected. */
void amp_unacked_end(struct amp_unacked *u);

/* Whether the receiver has read a message of an earlier run, which then needs no delivery: 1 yes, 0
 * no, -1 error. */
int amp_unacked_was_read(struct amp_route_run *run, const struct parcel *j, struct amp_error *err);

#endif
