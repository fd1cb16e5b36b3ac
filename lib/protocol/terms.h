/*
 * The terms of delivery of a protocol: which acknowledgements its messages wait for and how long,
 * when and how an operation is attempted again, how a delivery is answered. One row a protocol, in
 * lib/protocol/NAME/terms.c. They are apart from struct amp_spec because answers need libraries
 * that a check does not.
 */
#ifndef AMP_PROTOCOL_TERMS_H
#define AMP_PROTOCOL_TERMS_H

#include <amp/compose.h>

#include "protocol/compose/edit.h"

/* An acknowledgement or a refusal: see compose/answer.h. */
struct amp_answer {
    enum amp_ack_stage stage; /* REJECTED, FAILED: a refusal, of `code` and `note` */
    const char *by;
    const char *code, *note; /* NULL or "": none */
    const char *rule;        /* AMP: what it breaks */
    bool is_dead;            /* the message is a dead letter: there is no further attempt */
    bool retryable;          /* sending again may help; SW4RM tells it by the code */
    struct amp_span result;  /* SW4RM: a JSON value; or empty */
    const char *node;        /* the Runtime Protocol's outbox; NULL: `by` */
    int64_t sequence;        /* in that outbox, or of SW4RM's producer `by`; 0: by the clock */
    int64_t now_ms;
    /* What `repeats` below filled when the message had its document; NULL: it has it now. */
    const struct amp_span *repeats;
};
enum { AMP_REPEATS_MAX = 2 };

/* The first attempt at an operation, for the sender of another one. */
struct amp_first_attempt {
    bool done;                        /* it has an outcome; else it is at work */
    struct amp_span id, code, result; /* code: of a failure; result: a JSON value; or empty */
    const char *status;               /* the state of its delivery */
    int64_t at_ms;                    /* of the outcome */
};

#define AMP_RETRY_WAITS_MAX 16

/* Whether and when a message is sent again. */
struct amp_retry_policy {
    uint32_t budget;         /* attempts after the first; 0: nothing is sent again */
    int64_t base_ms, cap_ms; /* the n-th wait is 0 .. min(cap, base * 2^(n-1)), evenly */
    bool steady;             /* no dice: the longest of these */
    int64_t list_ms[AMP_RETRY_WAITS_MAX]; /* in their place, where n_list > 0: these, the last */
    uint32_t n_list;                      /* one again and again */
};

/* What a message says of its own retries: SW4RM §18.2's execution_policy, AOP's. */
struct amp_again_terms {
    int64_t most;                          /* retries; -1: not said */
    int64_t waits_ms[AMP_RETRY_WAITS_MAX]; /* before each of them */
    uint32_t n_waits;                      /* 0: not said */
};

/* The next attempt. */
struct amp_again {
    const char *id;
    const char *node;      /* the Runtime Protocol's outbox, */
    int64_t sequence;      /* and the event's number in it */
    struct amp_span first; /* the first attempt's id */
};

/* What tells one operation of a sender from the next. */
enum amp_operation_by {
    AMP_OPERATION_NONE,      /* the message is no attempt at an operation */
    AMP_OPERATION_BY_TOKEN,  /* its token, or else its sequence number */
    AMP_OPERATION_BY_CONTENT /* conversation, type and payload; outside of a conversation its id */
};

/* What a request and the messages about it both name. */
struct amp_work {
    struct amp_span first, second;
    bool requested; /* the message is the request: an outcome is waited for */
};

/* What a message says of the request that it answers. */
struct amp_outcome {
    enum amp_ack_stage stage; /* FULFILLED to begin with */
    struct amp_span by;       /* the agent that it speaks for; to begin with its sender, */
    const char *by_at;        /* and the place of its name in the message */
    struct amp_span code;     /* of a refusal or failure, */
    bool classed;             /* and the code says whether another attempt may help */
    bool takes_up;            /* only an agent which the work is for may say it */
    bool holds;               /* with RECEIVED the agent has taken the work up */
    bool releases;            /* after this failure another agent may take it up */
    struct amp_span result;   /* a JSON value; or empty */
    int64_t eta_ms;           /* when the end is expected; 0: not said */
};

/* What a message means to a registry of agents. */
enum amp_registry_act {
    AMP_REGISTRY_NONE,
    AMP_REGISTRY_REGISTER,   /* the payload's member "agent" is a descriptor */
    AMP_REGISTRY_DESCRIPTOR, /* the payload is one */
    AMP_REGISTRY_DEREGISTER,
    AMP_REGISTRY_BEAT,   /* a sign of life, or a request for one */
    AMP_REGISTRY_ACK,    /* an acknowledgement: perhaps of a heartbeat */
    AMP_REGISTRY_PUBLISH /* the message is the catalog entry of a capability */
};

