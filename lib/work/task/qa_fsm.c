/*
 * The QA loop of one subtask (AMP/1.0): dispatch, result, review, verdict. Rejections in a row are
 * counted per task. The caller establishes the facts and carries out the effects.
 */
#include "base/codes.h"
#include "work/task/machines.h"

#define IF(f) AMP_QA_IF_##f
#define DO(e) AMP_QA_DO_##e

/* from, event, facts that must hold, to, effects, code */
#define R(a, e, f, b, d, c)                                                                        \
    {                                                                                              \
        .from = AMP_QA_##a, .event = AMP_QA_EV_##e, .to = AMP_QA_##b, .if_all = (f),               \
        .effects = (d), .code = (c)                                                                \
    }

/* A row that leaves a terminal state. */
#define AGAIN(a, e, f, b, d, c)                                                                    \
    {                                                                                              \
        .from = AMP_QA_##a, .event = AMP_QA_EV_##e, .to = AMP_QA_##b, .extra = true,               \
        .if_all = (f), .effects = (d), .code = (c)                                                 \
    }

/* The admin's decisions: a suspended task stays in `stays`, else the work starts again in `again`.
 */
#define DECISIONS(s, stays, again)                                                                 \
    R(s, REDISPATCH, IF(SUSPENDED), stays, DO(RESET) | DO(AMEND), AMP_CODE(suspended)),            \
        R(s, REDISPATCH, 0, again, DO(RESET) | DO(AMEND) | DO(DISPATCH), NULL),                    \
        R(s, ROLLBACK, IF(SUSPENDED), stays, DO(RESET) | DO(BACK), AMP_CODE(suspended)),           \
        R(s, ROLLBACK, 0, again, DO(RESET) | DO(BACK) | DO(DISPATCH), NULL),                       \
        R(s, TERMINATE, 0, ABANDONED, DO(END), NULL)

/* No result is expected. */
#define NO_RESULT(s, c) REFUSE(s, COMPLETE, c), REFUSE(s, PARTIAL, c), REFUSE(s, FAILED, c)
#define REFUSE(s, e, c) R(s, e, 0, s, DO(NACK), c)

/* An executor works on it. A result that arrives during a suspension is kept for the admin. */
#define ENDED_SHORT(s, e)                                                                          \
    R(s, e, IF(STALE), s, DO(NACK), AMP_CODE(unknown_ref)),                                        \
        R(s, e, IF(SUSPENDED), HELD, DO(KEEP), AMP_CODE(suspended)),                               \
        R(s, e, IF(RETRY), REWORK, DO(KEEP) | DO(DISPATCH), NULL),                                 \
        R(s, e, IF(FAILS), ABANDONED, DO(KEEP) | DO(FAIL), NULL),                                  \
        R(s, e, 0, HELD, DO(KEEP) | DO(ESC_BLOCKED), AMP_CODE(blocked))
#define LATE_VERDICT(s, e)                                                                         \
    R(s, e, IF(CONTRADICTS), HELD, DO(ESC_CONFLICT), "conflict"),                                  \
        R(s, e, IF(ANSWERED), s, 0, NULL), R(s, e, 0, s, DO(NACK), AMP_CODE(unknown_ref))
