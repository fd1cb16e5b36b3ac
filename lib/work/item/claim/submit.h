/*
 * Submissions: SW4RM messages that submit a task, AMP dispatches and review requests, AOP tasks,
 * tasks of the Runtime Protocol. A message that is accepted is in the ledger and is a job of the
 * queue; one that is refused is in neither.
 */
#ifndef AMP_WORK_ITEM_CLAIM_SUBMIT_H
#define AMP_WORK_ITEM_CLAIM_SUBMIT_H

#include "message/delivery/record/record.h"
#include "work/item/claim/queue.h"

struct amp_submitter {
    struct amp_store *store;
    struct amp_order *order;
    /* The type of the agents; NULL: the agent or the only recipient that the message names. */
    const char *type;
    const int64_t *priority;         /* NULL: the message's */
    bool again;                      /* also if an identical job was done */
    const char *salt;                /* makes another job of the same work; NULL: none */
    const char *by;                  /* the login of the person; NULL: unknown */
    const char *follows, *on_failed; /* as in struct amp_queue_job; NULL: none */
    bool no_queue; /* refuse what could not start at once (work/item/order.h, amp_order_try) */
    const char *actor;
};

struct amp_submitted {
    char id[AMP_QUEUE_ID_MAX]; /* of the job; with duplicate_job that of the other one; or "" */
    bool repeated;             /* the same message was submitted before: nothing changed */
    char name[AMP_MSG_ID_MAX]; /* the message's id, if the view had none */
};

/*
 * In a batch of the store (amp_store_begin): nothing else submits or claims between the look and
 * the commit. Gives the view an id, in out, if it has none. 1: accepted; sync the store before the
 * answer. 0: refused, with a code in why:
 * - not_a_submission, scope_required (SW4RM §9.2), bad_scope, bad_priority, type_required,
 *   bad_value (the type), deadline_passed (of the message or its task)
 * - duplicate_job; duplicate_msg_id: another message has its id, or it is another job
 * - unknown_job, follow_cycle (work/item/follow.h)
 * - no_queue: type_full, scope_taken, suspended, usage_limit, follows (words of enum amp_waits)
 * -1: failure.
 */
int amp_submit(const struct amp_submitter *q, struct amp_view *v, struct amp_submitted *out,
               struct amp_error *why, struct amp_error *err);

#endif
