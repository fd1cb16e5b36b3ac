/* The members of a pool, for its own files. */
#ifndef AMP_WORK_LOOP_POOL_PRIVATE_H
#define AMP_WORK_LOOP_POOL_PRIVATE_H

#include "message/pause/pause.h"
#include "message/store/wake.h"
#include "work/item/claim/account.h"
#include "work/item/judge/conflict.h"
#include "work/item/order.h"
#include "work/loop/pool/loop.h"

struct amp_pool {
    const struct amp_pool_options *opt;
    struct amp_store *store;
    struct amp_queue_worker *queue;
    struct amp_order *order;
    struct amp_judge *judge; /* of conflicts */
    struct amp_wake wake;
    struct amp_pauses pauses;
    struct amp_accounts accounts; /* as of the last look */
    struct amp_slot **slot;       /* n_slots; before `first` is the one that reads the input */
    uint32_t first, n_slots;
    enum amp_status status; /* of the input */
    struct pollfd *fds;
    unsigned n_fds, cap_fds;
    struct amp_buf mem;
    bool recorded, stopping, hurried;
    int signal;      /* that asked it to shut down */
    int64_t stop_ms; /* monotonic: the end of the grace period */
    int64_t due_ms;  /* monotonic: a heartbeat, or a worker is lost; 0: none */
    /* As of the last look: the wall clock's time at which a job is due, the monotonic one at which
     * a worker is lost; 0: none. */
    int64_t job_due_ms, lost_due_ms;
    int64_t park_ms;   /* the wall clock's time at which a job may be ready; 0: none */
    int64_t budget_ms; /* the wall clock's time at which the budget of the day begins again */
    bool look;         /* something may have changed since */
    bool blocked;      /* the budget of the day is spent */
    bool unfinished;   /* jobs were queued again at the end */
    bool lost;         /* the output has no reader any more */
    struct amp_error error;
    bool failed;
};

/* limits.c. Whether the account of the job's type has a usage limit now, also one that another
 * process recorded since the last look: 1, 0, or -1. */
int amp_pool_account_closed(struct amp_pool *p, const struct amp_pool_job *job,
                            struct amp_error *err);
/* Looks at the budgets of the day and of the free agents. 1: the one of the day is spent. */
int amp_pool_budgets_look(struct amp_pool *p, struct amp_error *err);
/* Whether the budget of the job's task is not spent: 1, 0, or -1. */
int amp_pool_task_allows(struct amp_pool *p, const struct amp_pool_job *job, struct amp_error *err);
/* Adds what the slot's attempt used; also in a batch. */
int amp_pool_spend(struct amp_slot *slot, struct amp_error *err);

/* task/address.c. A task of the Runtime Protocol that is not the slot's: another agent of the pool
 * gets it, or it waits for an agent of another pool; else it has failed with not_assignee, and
 * nothing is said, since only the agents that a task names may answer it. */
int amp_pool_misdirected(struct amp_slot *slot, const struct amp_view *v,
                         struct amp_pool_outcome *out, struct amp_error *err);

/* claims.c. Claims jobs until no agent is free, or no job is ready. */
int amp_pool_claim(struct amp_pool *p, struct amp_error *err);
/* Asks for the place of jobs at work, here or in another pool, that a more urgent one needs. */
int amp_pool_ask_rivals(struct amp_pool *p, struct amp_error *err);
/* Looks at the conflicts that keep jobs from its free agents. */
int amp_pool_judge(struct amp_pool *p, struct amp_error *err);
/* Looks at the jobs that this pool works on: whether their place is wanted, or they are lost. */
int amp_pool_look_claims(struct amp_pool *p, struct amp_error *err);

#endif
