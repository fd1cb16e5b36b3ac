/*
 * Questions to a person and their answers: AMP/1.0 escalations (resume, redispatch, rollback,
 * terminate) and SW4RM's HITL_INVOCATION (approve, deny, modify, defer, or a proposed action). A
 * question is recorded when it arrives; a critical escalation suspends its task and agents. A
 * decision is one commit of the record's state DECIDED and the line in the outbox. Only an answer
 * decides. A question ends with its subject; then its sender gets a nack.
 */
#ifndef AMP_HITL_QUESTION_H
#define AMP_HITL_QUESTION_H

#include "hitl/record.h"

/* The questions of one state directory, for one process. */
struct amp_hitl {
    struct amp_store *store;
    const char *actor; /* its outbox gets the decisions */
    bool *dirty;       /* set when an entry is added to that outbox */
    void (*note)(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
    void *ctx; /* of these: */
    /* Sends a line with LF that is not durable. */
    int (*send)(void *ctx, struct amp_span line, struct amp_error *err);
    /* Suspends the task and agents of a question. */
    int (*suspend)(void *ctx, const struct amp_view *v, int64_t now_ms, struct amp_error *err);
    int (*task_ended)(void *ctx, struct amp_span task, bool *ended, struct amp_error *err);
    char (*passed)[AMP_QUESTION_KEY_MAX]; /* the questions left undecided in this run */
    size_t n_passed, cap_passed;
};
void amp_hitl_release(struct amp_hitl *h);

struct amp_question {
    char key[AMP_QUESTION_KEY_MAX];  /* of its record */
    char id[AMP_SUBJECT_MAX];        /* of the message that asks */
    char name[AMP_SUBJECT_MAX + 16]; /* for diagnostics: its task or message */
    enum amp_protocol protocol;
    struct amp_subject about;
    json_t *message; /* its envelope */
    int64_t arrived_ms;
    char refused[512]; /* why the last decision was refused, or "" */
};
void amp_question_release(struct amp_question *q);
const struct amp_question_terms *amp_question_terms(const struct amp_question *q);
/* The question's own name, which its answer repeats. */
const char *amp_question_invocation(const struct amp_question *q);
/* The envelope in a line, without the address around it; the caller owns it. NULL: failure. */
json_t *amp_question_load(struct amp_span line, struct amp_error *err);

/* Records a question that arrived. effects: of the step; 0: it was recorded before. */
int amp_question_arrive(struct amp_hitl *h, const struct amp_view *v, int64_t now_ms,
                        uint32_t *effects, struct amp_error *err);
/* The sender of answers in a protocol: the role, or the actor if each producer numbers its
 * messages.
 */
const char *amp_question_answerer(const struct amp_hitl *h, enum amp_protocol p);

/* The earliest open question that was not left undecided in this run. 1: q is filled, and the
 * caller releases it; 0: there is none; -1: failure. */
int amp_question_next(struct amp_hitl *h, struct amp_question *q, struct amp_error *err);
/* Calls fn for all open questions, in order of arrival. fn: 0: continue, 1: stop, -1: failure. */
typedef int (*amp_question_fn)(void *ctx, const struct amp_question *q);
int amp_question_each(struct amp_hitl *h, amp_question_fn fn, void *ctx, struct amp_error *err);

/* amp_question_ask: a person sees the question. amp_question_pass: there is no answer; the question
 * is open again, this run does not ask it again, and the sender gets a nack. NO already_decided,
 * ended.
 */
int amp_question_ask(struct amp_hitl *h, const struct amp_question *q, struct amp_error *err);
int amp_question_pass(struct amp_hitl *h, const struct amp_question *q, const char *why,
                      struct amp_error *err);

/* Whether the question no longer waits for a person: 1, and `how` says why ("decided by bob through
 * folder: resume"); 0: it waits; -1: failure. */
int amp_question_settled(struct amp_store *s, const struct amp_question *q, char *how, size_t size,
                         struct amp_error *err);

/* How an answer came, for the record; NULL: unknown. */
struct amp_decided_by {
    const char *channel, *method, *key, *shown;
};

enum amp_decided {
    AMP_DECIDED_FAILED = -1,
    AMP_DECIDED_OK,
    AMP_DECIDED_REFUSED, /* the answer cannot be carried out; the question is unchanged */
};
/* Decides. Refused with DATAERR: no_letter (a redispatch of a message without a dead letter),
 * buffer_full (the note is too long for a record). Failed: NO already_decided (by another process),
 * NO ended (the subject has ended). */
enum amp_decided amp_question_decide(struct amp_hitl *h, const struct amp_question *q,
                                     const struct amp_operator_answer *a,
                                     const struct amp_decided_by *by, struct amp_error *err);

/* Splits "resume", "rollback COMMIT NOTE…", "approve WHY…" into its parts, which point into line
 * and the question. false: not an answer to this question. */
bool amp_answer_parse(const struct amp_question *q, char *line, struct amp_operator_answer *out);
/* The possible answers in words ("resume, redispatch, rollback COMMIT or terminate") and as a form.
 */
const char *amp_answer_words(const struct amp_question *q);
const char *amp_answer_form(const struct amp_question *q);

/* For answer.c. */

/* A step of a question's record; its line enters the outbox of h. NO already_decided, ended. */
int amp_question_step(struct amp_hitl *h, const char *key, struct amp_question_update *u,
                      struct amp_error *err);
/* The fields of an answer to the question, with a number if its protocol numbers messages. */
int amp_question_asked(struct amp_hitl *h, const struct amp_question *q, struct amp_asked *out,
                       struct amp_error *err);

#endif
