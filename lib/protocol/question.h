/*
 * Questions to a person: which messages ask one, what is shown of it, which answers it takes, and
 * the decision that answers it. One row for each protocol that asks any, in
 * lib/protocol/NAME/question.c; amp_terms_of leads to it.
 */
#ifndef AMP_PROTOCOL_QUESTION_H
#define AMP_PROTOCOL_QUESTION_H

#include <jansson.h>

#include <amp/protocol/protocol.h>

/* What a question is about. */
enum amp_subject_kind {
    AMP_SUBJECT_UNKNOWN, /* nothing whose end can be looked up */
    AMP_SUBJECT_TASK,    /* a task that the coordinator leads */
    AMP_SUBJECT_MESSAGE, /* the first message that it affects */
};

/* What an answer does beside being sent. */
enum amp_action_does {
    AMP_ACTION_PLAIN,
    AMP_ACTION_REQUEUE,  /* the message that the question is about is sent again */
    AMP_ACTION_ROLLBACK, /* the task's branch goes back to a commit */
};
struct amp_action {
    const char *name; /* NULL: the end of a list */
    enum amp_action_does does;
};

/* A person's answer. */
struct amp_operator_answer {
    const char *action; /* as the protocol spells it */
    enum amp_action_does does;
    const char *note, *commit, *op; /* commit: of a rollback; op: who decides */
    const char *patch;              /* base64, or NULL */
};

/* The question that is answered, and by whom. */
struct amp_asked {
    const char *id;        /* of the message that asks */
    const json_t *message; /* its envelope */
    const char *by;        /* a role, or a producer */
    int64_t sequence;      /* among what that producer sends */
    int64_t now_ms;
};

/* A part of a question's text: a label and the member at a path of two or three keys. */
struct amp_question_field {
    const char *label; /* NULL: the end of a list */
    const char *path;  /* "payload.description"; "": the question's own name */
    bool list;         /* of texts */
};

struct amp_question_terms {
    bool (*asks)(const struct amp_view *v);
    enum amp_subject_kind (*about)(const struct amp_view *v);
    bool graded; /* a question has a severity: one of info needs no decision, others suspend */
    /* The sender that carries decisions out and refuses a decision by a nack. NULL: a decision is
     * the answer, and its message is fulfilled. */
    const char *carried_out_by;

    /* What it calls itself; NULL: the id of its message. */
    const char *(*name)(const json_t *message, const char *id);
    /* Its text: the line above the fields, whose words need no quoting. */
    int (*title)(const json_t *message, bool suspended, struct amp_buf *out, struct amp_error *err);
    const struct amp_question_field *fields;

    const struct amp_action *actions;
    /* The i-th answer that the question itself proposes, or NULL; may be NULL. */
    const char *(*proposed)(const json_t *message, size_t i);
    /* The actions in a sentence and as a form; [1]: of a question about a task, NULL: the same. */
    const char *words[2], *form[2];

    /* One line with LF: the decision, DATAERR buffer_full; and that none comes, because `stage` is
     * not reached. */
    int (*decide)(const struct amp_asked *q, const struct amp_operator_answer *a,
                  struct amp_buf *out, struct amp_error *err);
    int (*refuse)(const struct amp_asked *q, enum amp_ack_stage stage, const char *code,
                  const char *why, bool retryable, struct amp_buf *out, struct amp_error *err);
};

extern const struct amp_question_terms amp_questions_amp, amp_questions_sw4rm;

#endif
