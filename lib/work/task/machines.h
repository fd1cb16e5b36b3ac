/* The task machine and the QA loop (AMP/1.0): states, events, facts, effects. Their tables are in
 * task_fsm.c and qa_fsm.c; docs/qa-loop.md draws them. */
#ifndef AMP_WORK_TASK_MACHINES_H
#define AMP_WORK_TASK_MACHINES_H

#include <amp/fsm/fsm.h>

#define AMP_TASK_STATES(X)                                                                         \
    X(AMP_TASK_NEW, "new", "not yet recorded")                                                     \
    X(AMP_TASK_INCOMPLETE, "incomplete", "sent back: acceptance criteria are missing")             \
    X(AMP_TASK_DISPATCHED, "dispatched", "an executor works on a subtask for the first time")      \
    X(AMP_TASK_IN_REVIEW, "in_review", "a reviewer has the result")                                \
    X(AMP_TASK_REWORK, "rework", "an executor works on a subtask again")                           \
    X(AMP_TASK_WAITING, "waiting", "waits for the admin; no agent is suspended")                   \
    X(AMP_TASK_LOCKED, "locked", "too many rejections in a row; suspended")                        \
    X(AMP_TASK_SUSPENDED, "suspended", "a critical escalation stops all new work")                 \
    X(AMP_TASK_DONE, "done", "every subtask is approved")                                          \
    X(AMP_TASK_FAILED, "failed", "the results policy gave up")                                     \
    X(AMP_TASK_TERMINATED, "terminated", "ended by the admin")

#define AMP_TASK_EVENTS(X)                                                                         \
    X(AMP_TASK_EV_OPEN, "open", "the admin sent a complete task")                                  \
    X(AMP_TASK_EV_LACK, "lack", "its acceptance criteria are missing")                             \
    X(AMP_TASK_EV_DISPATCH, "dispatch", "the next subtask goes to an executor")                    \
    X(AMP_TASK_EV_REVIEW, "review", "a review is requested")                                       \
    X(AMP_TASK_EV_REWORK, "rework", "a subtask goes to an executor again")                         \
    X(AMP_TASK_EV_HOLD, "hold", "the admin is asked")                                              \
    X(AMP_TASK_EV_LOCK, "lock", "the limit of rejections in a row is reached")                     \
    X(AMP_TASK_EV_SUSPEND, "suspend", "a critical escalation")                                     \
    X(AMP_TASK_EV_LIFT, "lift", "the suspension is lifted")                                        \
    X(AMP_TASK_EV_FINISH, "finish", "the last subtask was approved")                               \
    X(AMP_TASK_EV_FAIL, "fail", "the results policy gives up")                                     \
    X(AMP_TASK_EV_TERMINATE, "terminate", "the admin ends it")

enum amp_task_state { AMP_TASK_STATES(AMP_FSM_ENUM) AMP_TASK_STATE_COUNT };
enum amp_task_event { AMP_TASK_EVENTS(AMP_FSM_ENUM) AMP_TASK_EVENT_COUNT };
enum { AMP_TASK_IF_STUB = 1 /* its record has only a suspension */ };
extern const struct amp_fsm amp_task_fsm;

#define AMP_QA_STATES(X)                                                                           \
    X(AMP_QA_PENDING, "pending", "not started")                                                    \
    X(AMP_QA_WORKING, "working", "an executor works on it for the first time")                     \
    X(AMP_QA_IN_REVIEW, "in_review", "a reviewer has its result")                                  \
    X(AMP_QA_REWORK, "rework", "an executor works on it again")                                    \
    X(AMP_QA_HELD, "held", "waits for the admin")                                                  \
    X(AMP_QA_APPROVED, "approved", "a reviewer approved it")                                       \
    X(AMP_QA_ABANDONED, "abandoned", "ended without approval")

#define AMP_QA_EVENTS(X)                                                                           \
    X(AMP_QA_EV_DISPATCH, "dispatch", "it becomes the current subtask")                            \
    X(AMP_QA_EV_COMPLETE, "result_complete", "the executor finished")                              \
    X(AMP_QA_EV_PARTIAL, "result_partial", "the executor finished a part")                         \
    X(AMP_QA_EV_FAILED, "result_failed", "the executor failed")                                    \
    X(AMP_QA_EV_REFUSED, "refused", "the receiver refused the dispatch or the review")             \
    X(AMP_QA_EV_CI_RED, "ci_red", "a required check failed for its commit")                        \
    X(AMP_QA_EV_APPROVED, "verdict_approved", "approved, perhaps with small fixes")                \
    X(AMP_QA_EV_REJECTED, "verdict_rejected", "rejected for a blocking reason")                    \
    X(AMP_QA_EV_UNLANDED, "unlanded", "the branch has moved, and its commit does not land there")  \
    X(AMP_QA_EV_HOLD, "hold", "an agent's escalation waits for the admin")                         \
    X(AMP_QA_EV_WITHDRAW, "withdraw", "the agent withdrew its escalation")                         \
    X(AMP_QA_EV_RESUME, "resume", "the admin: continue")                                           \
    X(AMP_QA_EV_REDISPATCH, "redispatch", "the admin: do it again, with changed criteria")         \
    X(AMP_QA_EV_ROLLBACK, "rollback", "the admin: reset the branch, then continue")                \
    X(AMP_QA_EV_TERMINATE, "terminate", "the admin: end it")

