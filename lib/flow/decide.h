/*
 * Escalations to a person and decisions back (AMP/1.0 escalation, decisions resume, redispatch,
 * rollback, terminate). An escalation is recorded when it arrives; a critical one suspends its task
 * and its agents if nobody did so yet. A decision is one commit: the escalation is DECIDED and the
 * decision record stands in the outbox. Nothing but an answer decides.
 */
#ifndef AMP_FLOW_DECIDE_H
#define AMP_FLOW_DECIDE_H

#include "flow/worker.h"
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

/* The earliest open escalation that was not passed over in this run. 1: q is filled (release it),
 * 0: there is none. Escalations of ended tasks are passed over silently. */
struct amp_question {
    char id[256], task[256];
    json_t *message; /* the escalation */
    int64_t arrived_ms;
    char refused[512]; /* why the last decision was refused, or "" */
};
void amp_question_release(struct amp_question *q);
int amp_decider_next(struct amp_decider *d, struct amp_question *q, struct amp_error *err);
/* All that are open, in order of arrival, for matching answers by name. fn: 0 go on, 1 stop. */
typedef int (*amp_question_fn)(void *ctx, const struct amp_question *q);
int amp_decider_each(struct amp_decider *d, amp_question_fn fn, void *ctx, struct amp_error *err);

/* The question is before a person; nobody answered it (it is open again and passed over in this
 * run, and whoever waits for the decision is told so by a nack). */
int amp_decider_ask(struct amp_decider *d, const struct amp_question *q, struct amp_error *err);
int amp_decider_pass(struct amp_decider *d, const struct amp_question *q, const char *why,
                     struct amp_error *err);

struct amp_answer {
    enum amp_operator_word word;
    const char *note, *commit, *op; /* commit: needed for a rollback; op: who decides */
};
/* 0: decided. 1: the answer cannot be carried out and the question stays as it was; err says why:
 * DATAERR missing_commit, unknown_revision (the task's repository has no such commit),
 * repo_not_git or another code of worktree/git.h where that repository cannot be read, buffer_full
 * for a note that does not fit a record. -1 failure: NO already_decided when somebody else was
 * first. */
int amp_decider_decide(struct amp_decider *d, const struct amp_question *q,
                       const struct amp_answer *a, struct amp_error *err);

/* The coordinator refused a decision about `ref`: the question is open again, with the reason.
 * Nothing changes where it has no record here, where it is not decided, or where this refusal
 * (known by its time) was recorded before. Needs an amp_store_sync before anything is told about
 * it. */
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

/* "resume", "rollback COMMIT NOTE…" into its parts; false when it is none. Memory is line's. */
bool amp_answer_parse(char *line, struct amp_answer *out);

#endif
