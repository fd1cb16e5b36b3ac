/* The port "agents": what the router has of it. */
#ifndef AMP_ROUTE_RECIPIENTS_H
#define AMP_ROUTE_RECIPIENTS_H

#include "port/port.h"
#include "route/address/address.h"
#include "route/job.h"

struct router;
struct rule;

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

#endif
