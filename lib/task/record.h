/*
 * The record of a task: key "task.<task_id>", JSON in the state and in tasks/<task_id>.json. The
 * strings of a struct amp_task are heap copies, "" where nothing is known, never NULL.
 */
#ifndef AMP_TASK_RECORD_H
#define AMP_TASK_RECORD_H

#include <jansson.h>

#include <amp/protocol/body.h>

#include "store/store.h"
#include "task/machines.h"

/* What is held for the admin: the word in `held`. */
#define AMP_HELD_APPROVAL "approval"
#define AMP_HELD_REVIEW   "review"
#define AMP_HELD_WORK     "work"

struct amp_task_part {
    char *id, *description;
    int64_t estimated_lines;
    uint8_t state;                       /* of amp_qa_fsm */
    int64_t attempts;                    /* dispatches so far */
    int64_t ci_reds;                     /* in a row */
    char *dispatch_ref;                  /* the dispatch that counts now */
    char *result_ref;                    /* its result */
    char *request_ref;                   /* the review asked for */
    char *verdict_ref, *verdict;         /* the last verdict and its word */
    char *verdict_for, *verdict_request; /* the result and the request that it is about */
    char *completion;                    /* of the last result */
    char *commit;                        /* of the last result */
    char *reviewed_commit; /* of the last verdict: an incremental review starts here */
    char *rejected_commit; /* "" after an approval */
    char *held;            /* AMP_HELD_…, "" when nothing is */
};

/* The escalation that suspends a task; empty when it is not suspended. */
struct amp_task_suspended {
    char *ref, *type;
    int64_t since_ms;
};

struct amp_task {
    uint8_t state; /* of amp_task_fsm */
    char *id, *description, *repo, *branch, *base;
    enum amp_risk risk;
    json_t *criteria, *forbidden, *constraints; /* list, list, object */
    char *source_ref;                           /* the admin's dispatch */
    char *first_dispatch; /* of ours: what a review calls the original dispatch */
    char *last_ref;       /* the last message that went well */
    struct amp_task_part *parts;
    size_t n_parts;
    int64_t reject_count;
    json_t *ci;       /* {"commit","branch","checks","failed"} or null */
    json_t *open;     /* escalations that wait: [{"ref","type","severity"}] */
    json_t *decided;  /* escalations that the admin decided, newest last */
    json_t *issues;   /* of the last rejection */
    json_t *blockers; /* of the last partial or failed result */
    json_t *notes;    /* the admin's, newest last */
    json_t *agents;   /* names */
    struct amp_task_suspended suspended;
    int64_t created_ms, updated_ms;
};

#define AMP_TASK_KIND "task" /* of the records in the store */

/* An empty task in state new. */
int amp_task_init(struct amp_task *t, struct amp_span id, struct amp_error *err);
void amp_task_release(struct amp_task *t);

/* From a stored record; DATAERR "bad_record" when it is none. */
int amp_task_read(struct amp_task *t, const struct amp_store_rec *rec, struct amp_span id,
                  struct amp_error *err);
/* Reads the task from the store. *found (may be NULL): whether it has a record; without one it is
 * an empty task in state new. */
int amp_task_load(struct amp_store *s, struct amp_span id, struct amp_task *t, bool *found,
                  struct amp_error *err);
/* One line of JSON, without LF. */
int amp_task_write(const struct amp_task *t, struct amp_buf *out, struct amp_error *err);

/* Replaces a string; 0 or -1 no_memory. */
int amp_task_set(char **place, struct amp_span value, struct amp_error *err);

/* Appends a pending subtask. */
int amp_task_add_part(struct amp_task *t, struct amp_span id, struct amp_span description,
                      int64_t lines, struct amp_error *err);
void amp_task_swap_parts(struct amp_task *a, struct amp_task *b);
struct amp_task_part *amp_task_part(const struct amp_task *t, struct amp_span id);
/* The subtask whose turn it is: the first that did not end; NULL when all did. */
struct amp_task_part *amp_task_turn(const struct amp_task *t);

/* Whether a list of texts holds this one. */
bool amp_task_lists(const json_t *list, const char *text);

/* Escalations that wait for the admin; a critical one suspends the task. */
int amp_task_open_escalation(struct amp_task *t, const char *ref, const char *type,
                             const char *severity, int64_t now_ms, struct amp_error *err);
/* Forgets ref ("": all); the suspension ends with the last critical one. True: ref was there. */
bool amp_task_close_escalation(struct amp_task *t, const char *ref);
bool amp_task_waits_for(const struct amp_task *t, const char *ref);
bool amp_task_is_suspended(const struct amp_task *t);

#endif
