/* Membership and reachability of a registered agent (SW4RM §14). */
#include "base/codes.h"
#include "work/agent/agent.h"

#define ROW(f, e, t, fx)                                                                           \
    {                                                                                              \
        .from = AMP_REACH_##f, .event = AMP_REACH_EV_##e, .to = AMP_REACH_##t, .effects = (fx)     \
    }
#define SPENT(f, e, t, fx)                                                                         \
    {                                                                                              \
        .from = AMP_REACH_##f, .event = AMP_REACH_EV_##e, .to = AMP_REACH_##t,                     \
        .if_all = AMP_REACH_IF_SPENT, .effects = (fx), .code = AMP_CODE(agent_unavailable)         \
    }

static const struct amp_fsm_row rows[] = {
    ROW(ABSENT, REGISTER, REACHABLE, AMP_REACH_DO_JOIN),
    ROW(LEFT, REGISTER, REACHABLE, AMP_REACH_DO_JOIN),
    ROW(REACHABLE, REGISTER, REACHABLE, 0),
    ROW(LATE, REGISTER, REACHABLE, 0),
    ROW(UNREACHABLE, REGISTER, REACHABLE, AMP_REACH_DO_BACK),
    ROW(REACHABLE, BEAT, REACHABLE, 0),
    ROW(LATE, BEAT, REACHABLE, 0),
    ROW(UNREACHABLE, BEAT, REACHABLE, AMP_REACH_DO_BACK),
    SPENT(REACHABLE, MISS, UNREACHABLE, AMP_REACH_DO_LOST),
    ROW(REACHABLE, MISS, LATE, 0),
    SPENT(LATE, MISS, UNREACHABLE, AMP_REACH_DO_LOST),
    ROW(LATE, MISS, LATE, 0),
    ROW(REACHABLE, DEREGISTER, LEFT, AMP_REACH_DO_LEAVE),
    ROW(LATE, DEREGISTER, LEFT, AMP_REACH_DO_LEAVE),
    ROW(UNREACHABLE, DEREGISTER, LEFT, AMP_REACH_DO_LEAVE),
    ROW(REACHABLE, ASK, REACHABLE, AMP_REACH_DO_ASK),
    ROW(LATE, ASK, LATE, AMP_REACH_DO_ASK),
    ROW(UNREACHABLE, ASK, UNREACHABLE, AMP_REACH_DO_ASK),
};

const struct amp_fsm amp_reach_fsm = {
    .name = "reach",
    .source = "SW4RM §14",
    .doc = "membership and reachability of an agent",
    AMP_FSM_LISTS(AMP_REACH),
    .initial = AMP_REACH_ABSENT,
    .rows = rows,
    .n_rows = sizeof rows / sizeof rows[0],
};
