/* Suspensions by people: whether there are any. */
#include "message/pause/pause.h"

static const struct amp_fsm_row rows[] = {
    {.from = AMP_PAUSE_QUIET,
     .event = AMP_PAUSE_EV_SUSPEND,
     .to = AMP_PAUSE_PAUSED,
     .effects = AMP_PAUSE_DO_STOP},
    {.from = AMP_PAUSE_PAUSED,
     .event = AMP_PAUSE_EV_SUSPEND,
     .to = AMP_PAUSE_PAUSED,
     .effects = AMP_PAUSE_DO_STOP},
    {.from = AMP_PAUSE_PAUSED,
     .event = AMP_PAUSE_EV_RESUME,
     .to = AMP_PAUSE_QUIET,
     .if_all = AMP_PAUSE_IF_LAST,
     .effects = AMP_PAUSE_DO_RELEASE},
    {.from = AMP_PAUSE_PAUSED,
     .event = AMP_PAUSE_EV_RESUME,
     .to = AMP_PAUSE_PAUSED,
     .effects = AMP_PAUSE_DO_RELEASE},
};

const struct amp_fsm amp_pause_fsm = {
    .name = "pause",
    .source = "hitl-prompt-suspend(1)",
    .doc = "suspensions by people",
    AMP_FSM_LISTS(AMP_PAUSE),
    .initial = AMP_PAUSE_QUIET,
    .terminal = 0,
    .rows = rows,
    .n_rows = sizeof rows / sizeof rows[0],
};
