/* The port "agents": what a message and the router have of it. */
#ifndef AMP_ROUTE_RECIPIENTS_H
#define AMP_ROUTE_RECIPIENTS_H

#include "port/port.h"
#include "route/address/address.h"

struct job;
struct router;
struct rule;

/* Of a message: a job of its own for each recipient, until it is offered to them. */
struct job_address {
    struct job *kids, *last;
    uint32_t n;
    char *mark; /* the recipients are committed with it: its id in the outbox, or NULL */
    struct nobody {
        struct amp_error why;
        const char *seed_code;
    } * nobody; /* who is not there, or NULL */

    /* Of a recipient. */
    struct job *of; /* the message, or NULL; next is then the next recipient */
    char *name;
};

struct addressing {
    struct amp_addresses *book; /* NULL: nothing goes to agents by their names */
    struct agent_port {
        char *name;
        uint32_t port;
    } * ports;
    uint32_t n;
};

/* agents: n texts NAME=PORT. */
int amp_recipients_start(struct router *r, const char *const *agents, int n, struct amp_error *err);
void amp_recipients_stop(struct router *r);
void amp_recipients_turn(struct router *r); /* the directory is looked at again */
/* A step: whom the message is for. */
int amp_recipients_look(struct router *r, struct job *j, const struct amp_view *v,
                        struct amp_error *err);
void amp_recipients_offer(struct router *r, struct job *j, const struct rule *rule);
/* Whether the input had better wait for room at one of the recipients. */
bool amp_recipients_holds(struct router *r, const struct job *j);
/* Adds a recipient; one of a former run with its entry. */
int amp_recipients_add(struct router *r, struct job *j, struct amp_span name,
                       struct amp_store_entry_id entry, struct amp_error *err);
void amp_recipients_drop(struct router *r,
                         struct job *j); /* the recipients that it was not offered to */
void amp_recipients_free(struct job_address *a);

#endif
