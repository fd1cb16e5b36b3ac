/*
 * What is heard of AMP's work (ledger/work.h): a message of its holder about the task is a sign of
 * life, a task_result or review_verdict the outcome of what it refers to.
 */
#ifndef AMP_MESSAGE_SETTLE_PROGRESS_H
#define AMP_MESSAGE_SETTLE_PROGRESS_H

#include "message/ledger/ledger.h"

/* Whether the message may be one of these. */
bool amp_progress_is(const struct amp_view *v);
/* Takes it as one: work that it refers to is FULFILLED (by context_ref; where that names none, what
 * arrived of the same task and subtask), the sender's other work of that task is seen to go on. */
int amp_progress_apply(struct amp_store *s, const struct amp_view *v, int64_t now_ms,
                       struct amp_error *err);

#endif
