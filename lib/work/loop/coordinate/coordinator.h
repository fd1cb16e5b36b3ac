/*
 * The parts of the coordinator. Each message becomes one step of the QA loop, which is committed
 * with the lines that it emits. loop.c reads and writes, coordinator.c has the state of a run,
 * speaker.c decides whether its sender may say it, receive.c takes it. In step/, kinds.c finds its
 * event and facts, step.c makes the step, compose.c composes the lines.
 */
#ifndef AMP_WORK_LOOP_COORDINATE_COORDINATOR_H
#define AMP_WORK_LOOP_COORDINATE_COORDINATOR_H

#include <amp/base/pipe.h>
#include <amp/protocol/protocol.h>

#include "message/delivery/sender/identity.h"
#include "message/pause/watch.h"
#include "message/protocol/amp/compose.h"
#include "work/git/repository/git.h"
#include "work/loop/coordinate/coordinate.h"
#include "work/task/policy.h"
#include "work/task/record.h"
#include "work/task/task.h"

/* An emitted line that needs no acknowledgement: its outbox entry is closed once it is written. */
struct amp_emitted {
    char id[AMP_MSG_ID_MAX];
    uint64_t mark; /* the number of output bytes up to the end of the line */
};

/* A task that this run has seen. */
struct amp_known_task {
    char id[AMP_TASK_ID_MAX];
    bool open, dirty; /* dirty: its file is older than the record */
    bool parked;      /* waits for a person; this run need not wait for it */
    uint32_t refused; /* messages that were refused because of their sender */
    bool alarmed;     /* the admin has a line about it */
};

struct amp_coordinator {
    struct amp_store *store;
    const struct amp_coordinate_options *opt;
    struct amp_git *git;    /* opened when first needed */
    struct amp_reader *own; /* reads composed lines */
    bool turn;              /* the store's turn is open */
    bool seen;              /* this run has seen a task */
    struct amp_outq out;    /* flushed only after a commit */
    struct amp_emitted *emitted;
    size_t n_emitted, cap_emitted;
    struct amp_known_task *tasks;
    size_t n_tasks, cap_tasks;
    uint64_t refused_tasks;
    const struct amp_said *said; /* who said the message that is being taken */
    struct amp_buf signed_line;
    struct amp_pause_watch pauses;
    struct amp_held_entry { /* of the outbox, while people suspend its task */
        char id[AMP_MSG_ID_MAX];
    } * held;
    size_t n_held, cap_held;
    struct amp_held_entry *adopted; /* entries of AMP_CREATE_CONSUMER that this run has seen */
    size_t n_adopted, cap_adopted;
    /* A person's command creates a task: another process sends the lines, and records them in the
     * ledger then. */
    bool unsent;
};

/* One step: the context of amp_step_apply, which fills it. */
#define AMP_STEP_EMITS 8
struct amp_step {
    struct amp_coordinator *c;
    const struct amp_task_policy *policy;
    const struct amp_view *view;
    int64_t now_ms;
    const char *bad_code;   /* the error of an invalid message, or NULL */
    const char *bad_field;  /* and the invalid field */
    char base[AMP_OID_MAX]; /* the commit where a new branch starts, "" if unknown */
    bool ref_open;          /* decision: an escalation that the coordinator did not see awaits it */
    bool is_decided;        /* withdrawal: a person has decided, and the decision is on its way */

    struct amp_task t;
    struct amp_buf json, text; /* the record; the emitted lines */
    struct {
        char id[AMP_MSG_ID_MAX];
        size_t at, n;
        bool wants_ack;
    } out[AMP_STEP_EMITS];
    struct amp_store_emit emits[AMP_STEP_EMITS];
    uint32_t n_out;
    const char *event;
    char nack[48], why[256];         /* code and text of the nack to the sender, or "" */
    char dropped[2][AMP_MSG_ID_MAX]; /* a dispatch and a review request that were replaced */
    char called_off[AMP_MSG_ID_MAX]; /* the message to cancel because the task ended */
    bool touched;                    /* the record changed */
    bool lift;                       /* lift the suspensions of the task's agents */
    char suspend_ref[AMP_MSG_ID_MAX], suspend_type[32]; /* suspend the agents; "": do not */
    char withdrawn[AMP_MSG_ID_MAX]; /* the escalation that was withdrawn, or "" */
};

