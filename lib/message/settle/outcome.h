/*
 * What ends an operation beside an acknowledgement: a TOOL_RESULT or TOOL_ERROR answers its
 * TOOL_CALL, a task_complete or task_failed its task_create, a reply its message. The messages that
 * wait for it are in ledger/awaited.h.
 */
#ifndef AMP_MESSAGE_SETTLE_OUTCOME_H
#define AMP_MESSAGE_SETTLE_OUTCOME_H

#include "message/ledger/ledger.h"

/* Of AMP: settle/progress.h. Settles in the ledger what the message answers: FULFILLED with its
 * payload as the result, FAILED with its code; a task_accept makes its sender the holder and puts
 * the end off to its eta. Nothing where it answers nothing that is known. NO, a code of
 * message/ledger/holder.h: somebody else holds the work. */
int amp_outcome_apply(struct amp_store *s, const struct amp_view *v, int64_t now_ms,
                      struct amp_error *err);

/* Whether the message is an outcome, or a word about work under way, in one of the protocols. */
bool amp_outcome_is(const struct amp_view *v);

/* The same check without any change: call it before the message itself is claimed or recorded, so
 * that a refused outcome leaves nothing that is sent again. */
int amp_outcome_check(struct amp_store *s, const struct amp_view *v, struct amp_error *err);

/* Settles what the message answers as FAILED with this code, whatever the message says; there is no
 * further attempt. Else as amp_outcome_apply. */
int amp_outcome_fail(struct amp_store *s, const struct amp_view *v, const char *code,
                     int64_t now_ms, struct amp_error *err);

/* Whether an outcome is recorded, or nobody waits for one: what an ack of the type processed says
 * (Runtime Protocol §5). */
bool amp_outcome_known(const struct amp_message_rec *r);

#endif
