/*
 * Recipients: a message for agents is delivered once to each of the agents that address.h finds.
 * They are found while the message is in view and committed with it: after a crash the message goes
 * to the same recipients, even if agents have come or left.
 */
#ifndef AMP_MESSAGE_ROUTE_ADDRESS_ADDRESSING_H
#define AMP_MESSAGE_ROUTE_ADDRESS_ADDRESSING_H

#include "message/route/outlet/outlet.h"
#include "message/route/rules/rules.h"
#include "message/route/run.h"

struct amp_addressing;
int amp_addressing_new(struct amp_route_run *run, struct amp_outlets *outlets,
                       const struct amp_rules *rules, struct amp_addressing **out,
                       struct amp_error *err);
void amp_addressing_free(struct amp_addressing *a);
/* Called if messages go to agents. agents: n texts NAME=PORT. USAGE bad_agent, no_state. */
int amp_addressing_start(struct amp_addressing *a, const char *const *agents, int n,
                         struct amp_error *err);
/* A turn begins: the directory is read again when it is needed. */
void amp_addressing_turn(struct amp_addressing *a);

/* Finds the recipients of the message and makes their parcels. */
int amp_addressing_look(struct amp_addressing *a, struct parcel *j, const struct amp_view *v,
                        struct amp_error *err);
/* Whether the input should wait for room at one of the recipients. */
bool amp_addressing_holds(const struct amp_addressing *a, const struct parcel *j);
/* The outlet of an agent: its port, or the inbox of a registered agent. NO: it has none;
 * *retryable: it may have one later. */
int amp_addressing_outlet(struct amp_addressing *a, const struct parcel *recipient,
                          uint32_t *outlet, bool *retryable, struct amp_error *err);
/* Whether an agent's port has that outlet. */
bool amp_addressing_uses(const struct amp_addressing *a, uint32_t outlet);

#endif
