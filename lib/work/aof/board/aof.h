/*
 * The router and scheduler of AOF/1 over task files (lib/work/aof). A router takes messages one
 * after the other; each is one change: its files, its move and its events, all or nothing. Nothing
 * that a message or a file says is fatal: it becomes a line of the log. -1 is a failure of the
 * machine (a full disk, no lock), after which the same call may be repeated.
 */
#ifndef AMP_WORK_AOF_BOARD_AOF_H
#define AMP_WORK_AOF_BOARD_AOF_H

#include "message/delivery/sender/identity.h"
#include "work/aof/data.h"

/* A notification, as it is on disk until it was delivered. */
struct amp_aof_told {
    struct amp_span line;    /* {"notify","taskId",…} with its LF, or empty */
    struct amp_span message; /* the status.update that asks a person about the task, or tells that
                                it needs no answer any more; with its LF, or empty */
};

struct amp_aof_options {
    const char *data; /* the data directory */
    const char *actor;
    bool stops_at_review; /* `done` stops in review, but for metadata.reviewRequired false */
    int64_t lock_timeout_ms;
    /* A line of the log, and a message of the router, with its LF. */
    int (*emit)(void *ctx, struct amp_span line, struct amp_error *err);
    int (*say)(void *ctx, struct amp_span line, struct amp_error *err);
    bool notifies, asks; /* which parts of struct amp_aof_told are made */
    /* Delivers a notification. It is repeated after a kill, and after a failure with the next poll
     * or change. NULL: there are none. */
    int (*notify)(void *ctx, const struct amp_aof_told *what, struct amp_error *err);
    /* A message is about a task that cannot be found or used; or NULL. */
    void (*alert)(void *ctx, const char *task, const char *reason);
    void (*warn)(void *ctx, const char *text);
    struct amp_identities *ids; /* NULL: signatures are not checked */
    bool trusted;               /* the input is trusted (message/delivery/sender/identity.h) */
    void *ctx;
};

struct amp_aof_router;
/* Opens the data directory (amp_aof_open) and makes what is missing in it; make: also itself. */
int amp_aof_router_new(const struct amp_aof_options *o, bool make, struct amp_aof_router **out,
                       struct amp_error *err);
void amp_aof_router_free(struct amp_aof_router *r);

/* Delivers the notifications that wait, the oldest first, until one fails, which is a warning. Does
 * nothing while another process does it, and for a second after a failure. -1: failure of the
 * machine. */
int amp_aof_notices_send(struct amp_aof_router *r, struct amp_error *err);

/* One line. 1: it concerns the protocol and was handled; 0: it does not, the caller passes it on.
 */
int amp_aof_router_line(struct amp_aof_router *r, struct amp_span line, struct amp_error *err);
/* Handles a line that is longer than the reader's limit. */
int amp_aof_router_too_long(struct amp_aof_router *r, struct amp_error *err);

/* One poll: tasks in progress with a stale heartbeat, by the table of the resume protocol. */
struct amp_aof_polled {
    uint32_t in_progress, stale, reclaimed, finished;
};
int amp_aof_poll(struct amp_aof_router *r, struct amp_aof_polled *out, struct amp_error *err);

/* The end of a session: the transition of the task's run_result.json, if there is one. 1: it has
 * its status now, or had it, or another one from which it does not lead there; 0: there is no valid
 * result, or no such task, which is logged. */
int amp_aof_end(struct amp_aof_router *r, const char *id, struct amp_error *err);

