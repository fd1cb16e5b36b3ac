/* The machine of a task (AMP/1.0). The steps of its subtasks drive it: see amp_task_event_of. */
#include "work/task/machines.h"

static const struct amp_fsm_name states[] = {AMP_TASK_STATES(AMP_FSM_NAMES)};
static const struct amp_fsm_name events[] = {AMP_TASK_EVENTS(AMP_FSM_NAMES)};
static const struct amp_fsm_name facts[] = {
    {"stub", "its record has only a suspension"},
};

#define T(a, e, b)                                                                                 \
    {                                                                                              \
        .from = AMP_TASK_##a, .event = AMP_TASK_EV_##e, .to = AMP_TASK_##b                         \
    }

/* The work of a task that was done does not land. */
#define UNLANDED(e, b)                                                                             \
    {                                                                                              \
        .from = AMP_TASK_DONE, .event = AMP_TASK_EV_##e, .to = AMP_TASK_##b, .extra = true         \
    }

/* Rows of every state in which agents work. */
#define IN_WORK(s)                                                                                 \
    T(s, OPEN, DISPATCHED), T(s, DISPATCH, DISPATCHED), T(s, REVIEW, IN_REVIEW),                   \
        T(s, REWORK, REWORK), T(s, HOLD, WAITING), T(s, SUSPEND, SUSPENDED), T(s, FINISH, DONE),   \
        T(s, FAIL, FAILED), T(s, TERMINATE, TERMINATED)
/* Rows of a suspended task: only the step that lifts the suspension starts work again. */
#define IN_REST(s)                                                                                 \
    T(s, OPEN, DISPATCHED), T(s, DISPATCH, DISPATCHED), T(s, REVIEW, IN_REVIEW),                   \
        T(s, REWORK, REWORK), T(s, HOLD, s), T(s, SUSPEND, s), T(s, FINISH, DONE),                 \
        T(s, TERMINATE, TERMINATED)

static const struct amp_fsm_row rows[] = {
    T(NEW, OPEN, DISPATCHED),
    T(NEW, LACK, INCOMPLETE),
    T(NEW, SUSPEND, SUSPENDED),
    T(NEW, TERMINATE, TERMINATED),
    T(INCOMPLETE, OPEN, DISPATCHED),
    T(INCOMPLETE, LACK, INCOMPLETE),
    T(INCOMPLETE, SUSPEND, SUSPENDED),
    T(INCOMPLETE, TERMINATE, TERMINATED),
    IN_WORK(DISPATCHED),
    T(DISPATCHED, LACK, INCOMPLETE),
    IN_WORK(IN_REVIEW),
    T(IN_REVIEW, LOCK, LOCKED),
    IN_WORK(REWORK),
    T(REWORK, LACK, INCOMPLETE),
    IN_WORK(WAITING),
    T(WAITING, LACK, INCOMPLETE),
    IN_REST(LOCKED),
    T(LOCKED, LIFT, WAITING),
    IN_REST(SUSPENDED),
    {.from = AMP_TASK_SUSPENDED,
     .event = AMP_TASK_EV_LIFT,
     .to = AMP_TASK_NEW,
     .if_all = AMP_TASK_IF_STUB},
    T(SUSPENDED, LIFT, WAITING),
    UNLANDED(REWORK, REWORK),
    UNLANDED(HOLD, WAITING),
};

const struct amp_fsm amp_task_fsm = {
    .name = "task",
    .source = "AMP/1.0",
    .doc = "a task, from the admin's dispatch to its end",
    .states = states,
    .events = events,
    .facts = facts,
    .effects = NULL,
    .n_states = AMP_TASK_STATE_COUNT,
    .n_events = AMP_TASK_EVENT_COUNT,
    .n_facts = sizeof facts / sizeof facts[0],
    .n_effects = 0,
    .initial = AMP_TASK_NEW,
    .terminal = 1u << AMP_TASK_DONE | 1u << AMP_TASK_FAILED | 1u << AMP_TASK_TERMINATED,
    .rows = rows,
    .n_rows = sizeof rows / sizeof rows[0],
};
