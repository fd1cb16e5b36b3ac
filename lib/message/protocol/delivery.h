/*
 * The terms of delivery of a protocol: acknowledgements and their time limits, and further
 * attempts. The ledger, the sweep and inboxes use them. One row per protocol, in
 * lib/message/protocol/NAME/terms.c.
 */
#ifndef AMP_MESSAGE_PROTOCOL_DELIVERY_H
#define AMP_MESSAGE_PROTOCOL_DELIVERY_H

#include <amp/compose.h>

#include "message/protocol/compose/edit.h"

#define AMP_RETRY_WAITS_MAX 16

/* Whether and when a message is sent again. */
struct amp_retry_policy {
    uint32_t budget;         /* attempts after the first; 0: none */
    int64_t base_ms, cap_ms; /* the n-th wait is random, from 0 to min(cap, base * 2^(n-1)) */
    bool steady;             /* the n-th wait is this maximum */
    int64_t list_ms[AMP_RETRY_WAITS_MAX]; /* if n_list > 0: the waits; the last one is repeated */
    uint32_t n_list;
};

/* A message's own retries: execution_policy of SW4RM §18.2 and of AOP, deadlineAt of RTP §4. */
struct amp_again_terms {
    int64_t most;                          /* retries; -1: not given */
    int64_t waits_ms[AMP_RETRY_WAITS_MAX]; /* before each of them */
    uint32_t n_waits;                      /* 0: not given */
    int64_t until_ms;                      /* none from then on; 0: not given */
};

/* The next attempt. */
struct amp_again {
    const char *id;
    const char *node;      /* the Runtime Protocol's outbox */
    int64_t sequence;      /* the event's number in it */
    struct amp_span first; /* the first attempt's id */
};

enum { AMP_REPEATS_MAX = 2 };

/* A function or list below may be NULL: the comment says what that means, or it means "none". */
struct amp_delivery_terms {
    /* ---- Acknowledgements ---- */
    bool acknowledges;   /* the protocol has acknowledgements */
    bool acks_name_work; /* an acceptance or refusal names the task instead of a message: it is an
                            outcome, not an acknowledgement */
    enum amp_ack_stage waits_for; /* RECEIVED: admission is enough */
    int64_t ack_timeout_ms;       /* of messages without a field for it; 0: none */
    int64_t sla_ms;               /* from admission to the outcome; 0: no outcome is awaited */
    const char *const *silent;    /* types without an acknowledgement; NULL-terminated */
    /* The time that the sender waits for the message's outcome, 0: none; NULL: sla_ms. */
    int64_t (*work_ms)(const struct amp_view *v);
    bool work_is_ack; /* that time starts when the message is sent, and it is sent again without an
                         outcome, even if an agent holds it; else it starts with the work */
    bool begins_read; /* that time starts when the message is read, not admitted */
    /* Whether heartbeats are due during the work; the longest silence goes to *beat_ms. *warns:
     * silence is only reported. */
    bool (*beat)(const struct amp_view *v, int64_t *beat_ms, bool *warns);
    /* RECEIVED means that the message is durably queued, FULFILLED that its outcome is known. */
    bool acks_are_durable;
    bool stages_follow;       /* stages come in order: a later one implies the earlier ones */
    bool expiry_fails;        /* an expired message has failed; else it is refused */
    bool expiry_is_advisory;  /* expiry is advisory: nothing happens */
    bool expires_unread;      /* it may expire between admission and reading */
    const char *timeout_code; /* of a message without acknowledgement; NULL: ack_timeout */
    const char *overdue_code; /* of work without an outcome; NULL: ack_timeout */
    /* The notification of a message's end: to a person; to the sender by a nack each time; or when
     * there is no further attempt to the sender, by one notice or, if the time is over, by the
     * outcome of the work. */
    enum {
        AMP_NOTIFIES_PERSON,
        AMP_NOTIFIES_NACK,
        AMP_NOTIFIES_NOTICE,
        AMP_NOTIFIES_OUTCOME
    } notifies;

    bool acks_are_known;     /* an acknowledgement of an unknown message is an error */
    bool acks_say_retryable; /* a refusal has a field for it; else its code decides */
    /* The result of the work in an acknowledgement, a JSON value. */
    struct amp_span (*ack_result)(const struct amp_view *ack);

    unsigned handed_over; /* bits of the stages that acknowledge the handover to the agent */
    bool acks_by_role;    /* they are sent in the name of the role; else of the agent */
    bool acks_to_sender;  /* to the sender; a message without a sender gets none */

    /* Fills what an answer repeats of the message and a view does not have. */
    void (*repeats)(const struct amp_view *of, struct amp_span out[AMP_REPEATS_MAX]);

    /* ---- Further attempts ---- */
    struct amp_retry_policy retries;
    /* Writes an id and returns its length like snprintf; NULL: a UUID. */
    int (*again_id)(const struct amp_view *of, int64_t now_ms, char out[AMP_MSG_ID_MAX]);
    /* The edits that make the next attempt of a message; NULL: there is no next attempt. */
    int (*again)(struct amp_edit *e, const struct amp_again *a);
    void (*own_retries)(const struct amp_view *of, struct amp_again_terms *out);
    /* Edits a request so that it has the names that a router assigns. 1: edited; 0: it has them;
     * NULL: a router assigns none. */
    int (*assign)(struct amp_edit *e);
};

#define X(id, name, title) extern const struct amp_delivery_terms amp_delivery_##name;
AMP_PROTOCOL_LIST(X)
#undef X
/* Never NULL: AMP_PROTO_NONE has no acknowledgements, and retries like AMP. */
const struct amp_delivery_terms *amp_delivery_of(enum amp_protocol p);

/* Whether the word is in a NULL-terminated list, which may be NULL. */
bool amp_terms_has(const char *const *list, struct amp_span word);

static inline bool amp_stage_refuses(enum amp_ack_stage stage)
{
    return stage == AMP_STAGE_REJECTED || stage == AMP_STAGE_FAILED || stage == AMP_STAGE_TIMED_OUT;
}

/* The number of a message among the attempts at its operation (1, 2, …), and the number of the next
 * attempt, at most `most`. */
static inline int64_t amp_attempt_of(const struct amp_view *v)
{
    return v->has_attempt ? v->attempt : 1;
}
static inline int64_t amp_attempt_after(int64_t n, int64_t most)
{
    return n < most ? n + 1 : most;
}

#endif
