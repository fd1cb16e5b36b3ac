/* Landings of a task: whether a branch has its work. */
#include "work/task/landing/landing.h"

static const struct amp_fsm_row rows[] = {
    {.from = AMP_LANDING_NONE,
     .event = AMP_LANDING_EV_BEGIN,
     .to = AMP_LANDING_MOVING,
     .effects = AMP_LANDING_DO_ORDER},
    {.from = AMP_LANDING_LANDED,
     .event = AMP_LANDING_EV_BEGIN,
     .to = AMP_LANDING_MOVING,
     .effects = AMP_LANDING_DO_ORDER},
    {.from = AMP_LANDING_MOVING,
     .event = AMP_LANDING_EV_MOVED,
     .to = AMP_LANDING_LANDED,
     .effects = AMP_LANDING_DO_ADD | AMP_LANDING_DO_DROP},
    {.from = AMP_LANDING_MOVING,
     .event = AMP_LANDING_EV_STAY,
     .to = AMP_LANDING_LANDED,
     .if_all = AMP_LANDING_IF_BEFORE,
     .effects = AMP_LANDING_DO_DROP},
    {.from = AMP_LANDING_MOVING,
     .event = AMP_LANDING_EV_STAY,
     .to = AMP_LANDING_NONE,
     .effects = AMP_LANDING_DO_DROP},
};

const struct amp_fsm amp_landing_fsm = {
    .name = "landing",
    .source = "task-dispatch-land(1)",
    .doc = "the merges of a task's approved work",
    AMP_FSM_LISTS(AMP_LANDING),
    .initial = AMP_LANDING_NONE,
    .terminal = 0,
    .rows = rows,
    .n_rows = sizeof rows / sizeof rows[0],
};
