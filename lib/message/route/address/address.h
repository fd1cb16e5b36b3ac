/*
 * Addresses: the recipients of a message. A message names agents, roles or `all`. A Runtime
 * Protocol task without names goes to the eligible owners of the capabilities that it requires, a
 * SW4RM handoff without names to an agent that has them.
 *
 * A name is first looked up among the agents (registered, or given a port), then among the roles. A
 * role leads to one agent: the one that has the message's task, else the one that the task's hash
 * selects, so that the messages of a task stay together. `all` is every registered agent that
 * answers. An expansion (all, roles, capabilities) never includes the sender. Only addressing.c
 * uses this and its members.
 */
#ifndef AMP_MESSAGE_ROUTE_ADDRESS_ADDRESS_H
#define AMP_MESSAGE_ROUTE_ADDRESS_ADDRESS_H

#include <jansson.h>

#include <amp/protocol/protocol.h>

#include "message/delivery/inbox/lane.h"
#include "message/store/store.h"

#define AMP_ADDRESS_MAX 1024 /* recipients of one message */

struct amp_addresses {
    struct amp_store *store; /* NULL: only given agents are known */
    struct amp_given {
        char *name;
        uint32_t outlet;
    } * given; /* agents with a port, registered or not */
    uint32_t n_given;

    /* The directory of this turn, once it is needed. */
    struct amp_registered {
        char *name, *role; /* role may be empty */
        uint8_t state;
        json_t *can; /* its capabilities, or NULL */
    } * agents;
    uint32_t n;
    size_t cap;
    bool loaded;
    char *classed; /* the agent whose lane was read last in this turn */
    enum amp_lane lane;

    struct amp_span to[AMP_ADDRESS_MAX]; /* the last recipients, */
    json_t *eligible;                    /* and their names if they come from here */
};
void amp_addresses_release(struct amp_addresses *a);
/* The given agent of that name, or NULL. */
const struct amp_given *amp_addresses_given(const struct amp_addresses *a, struct amp_span agent);
/* Whether the directory has the agent: it may be silent, but has not left. */
int amp_addresses_registered(struct amp_addresses *a, struct amp_span agent, bool *yes,
                             struct amp_error *err);
/* The lane of the agent's communication class (SW4RM §7.3); STANDARD if it is not registered. */
int amp_addresses_lane(struct amp_addresses *a, struct amp_span agent, enum amp_lane *lane,
                       struct amp_error *err);
/* Whether the agent takes messages of the content type (SW4RM §12): it registered the type, or no
 * types. */
int amp_addresses_takes(const struct amp_addresses *a, struct amp_span agent,
                        struct amp_span content_type, bool *yes, struct amp_error *err);
/* The units of transport that it registered among its modalities, by name: AMP_TAKES_ of
 * outlet/units.h. */
int amp_addresses_units(const struct amp_addresses *a, struct amp_span agent, uint8_t *takes,
                        struct amp_error *err);
/* A turn begins: the directory is read again when it is needed. */
void amp_addresses_turn(struct amp_addresses *a);

struct amp_recipients {
    struct amp_span *to; /* each once; valid until the next find or turn, while v is valid */
    uint32_t n;
    bool expanded;        /* they come from the registry, not from the message */
    struct amp_span lost; /* the first name without a recipient */
    uint32_t n_lost;      /* names without a recipient */
    bool gone;            /* a name has agents, but none of them answers */
    bool unbound;         /* agents were left out because they are not bound to a worktree */
};

/* NO if there is no recipient: invalid_targets, missing_route_fields, capability_unavailable,
 * version_incompatible, no_route, agent_unavailable. */
int amp_addresses_find(struct amp_addresses *a, const struct amp_view *v,
                       struct amp_recipients *out, struct amp_error *err);
/* The protocol's own code if the code of the refusal is finer; else "". */
const char *amp_address_seed_code(const struct amp_view *v, const char *code);
/* Whether the same message may have a recipient later. */
bool amp_address_is_temporary(const char *code);

#endif
