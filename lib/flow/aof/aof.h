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

struct amp_aof_new {
    const char *title, *agent, *priority, *parent; /* NULL: none */
    struct amp_span body;
    bool backlog;
};
/* A new task, in ready or backlog. NO parent_not_found, nested_delegation, too_many_tasks. */
int amp_aof_new_task(struct amp_aof_router *r, const struct amp_aof_new *what,
                     char id[AMP_AOF_ID_MAX], struct amp_error *err);

#endif
