/* Deadlines of working agents (work/agent/sweep.h) and the messages about them: functions of rows
 * of people/deadlines.h. */
#ifndef AMP_WORK_AGENT_AGENT_NOTICES_H
#define AMP_WORK_AGENT_AGENT_NOTICES_H

#include "message/delivery/deadline.h"

/* Time limits of states (SW4RM §8.3): a NOTIFICATION to the admin. */
int amp_agent_limit_due(struct amp_store *s, const struct amp_deadline_ctx *c, int64_t *ms,
                        struct amp_error *err);
int amp_agent_limit_run(struct amp_store *s, int64_t now_ms, const struct amp_deadline_ctx *c,
                        uint32_t *done, struct amp_error *err);
/* Agents silent for longer than silence_ms: an escalation. */
int amp_agent_silence_due(struct amp_store *s, const struct amp_deadline_ctx *c, int64_t *ms,
                          struct amp_error *err);
int amp_agent_silence_run(struct amp_store *s, int64_t now_ms, const struct amp_deadline_ctx *c,
                          uint32_t *done, struct amp_error *err);

/* amp_agent_works tells whether the agent of a process has work that no time limit ends,
 * amp_agent_lost whether its process is gone as well. A process that acts as an agent has the lock
 * of its name. */
struct amp_agent_rec;
bool amp_agent_works(const struct amp_agent_rec *rec);
bool amp_agent_lost(struct amp_store *s, struct amp_span agent, const struct amp_agent_rec *rec);
/* Such agents fail, with a NOTIFICATION to the admin. */
int amp_agent_lost_run(struct amp_store *s, int64_t now_ms, const struct amp_deadline_ctx *c,
                       uint32_t *done, struct amp_error *err);

#endif
