/* A message in the router. */
#ifndef AMP_ROUTE_JOB_H
#define AMP_ROUTE_JOB_H

#include <amp/protocol/protocol.h>

#include "message/delivery/inbox/lane.h"
#include "message/protocol/delivery.h"
#include "message/store/store.h"

struct stream;

#define RULES_MAX 256

enum job_stage {
    JOB_ASK, /* waits for room in the jq worker */
    JOB_ASKED,
    JOB_DECIDED, /* its rules are known */
};

/* The recipients of a message: a job for each, until the message is offered to them. */
struct job_address {
    struct job *kids, *last;
    uint32_t n;
    bool is_group; /* the recipients are committed with the message */
    struct no_recipient {
        struct amp_error why;
        const char *seed_code;
        bool retryable;
    } * no_recipient; /* why a name of the message has no recipient, or NULL */

    /* Members of a recipient's job. */
    struct job *of; /* the message, or NULL; then `next` is the next recipient */
    char *name;
};

/* The members of a message for answers and dead letters: a refused message is not parsed again. The
 * texts are in the job's memory. */
struct summary {
    bool known, json, has_attempt;
    struct amp_span type, from, task, correlation, content_type, node, excerpt;
    struct amp_span repeats[AMP_REPEATS_MAX]; /* for its answer (terms.h) */
    struct amp_span *to;
    uint32_t n_to;
    int64_t created_ms, attempt;
};

/* A port's note about a message: the beginning of a larger struct, freed with the message. */
struct job_note {
    struct job_note *other;
};

/* A message, or (answer) a line for the router's own output. */
struct job {
    struct job *next;          /* in the queue of undecided messages */
    struct job *older, *newer; /* among all jobs */
    char *line;                /* in mem, or in own */
    size_t n;
    char *own;  /* memory of a line that was set later, or NULL */
    char *text; /* the document inside a wrapped line, NULL: the line itself */
    char *id;   /* empty for control records */
    enum amp_kind kind;
    enum amp_protocol protocol;
    bool answer;
    uint32_t era;    /* of the table of rules that decided it */
    bool copy;       /* for a port of --tee */
    uint64_t number; /* of its line in the input */
    enum job_stage stage;
    const char *refused; /* the code of its refusal, NULL: none; `why` has the reason */
    const char *refused_by;
    bool again;                      /* sending it again may succeed */
    bool wants_ack;                  /* it must be acknowledged */
    int64_t came_ms;                 /* amp_mono_ms when it was read */
    const char *tried;               /* while it is refused: the port that could not deliver it */
    enum amp_lane lane;              /* that it requests */
    uint64_t order;                  /* messages with one order keep their sequence; 0: none */
    int64_t expires_ms;              /* 0: never */
    struct amp_store_entry_id entry; /* in the outbox; n 0: none */
    uint64_t hit[RULES_MAX / 64];    /* rules that hold */
    uint32_t ask_from;               /* the first jq rule that must be evaluated */
    uint32_t waiting;                /* ports that have it now */
    struct summary summary;          /* of the message; a recipient has none */
    struct job_address address;
    struct stream *stream; /* in which it has a number, or NULL */
    int64_t seq;
    uint8_t takes;        /* the units that its recipient registered: AMP_TAKES_ (outlet/units.h) */
    struct job **carried; /* it is a unit of transport with these messages (outlet/units.h), or NULL
                           */
    uint32_t n_carried;
    struct job_note *notes; /* of the ports that it is or was sent to in chunks */
    uint64_t requeued;      /* number of requeues of its dead letter, or 0 */
    int64_t requeued_ms;    /* time of the last one */

    struct amp_jobs *all;
    uint32_t size; /* class of its memory */
    char why[160]; /* from here on not cleared */
    char mem[];
};

/* All jobs of a router, and memory of freed ones for reuse. Starts as {0}. */
#define AMP_JOBS_SIZES 7
struct amp_jobs {
    struct job *newest;
    uint32_t n;
    bool wants_text; /* new jobs keep the text of a wrapped message (for jq predicates) */
    struct amp_jobs_spare {
        struct job *first;
        uint32_t n;
    } spare[AMP_JOBS_SIZES];
};
void amp_jobs_release(struct amp_jobs *all); /* also frees the remaining jobs */

/* v NULL: the line was not viewed yet. Returns NULL if out of memory. */
struct job *amp_route_job_new(struct amp_jobs *all, struct amp_span line, const struct amp_view *v);
void amp_route_job_free(struct job *j);
/* Fills a job that was made without a view. */
int amp_route_job_fill(struct job *j, struct amp_span line, const struct amp_view *v,
                       struct amp_error *err);
/* Adds a recipient; one of an earlier run with its entry. */
int amp_route_job_add_recipient(struct job *j, struct amp_span name,
                                struct amp_store_entry_id entry, struct amp_error *err);
/* Fills a view from the job's summary; it has no document. False: there is no summary. */
bool amp_route_job_view(const struct job *j, struct amp_view *v);
/* The line that was read; a recipient's own line may have less
 * (amp_routing_terms.delivers_content). */
struct amp_span amp_route_job_whole(const struct job *j);
/* Whether the message is new work of a task, which waits while the task is suspended. */
bool amp_route_job_is_work(const struct amp_view *v);
/* The code of an expired message. */
const char *amp_route_job_expired_code(const struct job *j);
/* Marks the job to be refused in its turn; only the first call counts. Codes are static strings. */
void amp_route_job_refuse(struct job *j, const char *code, const char *why, const char *by,
                          bool again);

#endif
