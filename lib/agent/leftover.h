/* What an agent that was killed left running is ended. */
#ifndef AMP_AGENT_LEFTOVER_H
#define AMP_AGENT_LEFTOVER_H

/* Ends (KILL) the processes that bear the environment of an attempt of this agent in this state:
 * to be called with the lock held, when no attempt of ours runs. Returns how many there were. */
int amp_agent_end_leftovers(const char *state_dir, const char *agent);

#endif
