/*
 * Addresses: which agents a message is for. What it names are agents, roles and `all`; a Runtime
 * Protocol task that names nobody is for the eligible owners of the capabilities that it requires,
 * a SW4RM handoff for an agent that has them.
 *
 * A name is looked for among the agents first (registered, or given a port), then among the roles.
 * A role is one agent: the one that has the message's task, else the one that the task's hash
 * picks, so that the messages of a task stay together. `all` is every registered agent that
 * answers. What is expanded (all, roles, capabilities) never leads back to the sender.
 */
#ifndef AMP_ROUTE_ADDRESSES_H
#define AMP_ROUTE_ADDRESSES_H

#include <amp/protocol/protocol.h>

#include "message/inbox/lane.h"
#include "store/store.h"

#define AMP_ADDRESS_MAX 1024 /* recipients of one message */

struct amp_addresses;
/* store may be NULL: then there are only the agents that were added. */
struct amp_addresses *amp_addresses_new(struct amp_store *store, struct amp_error *err);
void amp_addresses_free(struct amp_addresses *a);
/* An agent that can be reached, registered or not. */
int amp_addresses_add(struct amp_addresses *a, struct amp_span agent, struct amp_error *err);
bool amp_addresses_has(const struct amp_addresses *a, struct amp_span agent);
/* Whether the directory has it: it may be silent, but did not leave. */
int amp_addresses_registered(struct amp_addresses *a, struct amp_span agent, bool *yes,
                             struct amp_error *err);
/* The lane of its communication class (SW4RM §7.3), STANDARD where it is not registered. */
int amp_addresses_lane(struct amp_addresses *a, struct amp_span agent, enum amp_lane *lane,
                       struct amp_error *err);
/* Whether it takes messages of the content type (SW4RM §12), or has not registered what it takes.
 */
int amp_addresses_takes(const struct amp_addresses *a, struct amp_span agent,
                        struct amp_span content_type, bool *yes, struct amp_error *err);
/* A turn begins: the directory is read again. */
void amp_addresses_turn(struct amp_addresses *a);

struct amp_recipients {
    struct amp_span *to; /* each once; live until the next turn */
    uint32_t n;
    bool expanded; /* they are what the registry says now, not what the message says */
    /* Of the names that lead to nobody, the first, where others do; n_lost counts them. */
    struct amp_span lost;
    uint32_t n_lost;
};

/* NO where it is for nobody: invalid_targets, missing_route_fields, capability_unavailable,
 * version_incompatible, no_route, agent_unavailable. */
int amp_addresses_find(struct amp_addresses *a, const struct amp_view *v,
                       struct amp_recipients *out, struct amp_error *err);
/* The protocol's own code where that of a refusal is finer; "" where it is not. */
const char *amp_address_seed_code(const struct amp_view *v, const char *code);
/* Whether the same message can lead to somebody later. */
bool amp_address_is_temporary(const char *code);

#endif