/* Who may take work up, and report its end. */
enum amp_work_verdict {
    AMP_WORK_ALLOWED,
    AMP_WORK_NOT_HOLDER,    /* another agent took the work up */
    AMP_WORK_TAKEN,         /* the same, of an agent that wants to take it up too */
    AMP_WORK_NOT_ADDRESSEE, /* no agent took it up, and it is for others */
    AMP_WORK_NOT_ACCEPTED,  /* no agent took it up, and it has to be accepted first */
    AMP_WORK_VERDICTS
};
struct amp_work_claim {
    bool begins;       /* the agent takes the work up; else it works on it or reports its end */
    bool must_accept;  /* such work has to be accepted first */
    bool is_claimed;   /* an agent took it up, */
    bool is_claimant;  /* and it is this one */
    bool is_addressee; /* the work is for this agent */
};
enum amp_work_verdict amp_work_judge(const struct amp_work_claim *c);

/* What the messages of one sender are numbered by. */
enum amp_numbering {
    AMP_NUMBERED_NOT,
    AMP_NUMBERED_BY_NODE,    /* one by one: a number that is left out is a gap */
    AMP_NUMBERED_BY_PRODUCER /* the numbers rise; a further attempt may have that of the first */
};

struct amp_terms {
    /* ---- Acknowledgements ---- */
    bool acknowledges;   /* false: the protocol has none */
    bool acks_name_work; /* an acceptance or refusal names the task, not a message: it acknowledges
                          * nothing, but is an outcome */
    enum amp_ack_stage waits_for; /* RECEIVED: admission is enough */
    int64_t ack_timeout_ms;       /* of messages that cannot say whether they want one; 0: none */
    int64_t sla_ms;               /* from admission to an outcome; 0: none is waited for */
    const char *const *silent;    /* types that nobody acknowledges; NULL-terminated, or NULL */
    /* How long the sender waits for the outcome of this message, 0: not at all; NULL: as above. */
    int64_t (*work_ms)(const struct amp_view *v);
    bool work_is_ack; /* that time begins when the message is sent, and without an outcome it is
                       * sent again, whoever has it; else it begins when the work is taken up */
    bool begins_read; /* the time to an outcome begins when the message is read, not admitted */
    /* Whether signs of life are due of its work, and how long it may be silent; or NULL. `warns`:
     * silence is only reported. */
    bool (*beat)(const struct amp_view *v, int64_t *beat_ms, bool *warns);
    /* RECEIVED says that the message is durably queued, FULFILLED that its outcome is known. */
    bool acks_are_durable;
    bool stages_follow;  /* they come one after another: a later one implies those before it */
    bool expiry_fails;   /* what expired failed, whoever would have taken it; else it was refused */
    bool expiry_is_wish; /* nothing happens when the message expires */
    bool expires_unread; /* it may expire after its admission, until it is read */
    const char *timeout_code; /* of a message that nobody acknowledged; NULL: ack_timeout */
    const char *overdue_code; /* of work without an outcome; NULL: ack_timeout */
    /* Who is notified of a message's end: a person; the sender by a nack each time; or the sender
     * by one notice when there is no further attempt. */
    enum { AMP_NOTIFIES_PERSON, AMP_NOTIFIES_NACK, AMP_NOTIFIES_NOTICE } notifies;

    bool acks_are_known;     /* an acknowledgement of a message that the state lacks is an error */
    bool acks_say_retryable; /* a refusal says whether another attempt may help; else its code */
    /* What an acknowledgement gives as the result of the work, a JSON value; or NULL. */
    struct amp_span (*ack_result)(const struct amp_view *ack);

    unsigned handed_over; /* bits of the stages that acknowledge handing it to its agent, */
    bool acks_by_role;    /* in the name of the role that it was for; else of the agent, */
    bool acks_to_sender;  /* to its sender; then one without is not acknowledged */

    /* Fills what an answer repeats of the message and a view does not have; NULL: nothing. */
    void (*repeats)(const struct amp_view *of, struct amp_span out[AMP_REPEATS_MAX]);

    /* ---- Routing ---- */
    bool refuses_malformed;  /* the sender of a malformed message gets an answer */
    bool acks_update_ledger; /* an acknowledgement that is routed does so, too */
    /* Whether its operation is routed once, and a repeated one is answered; NULL: never. */
    bool (*routes_once)(const struct amp_view *v);
    bool signs;            /* only a signed message may leave the machine */
    bool delivers_content; /* recipients get the message without the envelope that led it here */
    bool by_catalog;       /* work by capability is for all agents that its catalog entry names */
    const char *lost_code; /* of a name that leads to no agent; NULL: no_route, or agent_unavailable
                            * where the agent left */
    const char *unaddressed_code;   /* of a request that names no recipient; NULL: no_route */
    const char *undeliverable_code; /* of any other request without a recipient, beside ours */
    const char *expired_code;       /* of one whose time has passed; NULL: ttl_expired */
    const char *full_code; /* of one behind a gap in its stream, past a limit; NULL: backpressure */
    const char *sequence_code; /* of a number that does not rise; NULL: seq_not_monotonic */
    const char *tool_frame;    /* the type of a frame of a tool's stream; NULL: there are none */

