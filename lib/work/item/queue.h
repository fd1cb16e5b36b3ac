/*
 * Jobs in the queue: work of any protocol that waits for a worker, is claimed by one, and ends. Key
 * "queue.<id>". The id is the job's identity in hex (amp_queue_identity), so an identical
 * submission finds the same record: while it has not ended, or was done, the second one is refused.
 *
 * A worker that reads messages from its own input submits each of them to itself: its own job,
 * which nobody else can take and which needs no claim. Key "queue.<owner>.<message>".
 *
 * The lines that a step sends (an acknowledgement, results, a verdict, a refusal) are part of its
 * commit, so open jobs and unsent lines survive the end of the process.
 *
 * The submitted line is in the ledger's record of the message (message/record/record.h), which the
 * caller commits first, so that a job never lacks it and a step of the job does not write it again.
 *
 * A step is one commit, a compare-and-set: of two workers that claim a job, one gets it. Sync the
 * store before anything depends on a step (store/store.h); many steps may share one batch
 * (amp_store_begin) and one sync.
 */
#ifndef AMP_WORK_ITEM_QUEUE_H
#define AMP_WORK_ITEM_QUEUE_H

#include "message/record/subject.h"
#include "work/item/machine.h"

#define AMP_QUEUE_KIND "queue" /* of the records in the store */

enum {
    AMP_QUEUE_ID_MAX = 33,   /* 32 hex digits, NUL */
    AMP_QUEUE_HIGHEST = -19, /* priorities (SW4RM §7.1): a lower number is more urgent */
    AMP_QUEUE_LOWEST = 20,
    AMP_QUEUE_LEVELS = 40,
    AMP_QUEUE_TYPE_MAX = 128, /* bytes of a type of agents */
    AMP_QUEUE_WORKER_MAX = 128,
    AMP_QUEUE_TEXT_MAX = 1024, /* bytes of a reason; longer ones are cut */
    AMP_QUEUE_SCOPE_MAX = 16384,
    AMP_QUEUE_DATA_MAX = 16384,               /* bytes of the data of a suspended attempt */
    AMP_QUEUE_KEEP_MS = 7 * 24 * 3600 * 1000, /* records of ended jobs */
};

/* Texts are in the memory of the read, or borrowed. Times are Unix milliseconds, 0: none. */
struct amp_queue_job {
    struct amp_span id;
    uint8_t state; /* of amp_queue_fsm */
    int64_t seq;   /* its place in the order of submissions; kept when it waits again */
    struct amp_span type, protocol;
    struct amp_span message, from, task; /* of the submitted message; may be empty */
    struct amp_span by;                  /* the login that submitted it, or empty */
    int64_t priority;
    struct amp_span scope;  /* its text (work/item/scope.h), or empty */
    struct amp_span digest; /* of the content: SHA-256 in hex */
    int64_t submitted_ms, claimed_ms, started_ms, ended_ms;
    int64_t deadline_ms; /* to start, from the message */
    int64_t until_ms;    /* PARKED */
    struct amp_span worker;
    int64_t attempts, losses;     /* claims; workers that were lost among them */
    int64_t runs;                 /* submissions of this identity: 1, 2 after it failed … */
    struct amp_span reason, code; /* of the last park, preemption, failure, cancel */
    struct amp_span asked_by;     /* who wants its place: a job's id, or a person */
    int64_t asked_ms;
    struct amp_span cancelled_by; /* a person or the sender; empty: it was not cancelled */
    /* These belong to an attempt that was suspended and goes on later. */
    struct amp_span worktree, session, data; /* data: a JSON object */
    int64_t tokens_in, tokens_out, micros;   /* of all attempts; micros: millionths of a dollar */
    struct amp_span follows;   /* ids of jobs, with a space in between (work/item/follow.h) */
    struct amp_span on_failed; /* a word of AMP_FOLLOW_ELSE; "": fail */
    struct amp_span owner;     /* the worker whose own job it is, or empty */
    int64_t tries;             /* attempts of the current subtask */
    int64_t breaks;            /* crashes, kills and timeouts among them */
    int64_t next;              /* index of the current subtask */
    struct amp_span start;     /* the branch's commit when it began, or empty */
    bool trying;               /* an attempt began and did not come to its end */
    bool keeps;                /* the next one goes on in the worktree as it is */
    bool read;                 /* its worker acknowledged the message */
};
/* A worker's copy of its job. */
enum { AMP_ITEM_NAME_MAX = 256 };
struct amp_item {
    char id[AMP_QUEUE_ID_MAX]; /* "": its own job */
    char msg_id[AMP_ITEM_NAME_MAX], task[AMP_ITEM_NAME_MAX];
    uint8_t state;
    int64_t attempts, breaks, next; /* tries of the current subtask; … */
    int64_t until_ms, submitted_ms, seq;
    char start[65];
    bool trying, keeps, read;
};
void amp_item_of(const struct amp_queue_job *job, struct amp_item *out);
bool amp_queue_ended(uint8_t state);
/* Whether a worker has it: CLAIMED, RUNNING, PREEMPTING. */
bool amp_queue_held(uint8_t state);

