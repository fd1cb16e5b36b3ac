/*
 * Sessions of AOP (§2, §10): the records of a session (key "session.<id>"), of its TASKs (key
 * "session_task.<session>.<task>") and of what happened in it (lib/work/aop/entry.h). No files and
 * no processes; admission, reports and the audit trail are in lib/work/aop/session.
 *
 * Each step is one commit of one record. Steps that belong together are made in one batch of the
 * store (amp_store_begin), in an order in which a crash between two of them leaves a state from
 * which the same steps can be made again. The executor's job ends last.
 */
#ifndef AMP_WORK_AOP_SESSION_H
#define AMP_WORK_AOP_SESSION_H

#include <amp/protocol/aop_policy.h>

#include "message/store/store.h"
#include "work/aop/machine.h"

#define AMP_SESSION_KIND      "session" /* of the records in the store */
#define AMP_SESSION_TASK_KIND "session_task"

enum {
    AMP_SESSION_DEPTH_MOST = AMP_AOP_DEPTH_MOST, /* levels: a TASK, its child, and the child's */
    AMP_SESSION_OBJECTIVE_MAX = 200,             /* bytes; longer ones are cut */
    AMP_SESSION_TEXT_MAX = 1000,                 /* of a reason or message; the same */
};
#define AMP_SESSION_KEEP_MS (INT64_C(30) * 86400000) /* records of a session that was reported */

/* The maker of a step: the outbox that gets its lines, and the actor in the log. */
struct amp_session_voice {
    struct amp_store *store;
    const char *actor;
    int64_t now_ms;
};

/* ---- records: unset times are 0, unset texts are empty; texts are in the caller's memory ---- */

/* A root TASK of a CHAIN that has no record yet, and the one after which it is carried out. */
struct amp_session_join {
    struct amp_span task, after;
};

struct amp_session {
    uint8_t state; /* of amp_session_fsm */
    uint64_t rev;
    struct amp_span id;
    struct amp_span created, orchestrator; /* the same in each of its TASKs */
    struct amp_span origin, pattern;       /* pattern: empty until a TASK has one */
    int64_t created_ms;
    struct amp_span root, last; /* the first and the last root TASK */
    struct amp_session_join *joins;
    uint32_t n_joins;
    struct amp_span risk;        /* the TASK whose failure aborts it: see amp_session_is_aborted */
    struct amp_span cause, code; /* of an abort: the TASK and its code */
    struct amp_span storage;     /* audit_trail.storage_path as given */
    struct amp_span trail;       /* its absolute directory; empty: not known yet */
    int64_t opened_ms, aborted_ms, reported_ms;
    int64_t active_ms; /* when the last TASK arrived */
    int64_t reports;   /* final ones that were made */
};

/* The usage of a model, as its agent reports it. */
struct amp_session_usage {
    int64_t tokens_in, tokens_out;
    int64_t micros;    /* the actual cost in millionths of a US dollar */
    int64_t estimated; /* the same of the estimate */
};

/* The run of a model. */
struct amp_session_try {
    struct amp_span provider, model, code; /* code: of the error that ended it */
    int64_t attempt;
    int64_t started_ms, ended_ms; /* ended 0: it goes on, or its process was killed */
    struct amp_session_usage used;
};

/* The effective access (AOP §11.2): directories in canonical form. */
struct amp_session_access {
    struct amp_span *read, *write;
    uint32_t n_read, n_write;
    int64_t network; /* enum amp_aop_network */
};

struct amp_session_task {
    uint8_t state; /* of amp_session_task_fsm */
    uint64_t rev;
    struct amp_span session, id;
    struct amp_span parent; /* of the delegation; empty: a root */
    struct amp_span after;  /* CHAIN: the root before this one */
    int64_t seq;            /* its place in the order of arrival */
    int64_t depth;          /* 1: a root */
    int64_t attempt;
    struct amp_span agent, role, provider, model; /* of the target */
    struct amp_span category, complexity, priority, objective;
    bool delegates;      /* delegation_allowed */
    bool aborts_session; /* on_failure is ABORT_SESSION */
    struct amp_session_access access;
    struct amp_span signal, code, message; /* of the end */
    int64_t entered_ms, started_ms, ended_ms;
    struct amp_session_try *tries;
    uint32_t n_tries;
};

