/* A pair of jobs whose scopes overlap: judged by a command, decided by a person, or serialised. */
#include "work/item/conflict/machine.h"

#define S(name) AMP_CONFLICT_##name
#define E(name) AMP_CONFLICT_EV_##name
#define D(name) AMP_CONFLICT_DO_##name

/* from, event, to, effects */
#define ROW(f, e, t, fx)                                                                           \
    {                                                                                              \
        .from = S(f), .event = E(e), .to = S(t), .effects = (fx)                                   \
    }
#define ANSWER(e, t, fx)                                                                           \
    {                                                                                              \
        .from = S(CHECKING), .event = E(e), .to = S(t), .if_all = AMP_CONFLICT_IF_HOLDS,           \
        .effects = (fx)                                                                            \
    }

/* A person may override whatever was decided, and a job may end, at any time. */
#define ANY_TIME(f) ROW(f, ALLOW, PARALLEL, D(DECIDE)), ROW(f, END, ENDED, D(REMOVE))

static const struct amp_fsm_row rows[] = {
    ROW(NEW, CHECK, CHECKING, D(TAKE)),
    ROW(NEW, ASK, ASKED, D(ASK)),
    ROW(NEW, ALLOW, PARALLEL, D(DECIDE)),

    ANSWER(CONFIDENT, PARALLEL, D(JUDGE)),
    ANSWER(UNSURE, ASKED, D(JUDGE) | D(ASK)),
    ANSWER(UNAVAILABLE, UNJUDGED, D(MISS)),
    ANY_TIME(CHECKING),

    ROW(UNJUDGED, CHECK, CHECKING, D(TAKE)),
    ROW(UNJUDGED, ASK, ASKED, D(ASK)),
    ANY_TIME(UNJUDGED),

    ROW(ASKED, ORDER, SERIAL, D(DECIDE)),
    ANY_TIME(ASKED),

    ROW(PARALLEL, EXPIRE, UNJUDGED, D(FORGET)),
    ANY_TIME(PARALLEL),

    ANY_TIME(SERIAL),
};

const struct amp_fsm amp_conflict_fsm = {
    .name = "conflict",
    .source = "SW4RM §9.2, §9.3",
    .doc = "two jobs whose scopes overlap",
    AMP_FSM_LISTS(AMP_CONFLICT),
    .initial = AMP_CONFLICT_NEW,
    .terminal = 1u << AMP_CONFLICT_ENDED,
    .rows = rows,
    .n_rows = sizeof rows / sizeof rows[0],
};
