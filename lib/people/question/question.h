/*
 * Questions to a person and their answers: AMP/1.0 escalations (resume, redispatch, rollback,
 * terminate) and SW4RM's HITL_INVOCATION (approve, deny, modify, defer, or a proposed action). A
 * question is recorded when it arrives; a critical escalation suspends its task and agents. A
 * decision is one commit of the record's state DECIDED and the line in the outbox. Only an answer
 * decides, or the fallback after the deadline. A question ends with its subject; then its sender
 * gets a nack.
 */
#ifndef AMP_PEOPLE_QUESTION_QUESTION_H
#define AMP_PEOPLE_QUESTION_QUESTION_H

#include "people/question/record.h"

/* The configuration's policy for questions that nobody decides. */
struct amp_hitl_policy {
    int64_t deadline_ms;                /* from the arrival; 0: the protocol's */
    int8_t fallback;                    /* enum amp_fallback, or -1: the protocol's */
    int8_t by_reason[AMP_REASON_COUNT]; /* the same; -1: `fallback` */
    double threshold;                   /* of AUTO_DECIDE_THRESHOLD, 0 to 1 */
};
#define AMP_HITL_POLICY_NONE                                                                       \
    {                                                                                              \
        .fallback = -1, .by_reason = {-1, -1, -1, -1, -1, -1, -1, -1}, .threshold = 1              \
    }
_Static_assert(AMP_REASON_COUNT == 8, "AMP_HITL_POLICY_NONE names each reason");

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
    /* Copies the risk of a task, and why its question `ref` asks, in words; "" if unknown. May be
     * NULL. */
    int (*task_facts)(void *ctx, struct amp_span task, struct amp_span ref, char risk[16],
                      char why[AMP_WHY_MAX], struct amp_error *err);
    /* Appends the line, signed by the operator, and sets the fingerprint of the key, "": not
     * signed. NULL: lines are signed when they are emitted. */
    int (*sign)(void *ctx, const char *op, struct amp_span line, struct amp_buf *out,
                char key[AMP_FINGERPRINT_MAX], struct amp_error *err);
    const struct amp_hitl_policy *policy; /* NULL: the protocols' own */
    char (*passed)[AMP_QUESTION_KEY_MAX]; /* the questions left undecided in this run */
    size_t n_passed, cap_passed;
};
void amp_hitl_release(struct amp_hitl *h);

struct amp_question {
    char key[AMP_QUESTION_KEY_MAX]; /* of its record */
    char id[AMP_ABOUT_MAX];         /* of the message that asks */
    char name[AMP_ABOUT_MAX + 16];  /* for diagnostics: its task or message */
    enum amp_protocol protocol;
    struct amp_about about;
    json_t *message;                           /* its envelope */
    int64_t arrived_ms, deadline_ms, until_ms; /* 0: none */
    char refused[512];                         /* why the last decision was refused, or "" */
    char severity[16], reason[32], risk[16];   /* or "" */
    char why[AMP_WHY_MAX];                     /* in words, or "" */
    uint8_t state;                             /* OPEN, ASKED, DEFERRED */
    enum amp_fallback fallback;
    int64_t extensions;
};
void amp_question_release(struct amp_question *q);
const struct amp_question_terms *amp_question_terms(const struct amp_question *q);
/* Its possible actions, up to the one without a name. */
const struct amp_action *amp_question_actions(const struct amp_question *q);
/* The one with this name, or NULL. */
const struct amp_action *amp_question_action(const struct amp_question *q, const char *name);
/* The question's own name, which its answer repeats. */
const char *amp_question_invocation(const struct amp_question *q);
/* The envelope in a line, without the address around it; the caller owns it. NULL: failure. */
json_t *amp_question_load(struct amp_span line, struct amp_error *err);

/* Whether the message asks a person; `named` is its view with an id, in `id` if it has none of its
 * own. The request of a result is looked up in the ledger. 1, 0, or -1: failure. */
