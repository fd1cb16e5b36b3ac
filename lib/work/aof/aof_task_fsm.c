/*
 * The status of a task file. AOF/1 maps outcomes to transitions ("Status Mapping"); the rows
 * without a source in its text are those of its task store. A wish for the present status changes
 * nothing: messages are idempotent by the state of their task.
 */
#include "work/aof/machine.h"

#define S(x) AMP_AOF_##x
#define E(x) AMP_AOF_TASK_EV_##x
#define D(x) AMP_AOF_TASK_DO_##x

#define ROW(from_, event_, to_, effects_)                                                          \
    {                                                                                              \
        .from = S(from_), .event = E(event_), .to = S(to_), .effects = effects_                    \
    }
#define MORE(from_, event_, to_, effects_)                                                         \
    {                                                                                              \
        .from = S(from_), .event = E(event_), .to = S(to_), .effects = effects_, .extra = true     \
    }

static const struct amp_fsm_row rows[] = {
    ROW(BACKLOG, SHELVE, BACKLOG, 0),
    ROW(BACKLOG, READY, READY, 0),
    ROW(BACKLOG, BLOCK, BLOCKED, D(NOTIFY)),
    MORE(BACKLOG, CANCEL, CANCELLED, 0),

    ROW(READY, READY, READY, 0),
    ROW(READY, START, IN_PROGRESS, 0),
    ROW(READY, DISPATCH, IN_PROGRESS, D(LEASE)),
    ROW(READY, BLOCK, BLOCKED, D(NOTIFY)),
    MORE(READY, CANCEL, CANCELLED, 0),
    MORE(READY, BURY, DEADLETTER, 0),

    ROW(IN_PROGRESS, START, IN_PROGRESS, 0),
    ROW(IN_PROGRESS, REVIEW, REVIEW, D(FREE) | D(END) | D(NOTIFY)),
    ROW(IN_PROGRESS, READY, READY, D(FREE)),
    ROW(IN_PROGRESS, BLOCK, BLOCKED, D(FREE) | D(END) | D(NOTIFY)),
    {.from = S(IN_PROGRESS),
     .event = E(COMPLETE),
     .to = S(REVIEW),
     .if_all = AMP_AOF_TASK_IF_STOPS,
     .effects = D(FREE) | D(END) | D(NOTIFY)},
    ROW(IN_PROGRESS, COMPLETE, REVIEW, D(FREE) | D(END) | D(NOTIFY) | D(GO_ON)),
    MORE(IN_PROGRESS, CANCEL, CANCELLED, D(FREE) | D(END)),
    MORE(IN_PROGRESS, BURY, DEADLETTER, D(FREE) | D(END)),

    ROW(BLOCKED, BLOCK, BLOCKED, 0),
    ROW(BLOCKED, READY, READY, 0),
    MORE(BLOCKED, CANCEL, CANCELLED, 0),
    MORE(BLOCKED, BURY, DEADLETTER, 0),

    ROW(REVIEW, REVIEW, REVIEW, 0),
    ROW(REVIEW, DONE, DONE, D(NOTIFY)),
    ROW(REVIEW, START, IN_PROGRESS, 0),
    ROW(REVIEW, BLOCK, BLOCKED, D(NOTIFY)),
    {.from = S(REVIEW), .event = E(COMPLETE), .to = S(REVIEW), .if_all = AMP_AOF_TASK_IF_STOPS},
    ROW(REVIEW, COMPLETE, DONE, D(NOTIFY)),
    MORE(REVIEW, CANCEL, CANCELLED, 0),

    ROW(DONE, DONE, DONE, 0),
    ROW(DONE, COMPLETE, DONE, 0),
    MORE(CANCELLED, CANCEL, CANCELLED, 0),
    MORE(DEADLETTER, BURY, DEADLETTER, 0),
    MORE(DEADLETTER, READY, READY, 0),
};

const struct amp_fsm amp_aof_task_fsm = {
    .name = "aof_task",
    .source = "AOF/1, Status Mapping",
    .doc = "a task file in its folder",
    AMP_FSM_LISTS(AMP_AOF_TASK),
    .initial = AMP_AOF_BACKLOG,
    .terminal = 1u << AMP_AOF_DONE | 1u << AMP_AOF_CANCELLED,
    .rows = rows,
    .n_rows = sizeof rows / sizeof rows[0],
};
