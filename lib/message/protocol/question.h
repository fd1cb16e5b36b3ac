/*
 * Questions to a person: which messages ask one, the text to show, the accepted answers, and the
 * decision that is sent. One row per protocol with questions, in
 * lib/message/protocol/NAME/question.c.
 */
#ifndef AMP_MESSAGE_PROTOCOL_QUESTION_H
#define AMP_MESSAGE_PROTOCOL_QUESTION_H

#include <jansson.h>

#include <amp/compose.h>
#include <amp/protocol/protocol.h>

#include "base/codes.h"

#define AMP_HITL_ROLE "admin" /* the role that decides */

/* The code of the nack for an unanswered escalation: it stays open, but there will be no decision
 * in this run. */
#define AMP_HITL_UNAVAILABLE AMP_CODE(hitl_unavailable)
/* The code of the nack with which a sender withdraws its question, and of the refusal of later
 * answers. */
#define AMP_HITL_WITHDRAWN AMP_CODE(withdrawn)

/* The subject of a question. */
enum amp_about_kind {
    AMP_ABOUT_UNKNOWN, /* unknown to the state */
    AMP_ABOUT_TASK,    /* a task of the coordinator */
    AMP_ABOUT_MESSAGE, /* the first message that the question affects */
};

/* The reasons to ask a person: SW4RM's (§15). The reasons of other protocols are mapped to them. */
#define AMP_REASONS(X)                                                                             \
    X(CONFLICT)                                                                                    \
    X(SECURITY_APPROVAL)                                                                           \
    X(TASK_ESCALATION)                                                                             \
    X(MANUAL_OVERRIDE)                                                                             \
    X(WORKTREE_OVERRIDE)                                                                           \
    X(DEBATE_DEADLOCK)                                                                             \
    X(TOOL_PRIVILEGE_ESCALATION)                                                                   \
    X(CONNECTOR_APPROVAL)
enum amp_reason {
#define X(id) AMP_REASON_##id,
    AMP_REASONS(X)
#undef X
        AMP_REASON_COUNT
};
const char *amp_reason_name(enum amp_reason r);
/* -1: unknown. */
int amp_reason_find(struct amp_span name);

/* The outcome if nobody decides in time (SW4RM §15.4). */
#define AMP_FALLBACKS(X)                                                                           \
    X(NONE, "none") /* the question stays open */                                                  \
    X(DENY, "DENY_BY_DEFAULT")                                                                     \
    X(AUTO, "AUTO_DECIDE_THRESHOLD") /* accept a proposal above the threshold, else deny */        \
    X(EXTEND, "EXTEND_TIMEOUT")      /* at most AMP_EXTENSIONS_MAX times, then deny */
enum amp_fallback {
#define X(id, word) AMP_FALLBACK_##id,
    AMP_FALLBACKS(X)
#undef X
};
#define AMP_EXTENSIONS_MAX 3
const char *amp_fallback_name(enum amp_fallback f);
/* -1: unknown. */
int amp_fallback_find(struct amp_span name);

/* The effect of an answer besides being sent. */
enum amp_action_does {
    AMP_ACTION_PLAIN,
    AMP_ACTION_REQUEUE,  /* the message that the question is about is sent again */
    AMP_ACTION_ROLLBACK, /* the task's branch is reset to a commit */
    AMP_ACTION_DEFER,    /* it is not sent; the question is asked again at a time */
};
/* The kinds of an answer, or-ed. */
enum {
    AMP_ACTION_DENIES = 1,    /* it refuses what was asked, or ends the work */
    AMP_ACTION_DEFERS = 2,    /* the question is asked again at until_ms */
    AMP_ACTION_GRAVE = 4,     /* a person confirms it, because work is lost */
    AMP_ACTION_EDITS = 8,     /* a person may edit the payload */
    AMP_ACTION_APPROVES = 16, /* it allows what was asked, or accepts the work */
    AMP_ACTION_REDOES = 32,   /* the work is done again, with the note */
};
struct amp_action {
    const char *name; /* NULL: the end of a list */
    enum amp_action_does does;
    unsigned is;
    const char *effect; /* what it does, in a sentence without a full stop; or NULL */
};