#define AMP_QA_FACTS(X)                                                                            \
    X(AMP_QA_IF_SUSPENDED, "suspended", "the task is suspended")                                   \
    X(AMP_QA_IF_STALE, "stale", "it answers a message that was replaced")                          \
    X(AMP_QA_IF_ANSWERED, "answered", "its result already has the same verdict")                   \
    X(AMP_QA_IF_CONTRADICTS, "contradicts", "its result already has the opposite verdict")         \
    X(AMP_QA_IF_SAME_COMMIT, "same_commit", "the commit is the one that was rejected")             \
    X(AMP_QA_IF_CI_RED, "ci_red", "a required check failed for the commit")                        \
    X(AMP_QA_IF_CI_AGAIN, "ci_again", "the check failed too often in a row")                       \
    X(AMP_QA_IF_RETRY, "retry", "the results policy: dispatch again")                              \
    X(AMP_QA_IF_FAILS, "fails", "the results policy: give up")                                     \
    X(AMP_QA_IF_INCONSISTENT, "inconsistent", "approved although criteria or issues fail it")      \
    X(AMP_QA_IF_LOW_CONFIDENCE, "low_confidence", "the verdict's confidence is below the minimum") \
    X(AMP_QA_IF_LOCKS, "locks", "this rejection reaches the limit")                                \
    X(AMP_QA_IF_NEEDS_ADMIN, "needs_admin", "the risk level requires the admin's approval")        \
    X(AMP_QA_IF_LAST, "last", "no other subtask is left")                                          \
    X(AMP_QA_IF_HELD_APPROVAL, "held_approval", "an approval is held")                             \
    X(AMP_QA_IF_HELD_REVIEW, "held_review", "a review without a verdict is held")                  \
    X(AMP_QA_IF_OTHERS, "others", "another escalation of the task is open")                        \
    X(AMP_QA_IF_ASKED_WORKING, "asked_working", "nothing came since it was held while working")    \
    X(AMP_QA_IF_ASKED_REVIEW, "asked_review", "nothing came since it was held in review")          \
    X(AMP_QA_IF_ASKED_REWORK, "asked_rework", "nothing came since it was held in rework")          \
    X(AMP_QA_IF_MERGE_ASKS, "merge_asks", "a person decides whether it is merged")                 \
    X(AMP_QA_IF_UNLANDED_AGAIN, "unlanded_again", "it did not land too often in a row")

#define AMP_QA_EFFECTS(X)                                                                          \
    X(AMP_QA_DO_DISPATCH, "dispatch", "send it to the executor")                                   \
    X(AMP_QA_DO_REVIEW, "review", "ask the reviewer")                                              \
    X(AMP_QA_DO_NEXT, "next", "start the next subtask")                                            \
    X(AMP_QA_DO_KEEP, "keep", "record the result")                                                 \
    X(AMP_QA_DO_KEEP_VERDICT, "keep_verdict", "record the verdict")                                \
    X(AMP_QA_DO_COUNT, "count", "one more rejection in a row")                                     \
    X(AMP_QA_DO_COUNT_CI, "count_ci", "one more CI failure in a row")                              \
    X(AMP_QA_DO_RESET, "reset", "reset the counters of rejections and CI failures")                \
    X(AMP_QA_DO_AMEND, "amend", "add the note to the criteria")                                    \
    X(AMP_QA_DO_BACK, "back", "the branch was reset")                                              \
    X(AMP_QA_DO_SUSPEND, "suspend", "suspend the task and its agents")                             \
    X(AMP_QA_DO_ESC_LOCK, "escalate_lock", "escalate hallucination_lock")                          \
    X(AMP_QA_DO_ESC_CONFLICT, "escalate_conflict", "escalate conflict")                            \
    X(AMP_QA_DO_ESC_CI, "escalate_ci", "escalate ci_failure")                                      \
    X(AMP_QA_DO_ESC_CONFIDENCE, "escalate_confidence", "report a verdict of low confidence")       \
    X(AMP_QA_DO_ESC_APPROVAL, "escalate_approval", "ask for the admin's approval")                 \
    X(AMP_QA_DO_ESC_BLOCKED, "escalate_blocked", "report what blocks the executor")                \
    X(AMP_QA_DO_COUNT_UNLANDED, "count_unlanded", "one more landing in a row that failed")         \
    X(AMP_QA_DO_ESC_MERGE, "escalate_merge", "ask whether the work may be merged")                 \
    X(AMP_QA_DO_ESC_UNLANDED, "escalate_unlanded", "report that the work does not land")           \
    X(AMP_QA_DO_FINISH, "finish", "the task is done")                                              \
    X(AMP_QA_DO_FAIL, "fail", "the task failed")                                                   \
    X(AMP_QA_DO_END, "end", "the task is terminated")                                              \
    X(AMP_QA_DO_NACK, "nack", "refuse the message")

AMP_FSM_ENUMS(AMP_QA);
extern const struct amp_fsm amp_qa_fsm;

/* The task's event after this step of a subtask; -1: none. */
int amp_task_event_of(const struct amp_fsm_result *qa_step);

#endif
