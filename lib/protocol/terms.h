/*
 * The terms of delivery of a protocol: acknowledgements and their time limits, further attempts at
 * an operation, answers to a delivery. One row per protocol, in lib/protocol/NAME/terms.c. They are
 * separate from struct amp_spec because answers need libraries that a check does not.
 */
#ifndef AMP_PROTOCOL_TERMS_H
#define AMP_PROTOCOL_TERMS_H

#include <amp/compose.h>

#include "protocol/compose/edit.h"

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
    /* The result of `repeats` below, for a view without its document; NULL: it has one. */
    const struct amp_span *repeats;
};
enum { AMP_REPEATS_MAX = 2 };

/* The first attempt at an operation, for the sender of another attempt. */
struct amp_first_attempt {
    bool done;                        /* it has an outcome; else it is in progress */
    struct amp_span id, code, result; /* code: of a failure; result: a JSON value; or empty */
    const char *status;               /* the state of its delivery */
    int64_t at_ms;                    /* of the outcome */
};

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

/* The operations of a sender are identified in one of these ways. */
enum amp_operation_by {
    AMP_OPERATION_NONE,      /* the message is not an attempt at an operation */
    AMP_OPERATION_BY_TOKEN,  /* its token; without one its sequence number */
    AMP_OPERATION_BY_CONTENT /* conversation, type and payload; without a conversation its id */
};

/* The names that a request and the messages about it have in common. */
struct amp_work {
    struct amp_span first, second;
    bool requested; /* the message is the request, which waits for an outcome */
};

/* A message's report about the request that it answers. */
struct amp_outcome {
    enum amp_ack_stage stage; /* default: FULFILLED */
    struct amp_span by;       /* the agent that did the work; default: the sender */
    const char *by_at;        /* the pointer to its name in the message */
    struct amp_span code;     /* of a refusal or failure */
    bool classed;             /* the code decides whether another attempt may help */
    bool takes_up;            /* only an agent that the work is for may send the message */
    bool holds;               /* with RECEIVED: the agent holds the work from now on */
    bool releases;            /* after this failure another agent may take the work */
    struct amp_span result;   /* a JSON value; or empty */
    int64_t eta_ms;           /* when the end is expected; 0: not given */
};

/* The cost of work; micros: millionths of a dollar. */
struct amp_usage {
    int64_t tokens_in, tokens_out, micros;
};
#define AMP_USAGE_MOST INT64_C(1000000000000000) /* a larger amount counts as this one */
/* An amount that an agent reports, as a whole number. A part of a unit counts as one, except for
 * what the conversion to a double added. */
int64_t amp_usage_amount(double n, double scale);
/* Converts the number at a pointer in the same way; 0: there is none. */
int64_t amp_usage_at(const struct amp_tape *t, const char *pointer, double scale);

/* A fault of a result of a request. */
struct amp_result_fault {
    const char *code;
    const char *pointer; /* of the member of the result, without the indices of lists */
    bool ends;           /* the work has failed with this code; else a correct result may follow */
    char what[256];      /* the end of a sentence about the member */
};

/* The meaning of a message to a registry of agents. */
enum amp_registry_act {
    AMP_REGISTRY_NONE,
    AMP_REGISTRY_REGISTER,   /* the payload's member "agent" is a descriptor */
    AMP_REGISTRY_DESCRIPTOR, /* the payload is a descriptor */
    AMP_REGISTRY_DEREGISTER,
    AMP_REGISTRY_BEAT,   /* a heartbeat, or a request for one */
    AMP_REGISTRY_ACK,    /* an acknowledgement, which may be of a heartbeat */
    AMP_REGISTRY_PUBLISH /* the message is the catalog entry of a capability */
};

/* Whether an agent may take work, or report its end. */
enum amp_work_verdict {
    AMP_WORK_ALLOWED,
    AMP_WORK_NOT_HOLDER,    /* another agent holds the work */
    AMP_WORK_TAKEN,         /* the same, for an agent that wants to take it */
    AMP_WORK_NOT_ADDRESSEE, /* no agent holds the work, and it is for others */
    AMP_WORK_NOT_ACCEPTED,  /* no agent holds the work, and it must be accepted first */
    AMP_WORK_UNAPPROVED,    /* a person must approve the work first */
    AMP_WORK_FULL,          /* the agent holds as many works as it may: message/ledger/claims.h */
    AMP_WORK_VERDICTS
};
struct amp_work_claim {
    bool begins;       /* the agent takes the work; else it works on it or reports its end */
    bool must_accept;  /* such work must be accepted first */
    bool is_claimed;   /* an agent holds it */
    bool is_claimant;  /* this agent holds it */
    bool is_addressee; /* the work is for this agent */
};
enum amp_work_verdict amp_work_judge(const struct amp_work_claim *c);

/* The numbering of messages. */
enum amp_numbering {
    AMP_NUMBERED_NOT,
    AMP_NUMBERED_BY_NODE,    /* one by one per outbox: a missing number is a gap */
    AMP_NUMBERED_BY_PRODUCER /* rising per sender; a further attempt may repeat its number */
};

/* A function or list below may be NULL: the comment says what that means, or it means "none". */
struct amp_terms {
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

