/*
 * Jobs: messages that an agent took. Key "job.<consumer>/<msg_id>"; the message itself stands in
 * the ledger. What a step sends (the acknowledgement, results, a verdict, a refusal) is part of its
 * commit: a process that is killed finds its open jobs and its unsent lines again.
 */
#ifndef AMP_AGENT_JOB_H
#define AMP_AGENT_JOB_H

#include "agent/agent.h"

#define AMP_JOB_EMITS 8

struct amp_job {
    char msg_id[256];
    uint8_t state;
    int64_t attempts; /* of the current subtask */
    int64_t breaks;   /* failures of the machinery among them */
    int64_t next;     /* index of the subtask that comes next */
    int64_t until_ms; /* parked until */
    int64_t taken_ms;
    char start[65]; /* commit of the branch when the current subtask began, or "" */
};

struct amp_job_ref {
    const char *consumer;
    struct amp_span msg_id;
};

/* Takes a message once per consumer and id; bytes are the line's. emits: the acknowledgement.
 * AMP_STORE_REDELIVERED: taken before (nothing is emitted). NO duplicate_msg_id. */
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

/* One step. START counts an attempt, BREAK a failure of the machinery (spent when breaks reaches
 * `most`), STEP moves on to the next subtask. out (may be NULL) gets the job as it is then. */
struct amp_job_step {
    struct amp_job_ref ref;
    uint8_t event;
    const char *why;   /* NULL keeps */
    const char *start; /* START: the branch's commit, NULL keeps */
    int64_t until_ms;  /* PARK */
    int64_t most;      /* BREAK: repeats allowed */
    const struct amp_store_emit *emits;
    uint32_t n_emits;
    int64_t now_ms;
};
int amp_job_step(struct amp_store *s, const struct amp_job_step *st, struct amp_job *out,
                 struct amp_error *err);

/* The consumer's unfinished job that comes next: the earliest taken whose waiting is over at now_ms
 * and whose id is not in `skip` (NULL-terminated, may be NULL). *found false: none is ready;
 * *wake_ms then is when the next one is (0: nothing waits). *open counts the unfinished ones. */
int amp_job_next(struct amp_store *s, const char *consumer, int64_t now_ms, const char *const *skip,
                 bool *found, struct amp_job *out, int64_t *wake_ms, int64_t *open,
                 struct amp_error *err);

#endif
