/*
 * A pool: one process with agents of several types that work on the jobs of the queue
 * (work/item/claim/queue.h), each agent on one job at a time. `task-queue work` runs one; several
 * pools may work on one state.
 *
 * Each agent of the pool is a worker (work/attempt/worker.h) in a fiber: an attempt is carried out
 * by the same code as in `task-dispatch run` and `review`, and where that code waits, the pool's
 * loop continues. The pool wakes up by the log of the state, a child, a FIFO, or a time; it makes
 * no system call without one of these.
 *
 * What an agent's process does decides its state (SW4RM §8.1; work/agent/agent.h):
 *   INITIALIZING      the pool makes it; RUNNABLE: it is free; SCHEDULED, RUNNING: it has a job
 *   WAITING           it said that it waits for an event, or asked for another attempt later
 *   WAITING_RESOURCES it waits for a resource, a usage limit, or a locked worktree: no job until
 * then SUSPENDED         it was stopped for other work, at a safe point; RESUMED with the next job
 *   COMPLETED         its answer is being recorded; FAILED, RECOVERING: after a failure
 *   SHUTTING_DOWN     the pool ends
 *
 * Preemption (SW4RM §7.1, §7.2): if a job waits, its type has no free agent, and an agent of the
 * type works on a job of a lower priority (not an equal one), the agent with the lowest priority,
 * and of these the one that began last, is asked to stop. It may go on until its next safe point,
 * and until the first one after a section that it declared before (hold); each has a time limit.
 * From a safe point on it has this time to end by itself. Then it gets TERM, and KILL after the
 * grace. After a safe point the job is queued again with its worktree and session. Otherwise it has
 * failed with forced_preemption.
 *
 * A usage limit is of the account of a type of agents (work/item/claim/account.h): none of its
 * agents gets work before its end, in no pool of the state. Each agent has a git-worker of its own,
 * and a call to it lets the other agents go on.
 *
 * Shutdown (§8.4), by a signal, a request, or without a reader of the output: no job is claimed any
 * more; agents have the grace period to finish. Then they
 * are ended as above, and their jobs are queued again. An agent that did not stop in time is FAILED
 * with agent_shutdown_timeout.
 */
#ifndef AMP_WORK_LOOP_POOL_POOL_H
#define AMP_WORK_LOOP_POOL_POOL_H

#include "work/aop/run/session.h"
#include "work/item/claim/queue.h"
#include "work/loop/pool/budget.h"
#include "work/loop/review/review.h"
#include "work/loop/run/run.h"

#define AMP_POOL_TYPES  16
#define AMP_POOL_AGENTS 256 /* of all types together */

struct amp_pool_type {
    const char *name; /* "builder": its agents are builder-1, builder-2, … */
    int64_t count;
    const char *const *argv; /* its command; NULL: the worker's */
};

/* The messages that a pool reads: `run` and `review` with several agents. They are taken as a
 * worker of the role takes them (work/attempt/worker.h), and submitted for the type that the task
 * names (tech_constraints.agent_type), or else for the first one. All agents sign with the key of
 * the worker's agent. After their end, the pool ends when it has no work that can go on. */
struct amp_pool_input {
    const struct amp_worker_role *role;
    void *ctx;                 /* the role's */
    const char *name;          /* the role's: "executor" */
    const char *in, *consumer; /* as in amp_worker_options */
    struct amp_identities *ids;
    bool trusted;
};

struct amp_pool_options {
    /* role, consumer, ids, in, out, wait and stop are set by the pool, and agent, which an input
     * needs. */
    struct amp_worker_options worker;
    const struct amp_run_options *run;         /* its worker is not used */
    const struct amp_review_options *review;   /* the same */
    const struct amp_session_options *session; /* the same */
    const char *name;                          /* of the pool; unique in the state */
    const struct amp_pool_type *types;
    uint32_t n_types;
    struct amp_queue_settings queue;
    struct amp_budgets budgets;
    int64_t safe_ms;     /* for an agent to reach a safe point, and to act on it */
    int64_t shutdown_ms; /* the grace period of a shutdown */
    bool drain;          /* ends when no job of its types is left that it could work on */
    const struct amp_pool_input *input; /* NULL: it reads none */
    /* The number of the signal that asks it to shut down, or 0; the pool sets it to 0 then. The
     * next signal ends the grace period. */
    volatile int *stop;
    /* Opens the identities that sign the lines of a principal ("executor/builder-1"). NULL: lines
     * are not signed. */
    int (*identify)(void *ctx, const char *principal, struct amp_identities **out,
                    struct amp_error *err);
    void *identify_ctx;
};

/* Works until it is stopped, or until nothing is left (drain). 0, with the exit status: OK;
 * INTERRUPTED: it was stopped by a signal, and no job is left unfinished; TEMPFAIL: jobs were
 * queued again unfinished. -1: a failure of the store or the machine; agents are ended before it
 * returns. With an input: also the worst status of what it read; TEMPFAIL: messages are kept until
 * a suspension is lifted.
 */
int amp_pool_run(struct amp_store *s, const struct amp_pool_options *opt, enum amp_status *status,
                 struct amp_error *err);

#endif
