/* What the time limits of agents' states bring (SW4RM §8.3). */
#ifndef AMP_FLOW_WORK_LIMITS_H
#define AMP_FLOW_WORK_LIMITS_H

#include "store/store.h"

/* Fails the agents that are in a state for longer than its limit, and tells the admin of each by a
 * NOTIFICATION into the outbox of the actor. *done counts them. */
int amp_limits_expire(struct amp_store *s, int64_t now_ms, const char *actor, uint32_t *done,
                      struct amp_error *err);

#endif
