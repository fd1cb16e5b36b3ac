/* A dead letter and its record. */
#ifndef AMP_MESSAGE_DELIVERY_DEAD_RECORD_H
#define AMP_MESSAGE_DELIVERY_DEAD_RECORD_H

#include <amp/base/buf.h>
#include <amp/base/error.h>

#include "message/delivery/record/record.h"

/* The final class: why delivery failed. */
#define AMP_DEAD_CLASSES(X)                                                                        \
    X(UNSET, "", "derived from the code")                                                          \
    X(UNDELIVERABLE, "undeliverable", "no agent took it; a later attempt may succeed")             \
    X(EXHAUSTED, "retries_exhausted", "no attempt in the budget brought it through")               \
    X(TERMINAL, "terminal_error", "the request cannot succeed")                                    \
    X(POLICY, "policy_violation", "a rule or a resource limit forbids it")                         \
    X(EXPIRED, "ttl_expired", "its time to live passed")

enum amp_dead_class {
#define X(id, name, doc) AMP_DEAD_##id,
    AMP_DEAD_CLASSES(X)
#undef X
        AMP_DEAD_CLASS_COUNT
};
const char *amp_dead_class_name(enum amp_dead_class c);

struct amp_dead_letter {
    struct amp_span line; /* the original bytes */
    struct amp_span msg_id, task, type, from, to;
    struct amp_span correlation, content_type;
    const char *protocol;
    const char *code, *why;      /* "no_route" and a sentence */
    const char *route;           /* the route or port that failed, "" for none */
    const char *lane;            /* "" or NULL: none */
    struct amp_span *recipients, /* all of them */
        *tried;                  /* the ports tried; for writing only, may be NULL */
    uint32_t n_recipients, n_tried;
    const char *last_code;     /* of the last attempt, NULL: `code`; for writing only */
    bool settled;              /* for writing: the ledger has the end already */
    bool retryable;            /* class: temporary, else permanent */
    enum amp_dead_class final; /* UNSET: by code and retryable */
    int64_t created_ms, first_failed_ms, failed_ms;
    int64_t attempts;                     /* all, including the last; for writing, 0: count them */
    const struct amp_message_try *before; /* earlier attempts, oldest first; for writing only */
    uint32_t n_before;
    struct amp_span excerpt; /* for writing: its source (empty: the line); read: the stored one */
    uint64_t rev;            /* read only */
    uint64_t frame;          /* of the last failure; 0: unknown */
    bool open, withdrawn;    /* read only: DEAD; WITHDRAWN; neither: REQUEUED */
};
struct amp_dead_kept {
    struct amp_dead_letter d;
    struct amp_message_try *history;
    uint32_t n_history;
    const char *first_code, *first_route; /* of the first failure */
    int64_t requeues, requeued_ms;        /* number of requeues, time of the last */
};

/* Writes d; `by` refused it. The attempts of `old` come before those of d. */
int amp_dead_write(const struct amp_dead_kept *old, const struct amp_dead_letter *d,
                   struct amp_span by, struct amp_buf *out, struct amp_error *err);
/* Writes the record of a letter that is requeued at now_ms. */
int amp_dead_write_requeue(struct amp_span json, int64_t now_ms, struct amp_buf *out,
                           struct amp_error *err);
/* Texts are copied into mem, which is emptied first. */
int amp_dead_read(struct amp_span json, struct amp_buf *mem, struct amp_dead_kept *out,
                  struct amp_error *err);

#endif