#define AT_WORK(s)                                                                                 \
    R(s, COMPLETE, IF(STALE), s, DO(NACK), AMP_CODE(unknown_ref)),                                 \
        R(s, COMPLETE, IF(SUSPENDED), HELD, DO(KEEP), AMP_CODE(suspended)),                        \
        R(s, COMPLETE, IF(SAME_COMMIT), HELD, DO(KEEP) | DO(ESC_CONFLICT), "conflict"),            \
        R(s, COMPLETE, IF(CI_RED) | IF(CI_AGAIN), HELD, DO(KEEP) | DO(ESC_CI),                     \
          AMP_CODE(ci_failed)),                                                                    \
        R(s, COMPLETE, IF(CI_RED), REWORK, DO(KEEP) | DO(COUNT_CI) | DO(DISPATCH),                 \
          AMP_CODE(ci_failed)),                                                                    \
        R(s, COMPLETE, 0, IN_REVIEW, DO(KEEP) | DO(REVIEW), NULL), ENDED_SHORT(s, PARTIAL),        \
        ENDED_SHORT(s, FAILED), R(s, REFUSED, IF(STALE), s, 0, NULL),                              \
        R(s, REFUSED, IF(SUSPENDED), HELD, 0, AMP_CODE(suspended)),                                \
        R(s, REFUSED, 0, HELD, DO(ESC_BLOCKED), AMP_CODE(blocked)), R(s, CI_RED, 0, s, 0, NULL),   \
        LATE_VERDICT(s, APPROVED), LATE_VERDICT(s, REJECTED), R(s, HOLD, 0, HELD, 0, NULL),        \
        R(s, WITHDRAW, 0, s, 0, NULL),                                                             \
        R(s, RESUME, IF(SUSPENDED), HELD, DO(RESET), AMP_CODE(suspended)),                         \
        R(s, RESUME, 0, REWORK, DO(RESET) | DO(DISPATCH), NULL), DECISIONS(s, HELD, REWORK)

/* A verdict after the end: reported to the admin if it contradicts the earlier one. */
#define AFTERWARDS(s, e)                                                                           \
    R(s, e, IF(CONTRADICTS), s, DO(ESC_CONFLICT), "conflict"), R(s, e, IF(ANSWERED), s, 0, NULL),  \
        R(s, e, 0, s, DO(NACK), AMP_CODE(unknown_ref))

