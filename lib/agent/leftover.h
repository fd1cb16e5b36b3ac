/* One process acts as an agent at a time; what a killed one left running is ended. */
#ifndef AMP_AGENT_LEFTOVER_H
#define AMP_AGENT_LEFTOVER_H

#include <amp/base/error.h>

/* Takes STATE/run/<agent>.lock for the life of the returned descriptor. TEMPFAIL agent_busy when
 * another process acts as this agent. */
int amp_agent_hold(const char *state_dir, const char *agent, int *fd, struct amp_error *err);

/* Ends (KILL) the processes that bear the environment of an attempt of this agent in this state:
 * to be called with the lock held, when no attempt of ours runs. Returns how many there were. */
int amp_agent_end_leftovers(const char *state_dir, const char *agent);

#endif
