/*
 * Questions to a person and decisions back: AMP/1.0 escalations (resume, redispatch, rollback,
 * terminate) and SW4RM's HITL_INVOCATION (approve, deny, modify, defer, or a proposed action). A
 * question is recorded when it arrives; a critical escalation suspends its task and its agents,
 * unless they are suspended already. A decision is one commit: the record becomes DECIDED and the
 * decision enters the outbox. Only an answer decides. A question ends with its subject
 * (flow/subject.h), and the sender of the question gets a nack.
 */
#ifndef AMP_FLOW_WORK_DECIDE_H
#define AMP_FLOW_WORK_DECIDE_H

#include "flow/subject.h"
#include "flow/work/worker.h"
#include "hitl/escalation.h"

struct amp_decider;
/* opt: tool, consumer, in, out, stop, note, say, open_timeout_ms; the rest is not used. on_info
 * shows an escalation that needs no decision. */
typedef void (*amp_info_fn)(void *ctx, const json_t *escalation);
struct amp_decider *amp_decider_new(struct amp_store *s, const struct amp_worker_options *opt,
                                    amp_info_fn on_info, void *ctx, struct amp_error *err);
void amp_decider_free(struct amp_decider *d);

/* Reads, records, sends; waits at most wait_ms, also for fds. */
int amp_decider_turn(struct amp_decider *d, struct pollfd *fds, unsigned n, int64_t wait_ms,
                     struct amp_error *err);
bool amp_decider_ended(const struct amp_decider *d); /* no more input */
enum amp_status amp_decider_status(const struct amp_decider *d);

#define AMP_QUESTION_KEY_MAX (AMP_SUBJECT_MAX + 16)
struct amp_question {
    char key[AMP_QUESTION_KEY_MAX];  /* of its record */
    char id[AMP_SUBJECT_MAX];        /* of the message that asks */
    char name[AMP_SUBJECT_MAX + 16]; /* what to call it: its task, or what else it is about */
    enum amp_protocol protocol;      /* AMP or SW4RM */
    struct amp_subject about;
    json_t *message; /* an AMP escalation, a SW4RM envelope */
    int64_t arrived_ms;
    char refused[512]; /* why the last decision was refused, or "" */
};
void amp_question_release(struct amp_question *q);
/* What a SW4RM question calls itself, and its answer it. */
const char *amp_question_invocation(const struct amp_question *q);

/* The earliest open question that was not passed over in this run. 1: q is filled (release it), 0:
 * there is none. */
int amp_decider_next(struct amp_decider *d, struct amp_question *q, struct amp_error *err);
/* All that are open, in order of arrival, for matching answers by name. fn: 0 go on, 1 stop. */
typedef int (*amp_question_fn)(void *ctx, const struct amp_question *q);
int amp_decider_each(struct amp_decider *d, amp_question_fn fn, void *ctx, struct amp_error *err);

/* amp_decider_ask: a person sees the question now. amp_decider_pass: no answer came; the question
 * is open again, this run does not ask it again, and the sender gets a nack. NO already_decided,
 * ended.
 */
int amp_decider_ask(struct amp_decider *d, const struct amp_question *q, struct amp_error *err);
int amp_decider_pass(struct amp_decider *d, const struct amp_question *q, const char *why,
                     struct amp_error *err);

struct amp_operator_answer {
    enum amp_operator_word word;    /* AMP */
    const char *action, *patch;     /* the word as it is recorded; SW4RM: base64, or NULL */
    const char *note, *commit, *op; /* commit: needed for a rollback; op: who decides */
};
/* 0: decided. 1: the answer cannot be carried out and the question stays as it was; err says why:
 * DATAERR missing_commit, unknown_revision (the task's repository has no such commit),
 * repo_not_git or another code of worktree/git.h where that repository cannot be read, no_task
 * (a rollback, but the question is not about a task of AMP), no_letter (a redispatch of a message
 * that is not among the dead letters), buffer_full for a note that does not fit a record. -1
 * failure: NO already_decided when somebody else was first, NO ended when the subject ended. */
int amp_decider_decide(struct amp_decider *d, const struct amp_question *q,
                       const struct amp_operator_answer *a, struct amp_error *err);

/* The coordinator refused a decision about `ref`: the question is open again, with the reason.
 * Nothing changes where it has no record here, where it is not decided, or where this refusal
 * (known by its time) was recorded before. Call amp_store_sync before anything is reported
 * about it. */
struct amp_refusal {
    struct amp_span ref, task, code, why;
    const char *by; /* who records it */
    int64_t at_ms;
};
int amp_flow_reopen(struct amp_store *s, const struct amp_refusal *r, bool *reopened,
                    struct amp_error *err);
/* Whether a refusal with this code opens the question again: not where it is settled all the same
 * (already_decided, terminal). */
bool amp_flow_reopens(struct amp_span code);

/* "resume", "rollback COMMIT NOTE…", "approve WHY…" into its parts; false when it is no answer to
 * the question. Memory is line's and the question's. */
bool amp_answer_parse(const struct amp_question *q, char *line, struct amp_operator_answer *out);
/* The words that answer it: "resume, redispatch, rollback COMMIT or terminate". */
const char *amp_answer_words(const struct amp_question *q);

#endif
