/*
 * The router and scheduler of AOF/1 over task files (lib/aof). A router takes messages one after
 * the other; each is one change: its files, its move and its events, all or nothing. Nothing that a
 * message or a file says is fatal: it becomes a line of the log. -1 is a failure of the machine
 * (a full disk, no lock), after which the same call may be repeated.
 */
#ifndef AMP_FLOW_AOF_H
#define AMP_FLOW_AOF_H

#include "aof/data.h"

/* What people may be notified of, after it is on disk. */
struct amp_aof_notice {
    const char *kind; /* "review", "blocked", "done", or "alert": a message names no known task */
    const char *task;
    struct amp_span reason;
};

struct amp_aof_options {
    const char *data; /* the data directory */
    const char *actor;
    bool stops_at_review; /* `done` stops in review, but for metadata.reviewRequired false */
    int64_t lock_timeout_ms;
    /* A line of the log or a message of the router, with its LF. */
    int (*emit)(void *ctx, struct amp_span line, struct amp_error *err);
    void (*notify)(void *ctx, const struct amp_aof_notice *n); /* or NULL */
    void *ctx;
};

struct amp_aof_router;
/* Opens the data directory (amp_aof_open) and makes what is missing in it; make: also itself. */
int amp_aof_router_new(const struct amp_aof_options *o, bool make, struct amp_aof_router **out,
                       struct amp_error *err);
void amp_aof_router_free(struct amp_aof_router *r);

/* One line. 1: it concerns the protocol and was handled; 0: it does not, the caller passes it on.
 */
int amp_aof_router_line(struct amp_aof_router *r, struct amp_span line, struct amp_error *err);
/* The same for a line that is longer than the reader's limit. */
int amp_aof_router_too_long(struct amp_aof_router *r, struct amp_error *err);

/* One poll: tasks in progress with a stale heartbeat, by the table of the resume protocol. */
struct amp_aof_polled {
    uint32_t in_progress, stale, reclaimed, finished;
};
int amp_aof_poll(struct amp_aof_router *r, struct amp_aof_polled *out, struct amp_error *err);

/* The end of a session: the transition of the task's run_result.json, if there is one. 1: it has
 * its status now, or had it; 0: there is no valid result, or no such task, which is logged. */
int amp_aof_end(struct amp_aof_router *r, const char *id, struct amp_error *err);

/* A task that an executor got. */
struct amp_aof_given {
    char id[AMP_AOF_ID_MAX];
    char agent[128];
    struct amp_buf text; /* of the task file, as it was read */
};
struct amp_aof_lease {
    const char *agent; /* of tasks whose routing names none; NULL: these are left in ready */
    int64_t lease_ms, beat_ms; /* until the lease and the heartbeat expire */
};
/* Gives the next ready task to an executor: the one with the highest priority, of these the one
 * with the lowest id. The task has a lease and is in progress, its run has run.json and a
 * heartbeat, and an earlier result is removed. text is initialised. 1: given; 0: none is ready. */
int amp_aof_dispatch(struct amp_aof_router *r, const struct amp_aof_lease *how,
                     struct amp_aof_given *out, struct amp_error *err);
/* Another heartbeat of a run; a lease that is half over is renewed. Does nothing if the task is no
 * longer in progress for this agent. */
int amp_aof_beat(struct amp_aof_router *r, const struct amp_aof_given *g,
                 const struct amp_aof_lease *how, int64_t count, struct amp_error *err);
/* Logs dispatch.error; back: the task goes back to ready, because its agent never started or was
 * stopped. */
int amp_aof_dispatch_error(struct amp_aof_router *r, const char *id, const char *reason,
                           const char *what, bool back, struct amp_error *err);

/* A line that this agent wrote: messages of other senders are rejected. */
int amp_aof_router_line_of(struct amp_aof_router *r, struct amp_span line, const char *agent,
                           struct amp_error *err);

/* Executors. start starts the command of a task: its standard input is the task file, *out is the
 * end of a pipe with its output. post sends a line to a server and waits for its outcome. */
struct amp_runner;
struct amp_aof_executor {
    struct amp_aof_lease lease;
    unsigned most;    /* commands at the same time */
    int64_t every_ms; /* 0: until nothing is ready and nothing runs */
    int (*start)(void *ctx, const struct amp_aof_given *g, struct amp_runner *run, int *out,
                 struct amp_error *err);
    int (*post)(void *ctx, const struct amp_aof_given *g, struct amp_error *err);
    int (*flush)(struct amp_error *err); /* of what was emitted, before each wait */
    void *ctx;
    volatile const int *stop;
};
/* Polls, gives out what is ready, and routes what commands write until they end. With post the
 * sessions go on elsewhere, and so do their heartbeats. */
int amp_aof_execute(struct amp_aof_router *r, const struct amp_aof_executor *x,
                    struct amp_error *err);

struct amp_aof_new {
    const char *title, *agent, *priority, *parent; /* NULL: none */
    struct amp_span body;
    bool backlog;
};
/* A new task, in ready or backlog. NO parent_not_found, nested_delegation, too_many_tasks. */
int amp_aof_new_task(struct amp_aof_router *r, const struct amp_aof_new *what,
                     char id[AMP_AOF_ID_MAX], struct amp_error *err);

#endif
