/* The circuit breaker of a command. */
#include "work/item/conflict/machine.h"

#define ROW(f, e, fact, t, fx)                                                                     \
    {                                                                                              \
        .from = AMP_BREAKER_##f, .event = AMP_BREAKER_EV_##e, .to = AMP_BREAKER_##t,               \
        .if_all = (fact), .effects = (fx)                                                          \
    }
#define D(name) AMP_BREAKER_DO_##name

static const struct amp_fsm_row rows[] = {
    ROW(CLOSED, TRY, 0, CLOSED, D(START)),
    ROW(CLOSED, SUCCESS, 0, CLOSED, D(RESET)),
    ROW(CLOSED, FAILURE, AMP_BREAKER_IF_SPENT, OPEN, D(COUNT) | D(PAUSE)),
    ROW(CLOSED, FAILURE, 0, CLOSED, D(COUNT)),

    ROW(OPEN, TRY, AMP_BREAKER_IF_DUE, TRIAL, D(START) | D(PAUSE)),
    ROW(OPEN, TRY, 0, OPEN, 0),
    /* A start from before the breaker opened has ended. */
    ROW(OPEN, SUCCESS, 0, CLOSED, D(RESET)),
    ROW(OPEN, FAILURE, 0, OPEN, D(COUNT)),

    ROW(TRIAL, TRY, AMP_BREAKER_IF_DUE, TRIAL, D(START) | D(PAUSE)),
    ROW(TRIAL, TRY, 0, TRIAL, 0),
    ROW(TRIAL, SUCCESS, 0, CLOSED, D(RESET)),
    ROW(TRIAL, FAILURE, 0, OPEN, D(COUNT) | D(PAUSE)),
};

const struct amp_fsm amp_breaker_fsm = {
    .name = "breaker",
    .source = "SW4RM §9.3",
    .doc = "the circuit breaker of the command that judges conflicts",
    AMP_FSM_LISTS(AMP_BREAKER),
    .initial = AMP_BREAKER_CLOSED,
    .rows = rows,
    .n_rows = sizeof rows / sizeof rows[0],
};
