/*
 * Gives a TASK another priority (AOP §8), higher or lower: its record, the jobs of the queue that
 * wait for it, and the EVENT in its session. In `run` the waiting TASKs are begun in the order of
 * the recorded priorities.
 *
 * A person and the orchestrator of the session may change it. A message counts if it came from a
 * trusted input without a signature, or is signed by an operator or the orchestrator. So an agent
 * does not raise its own TASK: its lines are not a trusted input, and it signs as itself.
 */
#ifndef AMP_WORK_AOP_ACCOUNT_ESCALATE_H
#define AMP_WORK_AOP_ACCOUNT_ESCALATE_H

#include "message/delivery/sender/identity.h"
#include "work/aop/entry.h"
#include "work/item/queue.h"

struct amp_session_rank {
    struct amp_span session, task;
    struct amp_span priority; /* LOW, NORMAL, HIGH, CRITICAL */
    struct amp_span reason, by;
    struct amp_span line; /* the EVENT as it was received, without LF; empty: compose it */
};
enum amp_session_ranked {
    AMP_RANK_FAILED = -1,
    AMP_RANK_DONE,
    AMP_RANK_SAME, /* it had the priority: nothing was recorded */
};
/* One batch. out gets the EVENT with LF, unless it was received; job the id of a job of the queue
 * that was ranked, or "". NO bad_value (the priority), unknown_ref (no such TASK), task_ended. */
enum amp_session_ranked amp_session_escalate(const struct amp_session_voice *v,
                                             const struct amp_session_rank *r, struct amp_buf *out,
                                             char job[AMP_QUEUE_ID_MAX], struct amp_error *err);

/* Whether a valid message of an input was carried out; if not, it is something else, or about a
 * TASK that this state does not have: it only passes. NO: refused (E_PERMISSION_DENIED, or the
 * codes above). */
int amp_session_escalation_take(const struct amp_session_voice *v, struct amp_identities *ids,
                                const struct amp_view *event, bool trusted,
                                char job[AMP_QUEUE_ID_MAX], struct amp_error *err);
bool amp_session_is_escalation(const struct amp_view *v);

#endif
