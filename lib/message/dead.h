/*
 * Dead letters: messages that could not be delivered, kept with all that a person needs to decide
 * (SW4RM §21.1). Key "dead.<message id>", or a digest of the line that had none; states DEAD,
 * REQUEUED.
 */
#ifndef AMP_MESSAGE_DEAD_H
#define AMP_MESSAGE_DEAD_H

#include <amp/protocol/protocol.h>

#include "store/store.h"

/* An attempt before the one that a letter is made of. */
struct amp_dead_attempt {
    struct amp_span msg_id; /* of that attempt, empty: the letter's */
    int64_t at_ms;
    const char *code, *route, *why;
};

struct amp_dead_letter {
    struct amp_span line; /* the original bytes */
    struct amp_span msg_id, task, type, from, to;
    const char *protocol;
    const char *code, *why; /* "no_route" and a sentence */
    const char *route;      /* the route or port that failed, "" for none */
    bool retryable;         /* class: temporary, else permanent */
    int64_t created_ms, failed_ms;
    int64_t attempts;
    const struct amp_dead_attempt *before; /* earlier attempts, oldest first; to write only */
    uint32_t n_before;
};
/* The parts of a letter that the message itself tells. */
void amp_dead_from_view(struct amp_dead_letter *d, const struct amp_view *v);

/* Stores a letter and, in the same commit, puts `answer` (a nack, may be empty) into the outbox of
 * `actor`; *entry names it. The same message under the same code and route counts another attempt
 * instead of becoming a second letter. The ledger's record of the message becomes REJECTED. */
int amp_dead_add(struct amp_store *s, const struct amp_dead_letter *d, const char *actor,
                 struct amp_span answer, struct amp_store_entry_id *entry, struct amp_error *err);

/* The letters; with_requeued: also those already sent again. Spans live during the call. */
typedef int (*amp_dead_fn)(void *ctx, struct amp_span dead_id, const struct amp_dead_letter *d,
                           struct amp_span json);
int amp_dead_each(struct amp_store *s, bool with_requeued, amp_dead_fn fn, void *ctx,
                  struct amp_error *err);

/* Marks the letter requeued, with its line in the outbox of `actor`, and the ledger's record SENT
 * again. NO unknown_ref: there is no such letter; NO already_requeued. */
int amp_dead_requeue(struct amp_store *s, struct amp_span dead_id, const char *actor,
                     int64_t now_ms, struct amp_error *err);

#endif
