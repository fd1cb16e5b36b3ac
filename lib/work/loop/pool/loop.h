/* The agents of a pool use these parts of it. For the files of pool/. */
#ifndef AMP_WORK_LOOP_POOL_LOOP_H
#define AMP_WORK_LOOP_POOL_LOOP_H

#include "work/loop/pool/slot.h"

const struct amp_pool_options *amp_pool_options(const struct amp_pool *p);
struct amp_store *amp_pool_store(struct amp_pool *p);
/* Whether each agent's processes are in a namespace of their own, and end with it. */
bool amp_pool_is_walled(const struct amp_pool *p);
/* Whether the pool still has the claim of the slot's job; also in a batch. NO claim_lost. */
int amp_pool_claimed(struct amp_slot *slot, struct amp_error *err);
/* In a batch: a step of the slot's job by its worker. One that gives the job back ends the claim,
 * and records what the job used. The answer that the step emits and the end of the job are there
 * both or not at all. NO claim_lost. */
int amp_pool_step(struct amp_slot *slot, struct amp_queue_step *step, struct amp_buf *mem,
                  struct amp_queue_job *out, struct amp_error *err);
/* In a batch: ends the slot's job, and records what it used. The answer that is recorded in the
 * same batch and the end of the job are there both or not at all. */
int amp_pool_end(struct amp_slot *slot, const struct amp_pool_outcome *out, struct amp_error *err);
/* Ends the claim of the slot's job like amp_pool_end, if that was not done with an answer. */
int amp_pool_settle(struct amp_slot *slot, const struct amp_pool_outcome *out,
                    struct amp_error *err);

/* Whether a job waits for this agent, to go on in its worktree: 1, 0, or -1. */
int amp_pool_keeps(struct amp_slot *slot, struct amp_error *err);

/* Records the usage limit that the slot's agent reported, of the account of its type. */
int amp_pool_limit(struct amp_slot *slot, struct amp_error *err);

#endif
