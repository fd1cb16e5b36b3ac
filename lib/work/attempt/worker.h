/*
 * The worker, the common part of run and review: a filter that takes the messages for one role,
 * acknowledges them, runs an agent for one message after another, and answers. It polls and never
 * blocks on its output. While an agent works, the worker reads, writes, and checks whether the task
 * was suspended.
 *
 * Its jobs make it crash-safe (work/item/own.h): a message is taken and its acknowledgement
 * queued in one commit, an answer and the end of the job in another. An unanswered job is started
 * again.
 */
#ifndef AMP_WORK_ATTEMPT_WORKER_H
#define AMP_WORK_ATTEMPT_WORKER_H

#include <limits.h>

#include "message/delivery/intake.h"
#include "message/pause/watch.h"
#include "work/agent/agent.h"
#include "work/agent/contract/contract.h"
#include "work/confine/confine.h"
#include "work/git/prepare.h"
#include "work/git/repository/quarantine.h"
#include "work/item/queue.h"
#include "work/task/activity/notice/activity.h"

struct amp_identities;
struct amp_loop;

/* The pool's request to the agent of the current attempt: stop at the next safe point (SW4RM
 * §7.2). */
struct amp_worker_ask {
    enum {
        AMP_ASK_NOTHING,
        AMP_ASK_PREEMPT,  /* for work of a higher priority */
        AMP_ASK_SHUTDOWN, /* the pool ends: the agent may also finish its task */
    } what;
    int64_t until_ms; /* monotonic: afterwards the agent is ended */
    /* But it has this long to act on the answer `stop`, or to reach a safe point after a section
     * that was deferred to. */
    int64_t act_ms;
};

/* The usage of an attempt, as its agent reports it. */
struct amp_worker_usage {
    int64_t input_tokens, output_tokens;
    int64_t cost_micros; /* millionths of a US dollar */
};

/* The results of a worker's last attempt, for its pool. */
struct amp_worker_left {
    struct amp_worker_usage usage;
    char session[257];
    char worktree[PATH_MAX];
    char code[48]; /* forced_preemption, resource_timeout, agent_shutdown_timeout, worktree_locked;
                      "": none */
    int64_t limit_ms; /* the wall clock's time at which a usage limit ends; 0: none was reported */
    bool yielded;     /* the agent was stopped at a safe point */
    bool failed;      /* the work is answered as a failure: DONE is FAIL */
};

