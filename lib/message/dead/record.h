/* A dead letter, and its record as JSON: written and read here only. */
#ifndef AMP_MESSAGE_DEAD_RECORD_H
#define AMP_MESSAGE_DEAD_RECORD_H

#include <amp/base/buf.h>
#include <amp/base/error.h>

#include "message/record/record.h"

/* The final class: why it was given up. */
#define AMP_DEAD_CLASSES(X)                                                                        \
    X(UNSET, "", "derived from the code")                                                          \
    X(UNDELIVERABLE, "undeliverable", "nobody took it; later somebody may")                        \
    X(EXHAUSTED, "retries_exhausted", "no attempt in the budget brought it through")               \
    X(TERMINAL, "terminal_error", "what it asks cannot succeed as it is")                          \
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
    const char *code, *why; /* "no_route" and a sentence */
    const char *route;      /* the route or port that failed, "" for none */
    const char *lane;       /* "" or NULL: none */
    struct amp_span *recipients,
        *tried; /* all it is for; ports tried: to write only, may be NULL */
    uint32_t n_recipients, n_tried;
    const char *last_code;     /* of the last attempt, NULL: `code`; to write only */
    bool settled;              /* to write: the ledger knows of the end already */
    bool retryable;            /* class: temporary, else permanent */
    enum amp_dead_class final; /* UNSET: by code and retryable */
    int64_t created_ms, first_failed_ms, failed_ms;
    int64_t attempts;                     /* all, the last included; to write: 0 counts */
    const struct amp_message_try *before; /* earlier attempts, oldest first; to write only */
    uint32_t n_before;
    struct amp_span excerpt; /* to write: of what (empty: of the line); read: as it was kept */
    uint64_t rev;            /* read only */
    uint64_t frame;          /* of the last failure: its place in the log; 0: not known */
    bool open, withdrawn;    /* read only: DEAD; WITHDRAWN; neither: REQUEUED */
};
struct amp_dead_kept {
    struct amp_dead_letter d;
    struct amp_message_try *history;
    uint32_t n_history;
    const char *first_code, *first_route; /* where it failed first */
    int64_t requeues, requeued_ms;        /* how often it was sent again, and when last */
};

/* d as it shall stand there; `by` refused it. Attempts that old has come before its own. */
int amp_dead_write(const struct amp_dead_kept *old, const struct amp_dead_letter *d,
                   struct amp_span by, struct amp_buf *out, struct amp_error *err);
/* The record once more, of a letter that is sent again at now_ms. */
int amp_dead_write_requeue(struct amp_span json, int64_t now_ms, struct amp_buf *out,
                           struct amp_error *err);
/* What is read lives in mem, which is emptied before. */
int amp_dead_read(struct amp_span json, struct amp_buf *mem, struct amp_dead_kept *out,
                  struct amp_error *err);

#endif
