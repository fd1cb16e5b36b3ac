/*
 * Dead letters: messages that could not be delivered, kept with all that a person needs to decide
 * (SW4RM §21.1). Key "dead.<message id>", or a digest of the line that had none; states DEAD,
 * REQUEUED, and WITHDRAWN where it arrived after all. The message stands in a letter byte for byte;
 * its excerpt is redacted.
 */
#ifndef AMP_MESSAGE_DEAD_DEAD_H
#define AMP_MESSAGE_DEAD_DEAD_H

#include <amp/base/id.h>
#include <amp/protocol/protocol.h>

#include "store/store.h"

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
enum amp_dead_class amp_dead_class_find(const char *name); /* COUNT: unknown */

/* An attempt before the one that a letter is made of. */
struct amp_dead_attempt {
    struct amp_span msg_id; /* of that attempt, empty: the letter's */
    int64_t at_ms;
    const char *code, *route, *why;
};

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
    int64_t attempts;                      /* all, the last included; to write: 0 counts */
    const struct amp_dead_attempt *before; /* earlier attempts, oldest first; to write only */
    uint32_t n_before;
    struct amp_span excerpt; /* to write: of what (empty: of the line); read: as it was kept */
    uint64_t rev;            /* read only */
    uint64_t frame;          /* of the last failure: its place in the log; 0: not known */
    bool open, withdrawn;    /* read only: DEAD; WITHDRAWN; neither: REQUEUED */
};
/* The parts of a letter that the message itself tells. The spans are the view's. */
void amp_dead_from_view(struct amp_dead_letter *d, const struct amp_view *v);

/* Stores a letter and, in the same commit, puts `answer` (a nack, may be empty) into the outbox of
 * `actor`; *entry names it. The same message under the same code and route counts another attempt
 * instead of becoming a second letter. The ledger's record of the message becomes REJECTED. */
int amp_dead_add(struct amp_store *s, const struct amp_dead_letter *d, const char *actor,
                 struct amp_span answer, struct amp_store_entry_id *entry, struct amp_error *err);

/* Under which id its letter is: its own, or 16 digits of the line's digest. */
struct amp_span amp_dead_id(struct amp_span msg_id, struct amp_span line,
                            char digest[AMP_SHA256_MAX]);

/* The letters; with_requeued: also those already sent again. Spans live during the call. */
typedef int (*amp_dead_fn)(void *ctx, struct amp_span dead_id, const struct amp_dead_letter *d,
                           struct amp_span json);
int amp_dead_each(struct amp_store *s, bool with_requeued, amp_dead_fn fn, void *ctx,
                  struct amp_error *err);
/* One letter. NO unknown_ref: there is none. */
int amp_dead_find(struct amp_store *s, struct amp_span dead_id, amp_dead_fn fn, void *ctx,
                  struct amp_error *err);

/* Those whose last failure was at until_ms or before, the oldest first, closed ones too. */
int amp_dead_oldest(struct amp_store *s, int64_t until_ms, amp_dead_fn fn, void *ctx,
                    struct amp_error *err);

/* Marks the letter requeued, with its line in the outbox of `actor`, and the ledger's record SENT
 * again; its attempts stay. rev: as it was seen, 0 for any. NO unknown_ref: there is no such
 * letter; NO already_requeued; NO withdrawn; NO changed: it failed again since. */
int amp_dead_requeue(struct amp_store *s, struct amp_span dead_id, uint64_t rev, const char *actor,
                     int64_t now_ms, struct amp_error *err);
/* The message arrived after all, or its operation was done: an open letter of it is closed.
 * timeout: only one that a timeout made, not what else was said of it. */
int amp_dead_withdraw(struct amp_store *s, struct amp_span dead_id, bool timeout, const char *actor,
                      struct amp_error *err);
/* Before the outbox of `actor` is emitted: what a crash between the two commits of a requeue left
 * undone in the ledger. */
int amp_dead_recover(struct amp_store *s, const char *actor, int64_t now_ms, struct amp_error *err);

/* Removes the letter for good; the log names it, `event` ("purge") and `actor`. rev: as it was
 * seen, 0 for any. NO unknown_ref: it is gone; NO changed: it failed again, or was requeued, since.
 */
int amp_dead_remove(struct amp_store *s, struct amp_span dead_id, uint64_t rev, const char *event,
                    const char *actor, struct amp_error *err);

/* Retention, closed letters included; 0: no limit, which is how it starts. The oldest last failure
 * goes first. fn (may be NULL) is told of each before it goes; dry: of each that would. */
struct amp_dead_limits {
    int64_t max_age_ms; /* since the last failure */
    int64_t max_count;
};
int amp_dead_retain(struct amp_store *s, const struct amp_dead_limits *limits, int64_t now_ms,
                    const char *actor, bool dry, amp_dead_fn fn, void *ctx, uint32_t *removed,
                    struct amp_error *err);
/* When retention has something to do next, 0 never. */
int amp_dead_next_due(struct amp_store *s, const struct amp_dead_limits *limits, int64_t *due_ms,
                      struct amp_error *err);

#endif