bool amp_session_task_ended(uint8_t state);
/* Whether it ended without its work done: FAILED, ABORTED, SKIPPED. */
bool amp_session_task_lost(uint8_t state);
/* The sum over its runs, of all attempts. */
struct amp_session_usage amp_session_task_used(const struct amp_session_task *t);
/* Adds; a sum that no int64_t holds is as large as one can be. */
void amp_session_usage_add(struct amp_session_usage *to, const struct amp_session_usage *u);
/* The cost that counts for a budget: the actual one of the run, or else its estimate. */
int64_t amp_session_usage_cost(const struct amp_session_usage *of_run);

/* ---- reading: 1: found; 0: there is none. mem is emptied first ---- */

int amp_session_find(struct amp_store *s, struct amp_span id, struct amp_buf *mem,
                     struct amp_session *out, struct amp_error *err);
/* state NULL: all. fn: 0 continues, 1 stops, -1 fails with err; it may use the store. */
typedef int (*amp_session_fn)(void *ctx, const struct amp_session *x, struct amp_error *err);
int amp_session_each(struct amp_store *s, const char *state, amp_session_fn fn, void *ctx,
                     struct amp_error *err);
int amp_session_task_find(struct amp_store *s, struct amp_span session, struct amp_span task,
                          struct amp_buf *mem, struct amp_session_task *out, struct amp_error *err);
/* The TASKs of a session, in no order. */
typedef int (*amp_session_task_fn)(void *ctx, const struct amp_session_task *t,
                                   struct amp_error *err);
int amp_session_each_task(struct amp_store *s, struct amp_span session, amp_session_task_fn fn,
                          void *ctx, struct amp_error *err);
/* Whether the session is aborted: its record says so, or the TASK at risk has failed, and its
 * process was killed before it could record the abort. 1, 0, -1. */
int amp_session_is_aborted(struct amp_store *s, const struct amp_session *x, struct amp_error *err);

/* ---- steps ---- */

/* A TASK arrives: JOIN of the session, which is made if it is the first, and ENTER. t: the new
 * TASK, without state, seq and after; a member that a later attempt changes is taken from t. The
 * caller has begun a batch and has checked the admission. *out gets the record; its texts are in
 * mem. NO, and nothing is left:
 *   E_SCHEMA_VALIDATION  another orchestrator, time of creation or workflow_pattern than the
 *                        session's, another parent than an earlier attempt had, or an attempt that
 *                        is not later than one that has ended
 */
int amp_session_enter(const struct amp_session_voice *v, const struct amp_session *x,
                      const struct amp_session_task *t, struct amp_buf *mem,
                      struct amp_session_task *out, struct amp_error *err);

/* A step of a TASK: any event but ENTER. NO unknown_ref, illegal_transition, changed (another
 * attempt is recorded). Zero and empty members leave the record as it is. */
struct amp_session_step {
    uint8_t event; /* AMP_SESSION_TASK_EVENTS */
    struct amp_span session, task;
    int64_t attempt;                      /* 0: the recorded one */
    struct amp_span provider, model;      /* BEGIN */
    const struct amp_session_usage *used; /* of the current run, in total; NULL: as recorded */
    struct amp_span code;                 /* of the error that ended the current run, or the TASK */
    struct amp_span signal, message;      /* COMPLETE, FAIL, ABORT, SKIP */
    struct amp_span priority;             /* RANK */
};
/* out may be NULL; its texts are in mem. */
int amp_session_task_step(const struct amp_session_voice *v, const struct amp_session_step *step,
                          struct amp_buf *mem, struct amp_session_task *out, struct amp_error *err);

/* A step of a session. PLACE: storage and trail; RISK, ABORT: task (and code). Does nothing and
 * returns 1 if the session is past it: PLACE of a session that has one, ABORT of one that is
 * aborted. NO unknown_ref. */
struct amp_session_change {
    uint8_t event; /* AMP_SESSION_EVENTS, but JOIN */
    struct amp_span session;
    struct amp_span task, code;
    struct amp_span storage, trail;
};
int amp_session_step(const struct amp_session_voice *v, const struct amp_session_change *c,
                     struct amp_error *err);

/* Removes a session with its TASKs and entries whose retention is over (the row "session" of the
 * deadlines). */
int amp_session_sweep(struct amp_store *s, int64_t now_ms, const char *actor, uint32_t *done,
                      struct amp_error *err);

#endif
