/* One agent of a pool: its worker, its fiber, and the job that it has. For the files of pool/. */
#ifndef AMP_WORK_LOOP_POOL_SLOT_H
#define AMP_WORK_LOOP_POOL_SLOT_H

#include "base/loop.h"
#include "base/process/fiber.h"
#include "message/delivery/outbox.h"
#include "work/loop/pool/jobs.h"
#include "work/loop/pool/pool.h"

#define AMP_SLOT_STACK (1u << 20) /* bytes; used as needed */

struct amp_pool;

struct amp_slot {
    struct amp_pool *pool;
    const struct amp_pool_type *type;
    char agent[AMP_QUEUE_AGENT_MAX], consumer[AMP_QUEUE_CONSUMER_MAX];
    bool is_first; /* of its type: see amp_queue_agent */
    struct amp_worker_options opt;
    struct amp_run_options run;
    struct amp_review_options review;
    struct amp_session_options session;
    struct amp_worker w;
    struct amp_identities *ids, *own; /* of its role; of the agent's name */
    struct amp_outbox answers;        /* lines that the agent says under its own name */
    char box[200];                    /* the name of that outbox; "": not used yet */
    bool keeps;                       /* a job that goes on later is in its worktree */
    struct amp_fiber *fiber;
    struct amp_loop *turn; /* what the fiber waits for; NULL: it runs, or has ended */
    int64_t due_ms;        /* monotonic: the end of that wait; < 0: none */
    bool woken;            /* the wait ends in the next turn */
    bool due_now;          /* it is resumed in this turn */
    bool overran;          /* it did not end within the grace period of the shutdown */
    int stop;              /* see amp_worker_options.stop */
    bool ready;            /* it may take a job, */
    bool borrowed;         /* but not while another agent clears its worktree */
    bool quit;             /* it ends when it has no job */
    bool has_job;
    bool ended; /* the claim: a step gave the job back */
    struct amp_pool_job job;
    struct amp_item item; /* the same job, for its worker */
    int64_t began_ms;     /* the job, monotonic */
    int64_t limited_ms;   /* it takes no job until then (the wall clock); 0: none */
    bool counted;         /* what it used was compared with its budget */
    bool over_budget;     /* the budget of the slot's job is spent: it is refused */
    int64_t account_ms;   /* the end of the usage limit that it reported last */
    uint64_t jobs;        /* that it ended */
    bool failed;          /* error says why the fiber ended */
    struct amp_error error;
};

/* amp_worker_options.wait of a slot. */
int amp_slot_wait(void *slot, struct amp_loop *turn, struct amp_error *err);
/* Makes the slot that reads the pool's input; it has no agent and no job. */
int amp_desk_open(struct amp_slot *slot, struct amp_pool *pool, struct amp_error *err);
/* Makes the slot's agent and its fiber; the first resume registers the agent. NO lock_timeout: the
 * name is used. */
int amp_slot_open(struct amp_slot *slot, struct amp_pool *pool, const struct amp_pool_type *type,
                  const char *agent, struct amp_error *err);
void amp_slot_close(struct amp_slot *slot); /* its fiber has ended, or never began */
/* Before the answer that ends the job: the next job on the branch finds it free. */
void amp_slot_leave(struct amp_slot *slot);
/* Runs the fiber until it waits again, or ends. */
bool amp_slot_resume(struct amp_slot *slot); /* false: it has ended */
/* Asks the agent that has the slot's job to stop at its next safe point. */
void amp_slot_ask(struct amp_slot *slot, int what, int64_t until_ms);

/* Emits what the agent said under its own name, in the outbox `box`. */
int amp_slot_answers(struct amp_slot *slot, const char *box, struct amp_error *err);

/* task.c: works on a job that is not one of AMP's dispatches or review requests. */
int amp_pool_task(struct amp_slot *slot, const struct amp_view *v, struct amp_pool_outcome *out,
                  struct amp_error *err);
/* Answers a job that is not worked on: it has failed with the code. */
int amp_pool_refuse(struct amp_slot *slot, const struct amp_view *v, const char *code,
                    const char *why, struct amp_pool_outcome *out, struct amp_error *err);

#endif
