/* The machine of a handoff (SW4RM §17.6). */
#include "work/handoff/handoff.h"

#define BIT(x) AMP_HANDOFF_DO_##x
#define ROW(f, e, t, ...)                                                                          \
    {                                                                                              \
        .from = AMP_HANDOFF_##f, .event = AMP_HANDOFF_EV_##e, .to = AMP_HANDOFF_##t, __VA_ARGS__   \
    }
#define DO(x) .effects = (x)
#define NEXT  .if_all = AMP_HANDOFF_IF_NEXT, .extra = true

static const struct amp_fsm_row rows[] = {
    ROW(PENDING, ACCEPT, ACCEPTED, DO(BIT(OWN))),
    /* "The Scheduler MAY route pending handoffs to alternative agents if the primary target rejects
     * or times out." */
    ROW(PENDING, REJECT, PENDING, DO(BIT(PASS) | BIT(OFFER)), NEXT),
    ROW(PENDING, REJECT, REJECTED, DO(BIT(PASS) | BIT(END))),
    ROW(PENDING, EXPIRE, PENDING, DO(BIT(PASS) | BIT(OFFER)), NEXT),
    ROW(PENDING, EXPIRE, EXPIRED, DO(BIT(PASS) | BIT(END))),
    ROW(ACCEPTED, COMPLETE, COMPLETED, DO(BIT(END))),
    /* The first candidate. */
    ROW(PENDING, REQUEST, PENDING, DO(BIT(OFFER)), .extra = true),
};

const struct amp_fsm amp_handoff_fsm = {
    .name = "handoff",
    .source = "SW4RM §17.6",
    .doc = "a handoff of work to another agent",
    AMP_FSM_LISTS(AMP_HANDOFF),
    .initial = AMP_HANDOFF_PENDING,
    .terminal =
        1u << AMP_HANDOFF_REJECTED | 1u << AMP_HANDOFF_COMPLETED | 1u << AMP_HANDOFF_EXPIRED,
    .rows = rows,
    .n_rows = sizeof rows / sizeof *rows,
};