int amp_question_is(struct amp_store *s, const struct amp_view *v, struct amp_view *named,
                    char id[AMP_MSG_ID_MAX], struct amp_error *err);
/* Ends the open questions that a later message settles: a decision about one of them, or a message
 * about the same work (settles of struct amp_question_terms). */
int amp_question_withdraw(struct amp_hitl *h, const struct amp_view *later, struct amp_error *err);
/* Ends the open questions about a task that has ended. *n: how many. */
int amp_question_end_task(struct amp_hitl *h, struct amp_span task, uint32_t *n,
                          struct amp_error *err);
/* Whether amp_question_withdraw could end one, without a look at the state. */
bool amp_question_may_settle(const struct amp_view *later);

/* Records a question that arrived. effects: of the step; 0: it was recorded before. */
int amp_question_arrive(struct amp_hitl *h, const struct amp_view *v, int64_t now_ms,
                        uint32_t *effects, struct amp_error *err);
/* The sender of answers in a protocol: the role, or the actor if each producer numbers its
 * messages.
 */
const char *amp_question_answerer(const struct amp_hitl *h, enum amp_protocol p);
/* The sender of an operator's decision: the role, or "operator/OP", whose key signs it. Without
 * such a principal it is the answerer. */
const char *amp_question_decider(const struct amp_hitl *h, enum amp_protocol p, const char *op,
                                 char out[AMP_PRINCIPAL_MAX]);

/* Reads the question with this key without ending it, in any state; rec's texts are in mem. 1: q is
 * filled, and the caller releases it; 0: there is none; -1: failure. */
int amp_question_peek(struct amp_store *s, const char *key, struct amp_buf *mem,
                      struct amp_question_rec *rec, struct amp_question *q, struct amp_error *err);
/* The first open question that was not left undecided in this run. 1: q is filled, and the
 * caller releases it; 0: there is none; -1: failure. */
int amp_question_next(struct amp_hitl *h, struct amp_question *q, struct amp_error *err);
/* Calls fn for all open questions: the critical ones first, then in order of arrival. fn: 0:
 * continue, 1: stop, -1: failure. */
typedef int (*amp_question_fn)(void *ctx, const struct amp_question *q);
int amp_question_each(struct amp_hitl *h, amp_question_fn fn, void *ctx, struct amp_error *err);

/* Calls fn also for the deferred ones. */
int amp_question_all(struct amp_hitl *h, amp_question_fn fn, void *ctx, struct amp_error *err);
/* The open or deferred question whose key, message, invocation or task has the name, or an
 * unambiguous prefix of it. 0: q is filled, and the caller releases it. NO unknown_question,
 * ambiguous_question, already_decided, ended. */
int amp_question_named(struct amp_hitl *h, const char *name, struct amp_question *q,
                       struct amp_error *err);

/* amp_question_ask: a person sees the question. amp_question_pass: there is no answer; the question
 * is open again, this run does not ask it again, and the sender gets a nack. NO already_decided,
 * ended.
 */
int amp_question_ask(struct amp_hitl *h, const struct amp_question *q, struct amp_error *err);
/* This run does not ask the question again; its record does not change. */
int amp_question_skip(struct amp_hitl *h, const struct amp_question *q, struct amp_error *err);
int amp_question_pass(struct amp_hitl *h, const struct amp_question *q, const char *why,
                      struct amp_error *err);

/* Whether the question no longer waits for a person: 1, and `how` says why ("decided by bob through
 * folder: resume"); 0: it waits; -1: failure. */
int amp_question_settled(struct amp_store *s, const struct amp_question *q, char *how, size_t size,
                         struct amp_error *err);

/* Puts a question off; it is asked again at until_ms. NO already_decided, ended. */
int amp_question_defer(struct amp_hitl *h, const struct amp_question *q, int64_t until_ms,
                       const char *op, const char *note, struct amp_error *err);

/* The results for questions whose time came. */
struct amp_question_swept {
    uint32_t asked_again, decided, extended, expired; /* expired: they stay open */
};
/* Ends deferrals and applies the fallbacks of all questions that are due at now_ms. */
int amp_question_sweep(struct amp_hitl *h, int64_t now_ms, struct amp_question_swept *out,
                       struct amp_error *err);
