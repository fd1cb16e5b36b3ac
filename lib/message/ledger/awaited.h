/*
 * Messages that wait for an outcome other than an acknowledgement. Such a message and its outcome
 * name the same work; under that name the store keeps the ids of the attempts: key
 * "awaited.<protocol>LF…".
 */
#ifndef AMP_MESSAGE_LEDGER_AWAITED_H
#define AMP_MESSAGE_LEDGER_AWAITED_H

#include <amp/protocol/protocol.h>

#include "store/store.h"

/* Notes that the message waits for an outcome, where it is of a kind that does. */
int amp_awaited_note(struct amp_store *s, const struct amp_view *v, int64_t now_ms,
                     struct amp_error *err);
/* Forgets the names whose messages are all settled; looks at each a day after it was noted. */
int amp_awaited_forget(struct amp_store *s, int64_t now_ms, const char *actor, uint32_t *gone,
                       struct amp_error *err);
/* When that has something to do next, or 0. */
int amp_awaited_next_due(struct amp_store *s, int64_t *ms, struct amp_error *err);

/* Whether the message names work, as a message that waits or as its outcome. */
bool amp_awaited_is_named(const struct amp_view *v);

/* The ids of the attempts that the message answers, as far as they are remembered, the oldest
 * first. fn returns 0 to go on, -1 with err. fn may change the store. */
typedef int (*amp_awaited_fn)(void *ctx, struct amp_span id, struct amp_error *err);
int amp_awaited_each(struct amp_store *s, const struct amp_view *v, amp_awaited_fn fn, void *ctx,
                     struct amp_error *err);

#endif
