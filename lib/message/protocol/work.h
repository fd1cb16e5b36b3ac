/*
 * The terms of work in a protocol: which messages request it, hold it, report its outcome and its
 * cost. The ledger, workers and the executor use them. One row per protocol, in
 * lib/message/protocol/NAME/terms.c.
 */
#ifndef AMP_MESSAGE_PROTOCOL_WORK_H
#define AMP_MESSAGE_PROTOCOL_WORK_H

#include <amp/compose.h>

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

/* Whether an agent may take work, or report its end. */
enum amp_work_verdict {
    AMP_WORK_ALLOWED,
    AMP_WORK_NOT_HOLDER,    /* another agent holds the work */
    AMP_WORK_TAKEN,         /* the same, for an agent that wants to take it */
    AMP_WORK_NOT_ADDRESSEE, /* no agent holds the work, and it is for others */
    AMP_WORK_NOT_ACCEPTED,  /* no agent holds the work, and it must be accepted first */
    AMP_WORK_UNAPPROVED,    /* a person must approve the work first */
    AMP_WORK_FULL,          /* the agent holds as many works as it may: message/ledger/load.h */
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

/* A function or list below may be NULL: the comment says what that means, or it means "none". */
struct amp_work_terms {
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
};

#define X(id, name, title) extern const struct amp_work_terms amp_work_##name;
AMP_PROTOCOL_LIST(X)
#undef X
/* Never NULL: the row of AMP_PROTO_NONE has a sender and a code. */
const struct amp_work_terms *amp_work_of(enum amp_protocol p);

/* Reads what the message reports about its request; false: nothing. */
bool amp_outcome_read(const struct amp_view *v, struct amp_outcome *out);
/* The code of a verdict except ALLOWED. */
const char *amp_terms_denial(const struct amp_work_terms *t, enum amp_work_verdict v);

#endif