/* A person's answer. */
struct amp_operator_answer {
    const char *action; /* as the protocol spells it */
    enum amp_action_does does;
    const char *note, *commit, *op; /* commit: of a rollback; op: the operator */
    const char *patch;              /* base64, or NULL */
    const char *payload;            /* the edited payload, a JSON object; or NULL */
    int64_t until_ms;               /* of an answer that defers; 0: not given */
    /* The fallback that decided, and why: "hitl_unavailable" or "deadline"; NULL: a person did. */
    const char *policy, *because;
};

/* The question, and the sender of the answer. */
struct amp_asked {
    const char *id;        /* of the message that asks */
    const json_t *message; /* its envelope */
    const json_t *request; /* of the result that asks; NULL: none or unknown */
    const char *by;        /* a role, or a producer */
    int64_t sequence;      /* of that producer */
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
    /* Whether a message is the answer of an operator, whom it names: as its sender, or though it
     * keeps the sender of the question; may be NULL. */
    bool (*reviewed)(const struct amp_view *v, struct amp_span *op);
    /* Whether a result that does not ask by itself asks if its request says so; NULL: none does. */
    bool (*may_ask)(const struct amp_view *result);
    bool (*request_asks)(const struct amp_view *request);
    /* Whether a later message about the same work ends a question; may be NULL. */
    bool (*settles)(const struct amp_view *later);
    /* The id of the question that such a message without a task is about; may be NULL. */
    struct amp_span (*subject)(const struct amp_view *later);
    /* An id for a message without one; returns its length like snprintf. May be NULL. */
    int (*id)(const struct amp_view *v, char out[AMP_MSG_ID_MAX]);
    enum amp_about_kind (*about)(const struct amp_view *v);
    bool graded; /* a question has a severity: info needs no decision, others suspend */
    /* The role that carries out decisions and refuses a decision by a nack. NULL: the decision is
     * the answer, and its message is fulfilled. */
    const char *carried_out_by;

    enum amp_reason (*reason)(const struct amp_view *v);
    /* If the configuration does not say: what happens after the deadline, and the time to it from
     * the arrival; 0: there is none. */
    enum amp_fallback fallback;
    int64_t deadline_ms;
    /* The actions of the fallbacks; deny NULL: nothing can be denied, and the question stays open.
     */
    const char *approve, *deny;
    /* The highest score, 0 to 1, of what the question proposes, and that proposal as an action;
     * false: it has none. May be NULL. */
    bool (*score)(const json_t *message, double *score, const char **action);

    /* The name of the question; NULL: the id of its message. */
    const char *(*name)(const json_t *message, const char *id);
    /* Writes the line above the fields, in words that need no quoting. why: as recorded, or "". */
    int (*title)(const json_t *message, const char *why, bool suspended, struct amp_buf *out,
                 struct amp_error *err);
    const struct amp_question_field *fields;

    const struct amp_action *actions;
    /* The actions of this question, if they are not the same for all, and the index of their words
     * and form; may be NULL. */
    const struct amp_action *(*actions_of)(const json_t *message, unsigned *variant);
    /* The i-th answer that the question proposes, or NULL; may be NULL. */
    const char *(*proposed)(const json_t *message, size_t i);
    /* The actions in a sentence and as a form; [1]: for a question about a task, NULL: as [0]. */
    const char *words[2], *form[2];

    /* The only member of the task's dispatch that an answer may change; NULL: an answer may change
     * every member of the question's own payload. */
    const char *editable;

    /* Append one line with LF: the decision (DATAERR buffer_full); the refusal of a question, which
     * did not reach `stage`; NULL: the protocol has no such message. */
    int (*decide)(const struct amp_asked *q, const struct amp_operator_answer *a,
                  struct amp_buf *out, struct amp_error *err);
    int (*refuse)(const struct amp_asked *q, enum amp_ack_stage stage, const char *code,
                  const char *why, bool retryable, struct amp_buf *out, struct amp_error *err);
};

extern const struct amp_question_terms amp_questions_amp, amp_questions_sw4rm, amp_questions_aop,
    amp_questions_aof, amp_questions_rtp;
/* NULL: AMP_PROTO_NONE, which has none. */
const struct amp_question_terms *amp_questions_of(enum amp_protocol p);

#endif
