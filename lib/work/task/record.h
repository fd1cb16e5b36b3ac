/*
 * The record of a task: key "task.<task_id>", JSON in the state and in tasks/<task_id>.json. The
 * strings of a struct amp_task are heap copies; unknown ones are "", never NULL.
 */
#ifndef AMP_WORK_TASK_RECORD_H
#define AMP_WORK_TASK_RECORD_H

#include <jansson.h>

#include <amp/protocol/body.h>

#include "message/store/store.h"
#include "work/task/machines.h"
#include "json/record.h"

/* Values of `held` say what waits for the admin's decision. */
#define AMP_HELD_APPROVAL "approval"
#define AMP_HELD_REVIEW   "review"
#define AMP_HELD_WORK     "work"

struct amp_task_part {
    char *id, *description;
    int64_t estimated_lines;
    uint8_t state;                       /* of amp_qa_fsm */
    int64_t attempts;                    /* number of dispatches so far */
    int64_t ci_reds;                     /* CI failures in a row */
    char *dispatch_ref;                  /* the current dispatch */
    char *result_ref;                    /* its result */
    char *request_ref;                   /* the current review request */
    char *verdict_ref, *verdict;         /* the last verdict: its id and its decision */
    char *verdict_for, *verdict_request; /* the result and the request that it answers */
    char *completion;                    /* of the last result */
    char *commit;                        /* of the last result */
    char *reviewed_commit; /* of the last verdict: an incremental review starts here */
    char *rejected_commit; /* "" after an approval */
    char *held;            /* AMP_HELD_…, or "" */
    char *asked; /* the state in which an agent's question held it, "" once something else came */
    /* Signers and signatures; "": it was not signed. A signature is the JSON object of a signed
     * line. */
    char *executor, *executor_name; /* key and principal that the dispatch is bound to */
    char *result_sig, *verdict_sig; /* signatures of the last result and verdict */
    char *decision;                 /* the signed line of the decision about the last verdict */
};

/* The escalation that suspends a task; ref is "" when the task is not suspended. */
struct amp_task_suspended {
    char *ref, *type;
    int64_t since_ms;
};

#define AMP_TASK_DECIDED_MAX 64 /* older ones are in the ledger only */

struct amp_task {
    uint8_t state; /* of amp_task_fsm */
    char *id, *description, *repo, *branch, *base;
    enum amp_risk risk;
    json_t *criteria, *forbidden, *constraints; /* list, list, object */
    json_t *commands;     /* criteria that a person gave as commands: only these may run */
    char *source_ref;     /* the admin's dispatch */
    char *text;           /* the file of which a person made it, or "" */
    char *first_dispatch; /* the coordinator's first dispatch */
    char *last_ref;       /* the last successful message */
    struct amp_task_part *parts;
    size_t n_parts;
    int64_t reject_count;
    int64_t unlanded;  /* landings in a row that sent it back */
    char *merge_asked; /* the escalation that asked whether the approved commit may be merged */
    json_t *ci;        /* {"commit","branch","checks","failed"} or null */
    json_t *open; /* undecided escalations: [{"ref","type","severity","why"?,"from"?,"by"?,"key"?,
                   * "of"?}]; why: in words; from, by, key: the agent that asked; of: its own id, if
                   * ref is another */
    json_t *decided;   /* ids of escalations that the admin decided, newest last */
    json_t *withdrawn; /* ids of those that the agent withdrew; at most AMP_TASK_DECIDED_MAX each */
    json_t *issues;    /* of the last rejection */
    json_t *blockers;  /* of the last partial or failed result, or of the last landing */
    json_t *notes;     /* the admin's, newest last */
    json_t *agents;    /* names of agents that claimed work of the task */
    struct amp_task_suspended suspended;
    char *cancelled; /* the signed line with which a person ended it, or "" */
    int64_t created_ms, updated_ms;
};

#define AMP_TASK_KIND "task" /* of the records in the store */
/* The beginning of the blocker of an attempt that ended without an answer. */
#define AMP_TASK_UNFINISHED "The agent did not finish: "

/* The beginning of a criterion that is a command. */
#define AMP_TASK_COMMAND "$ "

/* The words of `state` of a subtask, and of `risk`. */
extern const struct amp_rec_words amp_task_qa_words, amp_task_risk_words;

/* An empty task in state new. */
int amp_task_init(struct amp_task *t, struct amp_span id, struct amp_error *err);
void amp_task_release(struct amp_task *t); /* also of a zeroed struct */
/* Cleanup attribute: AMP_TASK struct amp_task t = {0}; */
#define AMP_TASK __attribute__((cleanup(amp_task_release)))

/* Reads a stored record; an empty task in state new if rec was not found. DATAERR "bad_record". */
int amp_task_read(struct amp_task *t, const struct amp_store_rec *rec, struct amp_span id,
                  struct amp_error *err);
/* Reads the task from the store, as amp_task_read. *found (may be NULL): whether it has a record.
 */
int amp_task_load(struct amp_store *s, struct amp_span id, struct amp_task *t, bool *found,
                  struct amp_error *err);
/* One line of JSON, without LF. */
int amp_task_write(const struct amp_task *t, struct amp_buf *out, struct amp_error *err);

/* Replaces a string; 0 or -1 no_memory. */
int amp_task_set(char **place, struct amp_span value, struct amp_error *err);

/* Appends a pending subtask. -1 no_memory. */
int amp_task_add_part(struct amp_task *t, struct amp_span id, struct amp_span description,
                      int64_t lines, struct amp_error *err);
void amp_task_swap_parts(struct amp_task *a, struct amp_task *b);
struct amp_task_part *amp_task_part(const struct amp_task *t, struct amp_span id);
/* The current subtask: the first that is neither approved nor abandoned; NULL if there is none. */
struct amp_task_part *amp_task_turn(const struct amp_task *t);

/* Whether a list of texts contains this text. */
bool amp_task_lists(const json_t *list, const char *text);

/* Adds an undecided escalation, unless it is there; a critical one suspends the task. */
struct amp_task_asked {
    const char *ref, *type, *severity;
    const char *why; /* in words, of one of the coordinator's; or NULL */
};
int amp_task_open_escalation(struct amp_task *t, const struct amp_task_asked *asked, int64_t now_ms,
                             struct amp_error *err);
/* Notes who asked, so that only the same may withdraw it. of: the sender's own id; by, key: the
 * principal and the key that signed it, or "". */
int amp_task_own_escalation(struct amp_task *t, const char *ref, const char *of, const char *from,
                            const char *by, const char *key, struct amp_error *err);
/* The open escalation with this id, or with this id of its sender; NULL: there is none. */
const json_t *amp_task_find_escalation(const struct amp_task *t, const char *ref);
/* Removes the escalation ref ("": all). The suspension ends with the last critical one. Returns
 * whether an escalation was removed. */
bool amp_task_close_escalation(struct amp_task *t, const char *ref);
bool amp_task_waits_for(const struct amp_task *t, const char *ref);
bool amp_task_is_suspended(const struct amp_task *t);

#endif
