/*
 * Recipients: a message that goes to agents is for the agents that address.h names, one delivery
 * each. They are decided while the message is in view, and committed with it: what a killed router
 * had not delivered goes to those that were meant then, also where agents came or left since.
 */
#ifndef AMP_ROUTE_ADDRESSING_H
#define AMP_ROUTE_ADDRESSING_H

#include "route/outlet/outlet.h"
#include "route/rules/rules.h"
#include "route/run.h"

struct amp_addressing;
int amp_addressing_new(struct amp_route_run *run, struct amp_outlets *outlets,
                       const struct amp_rules *rules, struct amp_addressing **out,
                       struct amp_error *err);
void amp_addressing_free(struct amp_addressing *a);
/* Messages go to agents: agents are n texts NAME=PORT. USAGE bad_agent, no_state. */
int amp_addressing_start(struct amp_addressing *a, const char *const *agents, int n,
                         struct amp_error *err);
bool amp_addressing_started(const struct amp_addressing *a);
void amp_addressing_turn(struct amp_addressing *a); /* the directory is read again */

/* Whom the message is for. */
int amp_addressing_look(struct amp_addressing *a, struct job *j, const struct amp_view *v,
                        struct amp_error *err);
/* Whether the input should wait for room at one of the recipients. */
bool amp_addressing_holds(const struct amp_addressing *a, const struct job *j);
/* The outlet of an agent; where none was given its inbox, for one that is registered. NO: nothing
 * leads to it; *retryable: it may later. */
int amp_addressing_outlet(struct amp_addressing *a, const struct job *recipient, uint32_t *outlet,
                          bool *retryable, struct amp_error *err);
/* Whether one of the agents that were given has that outlet. */
bool amp_addressing_uses(const struct amp_addressing *a, uint32_t outlet);

#endif
