/*
 * Questions to a person and their answers: AMP/1.0 escalations (resume, redispatch, rollback,
 * terminate) and SW4RM's HITL_INVOCATION (approve, deny, modify, defer, or a proposed action). A
 * question is recorded when it arrives; a critical escalation suspends its task and its agents,
 * unless they are suspended already. A decision is one commit: the record becomes DECIDED and the
 * decision enters the outbox. Only an answer decides. A question ends with its subject, and its
 * sender gets a nack.
 */
#ifndef AMP_HITL_QUESTION_H
#define AMP_HITL_QUESTION_H

#include "hitl/record.h"

/* The questions of one state, as one process asks them. */
struct amp_hitl {
    struct amp_store *store;
    const char *actor; /* whose outbox the decisions enter */
    bool *dirty;       /* set when an entry of that outbox was added */
    void (*note)(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
    void *ctx; /* of these: */
    /* Sends a line with LF that is not durable. */
    int (*send)(void *ctx, struct amp_span line, struct amp_error *err);
    /* Suspends what a question concerns. */
    int (*suspend)(void *ctx, const struct amp_view *v, int64_t now_ms, struct amp_error *err);
    int (*task_ended)(void *ctx, struct amp_span task, bool *ended, struct amp_error *err);
    char (*passed)[AMP_QUESTION_KEY_MAX]; /* the questions that were passed over in this run */
    size_t n_passed, cap_passed;
};
void amp_hitl_release(struct amp_hitl *h);

struct amp_question {
    char key[AMP_QUESTION_KEY_MAX];  /* of its record */
    char id[AMP_SUBJECT_MAX];        /* of the message that asks */
    char name[AMP_SUBJECT_MAX + 16]; /* what to call it: its task, or what else it is about */
    enum amp_protocol protocol;
    struct amp_subject about;
    json_t *message; /* its envelope */
    int64_t arrived_ms;
    char refused[512]; /* why the last decision was refused, or "" */
};
void amp_question_release(struct amp_question *q);
const struct amp_question_terms *amp_question_terms(const struct amp_question *q);
/* What a question calls itself, and its answer it. */
const char *amp_question_invocation(const struct amp_question *q);
/* The envelope in a line, without the address around it. */
json_t *amp_question_load(struct amp_span line, struct amp_error *err);

/* Records a question that arrived. effects: of the step, 0 where it was recorded before. */
int amp_question_arrive(struct amp_hitl *h, const struct amp_view *v, int64_t now_ms,
                        uint32_t *effects, struct amp_error *err);
/* The sender of answers to the questions of a protocol: a role, or the actor where it numbers what
 * each producer sends. */
const char *amp_question_answerer(const struct amp_hitl *h, enum amp_protocol p);

/* The earliest open question that was not passed over in this run. 1: q is filled (release it), 0:
 * there is none. */
int amp_question_next(struct amp_hitl *h, struct amp_question *q, struct amp_error *err);
/* All that are open, in order of arrival, for matching answers by name. fn: 0 go on, 1 stop, -1
 * failure. */
typedef int (*amp_question_fn)(void *ctx, const struct amp_question *q);
int amp_question_each(struct amp_hitl *h, amp_question_fn fn, void *ctx, struct amp_error *err);

/* amp_question_ask: a person sees the question now. amp_question_pass: no answer came; the question
 * is open again, this run does not ask it again, and the sender gets a nack. NO already_decided,
 * ended. */
int amp_question_ask(struct amp_hitl *h, const struct amp_question *q, struct amp_error *err);
int amp_question_pass(struct amp_hitl *h, const struct amp_question *q, const char *why,
                      struct amp_error *err);

enum amp_decided {
    AMP_DECIDED_FAILED = -1,
    AMP_DECIDED_OK,
    AMP_DECIDED_REFUSED, /* the answer cannot be carried out, the question stays as it was */
};
/* Decides. Refused with DATAERR: no_letter (a redispatch of a message that is not among the dead
 * letters), buffer_full (a note that does not fit a record). Failed: NO already_decided when
 * somebody else was first, NO ended when the subject ended. */
enum amp_decided amp_question_decide(struct amp_hitl *h, const struct amp_question *q,
                                     const struct amp_operator_answer *a, struct amp_error *err);

/* "resume", "rollback COMMIT NOTE…", "approve WHY…" into its parts; false when it is no answer to
 * the question. Memory is line's and the question's. */
bool amp_answer_parse(const struct amp_question *q, char *line, struct amp_operator_answer *out);
/* The words that answer it: "resume, redispatch, rollback COMMIT or terminate"; and as a form. */
const char *amp_answer_words(const struct amp_question *q);
const char *amp_answer_form(const struct amp_question *q);

/* For answer.c. */

/* A step of a question's record, its line in the outbox of h. NO already_decided, ended. */
int amp_question_step(struct amp_hitl *h, const char *key, struct amp_question_update *u,
                      struct amp_error *err);
/* What an answer to the question names, numbered where its protocol numbers what producers send. */
int amp_question_asked(struct amp_hitl *h, const struct amp_question *q, struct amp_asked *out,
                       struct amp_error *err);

#endif
