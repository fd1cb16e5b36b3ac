/*
 * What run and review share: a filter that takes messages for one role, acknowledges them, has an
 * agent work on them one after another, and answers. It polls and never blocks on its output;
 * while an agent works it goes on reading, sending, and looking whether the task was suspended.
 *
 * Crash-safe by its jobs (agent/job/job.h): a message is taken and its acknowledgement queued in
 * one commit, an answer and the job's end in another. What was begun and not answered begins again.
 */
#ifndef AMP_FLOW_WORK_WORKER_H
#define AMP_FLOW_WORK_WORKER_H

#include <limits.h>

#include "agent/agent.h"
#include "agent/job/contract.h"
#include "agent/job/job.h"
#include "flow/intake.h"
#include "worktree/git/git.h"

struct amp_worker_options {
    const char *tool, *role, *agent, *consumer; /* agent NULL: no registry */
    const char *in, *out;                       /* NULL: stdin, stdout */
    const char *const *argv;                    /* the agent's command */
    char *const *envp;                          /* ours; cleaned for the agent */
    int64_t timeout_ms;                         /* an attempt; 0 none */
    int64_t grace_ms;                           /* between TERM and KILL */
    int64_t retries;               /* attempts repeated after failures of the machinery */
    int64_t pause_ms;              /* before a repeat that the agent asked for */
    int64_t open_timeout_ms;       /* for a FIFO's other end */
    int64_t output_bytes;          /* of stdout and of stderr that are kept */
    const char *const *protected_; /* patterns beside main and master */
    volatile const int *stop;      /* a signal's number when we must end */
    /* note: a warning for a person; progress: what happens. Neither may be NULL. */
    void (*note)(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
    void (*progress)(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
    void (*say)(void *ctx, const struct amp_finding *f, const struct amp_line_place *at);
};

#define AMP_WORKER_WAITING (1u << 20)

struct amp_worker;
struct amp_worker_role {
    enum amp_kind takes;
    bool disposable; /* nothing in its worktree is worth keeping at the end */
    /* Whether the message is refused before it is taken; bad is the code of the first error when
     * the checks rejected it, else NULL. 0: take it; 1: it is refused and answered. */
    int (*admit)(struct amp_worker *w, const struct amp_view *v, const char *bad,
                 struct amp_error *err);
    /* Works on a job. 0: it made its step; 1: it has to wait (suspended). */
    int (*work)(struct amp_worker *w, struct amp_job *job, const struct amp_view *v,
                struct amp_error *err);
    /* A nack came. 1: it is about something of the role's own; 0: about a message that was sent.
     * NULL: always the latter. */
    int (*nacked)(struct amp_worker *w, const struct amp_view *v, struct amp_error *err);
    /* Whether a message is for this worker; NULL: it is of the kind, and names the role. */
    bool (*ours)(const struct amp_view *v);
};

struct amp_worker {
    const struct amp_worker_options *opt;
    const struct amp_worker_role *role;
    void *ctx; /* the role's */
    struct amp_store *store;
    struct amp_git *git;
    char state_dir[PATH_MAX]; /* absolute */
    int lock;                 /* nobody else acts as this agent */
    int tree;                 /* nobody else works in its worktree; -1 none */
    struct amp_intake intake;
    struct amp_reader *job_reader, *ref_reader, *own_reader; /* three views at a time */
    struct amp_buf message;                                  /* the line of the job at work */
    struct amp_worker_io *io;
    struct amp_buf waiting; /* jobs that were reported as waiting, and for what */
    int64_t seen_ms, looked_ms;
    bool halted;      /* the task at work or the agent was suspended */
    const char *task; /* at work, or NULL */
    enum amp_status status;
};

/* Runs until the input ends and no job is left that could go on. Returns 0 and the status to
 * report in *status. */
int amp_worker_run(struct amp_store *s, const struct amp_worker_options *opt,
                   const struct amp_worker_role *role, void *ctx, enum amp_status *status,
                   struct amp_error *err);

/* The same in parts, for those with a loop of their own: the two ends, the readers, no agent. */
int amp_worker_open(struct amp_worker *w, struct amp_error *err);
void amp_worker_close(struct amp_worker *w); /* also after a failed open */

/* For the roles. */

/* One turn of reading, sending and looking after things; waits at most wait_ms, also for fds[]
 * (revents are filled). */
struct pollfd;
int amp_worker_turn(struct amp_worker *w, struct pollfd *fds, unsigned n_fds, int64_t wait_ms,
                    struct amp_error *err);

/* What a message is escalated for; critical, so that its task and agents are suspended. */
struct amp_worker_trouble {
    const char *type, *what;
    const char *const *suggested;
};

/* Refuses a message that was not taken, for good: a nack and, with a trouble, an escalation (which
 * suspends before it is sent). 1: refused. */
int amp_worker_refuse(struct amp_worker *w, const struct amp_view *v, const char *code,
                      const char *why, bool retryable, const struct amp_worker_trouble *trouble,
                      struct amp_error *err);
/* The same for a message whose task is suspended. 0: it is not. */
int amp_worker_refuse_suspended(struct amp_worker *w, const struct amp_view *v,
                                struct amp_error *err);

/* A step of the job at work with the lines that it sends. Messages of ours that need an
 * acknowledgement are recorded in the ledger. */
struct amp_worker_lines {
    struct amp_span v[6]; /* lines, LF or not */
    uint32_t n;
};
int amp_worker_step(struct amp_worker *w, struct amp_job *job, struct amp_job_step *step,
                    const struct amp_worker_lines *lines, struct amp_error *err);

/* An escalation of ours: composed, its task and agents suspended; the line is appended to out. */
int amp_worker_escalate(struct amp_worker *w, const struct amp_view *v,
                        const struct amp_worker_trouble *trouble, struct amp_buf *out,
                        struct amp_error *err);

enum amp_claim {
    AMP_CLAIM_FAILED = -1,
    AMP_CLAIM_TAKEN,
    AMP_CLAIM_WAITS,   /* the task or the agent is suspended */
    AMP_CLAIM_DROPPED, /* the job was refused (stale, ended) and stepped */
};
/* Takes the agent and the task for a job. dispatch: the dispatch that the work belongs to. */
enum amp_claim amp_worker_claim(struct amp_worker *w, struct amp_job *job, const struct amp_view *v,
                                struct amp_span dispatch, struct amp_error *err);

/* The agent's record after its work: COMPLETE, FAIL (and recovered), SUSPEND or SHUTDOWN. */
int amp_worker_finish(struct amp_worker *w, uint8_t agent_event, struct amp_error *err);

/* A ledger message viewed by `reader` (the role uses ref_reader); keep holds its bytes. NO
 * unknown_ref. */
int amp_worker_find(struct amp_worker *w, struct amp_reader *reader, struct amp_span id,
                    struct amp_buf *keep, struct amp_view *view, struct amp_error *err);

/* Gives the agent's worktree up and removes it, unless something in it was not committed. */
void amp_worker_unbind(struct amp_worker *w);

/* Whether a failure is about the job, and so its answer; others are failures of the machinery. */
bool amp_worker_is_cause(const struct amp_error *err);

#endif
