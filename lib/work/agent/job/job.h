/*
 * Jobs: messages that an agent took. Key "job.<consumer>/<msg_id>"; the message itself is in
 * the ledger. The lines that a step sends (the acknowledgement, results, a verdict, a refusal) are
 * part of its commit, so open jobs and unsent lines survive the end of the process.
 */
#ifndef AMP_AGENT_JOB_JOB_H
#define AMP_AGENT_JOB_JOB_H

#include <amp/fsm/fsm.h>

#include "message/store/store.h"

/* The states of a job: a message that an agent took and must answer. */
#define AMP_JOB_STATES(X)                                                                          \
    X(AMP_JOB_QUEUED, "QUEUED", "taken and acknowledged, not started")                             \
    X(AMP_JOB_RUNNING, "RUNNING", "an agent works on it")                                          \
    X(AMP_JOB_PARKED, "PARKED", "waits for a usage limit or a pause before the next attempt")      \
    X(AMP_JOB_DONE, "DONE", "answered")                                                            \
    X(AMP_JOB_REFUSED, "REFUSED", "answered with a refusal")                                       \
    X(AMP_JOB_FAILED, "FAILED", "too many crashes, kills or timeouts")

#define AMP_JOB_EVENTS(X)                                                                          \
    X(AMP_JOB_EV_TAKE, "take", "the message was taken")                                            \
    X(AMP_JOB_EV_START, "start", "an attempt begins")                                              \
    X(AMP_JOB_EV_STEP, "step", "one subtask was answered, others are left")                        \
    X(AMP_JOB_EV_ANSWER, "answer", "everything was answered")                                      \
    X(AMP_JOB_EV_REFUSE, "refuse", "a rule refuses it")                                            \
    X(AMP_JOB_EV_BREAK, "break", "a crash, a kill or the time limit")                              \
    X(AMP_JOB_EV_PARK, "park", "a usage limit, or the agent asked to repeat later")                \
    X(AMP_JOB_EV_STOP, "stop", "interrupted by this process or suspended")                         \
    X(AMP_JOB_EV_WAKE, "wake", "the wait is over")                                                 \
    X(AMP_JOB_EV_SAY, "say", "the agent asks a person while it works")

#define AMP_JOB_FACTS(X) X(AMP_JOB_IF_SPENT, "spent", "no attempts are left")

#define AMP_JOB_EFFECTS(X)                                                                         \
    X(AMP_JOB_DO_ATTEMPT, "attempt", "count an attempt")                                           \
    X(AMP_JOB_DO_BREAK, "break", "count a crash, a kill or a timeout")                             \
    X(AMP_JOB_DO_NEXT, "next", "continue with the next subtask, whose attempts start at zero")     \
    X(AMP_JOB_DO_WAIT, "wait", "wait until the given time")                                        \
    X(AMP_JOB_DO_EMIT, "emit", "commit the lines that the step emits")

AMP_FSM_ENUMS(AMP_JOB);
extern const struct amp_fsm amp_job_fsm;

#define AMP_JOB_EMITS 8
#define AMP_JOB_KIND  "job" /* of the records in the store */

struct amp_job {
    char msg_id[256], task[256];
    uint8_t state;
    int64_t attempts; /* of the current subtask */
    int64_t breaks;   /* crashes, kills and timeouts among them */
    int64_t next;     /* index of the next subtask */
    int64_t until_ms; /* parked until */
    int64_t taken_ms;
    int64_t frame;  /* of the log, in which it was taken: the order within a millisecond */
    char start[65]; /* commit of the branch when the current subtask began, or "" */
    bool keeps;     /* the next attempt goes on in the worktree as the last one left it */
};

struct amp_job_ref {
    const char *consumer;
    struct amp_span msg_id;
};

/* Takes a message, once per consumer and id. emits: the acknowledgement. AMP_STORE_REDELIVERED:
 * taken before (nothing is emitted). NO duplicate_msg_id. */
struct amp_job_take {
    struct amp_job_ref ref;
    struct amp_span line;
    const char *agent, *task;
    const struct amp_store_emit *emits;
    uint32_t n_emits;
    int64_t now_ms;
};
int amp_job_take(struct amp_store *s, const struct amp_job_take *t, enum amp_store_outcome *outcome,
                 struct amp_error *err);

/* One step. START counts an attempt. BREAK counts a crash, a kill or a timeout (the fact "spent" is
 * true when breaks reaches `most`). STEP continues with the next subtask. out (may be NULL) gets
 * the job after the step. */
struct amp_job_step {
    struct amp_job_ref ref;
    uint8_t event;
    const char *why;   /* NULL: unchanged */
    const char *start; /* START: the branch's commit; NULL: unchanged */
    int64_t until_ms;  /* PARK */
    bool keeps;        /* STOP: the next attempt keeps the worktree as it is */
    int64_t most;      /* BREAK: repeats allowed */
    const struct amp_store_emit *emits;
    uint32_t n_emits;
    int64_t now_ms;
};
int amp_job_step(struct amp_store *s, const struct amp_job_step *st, struct amp_job *out,
                 struct amp_error *err);

/* The job of a message; *found is false if it was not taken. */
int amp_job_find(struct amp_store *s, const struct amp_job_ref *ref, bool *found,
                 struct amp_job *out, struct amp_error *err);
/* Finds the job whose record has the key. */
int amp_job_get(struct amp_store *s, struct amp_key key, bool *found, struct amp_job *out,
                struct amp_error *err);

/* Whether it was answered, or given up. */
bool amp_job_ended(const struct amp_job *job);
/* Calls fn for each unfinished job of the consumer; fn returns 0, 1 (skips the rest
 * of its state) or -1. */
typedef int (*amp_job_each_fn)(void *ctx, const struct amp_job *job, struct amp_error *err);
int amp_job_each(struct amp_store *s, const char *consumer, amp_job_each_fn fn, void *ctx,
                 struct amp_error *err);
/* Whether the consumer has unfinished jobs. work/agent/job/order.h has their order. */
int amp_job_any(struct amp_store *s, const char *consumer, bool *any, struct amp_error *err);

#endif
