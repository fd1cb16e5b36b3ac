/*
 * Dead letters: undeliverable messages with the information that a person needs for a decision
 * (SW4RM §21.1). Key "dead.<message id>", or the digest of the line if there is no id. States:
 * DEAD, REQUEUED, and WITHDRAWN if the message arrived late. A letter has the message byte for
 * byte; its excerpt is redacted.
 */
#ifndef AMP_MESSAGE_DELIVERY_DEAD_DEAD_H
#define AMP_MESSAGE_DELIVERY_DEAD_DEAD_H

#include <amp/base/id.h>
#include <amp/protocol/protocol.h>

#include "message/delivery/dead/record.h"
#include "message/store/store.h"

#define AMP_DEAD_KIND "dead" /* of the records in the store */

/* Fills the members of a letter that come from the message. The view owns the spans. */
void amp_dead_from_view(struct amp_dead_letter *d, const struct amp_view *v);

/* Stores a letter and, in the same commit, puts `answer` (a nack, may be empty) into the outbox of
 * `actor`; *entry identifies it. If the message has a letter with the same code and route, another
 * attempt is counted instead. The ledger's record of the message becomes REJECTED. */
int amp_dead_add(struct amp_store *s, const struct amp_dead_letter *d, const char *actor,
                 struct amp_span answer, struct amp_store_entry_id *entry, struct amp_error *err);

/* Whether there is a letter in the state DEAD whose last failure was at since_ms or later (0: at
 * any time). */
int amp_dead_is_open(struct amp_store *s, struct amp_span dead_id, int64_t since_ms, bool *open,
                     struct amp_error *err);

/* Finds a letter that a person requeued. 1: found, with its revision and the route that failed (in
 * mem); 0: there is none, or none of its failures came after the time since_ms and the frame
 * since_frame (0 and 0: any), or those that did are full inboxes. The frame decides the order of
 * two processes that looked at the clock before they had the log. */
int amp_dead_find_requeued(struct amp_store *s, struct amp_span dead_id, int64_t since_ms,
                           uint64_t since_frame, struct amp_buf *mem, struct amp_span *route,
                           uint64_t *rev, struct amp_error *err);

/* The letters; with_requeued: also the requeued ones. Spans are valid during the call. fn returns
 * 0; 1 to stop; -1 with an error, which the function that called it returns. */
typedef int (*amp_dead_fn)(void *ctx, struct amp_span dead_id, const struct amp_dead_letter *d,
                           struct amp_span json, struct amp_error *err);
int amp_dead_each(struct amp_store *s, bool with_requeued, amp_dead_fn fn, void *ctx,
                  struct amp_error *err);
/* One letter. NO unknown_ref: there is none. */
int amp_dead_find(struct amp_store *s, struct amp_span dead_id, amp_dead_fn fn, void *ctx,
                  struct amp_error *err);

/* Letters whose last failure was at until_ms or before, including closed ones, the oldest first. */
int amp_dead_oldest(struct amp_store *s, int64_t until_ms, amp_dead_fn fn, void *ctx,
                    struct amp_error *err);

/* Marks the letter requeued, puts its line into the outbox of `actor`, and sets the ledger's record
 * to SENT; attempts are kept. rev: the revision that the caller read, 0: any. NO unknown_ref: there
 * is no such letter; NO already_requeued; NO withdrawn; NO changed: it failed again since. */
int amp_dead_requeue(struct amp_store *s, struct amp_span dead_id, uint64_t rev, const char *actor,
                     int64_t now_ms, struct amp_error *err);
/* Closes an open letter of a message that arrived late, or whose operation is done. timeout: only a
 * letter for a timeout. */
int amp_dead_withdraw(struct amp_store *s, struct amp_span dead_id, bool timeout, const char *actor,
                      struct amp_error *err);
/* Makes the ledger's commits that a crash between the two commits of a requeue prevented. Call it
 * before the outbox of `actor` is emitted. */
int amp_dead_recover(struct amp_store *s, const char *actor, int64_t now_ms, struct amp_error *err);

/* Removes the letter; the log records it with `event` ("purge") and `actor`. rev: the revision that
 * the caller read, 0: any. NO unknown_ref: it was removed before; NO changed: it failed again or
 * was requeued since. */
int amp_dead_remove(struct amp_store *s, struct amp_span dead_id, uint64_t rev, const char *event,
                    const char *actor, struct amp_error *err);

/* Retention of letters, including closed ones; 0: no limit (the default). Letters with the oldest
 * last failure are removed first. fn (may be NULL) is called for each before it is removed. dry: fn
 * is called, and no letter is removed. */
struct amp_dead_limits {
    int64_t max_age_ms; /* since the last failure */
    int64_t max_count;
};
int amp_dead_retain(struct amp_store *s, const struct amp_dead_limits *limits, int64_t now_ms,
                    const char *actor, bool dry, amp_dead_fn fn, void *ctx, uint32_t *removed,
                    struct amp_error *err);
/* The time at which retention removes the next letter, 0: never. */
int amp_dead_next_due(struct amp_store *s, const struct amp_dead_limits *limits, int64_t *due_ms,
                      struct amp_error *err);

#endif
