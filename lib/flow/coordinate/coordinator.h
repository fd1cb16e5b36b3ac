/*
 * The coordinator's inside: one message at a time becomes one step of the QA loop, committed with
 * everything that it emits. loop.c reads and writes, coordinator.c has the state of a run,
 * receive.c takes a message, step.c makes the step, kinds.c has what each kind of message means,
 * compose.c composes.
 */
#ifndef AMP_FLOW_COORDINATE_COORDINATOR_H
#define AMP_FLOW_COORDINATE_COORDINATOR_H

#include <amp/protocol/protocol.h>

#include "flow/coordinate/coordinate.h"
#include "protocol/amp/compose.h"
#include "task/policy.h"
#include "task/record.h"
#include "task/task.h"
#include "worktree/git/git.h"

/* Lines on their way out. Those without an acknowledgement leave the outbox once written. */
struct amp_said {
    char id[AMP_MSG_ID_MAX];
    uint64_t mark; /* of the output's bytes: behind the line */
};

/* A task that this run has seen. */
struct amp_known_task {
    char id[AMP_TASK_ID_MAX];
    bool open, dirty; /* dirty: its file is older than the record */
    bool parked;      /* it waits for a person who does not answer now */
};

struct amp_coordinator {
    struct amp_store *store;
    const struct amp_coordinate_options *opt;
    struct amp_git *git;    /* opened when first needed */
    struct amp_reader *own; /* looks at what we compose */
    bool turn;              /* the store's turn is open */
    bool seen;              /* some task came along in this run */
    struct amp_buf lines;   /* committed, to be written after the sync */
    uint64_t lines_base;    /* bytes handed to the output before lines.data[0] */
    struct amp_said *said;
    size_t n_said, cap_said;
    struct amp_known_task *tasks;
    size_t n_tasks, cap_tasks;
    uint64_t refused; /* messages answered with a nack */
    uint64_t refused_tasks;
};

/* One step: the callback's context. What it fills is valid after the update. */
#define AMP_STEP_EMITS 8
struct amp_step {
    struct amp_coordinator *c;
    const struct amp_view *view;
    int64_t now_ms;
    const char *bad_code;   /* the message did not pass intake, for this */
    const char *bad_field;  /* and the field that is at fault */
    char base[AMP_OID_MAX]; /* commit that a new branch starts from, "" unknown */
    bool ref_open; /* decision: an escalation of the task that did not pass here awaits it */

    struct amp_task t;
    struct amp_buf json, text; /* the record; the lines that are emitted */
    struct {
        char id[AMP_MSG_ID_MAX];
        size_t at, n;
        bool wants_ack;
    } out[AMP_STEP_EMITS];
    struct amp_store_emit emits[AMP_STEP_EMITS];
    uint32_t n_out;
    const char *event;
    char nack[48], why[256];         /* what the sender is answered with instead of an ack */
    char dropped[2][AMP_MSG_ID_MAX]; /* a dispatch, a request that nobody need answer any longer */
    char called_off[AMP_MSG_ID_MAX]; /* a dispatch whose receiver is notified that the task ended */
    bool touched;                    /* the record changed */
    bool lift;                       /* agents suspended by `ref` are let go */
    char suspend_ref[AMP_MSG_ID_MAX], suspend_type[32]; /* agents are suspended, "" not */
};

/* The store's callback and its memory. */
void amp_step_init(struct amp_step *st, struct amp_coordinator *c, const struct amp_view *v,
                   int64_t now_ms);
void amp_step_release(struct amp_step *st);
int amp_step_apply(void *ctx, const struct amp_store_rec *now, struct amp_store_change *out,
                   struct amp_error *err);
/* Refuses the message: the sender gets a nack, the record stays. */
int amp_step_refuse(struct amp_step *st, const char *code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* What the message means: the facts, the event, the step. */
int amp_step_message(struct amp_step *st, struct amp_error *err);
/* A step of a subtask's loop with all its effects; and of the task's machine alone. */
int amp_step_qa(struct amp_step *st, struct amp_task_part *p, uint8_t event, uint32_t facts,
                struct amp_error *err);
int amp_step_task(struct amp_step *st, uint8_t event, struct amp_error *err);
/* The facts that hold whatever the message says. */
uint32_t amp_step_standing(const struct amp_step *st, const struct amp_task_part *part);
/* Abbreviated commits match by prefix, from seven digits on. */
bool amp_step_same_commit(const char *a, struct amp_span b);
json_t *amp_step_texts(const struct amp_spans *v);
/* Puts value in place of the old one; a NULL value is short memory. */
int amp_step_replace(json_t **place, json_t *value, struct amp_error *err);

/* What is said; each appends one line to st->out. */
int amp_say_dispatch(struct amp_step *st, struct amp_task_part *part, bool rework,
                     struct amp_error *err);
int amp_say_review(struct amp_step *st, struct amp_task_part *part, struct amp_error *err);
int amp_say_escalation(struct amp_step *st, struct amp_task_part *part, uint32_t effect,
                       enum amp_level level, struct amp_error *err);
/* Passes an escalation on to the admin: as it is, or readdressed where it names somebody else. */
int amp_say_again(struct amp_step *st, struct amp_error *err);
/* The id under which the admin gets it: its own, or one made of its own, always the same, where it
 * is readdressed or its own is too long to be referred to. */
void amp_say_again_id(const struct amp_view *v, char out[AMP_MSG_ID_MAX]);

/* Adds committed lines. wants_ack false: the outbox lets go of id once it is written. */
int amp_coordinator_queue(struct amp_coordinator *c, struct amp_span id, struct amp_span line,
                          bool wants_ack, struct amp_error *err);
/* Whether it is a message of AMP/1.0, the protocol of the coordinator. */
bool amp_coordinator_speaks(const struct amp_view *v);
/* Whether the message is the coordinator's business; what is not passes through. */
bool amp_coordinator_is_ours(const struct amp_view *v);
/* Takes one message; opens the store's turn. bad_code and bad_field: why it did not pass intake, or
 * NULL. Failures of the state are -1; a refusal is not. */
int amp_coordinator_take(struct amp_coordinator *c, const struct amp_view *v, const char *bad_code,
                         const char *bad_field, struct amp_error *err);
/* Takes the store's turn, where it is not taken. */
int amp_coordinator_begin(struct amp_coordinator *c, struct amp_error *err);
/* Gives the store's turn up, before anything that may take its time. */
void amp_coordinator_pause(struct amp_coordinator *c);
/* Ends the turn: everything taken is on disk and lines may be written. */
int amp_coordinator_commit(struct amp_coordinator *c, struct amp_error *err);
/* What earlier runs left open: lines in the outbox, suspensions half carried out. */
int amp_coordinator_restore(struct amp_coordinator *c, struct amp_error *err);
struct amp_known_task *amp_coordinator_know(struct amp_coordinator *c, struct amp_span id,
                                            bool open, struct amp_error *err);

#endif
