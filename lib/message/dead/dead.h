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

#include "message/dead/record.h"
#include "store/store.h"

#define AMP_DEAD_KIND "dead" /* of the records in the store */

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

/* Whether there is a letter that nobody requeued or withdrew, and that failed at since_ms (0: at
 * any time) or later. */
int amp_dead_is_open(struct amp_store *s, struct amp_span dead_id, int64_t since_ms, bool *open,
                     struct amp_error *err);

/* A letter that a person requeued: 1 with its revision and the route that failed, in mem; 0: there
 * is none, or it names no failure since since_ms (0: any) but a full inbox. */
int amp_dead_find_requeued(struct amp_store *s, struct amp_span dead_id, int64_t since_ms,
                           struct amp_buf *mem, struct amp_span *route, uint64_t *rev,
                           struct amp_error *err);

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