/* A task that an executor got. */
enum { AMP_AOF_AGENT_MAX = 128 }; /* bytes of an agent's name with its NUL */
struct amp_aof_given {
    char id[AMP_AOF_ID_MAX];
    char agent[AMP_AOF_AGENT_MAX];
    int64_t since_ms;    /* of its lease: another one may have the same agent */
    struct amp_buf text; /* of the task file, as it was read */
};
struct amp_aof_lease {
    const char *agent; /* of tasks whose routing names none; NULL: these are left in ready */
    int64_t lease_ms, beat_ms; /* until the lease and the heartbeat expire */
    int64_t renewals;          /* how often a lease is renewed at most */
};
/* The time between two heartbeats: three while one is valid, and four while a lease is. */
int64_t amp_aof_beat_every(const struct amp_aof_lease *how);
/* Gives the next ready task to an executor: the one with the highest priority, of these the one
 * with the lowest id. The task has a lease and is in progress, its run has run.json and a
 * heartbeat, and an earlier result is removed. text is initialised. 1: given; 0: none is ready. */
int amp_aof_dispatch(struct amp_aof_router *r, const struct amp_aof_lease *how,
                     struct amp_aof_given *out, struct amp_error *err);
/* Another heartbeat of a run; a lease that ends soon is renewed. Does nothing if the task is no
 * longer in progress with this lease. 1: the lease is over and was renewed as often as it may be.
 */
int amp_aof_heartbeat(struct amp_aof_router *r, const struct amp_aof_given *g,
                      const struct amp_aof_lease *how, int64_t count, struct amp_error *err);
/* Logs dispatch.error; back: the task goes back to ready, because its agent never started or was
 * stopped, unless another run has it by now. */
int amp_aof_dispatch_error(struct amp_aof_router *r, const struct amp_aof_given *g,
                           const char *reason, const char *what, bool back, struct amp_error *err);

/* A line that this agent wrote: messages of other senders are rejected, its own need no signature.
 */
int amp_aof_router_line_of(struct amp_aof_router *r, struct amp_span line, const char *agent,
                           struct amp_error *err);

/* Logs system.startup or system.shutdown, of a command that stays. */
int amp_aof_system(struct amp_aof_router *r, const char *type, struct amp_error *err);
/* Logs what an executor did for a task: type action.started or action.completed, with a result or
 * NULL. */
int amp_aof_action(struct amp_aof_router *r, const struct amp_aof_given *g, const char *type,
                   const char *action, const char *result, struct amp_error *err);

/* Executors. start starts the command of a task: its standard input is the task file, *out is the
 * end of a pipe with its output; slot: 0 up to most - 1, free again after `ended`. post sends a
 * line to a server and waits for its outcome; if it fails with the errno ETIMEDOUT, the session may
 * have begun, so the task stays in progress until its heartbeat has expired. */
struct amp_runner;
struct amp_aof_executor {
    struct amp_aof_lease lease;
    unsigned most;    /* commands at the same time */
    int64_t every_ms; /* 0: until nothing is ready and nothing runs */
    int (*start)(void *ctx, unsigned slot, const struct amp_aof_given *g, struct amp_runner *run,
                 int *out, struct amp_error *err);
    void (*ended)(void *ctx, unsigned slot); /* also after a start that failed; or NULL */
    int (*post)(void *ctx, const struct amp_aof_given *g, struct amp_error *err);
    int (*flush)(struct amp_error *err); /* of what was emitted, before each wait */
    void *ctx;
    volatile const int *stop;
};
/* Polls, gives out what is ready, and routes what commands write until they end; a message triggers
 * another poll. A command whose lease is over is stopped, and its task goes back. With post the
 * sessions go on elsewhere, and so do their heartbeats. */
int amp_aof_execute(struct amp_aof_router *r, const struct amp_aof_executor *x,
                    struct amp_error *err);

struct amp_aof_new {
    const char *title, *agent, *priority, *parent; /* NULL: none */
    struct amp_span body;
    bool backlog;
};
/* A new task, in ready or backlog. NO parent_not_found, nested_delegation, too_many_tasks; DATAERR
 * invalid_utf8; TEMPFAIL name_taken. */
int amp_aof_new_task(struct amp_aof_router *r, const struct amp_aof_new *what,
                     char id[AMP_AOF_ID_MAX], struct amp_error *err);

#endif
