/*
 * The answers of a protocol: acknowledgements and refusals as lines, their numbering, and the
 * tables for replies of agents (reply.h) and handoffs (handoff.h). One row per protocol, in
 * lib/message/protocol/NAME/terms.c. Answers need libraries that a check does not, so struct
 * amp_spec has none.
 */
#ifndef AMP_MESSAGE_PROTOCOL_ANSWERS_H
#define AMP_MESSAGE_PROTOCOL_ANSWERS_H

#include <amp/compose.h>

/* An acknowledgement or a refusal: see compose/answer.h. */
struct amp_answer {
    enum amp_ack_stage stage; /* REJECTED, FAILED: a refusal, with `code` and `note` */
    const char *by;
    const char *code, *note; /* NULL or "": none */
    const char *rule;        /* AMP: the rule that the message breaks */
    bool is_dead;            /* the message is a dead letter: there is no further attempt */
    bool retryable;          /* another attempt may help; SW4RM derives this from the code */
    struct amp_span result;  /* SW4RM: a JSON value; or empty */
    const char *node;        /* the Runtime Protocol's outbox; NULL: `by` */
    int64_t sequence;        /* in that outbox, or of SW4RM's producer `by`; 0: by the clock */
    int64_t now_ms;
    /* The result of amp_delivery_terms.repeats, for a view without its document; NULL: it has one.
     */
    const struct amp_span *repeats;
};

/* The first attempt at an operation, for the sender of another attempt. */
struct amp_first_attempt {
    bool done;                        /* it has an outcome; else it is in progress */
    struct amp_span id, code, result; /* code: of a failure; result: a JSON value; or empty */
    const char *status;               /* the state of its delivery */
    int64_t at_ms;                    /* of the outcome */
};

/* The numbering of messages. */
enum amp_numbering {
    AMP_NUMBERED_NOT,
    AMP_NUMBERED_BY_NODE,    /* one by one per outbox: a missing number is a gap */
    AMP_NUMBERED_BY_PRODUCER /* rising per sender; a further attempt may repeat its number */
};

/* A function or list below may be NULL: the comment says what that means, or it means "none". */
struct amp_answer_terms {
    enum amp_numbering numbering;
    unsigned
        no_stages; /* bits of the stages that it lacks; `stages` is a sentence about the rest */
    const char *stages;
    /* Appends one line with LF, or nothing if the protocol has no answer. */
    int (*answer)(const struct amp_view *of, const struct amp_answer *a, struct amp_buf *out,
                  struct amp_error *err);
    /* The answer to another attempt at an operation; NULL: it has no operations. */
    int (*duplicate)(const struct amp_view *of, const struct amp_answer *a,
                     const struct amp_first_attempt *first, struct amp_buf *out,
                     struct amp_error *err);
    bool (*answers)(const struct amp_view *of); /* whether `answer` has one; NULL: always */
    const struct amp_reply_terms *replies;      /* of an agent, reply.h; NULL: none */
    const struct amp_handoff_terms *handoffs;   /* handoff.h; NULL: none */

    int64_t progress_least_ms; /* the shortest interval between reports of progress; 0: none */
};

#define X(id, name, title) extern const struct amp_answer_terms amp_answers_##name;
AMP_PROTOCOL_LIST(X)
#undef X
/* Never NULL: AMP_PROTO_NONE has AMP's records as answers. */
const struct amp_answer_terms *amp_answers_of(enum amp_protocol p);

/* An answer as AMP's record, for messages of protocols without an answer of their own. */
int amp_terms_record(const struct amp_view *of, const struct amp_answer *a, struct amp_buf *out,
                     struct amp_error *err);

#endif
