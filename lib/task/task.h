/*
 * Tasks in the state: the questions and the small changes that every tool may need. Key
 * "task.<task_id>"; the record is JSON (docs/qa-loop.md), the state one of amp_task_fsm. The record
 * itself is in task/record.h.
 */
#ifndef AMP_TASK_TASK_H
#define AMP_TASK_TASK_H

#include <amp/fsm/fsm.h>

#include "store/store.h"

#define AMP_TASK_ID_MAX  64
#define AMP_TASK_REF_MAX 256

/* Whether a task in this state of amp_task_fsm is over; whether somebody still has to do something
 * about it (a new one is nothing but a name). */
bool amp_task_ended(uint8_t state);
bool amp_task_is_open(uint8_t state);

/* What others read of a task's record. A task without a record is not found, not suspended. */
struct amp_task_status {
    bool found, suspended, terminal;
    bool ci_failed; /* a check that counts is red for the commit last reported */
    uint8_t state;  /* of amp_task_fsm */
    int64_t reject_count;
    char ref[AMP_TASK_REF_MAX]; /* the escalation that suspends it, or "" */
    int64_t since_ms;           /* of the suspension */
};
int amp_task_status(struct amp_store *s, struct amp_span task_id, struct amp_task_status *out,
                    struct amp_error *err);

/* 1 suspended, 0 not (also when unknown), -1 failure. */
int amp_task_suspended(struct amp_store *s, struct amp_span task_id, struct amp_error *err);

/* Whether the task has this subtask: 1 yes, 0 no, -1 failure; an unknown task has none. */
int amp_task_has_subtask(struct amp_store *s, struct amp_span task_id, struct amp_span subtask_id,
                         struct amp_error *err);

/* Suspends the task because of the escalation `ref`, until the admin decides it. Idempotent; a
 * terminal task stays as it is (0). A task without a record gets one with the suspension alone, so
 * that all who share the state directory refuse new work for it. Writes the task file too. */
struct amp_task_suspension {
    struct amp_span task_id, ref;
    const char *type; /* the escalation's type */
    const char *by;   /* who suspends it, for the log */
    int64_t now_ms;
};
int amp_task_suspend(struct amp_store *s, const struct amp_task_suspension *a,
                     struct amp_error *err);
/* An agent takes work: a compare-and-set of the task's record. NO "suspended" when the task is
 * suspended, NO "stale_dispatch" when `dispatch_ref` (may be empty) is a dispatch that the task
 * replaced by a newer one, NO "terminal" when it ended. An unknown task is free to be worked on. */
struct amp_task_claim {
    struct amp_span task_id, dispatch_ref;
    const char *agent;
    int64_t now_ms;
};
int amp_task_claim(struct amp_store *s, const struct amp_task_claim *a, struct amp_error *err);

/* The agents that claimed work of this task, one call each. */
int amp_task_each_agent(struct amp_store *s, struct amp_span task_id,
                        int (*fn)(void *ctx, const char *agent, struct amp_error *err), void *ctx,
                        struct amp_error *err);

/* A new id, "T-YYYY-NNN" with the year of now_ms, never given twice by this state directory. */
int amp_task_new_id(struct amp_store *s, int64_t now_ms, char out[AMP_TASK_ID_MAX],
                    struct amp_error *err);

/* Writes tasks/<task_id>.json from the record as it is now; writers take their turns, so an older
 * record never replaces a newer one. Call after amp_store_sync. */
int amp_task_file(struct amp_store *s, struct amp_span task_id, struct amp_error *err);
/* Whether the file was surely written after that moment: a crash may have left an older one. */
bool amp_task_file_after(struct amp_store *s, struct amp_span task_id, int64_t updated_ms);

#endif
