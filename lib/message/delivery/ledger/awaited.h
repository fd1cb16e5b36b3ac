/*
 * Messages that wait for an outcome other than an acknowledgement. Such a message and its outcome
 * name the same work. The store keeps the ids of the newest attempts, at least 64, under that name.
 */
#ifndef AMP_MESSAGE_DELIVERY_LEDGER_AWAITED_H
#define AMP_MESSAGE_DELIVERY_LEDGER_AWAITED_H

#include <amp/protocol/protocol.h>

#include "message/store/store.h"

#define AMP_AWAITED_KIND "awaited" /* of the records; their deadline is the next check */

/* Records that the message waits for an outcome, if its kind has one. */
int amp_awaited_note(struct amp_store *s, const struct amp_view *v, int64_t now_ms,
                     struct amp_error *err);
/* Removes the records of work without open messages; each is checked a day after its last change.
 */
int amp_awaited_forget(struct amp_store *s, int64_t now_ms, const char *actor, uint32_t *gone,
                       struct amp_error *err);

/* Whether the message names work, as a message that waits or as its outcome. */
bool amp_awaited_is_named(const struct amp_view *v);

/* The recorded ids of the attempts that the message answers, the oldest first. fn returns 0 to
 * continue, -1 with err; it may change the store. */
typedef int (*amp_awaited_fn)(void *ctx, struct amp_span id, struct amp_error *err);
int amp_awaited_each(struct amp_store *s, const struct amp_view *v, amp_awaited_fn fn, void *ctx,
                     struct amp_error *err);

#endif
