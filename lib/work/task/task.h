/*
 * Queries and small updates of tasks in the state directory. Key "task.<task_id>"; the record is
 * JSON (docs/qa-loop.md, work/task/record.h), its state is one of amp_task_fsm.
 */
#ifndef AMP_WORK_TASK_TASK_H
#define AMP_WORK_TASK_TASK_H

#include <amp/fsm/fsm.h>

#include "message/store/store.h"

#define AMP_TASK_ID_MAX  64
#define AMP_TASK_REF_MAX 256

/* Whether a state of amp_task_fsm is terminal; whether it is neither terminal nor "new". */
bool amp_task_ended(uint8_t state);
bool amp_task_is_open(uint8_t state);

/* A summary of a task's record. A task without a record is neither found nor suspended. */
struct amp_task_status {
    bool found, suspended, terminal;
    bool ci_failed; /* a required check failed for the commit last reported */
    uint8_t state;  /* of amp_task_fsm */
    int64_t reject_count;
    char ref[AMP_TASK_REF_MAX]; /* the escalation that suspends it, or "" */
};
int amp_task_status(struct amp_store *s, struct amp_span task_id, struct amp_task_status *out,
                    struct amp_error *err);

/* 1: suspended, 0: not suspended or unknown, -1: failure. */
int amp_task_suspended(struct amp_store *s, struct amp_span task_id, struct amp_error *err);

/* 1: the task has this subtask, 0: it does not, or is unknown, -1: failure. */
int amp_task_has_subtask(struct amp_store *s, struct amp_span task_id, struct amp_span subtask_id,
                         struct amp_error *err);

/* Suspends the task because of the escalation `ref`, until the admin decides it, and writes the
 * task file. Idempotent; a terminal task is not changed. A task without a record gets one with only
 * the suspension, so that every process that shares the state directory refuses new work for it. */
struct amp_task_suspension {
    struct amp_span task_id, ref;
    const char *type; /* the escalation's type */
    const char *by;   /* the actor, for the log */
    int64_t now_ms;
};
int amp_task_suspend(struct amp_store *s, const struct amp_task_suspension *a,
                     struct amp_error *err);
/* Records that an agent takes work of the task. NO "suspended": the task is suspended; NO
 * "stale_dispatch": the task has a newer dispatch than `dispatch_ref` (may be empty); NO
 * "terminal": the task has ended. An unknown task is not refused. */
struct amp_task_claim {
    struct amp_span task_id, dispatch_ref;
    const char *agent;
    int64_t now_ms;
};
int amp_task_claim(struct amp_store *s, const struct amp_task_claim *a, struct amp_error *err);

/* Calls fn for each agent that claimed work of this task. */
int amp_task_each_agent(struct amp_store *s, struct amp_span task_id,
                        int (*fn)(void *ctx, const char *agent, struct amp_error *err), void *ctx,
                        struct amp_error *err);

/* A new id, "T-YYYY-NNN" with the year of now_ms. A state directory never returns an id twice. NO
 * "id_space_full": all ids of the year are used. */
int amp_task_new_id(struct amp_store *s, int64_t now_ms, char out[AMP_TASK_ID_MAX],
                    struct amp_error *err);
/* The next free id after the number *last (0 at first), which becomes its own. It is not taken. s
 * NULL: the state has no tasks. */
int amp_task_next_id(struct amp_store *s, int64_t now_ms, int64_t *last, char out[AMP_TASK_ID_MAX],
                     struct amp_error *err);

/* Writes tasks/<task_id>.json from the current record. Writers take a lock, so an older record
 * never replaces a newer one. Call after amp_store_sync. */
int amp_task_file(struct amp_store *s, struct amp_span task_id, struct amp_error *err);
/* Whether the file was certainly written after updated_ms. A crash may leave an older file. */
bool amp_task_file_after(struct amp_store *s, struct amp_span task_id, int64_t updated_ms);

#endif
