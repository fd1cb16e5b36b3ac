/* A job: one message that an agent took and must answer. A failed run is not an answer: the attempt
 * is repeated, parked, or given up with an escalation. */
#include "work/agent/job/job.h"

#define S(x) AMP_JOB_##x
#define E(x) AMP_JOB_EV_##x
#define D(x) AMP_JOB_DO_##x

static const struct amp_fsm_row rows[] = {
    {.from = S(QUEUED), .event = E(TAKE), .to = S(QUEUED), .effects = D(EMIT)},
    {.from = S(QUEUED), .event = E(START), .to = S(RUNNING), .effects = D(ATTEMPT)},
    {.from = S(QUEUED), .event = E(REFUSE), .to = S(REFUSED), .effects = D(EMIT)},
    {.from = S(RUNNING), .event = E(START), .to = S(RUNNING), .effects = D(ATTEMPT)},
    {.from = S(RUNNING), .event = E(STEP), .to = S(QUEUED), .effects = D(EMIT) | D(NEXT)},
    {.from = S(RUNNING), .event = E(ANSWER), .to = S(DONE), .effects = D(EMIT)},
    {.from = S(RUNNING), .event = E(REFUSE), .to = S(REFUSED), .effects = D(EMIT)},
    {.from = S(RUNNING),
     .event = E(BREAK),
     .to = S(FAILED),
     .if_all = AMP_JOB_IF_SPENT,
     .effects = D(BREAK) | D(EMIT)},
    {.from = S(RUNNING), .event = E(BREAK), .to = S(QUEUED), .effects = D(BREAK)},
    {.from = S(RUNNING), .event = E(PARK), .to = S(PARKED), .effects = D(WAIT)},
    {.from = S(RUNNING), .event = E(STOP), .to = S(QUEUED), .effects = 0},
    {.from = S(RUNNING), .event = E(SAY), .to = S(RUNNING), .effects = D(EMIT)},
    {.from = S(PARKED), .event = E(WAKE), .to = S(QUEUED), .effects = 0},
    {.from = S(PARKED), .event = E(REFUSE), .to = S(REFUSED), .effects = D(EMIT)},
};

const struct amp_fsm amp_job_fsm = {
    .name = "job",
    .source = "agent contract",
    .doc = "a message that an agent took and must answer",
    AMP_FSM_LISTS(AMP_JOB),
    .initial = AMP_JOB_QUEUED,
    .terminal = 1u << AMP_JOB_DONE | 1u << AMP_JOB_REFUSED | 1u << AMP_JOB_FAILED,
    .rows = rows,
    .n_rows = sizeof rows / sizeof rows[0],
};
