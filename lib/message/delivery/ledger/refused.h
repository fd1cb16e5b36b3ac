/*
 * Refused messages, only for the log: key "refused.<id>", state REFUSED. The record has the code,
 * but not the bytes of the message, so it cannot be sent, replayed or delivered.
 */
#ifndef AMP_MESSAGE_DELIVERY_LEDGER_REFUSED_H
#define AMP_MESSAGE_DELIVERY_LEDGER_REFUSED_H

#include <amp/protocol/protocol.h>

#include "message/store/store.h"

#define AMP_REFUSED "refused" /* the kind of the records */

/* Records that the message was refused; `why` is the reason. Another refusal of the same id
 * replaces the record, in a frame of its own. A message without a usable id is not recorded; it is
 * in the error log. */
int amp_refused_record(struct amp_store *s, const struct amp_view *v, const struct amp_error *why,
                       const char *actor, int64_t now_ms, struct amp_error *err);

#endif
