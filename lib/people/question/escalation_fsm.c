/* A question: from its arrival to the decision. An unanswered question is open again. */
#include "people/question/escalation.h"

/* from, event, fact that must hold, to, effects */
#define ROW(f, e, fact, t, fx)                                                                     \
    {                                                                                              \
        .from = AMP_ESC_##f, .event = AMP_ESC_EV_##e, .to = AMP_ESC_##t, .if_all = (fact),         \
        .effects = (fx)                                                                            \
    }
#define EXTRA(f, e, fact, t, fx)                                                                   \
    {                                                                                              \
        .from = AMP_ESC_##f, .event = AMP_ESC_EV_##e, .to = AMP_ESC_##t, .if_all = (fact),         \
        .effects = (fx), .extra = true                                                             \
    }

static const struct amp_fsm_row rows[] = {
    EXTRA(NEW, ARRIVE, AMP_ESC_IF_ENDED, ENDED, AMP_ESC_DO_EMIT),
    ROW(NEW, ARRIVE, AMP_ESC_IF_CRITICAL, OPEN, AMP_ESC_DO_SUSPEND),
    ROW(NEW, ARRIVE, AMP_ESC_IF_WARNING, OPEN, AMP_ESC_DO_SUSPEND_PARTY),
    ROW(NEW, ARRIVE, AMP_ESC_IF_INFO, NOTED, AMP_ESC_DO_SHOW),
    ROW(NEW, ARRIVE, 0, OPEN, 0),
    ROW(OPEN, ASK, 0, ASKED, AMP_ESC_DO_ASK),
    ROW(OPEN, DECIDE, 0, DECIDED, AMP_ESC_DO_EMIT),
    ROW(ASKED, ASK, 0, ASKED, AMP_ESC_DO_ASK),
    ROW(ASKED, DECIDE, 0, DECIDED, AMP_ESC_DO_EMIT),
    ROW(ASKED, PASS, 0, OPEN, 0),
    ROW(OPEN, PASS, 0, OPEN, 0),
    EXTRA(OPEN, END, 0, ENDED, AMP_ESC_DO_EMIT),
    EXTRA(ASKED, END, 0, ENDED, AMP_ESC_DO_EMIT),
    ROW(OPEN, VOTE, 0, OPEN, AMP_ESC_DO_COUNT),
    ROW(ASKED, VOTE, 0, OPEN, AMP_ESC_DO_COUNT),
    ROW(OPEN, DEFER, 0, DEFERRED, 0),
    ROW(ASKED, DEFER, 0, DEFERRED, 0),
    ROW(DEFERRED, DEFER, 0, DEFERRED, 0),
    ROW(DEFERRED, WAKE, 0, OPEN, 0),
    ROW(DEFERRED, DECIDE, 0, DECIDED, AMP_ESC_DO_EMIT),
    ROW(DEFERRED, VOTE, 0, OPEN, AMP_ESC_DO_COUNT),
    EXTRA(DEFERRED, END, 0, ENDED, AMP_ESC_DO_EMIT),
    ROW(OPEN, EXPIRE, AMP_ESC_IF_EXTENDS, OPEN, AMP_ESC_DO_EXTEND),
    ROW(OPEN, EXPIRE, AMP_ESC_IF_FALLBACK, DECIDED, AMP_ESC_DO_EMIT),
    ROW(OPEN, EXPIRE, 0, OPEN, AMP_ESC_DO_EMIT),
    ROW(ASKED, EXPIRE, AMP_ESC_IF_EXTENDS, ASKED, AMP_ESC_DO_EXTEND),
    ROW(ASKED, EXPIRE, AMP_ESC_IF_FALLBACK, DECIDED, AMP_ESC_DO_EMIT),
    ROW(ASKED, EXPIRE, 0, ASKED, AMP_ESC_DO_EMIT),
    ROW(DEFERRED, EXPIRE, AMP_ESC_IF_EXTENDS, DEFERRED, AMP_ESC_DO_EXTEND),
    ROW(DEFERRED, EXPIRE, AMP_ESC_IF_FALLBACK, DECIDED, AMP_ESC_DO_EMIT),
    ROW(DEFERRED, EXPIRE, 0, DEFERRED, AMP_ESC_DO_EMIT),
    EXTRA(DECIDED, REFUSE, 0, OPEN, 0), /* a refused decision has no effect */
};

const struct amp_fsm amp_escalation_fsm = {
    .name = "escalation",
    .source = "AMP/1.0 escalation, SW4RM §15",
    .doc = "a question to a person and its decision",
    AMP_FSM_LISTS(AMP_ESCALATION),
    .initial = AMP_ESC_NEW,
    .terminal = 1u << AMP_ESC_DECIDED | 1u << AMP_ESC_NOTED | 1u << AMP_ESC_ENDED,
    .rows = rows,
    .n_rows = sizeof rows / sizeof rows[0],
};
