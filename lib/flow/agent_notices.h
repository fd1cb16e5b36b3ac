/* What time brings to agents at work: the notices of the sweep over them (agent/sweep.h). */
#ifndef AMP_FLOW_AGENT_NOTICES_H
#define AMP_FLOW_AGENT_NOTICES_H

#include <amp/protocol/protocol.h>

#include "store/store.h"

struct amp_agent_notices {
    bool states;             /* time limits of states (SW4RM §8.3): a NOTIFICATION to the admin */
    int64_t silence_ms;      /* of agents at work: an escalation; 0: not looked at */
    const char *actor;       /* into whose outbox the lines go */
    const char *from;        /* the escalations' sender */
    enum amp_level severity; /* theirs */
};
/* Carries out what is due; *done counts it. */
int amp_agent_notices_run(struct amp_store *s, const struct amp_agent_notices *l, int64_t now_ms,
                          uint32_t *done, struct amp_error *err);
int amp_agent_notices_next_due(struct amp_store *s, const struct amp_agent_notices *l, int64_t *ms,
                               struct amp_error *err);

#endif