    /* ---- Routing ---- */
    bool refuses_malformed;  /* the sender of a malformed message gets an answer */
    bool falls_back;         /* it is answered by amp_refuse, which has the work for an earlier
                                version of the protocol */
    bool acks_update_ledger; /* an acknowledgement that is routed does so */
    /* Whether its operation is routed once, and a repetition is answered. */
    bool (*routes_once)(const struct amp_view *v);
    bool signs;            /* only a signed message may leave the machine */
    bool takes_tokens;     /* external senders prove by a token that they may send */
    bool delivers_content; /* recipients get the message without its outer envelope */
    bool by_catalog;       /* work by capability goes to all agents of the catalog entry */
    bool expands_all;      /* payload.toAgents ["all"] is replaced when a message is published */
    const char *lost_code; /* of a name without an agent; NULL: no_route, or agent_unavailable after
                              the agent left */
    const char *unaddressed_code;   /* of a request without a recipient; NULL: no_route */
    const char *undeliverable_code; /* of any other request without a recipient, with our code */
    const char *expired_code;       /* of an expired request; NULL: ttl_expired */
    const char *full_code; /* of one after a gap in its stream, above a limit; NULL: backpressure */
    const char *sequence_code; /* of a number that does not rise; NULL: seq_not_monotonic */
    const char *tool_frame;    /* the type of a frame of a tool's stream */

    /* ---- Work and its outcome ---- */
    /* An id for a request without one; returns its length like snprintf, 0: none. */
    int (*name)(const struct amp_view *request, char out[AMP_MSG_ID_MAX]);
    /* The names of the work; false: the message is neither a request nor about one. */
    bool (*work)(const struct amp_view *v, struct amp_work *out);
    const char *sender_at; /* JSON pointer to the sender */
    /* See amp_outcome_read. NULL: only acknowledgements and `watched` messages are outcomes. */
    bool (*outcome)(const struct amp_view *v, struct amp_outcome *out);
    /* The cost of the work in an outcome; false: the outcome has none. NULL: outcomes have none,
     * or they are messages of the ledger. */
    bool (*usage)(const struct amp_view *outcome, struct amp_usage *out);
    /* Whether a message that reports the end of work ends this request; NULL: always. */
    bool (*ends)(struct amp_span request, const struct amp_view *done);
    /* A check of a result against its request. 1: it has a fault; 0: none; -1: out of memory. NULL:
     * there is no such check. */
    int (*result_fault)(const struct amp_view *request, const struct amp_view *result,
                        struct amp_result_fault *fault, struct amp_error *err);
    /* The requirements of a result that its request waives, AMP_WAIVES_. */
    unsigned (*result_waives)(const struct amp_view *request);
    int64_t claims_most;        /* works that an agent may hold at the same time; 0: no limit */
    int64_t failures_most;      /* after that many failures that release the work the next one ends
                                   it; 0: no limit */
    bool reviews;               /* failed and overdue work makes review items, and completed work
                                   may confirm a version */
    bool keeps_tasks;           /* its tasks have records in the state */
    bool in_sessions;           /* its work belongs to a session, and has events and one answer */
    bool results_name_subtasks; /* a result is of one subtask of its request */
    enum amp_operation_by (*operation)(const struct amp_view *v);
    bool counts_attempts;      /* another attempt at an operation has a higher number */
    bool orders_conversations; /* the messages of one conversation keep their order */

    /* ---- Holders of work ---- */
    bool to_holds;               /* the recipient of a message holds the work */
    const char *const *accepted; /* types of work that an agent must accept before it reports the
                                    end; NULL-terminated */
    const char *denied[AMP_WORK_VERDICTS]; /* the codes of the verdicts except ALLOWED; NULL: the
                                              code of NOT_HOLDER */
    /* Whether a request with several recipients is for the agent; NULL: it is. */
    bool (*is_for)(struct amp_span request, const char *agent);
    /* Types of work whose holder sends heartbeats, each with the kind of message that ends it; ends
     * with a NULL type. */
    const struct amp_watched {
        const char *type;
        enum amp_kind ended_by;
    } * watched;

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

    /* ---- Answers ---- */
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
    const struct amp_question_terms *questions; /* to a person */
    const struct amp_reply_terms *replies;      /* of an agent, reply.h; NULL: none */
    const struct amp_handoff_terms *handoffs;   /* handoff.h; NULL: none */

    int64_t progress_least_ms; /* the shortest interval between reports of progress; 0: none */

    /* ---- Registry of agents ---- */
    enum amp_registry_act (*registry)(const struct amp_view *v);
    bool registry_answers; /* the registry answers all messages except acknowledgements */
};

#define X(id, name, title) extern const struct amp_terms amp_terms_##name;
AMP_PROTOCOL_LIST(X)
#undef X
/* Never NULL: AMP_PROTO_NONE has terms with AMP's records as answers. */
const struct amp_terms *amp_terms_of(enum amp_protocol p);

/* Reads what the message reports about its request; false: nothing. */
bool amp_outcome_read(const struct amp_view *v, struct amp_outcome *out);
/* The code of a verdict except ALLOWED. */
const char *amp_terms_denial(const struct amp_terms *t, enum amp_work_verdict v);
/* Whether the word is in a NULL-terminated list, which may be NULL. */
bool amp_terms_has(const char *const *list, struct amp_span word);

/* An answer as AMP's record, for messages of protocols without an answer of their own. */
int amp_terms_record(const struct amp_view *of, const struct amp_answer *a, struct amp_buf *out,
                     struct amp_error *err);

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
