/*
 * Refused messages, for the log alone: key "refused.<id>", state REFUSED. The record names the
 * message and the code, not the message's bytes, so nothing can send, replay or deliver it.
 */
#ifndef AMP_MESSAGE_LEDGER_REFUSED_H
#define AMP_MESSAGE_LEDGER_REFUSED_H

#include <amp/protocol/protocol.h>

#include "store/store.h"

#define AMP_REFUSED "refused" /* the kind of the records */

/* Records that the message was refused; `why` is the reason. Another refusal of the same id
 * replaces the record; each has its own frame. A message without an id that can be a key is not
 * recorded: the error log has it. */
int amp_refused_record(struct amp_store *s, const struct amp_view *v, const struct amp_error *why,
                       const char *actor, int64_t now_ms, struct amp_error *err);

/* Removes the records that are a day old; *gone counts them. */
int amp_refused_forget(struct amp_store *s, int64_t now_ms, const char *actor, uint32_t *gone,
                       struct amp_error *err);

#endif
