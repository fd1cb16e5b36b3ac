/* One message on its way through the router: its memory, its rules and its ports. */
#ifndef AMP_ROUTE_JOB_H
#define AMP_ROUTE_JOB_H

#include <amp/base/pipe.h>
#include <amp/protocol/protocol.h>

#include "message/inbox/lane.h"
#include "port/port.h"
#include "store/store.h"

struct router;
struct stream;
struct rule;
struct amp_outlet;

#define RULES_MAX      256
#define AMP_ROUTE_KIND "route" /* of the record that a router keeps of itself in the store */

enum job_stage {
    JOB_ASK, /* waits to be put to the jq worker */
    JOB_ASKED,
    JOB_DECIDED, /* its rules are known */
};

/* Of a message: a job of its own for each recipient, until it is offered to them. */
struct job_address {
    struct job *kids, *last;
    uint32_t n;
    char *mark; /* the recipients are committed with it: its id in the outbox, or NULL */
    struct nobody {
        struct amp_error why;
        const char *seed_code;
    } * nobody; /* who is not there, or NULL */

    /* Of a recipient. */
    struct job *of; /* the message, or NULL; next is then the next recipient */
    char *name;
};

/* What answers and dead letters say of a message, so that it is not parsed again when it is
 * refused. Its texts are in the job's memory. */
struct summary {
    bool known, json, has_attempt;
    struct amp_span type, from, task, correlation, content_type, node, excerpt;
    struct amp_span *to;
    uint32_t n_to;
    int64_t created_ms, attempt;
};

/* One message on its way, or (answer) a line for our own output. */
struct job {
    struct job *next;          /* in the line of undecided ones */
    struct job *older, *newer; /* among all */
    char *line;                /* in mem, or in own */
    size_t n;
    char *own;  /* what was put there later, or NULL */
    char *text; /* the document inside a wrapped line, NULL where it is the line */
    char *id;   /* may be empty: control records have none */
    enum amp_kind kind;
    enum amp_protocol protocol;
    bool answer;
    uint32_t era;    /* of the rules that it was judged by */
    bool copy;       /* for a port that only listens */
    uint64_t number; /* of its line */
    enum job_stage stage;
    const char *refused; /* the code it is answered with instead of going anywhere; why says more */
    const char *refused_by;
    bool again;                      /* it may be sent again later */
    bool wants_ack;                  /* somebody waits until it is acknowledged */
    int64_t came_ms;                 /* of amp_mono_ms */
    const struct amp_outlet *tried;  /* while it is refused: the port that could not deliver it */
    enum amp_lane lane;              /* that it asks for */
    uint64_t order;                  /* what has the same one never overtakes; 0: anything may */
    int64_t expires_ms;              /* 0: never */
    struct amp_store_entry_id entry; /* of the outbox, n 0: none */
    uint64_t hit[RULES_MAX / 64];    /* rules that hold */
    uint32_t ask_from;               /* the first jq rule that has to be asked */
    uint32_t waiting;                /* ports that have it now */
    struct summary summary;          /* of what came; a recipient has none */
    struct job_address address;      /* address.h */
    struct stream *stream;           /* cursors.c: in which it has a number, or NULL */
    int64_t seq;
    uint64_t resent;   /* resent.c: how often it was sent again out of its letter, or 0 */
    int64_t resent_ms; /* and when */

    uint32_t size; /* of the piece of memory that it is */
    char why[160]; /* and what follows: not cleared */
    char mem[];
};

/* job_mem.c */
struct job *amp_route_job_new(struct router *r, struct amp_span line, const struct amp_view *v);
/* A view of what came, as far as the summary goes: it has no document. False: it has no summary. */
bool amp_route_job_view(const struct job *j, struct amp_view *v);
/* What came: a recipient's has lost what led to it. */
struct amp_span amp_route_job_whole(const struct job *j);
void amp_route_job_free(struct router *r, struct job *j);
void amp_route_jobs_free(struct router *r);
/* What it is, for one that was made before that was known: the line, and all else by the view. */
int amp_route_job_fill(const struct router *r, struct job *j, struct amp_span line,
                       const struct amp_view *v, struct amp_error *err);

/* jobs.c */
/* It is refused when its turn comes. The first reason counts. Codes are static strings. */
void amp_route_job_refuse(struct job *j, const char *code, const char *why, const char *by,
                          bool again);
/* Whether the input had better wait until a port of it has room. */
bool amp_route_job_holds(struct router *r, const struct job *j);
/* direct.c: whether messages may go the short way is decided when the rules are set. */
void amp_direct_set(struct router *r);
/* Takes the line that way, if it can. */
bool amp_direct_take(struct router *r, struct amp_span line);
void amp_direct_done(struct router *r, const struct amp_error *why);
void amp_route_job_dispatch(struct router *r, struct job *j);
void amp_route_job_offer(struct router *r, struct job *j, const struct rule *rule);
void amp_route_job_leave(struct router *r, struct job *j); /* one that had it is done with it */
void amp_route_job_done(void *router, uint64_t tag, const struct amp_error *why);
void amp_route_break(struct router *r, const struct amp_error *why);

#endif