/* amp_step_apply is the store's callback. */
void amp_step_init(struct amp_step *st, struct amp_coordinator *c, const struct amp_view *v,
                   int64_t now_ms);
void amp_step_release(struct amp_step *st);
int amp_step_apply(void *ctx, const struct amp_store_rec *now, struct amp_store_change *out,
                   struct amp_error *err);
/* Refuses the message: the sender gets a nack, the record is not changed. Returns 0. */
int amp_step_refuse(struct amp_step *st, const char *code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* The subtask that a verdict is about: the one that its context names, else the current one, else
 * the last; NULL if there is none. */
struct amp_task_part *amp_step_judged(const struct amp_task *t, const struct amp_view *v);
/* Finds the event and facts of the message and makes the step. */
int amp_step_message(struct amp_step *st, struct amp_error *err);
/* Ends the task, as the decision terminate does. */
int amp_step_cancel(struct amp_step *st, struct amp_error *err);
/* Writes the record and the emitted lines into the change. */
int amp_step_write(struct amp_step *st, struct amp_store_change *out, struct amp_error *err);
/* A step of a subtask's machine with all its effects; a step of the task's machine only. */
int amp_step_qa(struct amp_step *st, struct amp_task_part *p, uint8_t event, uint32_t facts,
                struct amp_error *err);
int amp_step_task(struct amp_step *st, uint8_t event, struct amp_error *err);
/* The facts that do not depend on the message. */
uint32_t amp_step_standing(const struct amp_step *st, const struct amp_task_part *part);
/* Whether two commits are the same; abbreviated ones match from seven digits on. */
bool amp_step_same_commit(const char *a, struct amp_span b);
json_t *amp_step_texts(const struct amp_spans *v);
/* Replaces *place by value and frees the old value. -1 no_memory: value is NULL. */
int amp_step_replace(json_t **place, json_t *value, struct amp_error *err);

/* Compose messages; each appends one line to st->out. */
int amp_step_emit_dispatch(struct amp_step *st, struct amp_task_part *part, bool rework,
                           struct amp_error *err);
int amp_step_emit_review(struct amp_step *st, struct amp_task_part *part, struct amp_error *err);
/* The escalations among the effects. */
int amp_step_emit_escalations(struct amp_step *st, struct amp_task_part *part, uint32_t effects,
                              enum amp_level level, struct amp_error *err);
/* Forwards an escalation to the admin; one with another recipient is readdressed. */
int amp_step_forward(struct amp_step *st, struct amp_error *err);
/* The nack that tells the admin of a withdrawal. */
int amp_step_emit_withdrawal(struct amp_step *st, struct amp_error *err);
/* The id of the forwarded escalation: its own, or if it is readdressed an id derived from its own.
 */
void amp_step_forward_id(const struct amp_view *v, char out[AMP_MSG_ID_MAX]);

/* Queues a line without LF for the output, signed; queue_entry: an entry of the outbox, which is
 * closed once it is written, unless it needs an acknowledgement; a dispatch or review request that
 * people suspended stays in the outbox. pass: another's line, unchanged.
 */
int amp_coordinator_queue(struct amp_coordinator *c, struct amp_span line, struct amp_error *err);
int amp_coordinator_pass(struct amp_coordinator *c, struct amp_span line, struct amp_error *err);
int amp_coordinator_queue_entry(struct amp_coordinator *c, struct amp_span id, struct amp_span line,
                                bool wants_ack, struct amp_error *err);
/* Whether it is a message of AMP/1.0, the protocol of the coordinator. */
bool amp_coordinator_has_protocol(const struct amp_view *v);
/* Whether the coordinator handles the message; other messages are passed through. */
bool amp_coordinator_is_ours(const struct amp_view *v);
/* Takes one message; opens the store's turn. bad_code and bad_field: the error of an invalid
 * message, or NULL. A refusal returns 0; -1: the state failed. */
int amp_coordinator_take(struct amp_coordinator *c, const struct amp_view *v, const char *bad_code,
                         const char *bad_field, struct amp_error *err);
/* Whether the message may be taken from the input. 1: yes, *said is filled; 0: it is refused, and
 * *why has the code; -1: failure. */
int amp_coordinator_hears(struct amp_coordinator *c, const struct amp_coordinate_input *in,
                          const struct amp_view *v, struct amp_said *said, struct amp_error *why,
                          struct amp_error *err);
/* The consequences of a refusal: a nack, and after several refusals or that of a verdict or a
 * decision, one escalation (info) about the task. Neither changes the state. */
int amp_coordinator_refused(struct amp_coordinator *c, const struct amp_coordinate_input *in,
                            const struct amp_view *v, const struct amp_error *why,
                            struct amp_error *err);
/* Whether an id is TYPE-TASK- and something: the id of a message of this type and task. */
bool amp_coordinator_is_id(struct amp_span id, const char *type, struct amp_span task);
/* Whether a nack withdraws an escalation of its sender. */
bool amp_coordinator_withdraws(const struct amp_view *v);
/* Binds a dispatch to the executor that acknowledged it (stage READ), unless it is bound. */
int amp_coordinator_bind(struct amp_coordinator *c, const struct amp_view *ack,
                         struct amp_error *err);
/* Opens the store's turn, if it is not open. */
int amp_coordinator_begin(struct amp_coordinator *c, struct amp_error *err);
/* Ends the store's turn before an operation that may be slow. */
void amp_coordinator_pause(struct amp_coordinator *c);
/* Ends the turn and syncs: then the queued lines may be written. Writes task files. */
int amp_coordinator_commit(struct amp_coordinator *c, struct amp_error *err);
/* Queues the entries that another process added to the outbox: nacks of cancelled tasks. */
int amp_coordinator_adopt(struct amp_coordinator *c, struct amp_error *err);
/* Queues the dispatches of tasks that amp_coordinate_task took. */
int amp_coordinator_adopt_new(struct amp_coordinator *c, struct amp_error *err);
/* Records an own line in the ledger; its deadline begins. */
int amp_coordinator_record(struct amp_coordinator *c, struct amp_span line, int64_t now_ms,
                           struct amp_error *err);
/* Queues the entries that were held, if people resumed something. */
int amp_coordinator_release(struct amp_coordinator *c, struct amp_error *err);
/* Continues what earlier runs left: queues open lines of the outbox, completes suspensions, takes
 * the decisions that were not carried out. */
int amp_coordinator_restore(struct amp_coordinator *c, struct amp_error *err);
/* Suspends the agents of a task that the critical escalation `ref` suspends. */
int amp_coordinator_suspend(struct amp_coordinator *c, struct amp_span task, const char *ref,
                            const char *type, int64_t now_ms, struct amp_error *err);
/* Ends the question of an escalation that its agent withdrew, and lifts the suspensions that it
 * caused. A decision that came first is left alone. */
int amp_coordinator_revoke(struct amp_coordinator *c, struct amp_span task, struct amp_span ref,
                           struct amp_span why, int64_t now_ms, struct amp_error *err);
/* The task's entry among the tasks of this run, added if missing; NULL: failure. */
struct amp_known_task *amp_coordinator_know(struct amp_coordinator *c, struct amp_span id,
                                            bool open, struct amp_error *err);

#endif
