/*
 * Messages that a port has and nobody acknowledged. A reader that dies is taken to have lost them:
 * the next one gets them again, before all that waits. For that a port keeps those that need an
 * acknowledgement and stand in the ledger; what the outbox says of them is closed when the ledger
 * says that they were read. An agent's port with credits keeps them without a ledger too, and
 * takes no more than its credits until an acknowledgement passes the router or stands there.
 */
#ifndef AMP_ROUTE_UNACKED_H
#define AMP_ROUTE_UNACKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <amp/protocol/protocol.h>

struct router;
struct amp_outlet;
struct job;

#define UNACKED_MAX 1024 /* of a port without credits; past it the oldest is let go */

struct unacked {
    struct kept {
        struct job *job;
        uint64_t number; /* of the line, as the port counts */
    } * v;               /* in the order of their numbers */
    uint32_t n, cap;
    size_t bytes;
    uint32_t credits; /* 0: any number */
    uint32_t away;    /* that need an acknowledgement and have none, those under way too */
    int64_t looked_ms;
    uint64_t moves; /* of the log, that were looked at */
    uint64_t again; /* given again */
};

/* Notes whether the message needs an acknowledgement; or is one, and of what. */
int amp_unacked_look(struct router *r, struct job *j, const struct amp_view *v,
                     struct amp_error *err);
bool amp_unacked_full(const struct amp_outlet *t); /* no credit is left */
void amp_unacked_given(struct amp_outlet *t, const struct job *j);
/* The port says that it was delivered, or failed. true: it is kept, its turn does not end yet. */
bool amp_unacked_done(struct router *r, struct job *j, bool delivered);
/* Lets go of what the ledger says was read, where that gives credit to what waits. */
void amp_unacked_turn(struct router *r, struct amp_outlet *t);
int64_t amp_unacked_due(const struct router *r, const struct amp_outlet *t);
/* With credits: whoever writes to the log wakes us. */
void amp_unacked_open(struct router *r);
void amp_unacked_close(struct router *r);
void amp_unacked_wake(struct router *r);
/* Its reader went away. */
void amp_unacked_lost(struct router *r, struct amp_outlet *t);
/* The port is closed, or we end: who has them is still there. */
void amp_unacked_end(struct router *r, struct amp_outlet *t);
void amp_unacked_stop(struct router *r);
/* No acknowledgement will come any more for what waits. */
bool amp_unacked_hopeless(const struct router *r, const struct amp_outlet *t);
/* What a former run left open: 1 it was read, and is not to be delivered again; 0; -1. */
int amp_unacked_was_read(struct router *r, const struct job *j, struct amp_error *err);

#endif