/* Applies the fallback because nobody can be reached. NO already_decided, ended. */
int amp_question_unreachable(struct amp_hitl *h, const struct amp_question *q,
                             struct amp_question_swept *out, struct amp_error *err);
/* Whether the configuration has a fallback other than none for the question's reason. */
bool amp_question_has_policy(const struct amp_hitl *h, const struct amp_question *q);

/* The origin of an answer, for the record; NULL: unknown. person and principal: see
 * people/question/operators/operators.h. */
struct amp_decided_by {
    const char *channel, *method, *key, *shown;
    /* With a policy in the answer: nobody can be reached; the time at which it is due. */
    bool unreachable;
    int64_t due_ms;
    const char *person, *principal;
    struct amp_quorum approval; /* need 0: one decides */
    struct amp_buf *line;       /* result of OK: the decision's line with LF; or NULL */
};

enum amp_decided {
    AMP_DECIDED_FAILED = -1,
    AMP_DECIDED_OK,
    AMP_DECIDED_COUNTED, /* the vote is recorded; *left (may be NULL) more have to agree */
    AMP_DECIDED_REFUSED, /* the answer cannot be carried out; the question is unchanged */
};
/* Decides, or counts the vote. The line is signed before it is committed. Refused with DATAERR:
 * no_letter (a redispatch of a message without a dead letter), buffer_full (the note is too long
 * for a record). Failed: NO already_decided (by another process), ended (the subject has ended),
 * duplicate_vote. */
enum amp_decided amp_question_decide(struct amp_hitl *h, const struct amp_question *q,
                                     const struct amp_operator_answer *a,
                                     const struct amp_decided_by *by, uint32_t *left,
                                     struct amp_error *err);

/* Splits "resume", "rollback COMMIT NOTE…", "approve WHY…", "defer TIME WHY…" into its parts, which
 * point into line and the question. TIME: "2h", or RFC 3339, at most AMP_DEFER_MAX_MS from now.
 * false: not an answer to this question. */
#define AMP_DEFER_MAX_MS (INT64_C(30) * 86400000)
bool amp_answer_parse(const struct amp_question *q, char *line, struct amp_operator_answer *out);
/* The action at the start of the line, in any case of letters: by the protocol's word, or by a
 * person's (approve, yes, y, ok, reject, no, redo) for the first action of that kind. NULL: none,
 * or a proposed action. */
const struct amp_action *amp_answer_action(const struct amp_question *q, const char *line);
/* The possible answers in words ("resume, redispatch, rollback COMMIT or terminate") and as a form.
 */
const char *amp_answer_words(const struct amp_question *q);
const char *amp_answer_form(const struct amp_question *q);

/* For the other files. */

/* The open question of a record. 1: q is filled, and the caller releases it; 0: there is nothing to
 * decide any more. */
int amp_question_load_key(struct amp_hitl *h, const char *key, struct amp_question *q,
                          struct amp_error *err);
/* Makes the nack that says why there is no decision. Initialises out. */
int amp_question_nack(struct amp_hitl *h, const struct amp_question *q, enum amp_ack_stage stage,
                      const char *code, const char *why, bool retryable, struct amp_buf *out,
                      struct amp_error *err);

/* A step of a question's record; its line enters the outbox of h. NO already_decided, ended. */
int amp_question_step(struct amp_hitl *h, const char *key, struct amp_question_update *u,
                      struct amp_error *err);
/* The request of the result that asks: NULL if its protocol does not need it, or it is unknown. */
int amp_question_request(struct amp_hitl *h, const struct amp_question *q, json_t **out,
                         struct amp_error *err);
/* The fields of an answer to the question from a sender, with a number if its protocol numbers
 * messages. */
int amp_question_asked(struct amp_hitl *h, const struct amp_question *q, const char *by,
                       struct amp_asked *out, struct amp_error *err);

#endif
