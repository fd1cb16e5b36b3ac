/*
 * Messages that end an operation, beside acknowledgements: a TOOL_RESULT or TOOL_ERROR answers its
 * TOOL_CALL, a task_complete or task_failed its task_create, a reply its message. ledger/awaited.h
 * has the messages that wait for them. In AMP, a message of a holder about its task is a sign of
 * life, and a task_result or review_verdict the outcome of the work that it refers to.
 * Acknowledgements that pass a tool are here, too, with the answer to the sender of a repeated
 * operation: the outcome of the first attempt.
 */
#ifndef AMP_MESSAGE_DELIVERY_SETTLE_OUTCOME_H
#define AMP_MESSAGE_DELIVERY_SETTLE_OUTCOME_H

#include "base/codes.h"
#include "message/delivery/ledger/ledger.h"
#include "message/delivery/operation/idempotency.h"

/* The code of a completion that does not confirm what was asked for, such as the version of a skill
 * (Runtime Protocol §7). Its sender is answered, and may complete the work once more. */
#define AMP_OUTCOME_UNCONFIRMED AMP_CODE(version_incompatible)

/* Applies an outcome to the messages in the ledger that it answers: FULFILLED with its payload as
 * the result, or FAILED with its code. A task_accept makes its sender the holder and moves the
 * deadline to its eta. No effect if the ledger has no such message. NO, a code of
 * message/ledger/holder.h: another agent holds the work; AMP_OUTCOME_UNCONFIRMED. */
int amp_outcome_apply(struct amp_store *s, const struct amp_view *v, int64_t now_ms,
                      struct amp_error *err);

/* Whether the message is an outcome or reports on work in progress, in any protocol. */
bool amp_outcome_is(const struct amp_view *v);

/* Checks whether amp_outcome_apply would refuse the message, and changes nothing. Call it before
 * the message itself is claimed or recorded, so that a refused outcome is not sent again. */
int amp_outcome_check(struct amp_store *s, const struct amp_view *v, struct amp_error *err);

/* Like amp_outcome_apply, but the answered messages become FAILED with this code, without further
 * attempts. */
int amp_outcome_fail(struct amp_store *s, const struct amp_view *v, const char *code,
                     int64_t now_ms, struct amp_error *err);

/* Whether an outcome is recorded or none is needed, which an ack of the type processed requires
 * (Runtime Protocol §5). */
bool amp_outcome_known(const struct amp_message_rec *r);

/* Whether a report of progress comes sooner after the one before than its protocol allows (AOP
 * §6.2), by the times in them; before amp_outcome_apply. Reports with the same time count as one
 * that was sent again. 1, and *since_ms is the time between them; 0; -1: failure. */
int amp_progress_early(struct amp_store *s, const struct amp_view *v, int64_t *since_ms,
                       struct amp_error *err);

/* Applies a message of AMP as a sign of life, or as the outcome of work (ledger/holder.h). Work
 * becomes FULFILLED if the message names it in context_ref; if it names none, the work of the same
 * task and subtask that arrived. For other work of the task that the sender holds, the message is a
 * sign of life. */
int amp_progress_apply(struct amp_store *s, const struct amp_view *v, int64_t now_ms,
                       struct amp_error *err);

/* ---- acknowledgements ---- */

/* The stage of an ack or nack. A nack names the stage that was not reached: REJECTED or FAILED. */
enum amp_ack_stage amp_message_stage_of(const struct amp_view *v);

/* Applies an ack or nack to the message that it answers. NO outcome_missing: processed (Runtime
 * Protocol) for a message without an outcome; else as amp_message_answered. */
int amp_message_acknowledge(struct amp_store *s, const struct amp_view *v, int64_t now_ms,
                            struct amp_error *err);

/* Checks whether its sender may give it: amp_message_may_answer. */
int amp_message_acknowledge_check(struct amp_store *s, const struct amp_view *v,
                                  struct amp_error *err);

/* Appends the answer of `node` to a message whose operation is in progress or done (a->verdict), in
 * its protocol, with LF. */
int amp_idem_reply(struct amp_store *s, const struct amp_view *v, const struct amp_idem_answer *a,
                   const char *node, int64_t now_ms, struct amp_buf *out, struct amp_error *err);

#endif
