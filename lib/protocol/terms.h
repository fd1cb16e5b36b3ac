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
    bool retryable;          /* sending again may help; SW4RM tells it by the code */
    struct amp_span result;  /* SW4RM: a JSON value; or empty */
    const char *node;        /* the Runtime Protocol's outbox; NULL: `by` */
    int64_t sequence;        /* in that outbox, or of SW4RM's producer `by`; 0: by the clock */
    int64_t now_ms;
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

/* What the messages of one sender are numbered by. */
enum amp_numbering { AMP_NUMBERED_NOT, AMP_NUMBERED_BY_NODE, AMP_NUMBERED_BY_PRODUCER };

struct amp_terms {
    /* ---- Acknowledgements ---- */
    bool acknowledges;            /* false: the protocol has none */
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
     * silence is only told. */
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
    enum { AMP_TELLS_PERSON, AMP_TELLS_NACK, AMP_TELLS_NOTICE } tells;

    /* An answer repeats what only the message's document says: its view needs the tape. */
    bool answer_reads_document;

    /* Whether a message that says that work is done ends this request; NULL: always. */
    bool (*ends)(struct amp_span request, const struct amp_view *done);

    /* ---- Holders of work ---- */
    bool to_holds;              /* work is held by whom the message names */
    const char *not_holder;     /* the code for anybody but the holder of the work, */
    const char *not_addressee;  /* and while nobody holds it; NULL: the same */
    const char *const *watched; /* types of work whose holder is to give signs of life; or NULL */

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
    bool (*answers)(const struct amp_view *of); /* in its own words; NULL: always */
};

#define X(id, name, title) extern const struct amp_terms amp_terms_##name;
AMP_PROTOCOL_LIST(X)
#undef X
/* Never NULL: what is of no protocol is answered by AMP's records. */
const struct amp_terms *amp_terms_of(enum amp_protocol p);

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
