/* The rules by which messages go (routes.c), and reading them again while it runs (reload.c). */
#ifndef AMP_ROUTE_ROUTES_H
#define AMP_ROUTE_ROUTES_H

#include "message/inbox/lane.h"
#include "port/port.h"
#include "route/rules/predicate.h"

struct router;

struct rule {
    struct amp_predicate *predicate;
    char *text; /* of the predicate, for answers */
    int filter; /* of the jq worker, -1 for a native one */
    uint32_t port;
};

/* The number of the port with that spec, opened once however many lead to it; an agent's has a
 * bounded buffer unless its options say otherwise. */
int amp_rules_port(struct router *r, const char *spec, bool agent, uint32_t *index,
                   struct amp_error *err);
/* Whether the port can be delivered to at all: what it needs is there, an inbox's name is one.
 * USAGE no_state, bad_agent. */
int amp_rules_usable(const struct router *r, uint32_t port, struct amp_error *err);
int amp_rules_add(struct router *r, const char *text, struct amp_error *err);
void amp_rules_free(struct router *r);
/* Whether it is enough to look at the head of messages. */
void amp_rules_heads(struct router *r);

/* reload.c: after a hang-up */
/* Builds new rules of n texts, and lanes, and takes them in place of the old ones; on failure
 * nothing changes. */
int amp_reload(struct router *r, char *const *texts, uint32_t n, const struct amp_lane_rules *lanes,
               struct amp_error *err);
void amp_reload_turn(struct router *r); /* has the routes read again, if that was asked for */
/* Ports that no route leads to any more: closed when all is delivered. */
void amp_reload_close(struct router *r);

#endif