/* The identity of a job: type, scope (its canonical text) and content digest; `salt` is empty, or
 * an override's id, which makes it another job. The id is the first half of a SHA-256. */
int amp_queue_identity(struct amp_span type, struct amp_span scope, struct amp_span digest,
                       struct amp_span salt, char out[AMP_QUEUE_ID_MAX], struct amp_error *err);

/* Submits. job: id, type, protocol, message, from, by, task, priority, scope, digest, deadline_ms.
 * Sets *seq. again: a person allows it although it was done.
 * NO duplicate_job: an identical job has not ended (or was done); *now (may be NULL) is its state.
 * REDELIVERED: the same message was submitted before; nothing is emitted. With an owner: type,
 * protocol, message, from, task, owner; NO duplicate_msg_id: it took another message with the id.
 */
struct amp_queue_submit {
    const struct amp_queue_job *job;
    struct amp_span line; /* the message's bytes, to know them again */
    const char *consumer; /* the owner; NULL: a job for everybody */
    const struct amp_store_emit *emits;
    uint32_t n_emits;
    bool again;
    const char *actor;
    int64_t now_ms;
};
int amp_queue_submit(struct amp_store *s, const struct amp_queue_submit *q, int64_t *seq,
                     uint8_t *now, enum amp_store_outcome *outcome, struct amp_error *err);
/* Whether the same message was submitted before; if not, it would enter. Changes nothing. NO
 * duplicate_job, duplicate_msg_id: another message with its id was submitted. */
int amp_queue_check(struct amp_store *s, const struct amp_queue_submit *q, struct amp_error *err);

/* One step. In the events of a worker it must have the claim, and if seq and attempt are set, this
 * claim: NO claim_lost. So a late report of a worker that lost a job and claimed it again cannot
 * end its new claim. NO unknown_job, illegal_transition. out (may be NULL) gets the job after the
 * step; its texts are in mem then. Zero and NULL members leave the record as it is. */
struct amp_queue_step {
    struct amp_span id;
    struct amp_span owner; /* of an own job, whose message's id is the id; else empty */
    uint8_t event;
    const char *worker;   /* LOSE: the lost one; NULL: not by a worker */
    int64_t seq, attempt; /* of the claimed job: its seq and attempts; 0: any claim of the worker */
    const char *why, *code;
    const char *by;   /* PREEMPT, CANCEL: who asks */
    int64_t until_ms; /* PARK */
    int64_t priority; /* RANK */
    int64_t keep_ms;  /* how long an ended record is kept; 0: AMP_QUEUE_KEEP_MS */
    struct amp_span worktree, session, data; /* of the suspended attempt; "-" removes it */
    int64_t tokens_in, tokens_out, micros;   /* added */
    const char *start;                       /* TRY: the branch's commit; NULL: unchanged */
    bool keeps; /* HALT, RELEASE, YIELD: the next attempt keeps the worktree as it is */
    const struct amp_store_emit *emits;
    uint32_t n_emits;
    const char *actor;
    int64_t now_ms;
};
int amp_queue_step(struct amp_store *s, const struct amp_queue_step *st, struct amp_buf *mem,
                   struct amp_queue_job *out, struct amp_error *err);

/* Calls fn for each job that the agents of a pool take, in the order of ids; a worker's own jobs
 * are left out. state NULL: any. fn as in amp_subject_each. */
int amp_queue_each(struct amp_store *s, const char *state, amp_subject_each_fn fn, void *ctx,
                   struct amp_error *err);
/* The job with this id. 1: found; 0: there is none. */
int amp_queue_read(struct amp_store *s, struct amp_span id, struct amp_buf *mem,
                   struct amp_queue_job *out, struct amp_error *err);
extern const struct amp_subject amp_queue_subject;
/* Removes an ended job, unless it changed meanwhile. */
int amp_queue_forget(struct amp_store *s, struct amp_span id, const char *actor,
                     struct amp_error *err);

#endif