    /* ---- Work and its outcome ---- */
    /* An id for a request that has none, its length as snprintf says it, 0: none; or NULL. */
    int (*name)(const struct amp_view *request, char out[AMP_MSG_ID_MAX]);
    /* What the message and its request or outcome both name; false: it is neither. Or NULL. */
    bool (*work)(const struct amp_view *v, struct amp_work *out);
    const char *sender_at; /* where a message names its sender: a JSON pointer */
    /* See amp_outcome_read. NULL: no message but acknowledgements and those of `watched` says
     * anything of a request. */
    bool (*outcome)(const struct amp_view *v, struct amp_outcome *out);
    /* Whether a message that says that work is done ends this request; NULL: always. */
    bool (*ends)(struct amp_span request, const struct amp_view *done);
    /* What a result must not exceed: the code of the fault that it has by its request; or NULL. */
    const char *(*result_fault)(const struct amp_view *request, const struct amp_view *result);
    /* Which requirements of a result its request waives, AMP_WAIVES_; or NULL. */
    unsigned (*result_waives)(const struct amp_view *request);
    bool keeps_tasks;           /* its tasks have records in the state */
    bool results_name_subtasks; /* a result is of one subtask of its request */
    /* Which operation the message is an attempt at; NULL: none. */
    enum amp_operation_by (*operation)(const struct amp_view *v);
    bool counts_attempts;      /* another attempt at an operation has a higher number */
    bool orders_conversations; /* the messages of one conversation keep their order */

    /* ---- Holders of work ---- */
    bool to_holds;               /* work is held by whom the message names */
    const char *const *accepted; /* types of work that an agent has to accept before it reports
                                    the end; NULL-terminated, or NULL */
    const char *denied[AMP_WORK_VERDICTS]; /* the code of each verdict but ALLOWED; NULL: that of
                                              NOT_HOLDER */
    /* Whether a request with several recipients is for the agent too; NULL: it is. */
    bool (*is_for)(struct amp_span request, const char *agent);
    /* Types of work whose holder is to give signs of life, with the kind of message that ends
     * each; ends with a NULL type. Or NULL. */
    const struct amp_watched {
        const char *type;
        enum amp_kind ended_by;
    } * watched;

    /* ---- Further attempts ---- */
    struct amp_retry_policy retries;
    /* An id into `out`, its length as snprintf says it; NULL: a UUID. */
    int (*again_id)(const struct amp_view *of, int64_t now_ms, char out[AMP_MSG_ID_MAX]);
    /* The edits that make the next attempt of a message; NULL: there is none. */
    int (*again)(struct amp_edit *e, const struct amp_again *a);
    void (*own_retries)(const struct amp_view *of, struct amp_again_terms *out); /* or NULL */

    /* ---- Answers ---- */
    enum amp_numbering numbering;
    unsigned no_stages; /* bits of the stages that it has no word for; `stages` says which it has */
    const char *stages;
    /* Appends one line with LF, or nothing where the protocol has no answer. */
    int (*answer)(const struct amp_view *of, const struct amp_answer *a, struct amp_buf *out,
                  struct amp_error *err);
    /* The answer to another attempt at an operation; NULL: it has no operations. */
    int (*duplicate)(const struct amp_view *of, const struct amp_answer *a,
                     const struct amp_first_attempt *first, struct amp_buf *out,
                     struct amp_error *err);
    bool (*answers)(const struct amp_view *of); /* in its own words; NULL: always */
    const struct amp_question_terms *questions; /* to a person; NULL: it asks none */

    /* ---- Registry of agents ---- */
    enum amp_registry_act (*registry)(const struct amp_view *v); /* NULL: it takes nothing */
    bool registry_answers; /* what it takes or refuses, acknowledgements apart */
};

#define X(id, name, title) extern const struct amp_terms amp_terms_##name;
AMP_PROTOCOL_LIST(X)
#undef X
/* Never NULL: what is of no protocol is answered by AMP's records. */
const struct amp_terms *amp_terms_of(enum amp_protocol p);

/* What the message says of its request; false: nothing. */
bool amp_outcome_read(const struct amp_view *v, struct amp_outcome *out);
/* The code of a verdict but ALLOWED. */
const char *amp_terms_denial(const struct amp_terms *t, enum amp_work_verdict v);
/* Whether the word is in a NULL-terminated list, which may be NULL. */
bool amp_terms_has(const char *const *list, struct amp_span word);

/* AMP's records answer the messages of any protocol that has no words of its own for it. */
int amp_terms_record(const struct amp_view *of, const struct amp_answer *a, struct amp_buf *out,
                     struct amp_error *err);

static inline bool amp_stage_refuses(enum amp_ack_stage stage)
{
    return stage == AMP_STAGE_REJECTED || stage == AMP_STAGE_FAILED || stage == AMP_STAGE_TIMED_OUT;
}

/* The number of a message among the attempts at its operation, and the next one's; what counts to
 * its end stays there. */
static inline int64_t amp_attempt_of(const struct amp_view *v)
{
    return v->has_attempt ? v->attempt : 1;
}
static inline int64_t amp_attempt_after(int64_t n, int64_t most)
{
    return n < most ? n + 1 : most;
}

#endif