static const struct amp_fsm_row rows[] = {
    R(PENDING, DISPATCH, IF(SUSPENDED), PENDING, 0, AMP_CODE(suspended)),
    R(PENDING, DISPATCH, 0, WORKING, DO(DISPATCH), NULL),
    NO_RESULT(PENDING, AMP_CODE(unknown_ref)),
    R(PENDING, REFUSED, 0, PENDING, 0, NULL),
    R(PENDING, CI_RED, 0, PENDING, 0, NULL),
    REFUSE(PENDING, APPROVED, AMP_CODE(unknown_ref)),
    REFUSE(PENDING, REJECTED, AMP_CODE(unknown_ref)),
    R(PENDING, HOLD, 0, HELD, 0, NULL),
    R(PENDING, WITHDRAW, 0, PENDING, 0, NULL),
    R(PENDING, RESUME, IF(SUSPENDED), PENDING, DO(RESET), AMP_CODE(suspended)),
    R(PENDING, RESUME, 0, WORKING, DO(RESET) | DO(DISPATCH), NULL),
    DECISIONS(PENDING, PENDING, WORKING),

    AT_WORK(WORKING),

    /* In review. Rows that escalate to the admin come before those that dispatch again. */
    NO_RESULT(IN_REVIEW, AMP_CODE(unknown_ref)),
    R(IN_REVIEW, REFUSED, IF(STALE), IN_REVIEW, 0, NULL),
    R(IN_REVIEW, REFUSED, IF(SUSPENDED), HELD, 0, AMP_CODE(suspended)),
    R(IN_REVIEW, REFUSED, 0, HELD, DO(ESC_BLOCKED), AMP_CODE(blocked)),
    R(IN_REVIEW, CI_RED, IF(SUSPENDED), IN_REVIEW, 0, AMP_CODE(suspended)),
    R(IN_REVIEW, CI_RED, IF(CI_AGAIN), HELD, DO(ESC_CI), AMP_CODE(ci_failed)),
    R(IN_REVIEW, CI_RED, 0, REWORK, DO(COUNT_CI) | DO(DISPATCH), AMP_CODE(ci_failed)),
    R(IN_REVIEW, APPROVED, IF(CONTRADICTS), HELD, DO(ESC_CONFLICT), "conflict"),
    R(IN_REVIEW, APPROVED, IF(ANSWERED), IN_REVIEW, 0, NULL),
    R(IN_REVIEW, APPROVED, IF(STALE), IN_REVIEW, DO(NACK), AMP_CODE(unknown_ref)),
    R(IN_REVIEW, APPROVED, IF(SUSPENDED), HELD, DO(KEEP_VERDICT), AMP_CODE(suspended)),
    R(IN_REVIEW, APPROVED, IF(INCONSISTENT), HELD, DO(KEEP_VERDICT) | DO(ESC_CONFLICT), "conflict"),
    R(IN_REVIEW, APPROVED, IF(LOW_CONFIDENCE), HELD, DO(KEEP_VERDICT) | DO(ESC_CONFIDENCE),
      "low_confidence"),
    R(IN_REVIEW, APPROVED, IF(LAST) | IF(NEEDS_ADMIN), HELD, DO(KEEP_VERDICT) | DO(ESC_APPROVAL),
      AMP_CODE(approval_required)),
    R(IN_REVIEW, APPROVED, IF(LAST), APPROVED, DO(KEEP_VERDICT) | DO(RESET) | DO(FINISH), NULL),
    R(IN_REVIEW, APPROVED, 0, APPROVED, DO(KEEP_VERDICT) | DO(RESET) | DO(NEXT), NULL),
    R(IN_REVIEW, REJECTED, IF(CONTRADICTS), HELD, DO(ESC_CONFLICT), "conflict"),
    R(IN_REVIEW, REJECTED, IF(ANSWERED), IN_REVIEW, 0, NULL),
    R(IN_REVIEW, REJECTED, IF(STALE), IN_REVIEW, DO(NACK), AMP_CODE(unknown_ref)),
    R(IN_REVIEW, REJECTED, IF(SUSPENDED), HELD, DO(KEEP_VERDICT) | DO(COUNT), AMP_CODE(suspended)),
    R(IN_REVIEW, REJECTED, IF(LOCKS), HELD,
      DO(KEEP_VERDICT) | DO(COUNT) | DO(SUSPEND) | DO(ESC_LOCK), "hallucination_lock"),
    R(IN_REVIEW, REJECTED, IF(LOW_CONFIDENCE), HELD,
      DO(KEEP_VERDICT) | DO(COUNT) | DO(ESC_CONFIDENCE), "low_confidence"),
    R(IN_REVIEW, REJECTED, 0, REWORK, DO(KEEP_VERDICT) | DO(COUNT) | DO(DISPATCH), NULL),
    R(IN_REVIEW, HOLD, 0, HELD, 0, NULL),
    R(IN_REVIEW, WITHDRAW, 0, IN_REVIEW, 0, NULL),
    R(IN_REVIEW, RESUME, IF(SUSPENDED), HELD, DO(RESET), AMP_CODE(suspended)),
    R(IN_REVIEW, RESUME, 0, IN_REVIEW, DO(RESET) | DO(REVIEW), NULL),
    DECISIONS(IN_REVIEW, HELD, REWORK),

    AT_WORK(REWORK),

    /* Held: results and verdicts are kept. A decision leaves this state, or the agent that asked
     * withdraws its question while its attempt goes on; what was kept is left to the admin. */
    R(HELD, COMPLETE, IF(STALE), HELD, DO(NACK), AMP_CODE(unknown_ref)),
    R(HELD, COMPLETE, 0, HELD, DO(KEEP), AMP_CODE(suspended)),
    R(HELD, PARTIAL, IF(STALE), HELD, DO(NACK), AMP_CODE(unknown_ref)),
    R(HELD, PARTIAL, 0, HELD, DO(KEEP), AMP_CODE(suspended)),
    R(HELD, FAILED, IF(STALE), HELD, DO(NACK), AMP_CODE(unknown_ref)),
    R(HELD, FAILED, 0, HELD, DO(KEEP), AMP_CODE(suspended)),
    R(HELD, REFUSED, 0, HELD, 0, NULL),
    R(HELD, CI_RED, 0, HELD, 0, NULL),
    R(HELD, APPROVED, IF(CONTRADICTS), HELD, DO(ESC_CONFLICT), "conflict"),
    R(HELD, APPROVED, IF(ANSWERED), HELD, 0, NULL),
    R(HELD, APPROVED, IF(STALE), HELD, DO(NACK), AMP_CODE(unknown_ref)),
    R(HELD, APPROVED, IF(HELD_REVIEW), HELD, DO(KEEP_VERDICT), AMP_CODE(suspended)),
    R(HELD, APPROVED, 0, HELD, DO(NACK), AMP_CODE(unknown_ref)),
    R(HELD, REJECTED, IF(CONTRADICTS), HELD, DO(ESC_CONFLICT), "conflict"),
    R(HELD, REJECTED, IF(ANSWERED), HELD, 0, NULL),
    R(HELD, REJECTED, IF(STALE), HELD, DO(NACK), AMP_CODE(unknown_ref)),
    R(HELD, REJECTED, IF(HELD_REVIEW), HELD, DO(KEEP_VERDICT) | DO(COUNT), AMP_CODE(suspended)),
    R(HELD, REJECTED, 0, HELD, DO(NACK), AMP_CODE(unknown_ref)),
    R(HELD, HOLD, 0, HELD, 0, NULL),
    R(HELD, WITHDRAW, IF(OTHERS), HELD, 0, NULL),
    R(HELD, WITHDRAW, IF(ASKED_WORKING), WORKING, 0, NULL),
    R(HELD, WITHDRAW, IF(ASKED_REVIEW), IN_REVIEW, 0, NULL),
    R(HELD, WITHDRAW, IF(ASKED_REWORK), REWORK, 0, NULL),
    R(HELD, WITHDRAW, 0, HELD, DO(NACK), AMP_CODE(late)),
    R(HELD, RESUME, IF(SUSPENDED), HELD, DO(RESET), AMP_CODE(suspended)),
    R(HELD, RESUME, IF(HELD_APPROVAL) | IF(LAST), APPROVED, DO(RESET) | DO(FINISH), NULL),
    R(HELD, RESUME, IF(HELD_APPROVAL), APPROVED, DO(RESET) | DO(NEXT), NULL),
    R(HELD, RESUME, IF(HELD_REVIEW), IN_REVIEW, DO(RESET) | DO(REVIEW), NULL),
    R(HELD, RESUME, 0, REWORK, DO(RESET) | DO(DISPATCH), NULL),
    DECISIONS(HELD, HELD, REWORK),

    NO_RESULT(APPROVED, AMP_CODE(unknown_ref)),
    R(APPROVED, CI_RED, 0, APPROVED, DO(ESC_CI), AMP_CODE(ci_failed)),
    AFTERWARDS(APPROVED, APPROVED),
    AFTERWARDS(APPROVED, REJECTED),
    AGAIN(APPROVED, UNLANDED, IF(MERGE_ASKS), HELD, DO(ESC_MERGE), AMP_CODE(approval_required)),
    AGAIN(APPROVED, UNLANDED, IF(UNLANDED_AGAIN), HELD, DO(ESC_UNLANDED), "conflict"),
    AGAIN(APPROVED, UNLANDED, 0, REWORK, DO(COUNT_UNLANDED) | DO(DISPATCH), NULL),

    NO_RESULT(ABANDONED, AMP_CODE(terminal)),
    R(ABANDONED, CI_RED, 0, ABANDONED, 0, NULL),
    REFUSE(ABANDONED, APPROVED, AMP_CODE(terminal)),
    REFUSE(ABANDONED, REJECTED, AMP_CODE(terminal)),
};

const struct amp_fsm amp_qa_fsm = {
    .name = "qa",
    .source = "AMP/1.0",
    .doc = "the QA loop of one subtask",
    AMP_FSM_LISTS(AMP_QA),
    .initial = AMP_QA_PENDING,
    .terminal = 1u << AMP_QA_APPROVED | 1u << AMP_QA_ABANDONED,
    .rows = rows,
    .n_rows = sizeof rows / sizeof rows[0],
};
