/*
 * The record of an agent. Key "agent.<name>": {"reach":…,"work":…}. `reach` has its registration,
 * heartbeats and capabilities, `work` its task, suspension and time limits. Each part has a machine
 * of its own and is null until it has contents. Times are in milliseconds, 0: none. The state of
 * the record in the store joins the states of both parts: "REACHABLE/RUNNING".
 */
#ifndef AMP_WORK_AGENT_RECORD_H
#define AMP_WORK_AGENT_RECORD_H

#include "message/store/store.h"
#include "work/agent/agent.h"

#define AMP_AGENT_KIND "agent" /* of the records in the store */

/* An unanswered heartbeat. */
struct amp_agent_asked {
    const char *id, *correlation;
    int64_t at_ms;
};

struct amp_agent_reach {
    uint8_t state;                    /* of amp_reach_fsm; ABSENT: never registered */
    int64_t rev;                      /* rises with each change of this part */
    struct amp_span descriptor;       /* a JSON object, as registered */
    const char *role, *node, *reason; /* reason: of the deregistration */
    int64_t joined_ms, left_ms, seen_ms;
    int64_t missed;         /* heartbeats, in a row */
    const char *reported;   /* the state that the agent reported */
    struct amp_span health; /* JSON, as reported */
    struct amp_agent_asked asked;
    int64_t answer_ms, answer_most_ms; /* the last and the longest time to answer a heartbeat */
    int64_t answers;                   /* number of answered heartbeats */
    int64_t due_ms;                    /* the deadline of the next sign of life */
};

/* The escalation that suspends an agent, and its task. */
struct amp_agent_suspended {
    struct amp_span ref, task;
    int64_t since_ms;
};

struct amp_agent_work {
    uint8_t state; /* of amp_agent_fsm */
    /* task: empty if it has none. last_task is kept, because a critical escalation of a task
     * suspends the agents that had it last. code: of the time limit that passed. */
    const char *role, *task, *last_task, *code;
    struct amp_agent_suspended suspended;
    int64_t pid, last_seen_ms;
    int64_t limit_ms;        /* when the time limit of its state passes */
    int64_t silent_since_ms; /* the last sign of life before the silence that was reported */
};

struct amp_agent_rec {
    struct amp_agent_reach reach;
    struct amp_agent_work work;
};

static inline bool amp_agent_is_suspended(const struct amp_agent_rec *r)
{
    return r->work.suspended.since_ms != 0 || r->work.suspended.ref.n > 0;
}
/* Whether the agent ever worked here, or is suspended. */
bool amp_agent_has_work(const struct amp_agent_rec *r);
/* The last sign of life of an agent at work; 0: it is not at work, so its silence is not reported.
 */
int64_t amp_agent_heard_ms(const struct amp_agent_rec *r);
/* The earliest deadline of both parts, 0: none. Silence at work has the default limit. */
int64_t amp_agent_due_ms(const struct amp_agent_rec *r);

/* Reads a record, which is empty if there is none. Texts are in mem. */
int amp_agent_find(struct amp_store *s, struct amp_span name, struct amp_buf *mem,
                   struct amp_agent_rec *rec, struct amp_error *err);
/* fn: 0 continues, 1 stops, -1 fails with err; it may use the store. */
typedef int (*amp_agent_rec_fn)(void *ctx, struct amp_span name, const struct amp_agent_rec *rec,
                                struct amp_error *err);
int amp_agent_records(struct amp_store *s, amp_agent_rec_fn fn, void *ctx, struct amp_error *err);
/* Calls fn for the records that are due until until_ms, the earliest first. */
int amp_agent_records_due(struct amp_store *s, int64_t until_ms, amp_agent_rec_fn fn, void *ctx,
                          struct amp_error *err);

/* Compare-and-set. fn changes the record and fills the event, the actor and the emitted lines; it
 * returns the values of amp_store_fn. input and how may be NULL. */
typedef int (*amp_agent_change_fn)(void *ctx, struct amp_agent_rec *rec, struct amp_store_change *c,
                                   struct amp_error *err);
int amp_agent_update(struct amp_store *s, struct amp_span name, const struct amp_store_input *input,
                     amp_agent_change_fn fn, void *ctx, enum amp_store_outcome *how,
                     struct amp_error *err);

#endif
