/* The end of an attempt that its pool asks for (SW4RM §7.2, §8.2, §8.4). For the files of work/. */
#ifndef AMP_WORK_ATTEMPT_STOP_STOP_H
#define AMP_WORK_ATTEMPT_STOP_STOP_H

#include "work/attempt/assignment.h"

/* Answers w->ask: asks the agent once, then returns true when it is to be ended: at a safe point,
 * or because the time is over (k->words.forced). Lowers *wait_ms. */
bool amp_words_yield(struct amp_worker *w, struct amp_assignment *k, const struct amp_child *agent,
                     int64_t *wait_ms);
/* Whether the agent waits for a resource for too long (SW4RM §8.2); lowers *wait_ms. */
bool amp_words_starved(struct amp_worker *w, struct amp_assignment *k, int64_t *wait_ms);

/* In a pool, it judges the end of an agent that was asked to stop, waited, or reached its usage
 * limit. The result of one that finished counts. */
void amp_stop_judge(struct amp_worker *w, struct amp_assignment *k,
                    const struct amp_child_end *how);

#endif
