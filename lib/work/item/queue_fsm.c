/* A job in the queue: from its submission through claims and attempts to its end. */
#include "base/codes.h"
#include "work/item/machine.h"

#define S(x) AMP_QUEUE_##x
#define E(x) AMP_QUEUE_EV_##x
#define D(x) AMP_QUEUE_DO_##x
#define I(x) AMP_QUEUE_IF_##x

/* The events of a job that has a worker. */
#define HELD(state)                                                                                \
    {.from = S(state), .event = E(RELEASE), .to = S(QUEUED), .effects = D(FREE) | D(REST)},        \
        {.from = S(state), .event = E(LOSE), .to = S(QUEUED), .effects = D(FREE) | D(LOSS)},       \
        {.from = S(state),                                                                         \
         .event = E(PARK),                                                                         \
         .to = S(PARKED),                                                                          \
         .effects = D(FREE) | D(REST) | D(WAIT)},                                                  \
    {                                                                                              \
        .from = S(state), .event = E(FAIL), .to = S(FAILED), .effects = D(FREE) | D(END)           \
    }

/* The events of an attempt. Its job stays where it is: a job that is asked to end can begin another
 * attempt before its worker looks. */
#define TRIED(state)                                                                               \
    {.from = S(state), .event = E(READ), .to = S(state), .effects = D(READ)},                      \
        {.from = S(state), .event = E(START), .to = S(state), .effects = D(TRY)},                  \
        {.from = S(state), .event = E(SAY), .to = S(state)},                                       \
        {.from = S(state), .event = E(BREAK), .to = S(state), .effects = D(REST) | D(BREAK)},      \
        {.from = S(state), .event = E(NEXT), .to = S(state), .effects = D(REST) | D(NEXT)},        \
    {                                                                                              \
        .from = S(state), .event = E(HALT), .to = S(state), .effects = D(REST)                     \
    }

/* A job of one worker needs no claim: nobody else can take it. */
#define OWN(state)                                                                                 \
    {.from = S(state),                                                                             \
     .event = E(START),                                                                            \
     .to = S(RUNNING),                                                                             \
     .if_all = I(OWN),                                                                             \
     .effects = D(TAKE) | D(START) | D(TRY)},                                                      \
    {                                                                                              \
        .from = S(state), .event = E(FAIL), .to = S(FAILED), .if_all = I(OWN), .effects = D(END)   \
    }

