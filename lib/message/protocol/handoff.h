/*
 * Handoffs of work in the protocols (PROTOCOLS: offered, taken, declined, finished): what a message
 * says about one, and the messages that offer it and report its end. One row per protocol, in
 * lib/message/protocol/NAME/handoff.c; see the column `handoffs` of struct amp_answer_terms.
 */
#ifndef AMP_MESSAGE_PROTOCOL_HANDOFF_H
#define AMP_MESSAGE_PROTOCOL_HANDOFF_H

#include "message/protocol/answers.h"

enum amp_handoff_act {
    AMP_HANDOFF_NONE,
    AMP_HANDOFF_OFFERS,
    AMP_HANDOFF_TAKES,
    AMP_HANDOFF_DECLINES,
    AMP_HANDOFF_FINISHES,
};

struct amp_handoff_said {
    enum amp_handoff_act act;
    /* An answer that has a meaning without a handoff, too: if there is no handoff in the state for
     * it, it is about something else. */
    bool elsewhere;
    struct amp_span
        id; /* of the handoff: the request's id, or the task; may be empty if ref is not */
    struct amp_span ref; /* the message with the offer, if the answer names that; else empty */
    struct amp_span by;  /* the agent that answers; may be empty */
    struct amp_span why; /* of DECLINES */
    /* OFFERS: */
    struct amp_span from, to; /* to: empty: an agent with the capabilities */
    struct amp_span task, parent, reason;
    struct amp_span context; /* the JSON value of the snapshot, or empty */
    struct amp_spans wanted;
    int64_t priority;
    int64_t timeout_ms; /* for the answer of a candidate; 0: not given */
    int64_t due_ms;     /* no candidate may answer later; 0: none */
    bool timed;         /* the protocol limits the time for an answer */
};

/* A message of a handoff. Texts that are empty are left out. */
struct amp_handoff_says {
    struct amp_span by, to; /* the producer, the recipient */
    struct amp_span id, from, reason, task;
    struct amp_span correlation;
    struct amp_span context; /* a JSON value */
    const struct amp_span *wanted;
    uint32_t n_wanted;
    int64_t priority, timeout_ms;
    const char *status; /* a state of the handoff, for `report` */
    /* For protocols that repeat the request: its line, the number of this offer (1, 2, …), and the
     * id of the message, which answers may name. */
    struct amp_span request;
    int64_t attempt;
    const char *message;
    int64_t sequence; /* of the producer */
    int64_t now_ms;
};

struct amp_handoff_terms {
    /* false: the message is not about a handoff. */
    bool (*read)(const struct amp_view *v, struct amp_handoff_said *out);
    int64_t depth; /* how often work may be handed over */
    /* Each appends one line with LF. NULL: the protocol has no such message; without an offer a
     * handoff has one candidate. report returns 1 for a state without a message. */
    int (*offer)(const struct amp_handoff_says *s, struct amp_buf *out, struct amp_error *err);
    int (*report)(const struct amp_handoff_says *s, struct amp_buf *out, struct amp_error *err);
    const char *context_at; /* the payload's member with the snapshot; NULL: none */
    bool by_message;        /* answers may name the message with the offer */
};

extern const struct amp_handoff_terms amp_handoffs_sw4rm, amp_handoffs_aof, amp_handoffs_rtp;

#endif
