/* The loop that hands an agent the messages of its inbox. */
#ifndef AMP_ROUTE_INBOX_LOOP_H
#define AMP_ROUTE_INBOX_LOOP_H

#include "route/handover/handover.h"

struct amp_inbox_end {
    uint64_t handed, refused;
};
/* The caller holds the agent's lock (amp_inbox_lock). Returns when no message waits (not with
 * `follow`), after max_messages, after a failure, or after a signal, INTERRUPTED. */
int amp_inbox_loop(struct amp_store *store, const struct amp_handover_options *o,
                   struct amp_inbox_end *end, struct amp_error *err);

#endif