static const struct amp_fsm_row rows[] = {
    {.from = S(QUEUED), .event = E(SUBMIT), .to = S(QUEUED), .effects = D(ENTER)},
    {.from = S(QUEUED), .event = E(CLAIM), .to = S(CLAIMED), .effects = D(TAKE)},
    {.from = S(QUEUED), .event = E(PARK), .to = S(PARKED), .effects = D(WAIT)},
    {.from = S(QUEUED), .event = E(RANK), .to = S(QUEUED), .effects = D(RANK)},
    {.from = S(QUEUED),
     .event = E(EXPIRE),
     .to = S(FAILED),
     .effects = D(END),
     .code = AMP_CODE(deadline_passed)},
    {.from = S(QUEUED), .event = E(CANCEL), .to = S(CANCELLED), .effects = D(CANCEL) | D(END)},
    OWN(QUEUED),

    {.from = S(CLAIMED), .event = E(READ), .to = S(CLAIMED), .effects = D(READ)},
    {.from = S(CLAIMED), .event = E(START), .to = S(RUNNING), .effects = D(START) | D(TRY)},
    {.from = S(CLAIMED), .event = E(DONE), .to = S(DONE), .effects = D(FREE) | D(END)},
    {.from = S(CLAIMED), .event = E(PREEMPT), .to = S(PREEMPTING), .effects = D(ASK)},
    {.from = S(CLAIMED), .event = E(CANCEL), .to = S(PREEMPTING), .effects = D(CANCEL) | D(ASK)},
    HELD(CLAIMED),

    {.from = S(RUNNING), .event = E(PREEMPT), .to = S(PREEMPTING), .effects = D(ASK)},
    {.from = S(RUNNING), .event = E(CANCEL), .to = S(PREEMPTING), .effects = D(CANCEL) | D(ASK)},
    {.from = S(RUNNING), .event = E(DONE), .to = S(DONE), .effects = D(FREE) | D(END)},
    TRIED(RUNNING),
    HELD(RUNNING),

    /* The end of an attempt that was cancelled also ends the job, unless the work was done. */
    {.from = S(PREEMPTING), .event = E(PREEMPT), .to = S(PREEMPTING), .effects = D(ASK)},
    {.from = S(PREEMPTING), .event = E(CANCEL), .to = S(PREEMPTING), .effects = D(CANCEL) | D(ASK)},
    {.from = S(PREEMPTING), .event = E(DONE), .to = S(DONE), .effects = D(FREE) | D(END)},
    {.from = S(PREEMPTING),
     .event = E(YIELD),
     .to = S(CANCELLED),
     .if_all = I(CANCELLED),
     .effects = D(FREE) | D(END)},
    {.from = S(PREEMPTING), .event = E(YIELD), .to = S(QUEUED), .effects = D(FREE) | D(REST)},
    {.from = S(PREEMPTING),
     .event = E(FORCE),
     .to = S(CANCELLED),
     .if_all = I(CANCELLED),
     .effects = D(FREE) | D(END)},
    {.from = S(PREEMPTING),
     .event = E(FORCE),
     .to = S(FAILED),
     .effects = D(FREE) | D(END),
     .code = AMP_CODE(forced_preemption)},
    {.from = S(PREEMPTING),
     .event = E(RELEASE),
     .to = S(CANCELLED),
     .if_all = I(CANCELLED),
     .effects = D(FREE) | D(END)},
    {.from = S(PREEMPTING),
     .event = E(LOSE),
     .to = S(CANCELLED),
     .if_all = I(CANCELLED),
     .effects = D(FREE) | D(LOSS) | D(END)},
    {.from = S(PREEMPTING),
     .event = E(PARK),
     .to = S(CANCELLED),
     .if_all = I(CANCELLED),
     .effects = D(FREE) | D(END)},
    {.from = S(PREEMPTING),
     .event = E(FAIL),
     .to = S(CANCELLED),
     .if_all = I(CANCELLED),
     .effects = D(FREE) | D(END)},
    TRIED(PREEMPTING),
    HELD(PREEMPTING),

    {.from = S(PARKED), .event = E(WAKE), .to = S(QUEUED), .effects = 0},
    {.from = S(PARKED), .event = E(RANK), .to = S(PARKED), .effects = D(RANK)},
    {.from = S(PARKED),
     .event = E(EXPIRE),
     .to = S(FAILED),
     .effects = D(END),
     .code = AMP_CODE(deadline_passed)},
    {.from = S(PARKED), .event = E(CANCEL), .to = S(CANCELLED), .effects = D(CANCEL) | D(END)},
    OWN(PARKED),

    /* The record of an identical job that ended is used again. */
    {.from = S(DONE),
     .event = E(SUBMIT),
     .to = S(QUEUED),
     .extra = true,
     .if_all = I(AGAIN),
     .effects = D(ENTER)},
    {.from = S(FAILED), .event = E(SUBMIT), .to = S(QUEUED), .extra = true, .effects = D(ENTER)},
    {.from = S(CANCELLED), .event = E(SUBMIT), .to = S(QUEUED), .extra = true, .effects = D(ENTER)},
};

const struct amp_fsm amp_queue_fsm = {
    .name = "queue",
    .source = "SW4RM §7.1, §7.2, §9",
    .doc = "a job in the queue",
    AMP_FSM_LISTS(AMP_QUEUE),
    .initial = AMP_QUEUE_QUEUED,
    .terminal = 1u << AMP_QUEUE_DONE | 1u << AMP_QUEUE_FAILED | 1u << AMP_QUEUE_CANCELLED,
    .rows = rows,
    .n_rows = sizeof rows / sizeof rows[0],
};