struct amp_worker_options {
    const char *tool, *role, *agent, *consumer; /* agent NULL: no registry */
    const char *operator_name;                  /* the person whose key ids has, or NULL */
    const char *in, *out;                       /* NULL: stdin, stdout */
    struct amp_identities *ids; /* message/delivery/sender/identity.h; NULL: identities are off */
    bool trusted;               /* unsigned messages of the input count */
    const char *const *argv;    /* the agent's command */
    char *const *envp;          /* of this process; cleaned for the agent */
    int64_t timeout_ms;         /* an attempt; 0 none */
    int64_t grace_ms;           /* between TERM and KILL */
    int64_t retries;            /* attempts repeated after failures that are not the agent's */
    int64_t pause_ms;           /* before an attempt that the agent asked to repeat */
    int64_t open_timeout_ms;    /* for a FIFO's other end */
    int64_t output_bytes;       /* limit of the stored stdout and of the stored stderr */
    const char *const *protected_; /* branch patterns in addition to main and master */
    const struct amp_confine_policy *policy;
    const struct amp_confine_report *confine; /* demand OFF: the agent is not confined */
    struct amp_git_take_limits take;          /* of what a confined agent made */
    struct amp_activity_limits activity;      /* of the activity buffer */
    struct amp_prepare prepare;               /* of its worktrees; its command is confined, too */
    volatile const int *stop;                 /* the number of the signal that ends the run, or 0 */
    /* note prints a warning, progress prints progress. Neither may be NULL. */
    void (*note)(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
    void (*progress)(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
    void (*say)(void *ctx, const struct amp_finding *f, const struct amp_line_place *at);
    /* A worker inside of another loop (work/loop/pool): wait is called instead of amp_loop_wait,
     * with its contract. It reads no input, is not a heartbeat between jobs, and learns of
     * suspensions from amp_pause_watch_renew. NULL: none. */
    int (*wait)(void *ctx, struct amp_loop *turn, struct amp_error *err);
    void *wait_ctx;
    /* With a claim of the job: whether this process still has it, called before an attempt begins:
     * NO claim_lost. ctx is wait_ctx. NULL: the worker has its own jobs. */
    int (*claimed)(void *ctx, struct amp_error *err);
    /* With a claim: called before a step that gives it back, outside of a batch, to give up the
     * job's place; and to make a step of the job, in a batch. ctx is wait_ctx. */
    void (*leaves)(void *ctx);
    int (*step)(void *ctx, struct amp_queue_step *step, struct amp_buf *mem,
                struct amp_queue_job *out, struct amp_error *err);
    /* Whether another agent of the pool has no work, and no job that goes on in its worktree: it
     * gets none until it is given back. ctx is wait_ctx. NULL: there are no other agents. */
    bool (*borrow)(void *ctx, const char *agent);
    void (*give_back)(void *ctx, const char *agent);
    /* A worker that reads messages for the agents of a pool: submits a message, in place of taking
     * it as a job. NO: the message is refused with the code. ctx is wait_ctx. NULL: the worker has
     * its own jobs. */
    int (*submit)(void *ctx, struct amp_view *v, struct amp_error *err);
    int64_t resource_ms; /* how long an agent may wait for a resource; 0: SW4RM's 300 s */
    const char *type;    /* of the agent: AMP_AGENT_TYPE; NULL: none */
    const char *session; /* of the agent's last attempt at the job, for AMP_SESSION; NULL: none */
};

#define AMP_WORKER_WAITING (1u << 20)

#define AMP_WORK_ASKED_BY "coordinator"

struct amp_worker;
struct amp_worker_role {
    enum amp_kind takes;
    const char *asked_by; /* the role that may send them; NULL: every sender of them */
    bool disposable;      /* its worktree may be removed with its uncommitted changes */
    /* Checks a message before it is taken; bad: the code of its first error, or NULL for a valid
     * message. Whether it was refused, and answered. */
    int (*admit)(struct amp_worker *w, const struct amp_view *v, const char *bad,
                 struct amp_error *err);
    /* Works on a job. Whether the job has to wait (suspended); if not, it made a step. */
    int (*work)(struct amp_worker *w, struct amp_item *job, const struct amp_view *v,
                struct amp_error *err);
    /* Takes a nack. 1: the role handled it; 0: it is about a sent message; -1: failure. NULL: all
     * nacks are about sent messages. */
    int (*nacked)(struct amp_worker *w, const struct amp_view *v, struct amp_error *err);
    /* Whether a message is for this worker: 1, 0, or -1: failure. NULL: it has the kind `takes` and
     * is addressed to the role. */
    int (*ours)(struct amp_worker *w, const struct amp_view *v, struct amp_error *err);
    /* Appends the acknowledgement of a taken message of another protocol than AMP, with LF;
     * nothing: there is none. NULL: the role takes AMP only. */
    int (*taken)(struct amp_worker *w, const struct amp_view *v, struct amp_buf *out,
                 struct amp_error *err);
    /* Sees a valid message of others before it is passed on; may be NULL. */
    int (*seen)(struct amp_worker *w, const struct amp_view *v, struct amp_error *err);
    /* The order of its jobs, see work/item/own.h; ctx is the worker. NULL: that of their
     * arrival.
     */
    int (*rank)(void *ctx, const char *msg_id, const char *task, char key[AMP_KEY_MAX],
                int64_t *rank, struct amp_error *err);
    const char *const *follows; /* see the same */
    bool in_sessions; /* it takes work of a protocol with sessions, whose messages have no ids: they
                         get the name of their work */
};

struct amp_worker {
    const struct amp_worker_options *opt;
    const struct amp_worker_role *role;
    void *ctx; /* the role's */
    struct amp_store *store;
    struct amp_git *git;
    char state_dir[PATH_MAX]; /* absolute */
    int lock;                 /* the lock of the agent's name */
    int tree;                 /* the lock of its worktree; -1: none */
    struct amp_intake intake;
    struct amp_reader *job_reader, *ref_reader, *own_reader; /* up to three views at a time */
    struct amp_buf message;                                  /* the message of the current job */
    struct amp_worker_io *io;
    struct amp_buf waiting; /* the jobs, with their suspensions, that were reported as waiting */
    int64_t seen_ms;
    bool halted; /* the current task or the agent was suspended by an escalation, */
    bool paused; /* by a person */
    struct amp_pause_watch pauses;
    bool waits;                  /* a job waits for the end of a suspension */
    char waits_for[AMP_KEY_MAX]; /* set by the role if the job has to wait: amp_own_order_hold */
    struct amp_worker_ask ask;
    struct amp_worker_left left;
    struct amp_error refusal; /* the failure with which the current job ends without an attempt,
                                 status OK: it is worked on; set by the pool */
    const char *task;         /* the current one, or NULL */
    enum amp_status status;
};

/* Runs until the input ends and no job can continue. Returns 0 and the exit status in *status. */
int amp_worker_run(struct amp_store *s, const struct amp_worker_options *opt,
                   const struct amp_worker_role *role, void *ctx, enum amp_status *status,
                   struct amp_error *err);

/* For workers with a loop of their own: opens input, output and readers; there is no agent. */
int amp_worker_open(struct amp_worker *w, struct amp_error *err);
void amp_worker_close(struct amp_worker *w); /* also after a failed open */

/* For a pool: the beginning and the end of amp_worker_run. join takes the lock of the agent's
 * name, registers the agent, and opens everything; w->git may be set before. TEMPFAIL agent_busy:
 * the name is used. end is the end of the agent's work, not of its files; unbind: also its
 * worktree. */
int amp_worker_join(struct amp_worker *w, struct amp_error *err);
void amp_worker_leave(struct amp_worker *w, bool unbind);
/* Whether the input has ended or the output has lost its reader. */
bool amp_worker_ended(const struct amp_worker *w);

/* For the roles. */

/* One turn of reading and writing; waits at most wait_ms, also for fds[] (at most AMP_WORKER_FDS),
 * and fills their revents. */
#define AMP_WORKER_FDS 128
struct pollfd;
int amp_worker_turn(struct amp_worker *w, struct pollfd *fds, unsigned n_fds, int64_t wait_ms,
                    struct amp_error *err);

/* The reason of an escalation. It is critical: it suspends its task and the task's agents. */
struct amp_worker_trouble {
    const char *type, *what;
    const char *const *suggested;
};

/* Refuses a message that was not taken: sends a nack and, with a trouble, an escalation, after the
 * suspensions. 1: refused; -1: failure. */
int amp_worker_refuse(struct amp_worker *w, const struct amp_view *v, const char *code,
                      const char *why, bool retryable, const struct amp_worker_trouble *trouble,
                      struct amp_error *err);
/* Refuses a message whose task is suspended; 0: it is not suspended. */
int amp_worker_refuse_suspended(struct amp_worker *w, const struct amp_view *v,
                                struct amp_error *err);

/* A step of the current job with the lines that it sends. Lines that need an acknowledgement are
 * recorded in the ledger. lines may be NULL. */
#define AMP_WORKER_LINES 2
struct amp_worker_lines {
    struct amp_span v[AMP_WORKER_LINES]; /* with or without LF */
    uint32_t n;
};
int amp_worker_step(struct amp_worker *w, struct amp_item *job, struct amp_queue_step *step,
                    const struct amp_worker_lines *lines, struct amp_error *err);
/* Ends an attempt with the step, then calls amp_worker_finish. */
int amp_worker_conclude(struct amp_worker *w, struct amp_item *job, struct amp_queue_step *step,
                        const struct amp_worker_lines *lines, uint8_t agent_event,
                        struct amp_error *err);

/* Appends an escalation to out and suspends its task and agents. */
int amp_worker_escalate(struct amp_worker *w, const struct amp_view *v,
                        const struct amp_worker_trouble *trouble, struct amp_buf *out,
                        struct amp_error *err);

enum amp_claim {
    AMP_CLAIM_FAILED = -1,
    AMP_CLAIM_TAKEN,
    AMP_CLAIM_WAITS,   /* the task or the agent is suspended */
    AMP_CLAIM_DROPPED, /* the job was refused (stale, ended) and stepped */
};
/* Takes the agent and the task for a job. dispatch: of the work, or empty. */
enum amp_claim amp_worker_claim(struct amp_worker *w, struct amp_item *job,
                                const struct amp_view *v, struct amp_span dispatch,
                                struct amp_error *err);

/* Before an attempt. -1: the job has a refusal, which is its failure. */
int amp_worker_may_attempt(struct amp_worker *w, struct amp_error *err);
/* The agent's record before its work: it has the task, and runs. */
int amp_worker_begin(struct amp_worker *w, const char *task, struct amp_error *err);
/* The part of it that concerns the agent: its suspensions by people, its state. AMP_CLAIM_TAKEN,
 * AMP_CLAIM_WAITS or AMP_CLAIM_FAILED. */
enum amp_claim amp_worker_engage(struct amp_worker *w, const char *name, struct amp_span task,
                                 struct amp_error *err);
/* A resource that the job needs is held by another one (`cause`): parks the job for a pause. */
int amp_worker_lack(struct amp_worker *w, struct amp_item *job, const struct amp_error *cause,
                    struct amp_error *err);

/* The agent waits (WAIT, LACK) until a time, 0: until an event; unless it is shutting down or the
 * like. */
int amp_worker_wait(struct amp_worker *w, uint8_t event, int64_t until_ms, struct amp_error *err);

/* The agent's record after its work: COMPLETE, FAIL (and recovered), SUSPEND or SHUTDOWN. */
int amp_worker_finish(struct amp_worker *w, uint8_t agent_event, struct amp_error *err);

/* Views a message of the ledger with `reader` (roles use ref_reader); `keep` holds its bytes, and
 * `id` outlives the view: a message of a session has it as its id. NO unknown_ref. */
int amp_worker_find(struct amp_worker *w, struct amp_reader *reader, struct amp_span id,
                    struct amp_buf *keep, struct amp_view *view, struct amp_error *err);

/* Leaves the worktree of a job that has ended, so that another agent may work on the branch:
 * removes it; uncommitted changes are kept under a ref. */
void amp_worker_vacate(struct amp_worker *w);

/* Ends the binding of the agent's worktree and removes the worktree, unless it has uncommitted
 * changes. */
void amp_worker_unbind(struct amp_worker *w);

/* Whether the attempt was ended by force for more urgent work: the job has failed with
 * forced_preemption. */
bool amp_worker_is_forced(const struct amp_worker *w);

/* Whether a failure is caused by the job, so that it becomes its answer; other failures end the
 * run.
 */
bool amp_worker_is_cause(const struct amp_error *err);

#endif
