/* The agent lifecycle of SW4RM §8 and appendix C. Rows that these tools add are extra. */
#include "base/codes.h"
#include "work/agent/agent.h"

#define S(x) AMP_AGENT_##x
#define E(x) AMP_AGENT_EV_##x
#define D(x) AMP_AGENT_DO_##x
#define ROW(f, e, t, fx, why)                                                                      \
    {                                                                                              \
        .from = S(f), .event = E(e), .to = S(t), .effects = (fx), .code = (why)                    \
    }
#define EXTRA(f, e, t, fx, why)                                                                    \
    {                                                                                              \
        .from = S(f), .event = E(e), .to = S(t), .effects = (fx), .code = (why), .extra = true     \
    }

/* A suspended agent starts no work. */
#define HELD(f, e)                                                                                 \
    {                                                                                              \
        .from = S(f), .event = E(e), .to = S(f), .if_all = AMP_AGENT_IF_SUSPENDED,                 \
        .code = AMP_CODE(suspended), .extra = true                                                 \
    }
#define NEW_LIFE(f) EXTRA(f, BEGIN, INITIALIZING, D(BEGIN) | D(ARM) | D(CLEAN), NULL)
/* States without a time limit; the others end by theirs. */
#define LOST(f) EXTRA(f, LOSE, FAILED, D(CLEAN), AMP_CODE(worker_lost))

static const struct amp_fsm_row rows[] = {
    NEW_LIFE(INITIALIZING),
    ROW(INITIALIZING, READY, RUNNABLE, 0, NULL),
    ROW(INITIALIZING, TIMEOUT, FAILED, D(CLEAN), "init_timeout"),
    EXTRA(INITIALIZING, SHUTDOWN, SHUTTING_DOWN, D(ARM), NULL),
    NEW_LIFE(RUNNABLE),
    HELD(RUNNABLE, ASSIGN),
    ROW(RUNNABLE, ASSIGN, SCHEDULED, D(TAKE), NULL),
    EXTRA(RUNNABLE, SHUTDOWN, SHUTTING_DOWN, D(ARM), NULL),
    NEW_LIFE(SCHEDULED),
    HELD(SCHEDULED, START),
    ROW(SCHEDULED, START, RUNNING, 0, NULL),
    EXTRA(SCHEDULED, SHUTDOWN, SHUTTING_DOWN, D(ARM), NULL),
    EXTRA(SCHEDULED, FAIL, FAILED, D(CLEAN), NULL),
    LOST(SCHEDULED),
    NEW_LIFE(RUNNING),
    ROW(RUNNING, WAIT, WAITING, 0, NULL),
    ROW(RUNNING, LACK, WAITING_RESOURCES, D(ARM), NULL),
    ROW(RUNNING, SUSPEND, SUSPENDED, D(ARM), NULL),
    ROW(RUNNING, COMPLETE, COMPLETED, 0, NULL),
    ROW(RUNNING, FAIL, FAILED, D(CLEAN), NULL),
    ROW(RUNNING, SHUTDOWN, SHUTTING_DOWN, D(ARM), NULL),
    LOST(RUNNING),
    /* An agent that waits may take another task. */
    NEW_LIFE(WAITING),
    HELD(WAITING, START),
    ROW(WAITING, START, RUNNING, 0, NULL),
    HELD(WAITING, ASSIGN),
    EXTRA(WAITING, ASSIGN, SCHEDULED, D(TAKE), NULL),
    EXTRA(WAITING, SHUTDOWN, SHUTTING_DOWN, D(ARM), NULL),
    LOST(WAITING),
    NEW_LIFE(WAITING_RESOURCES),
    HELD(WAITING_RESOURCES, START),
    ROW(WAITING_RESOURCES, START, RUNNING, 0, NULL),
    HELD(WAITING_RESOURCES, ASSIGN),
    EXTRA(WAITING_RESOURCES, ASSIGN, SCHEDULED, D(TAKE), NULL),
    EXTRA(WAITING_RESOURCES, SHUTDOWN, SHUTTING_DOWN, D(ARM), NULL),
    ROW(WAITING_RESOURCES, TIMEOUT, FAILED, D(CLEAN), AMP_CODE(resource_timeout)),
    NEW_LIFE(SUSPENDED),
    HELD(SUSPENDED, RESUME),
    ROW(SUSPENDED, RESUME, RESUMED, D(TAKE), NULL),
    EXTRA(SUSPENDED, SHUTDOWN, SHUTTING_DOWN, D(ARM), NULL),
    ROW(SUSPENDED, TIMEOUT, FAILED, D(CLEAN), "suspend_timeout"),
    NEW_LIFE(RESUMED),
    HELD(RESUMED, START),
    ROW(RESUMED, START, RUNNING, 0, NULL),
    LOST(RESUMED),
    NEW_LIFE(COMPLETED),
    ROW(COMPLETED, READY, RUNNABLE, D(CLEAN), NULL),
    LOST(COMPLETED),
    NEW_LIFE(SHUTTING_DOWN),
    ROW(SHUTTING_DOWN, TIMEOUT, FAILED, D(CLEAN), AMP_CODE(agent_shutdown_timeout)),
    /* The shutdown is complete: there is no time limit. */
    EXTRA(SHUTTING_DOWN, EXIT, SHUTTING_DOWN, D(CLEAN), NULL),
    NEW_LIFE(FAILED),
    ROW(FAILED, RECOVER, RECOVERING, D(ARM), NULL),
    NEW_LIFE(RECOVERING),
    ROW(RECOVERING, READY, RUNNABLE, 0, NULL),
    ROW(RECOVERING, TIMEOUT, FAILED, D(CLEAN), "recovery_timeout"),
    ROW(RECOVERING, SHUTDOWN, SHUTTING_DOWN, D(ARM), "recovery_abort"),
};

const struct amp_fsm amp_agent_fsm = {
    .name = "agent",
    .source = "SW4RM §8",
    .doc = "the lifecycle of an agent",
    AMP_FSM_LISTS(AMP_AGENT),
    .initial = AMP_AGENT_INITIALIZING,
    .rows = rows,
    .n_rows = sizeof rows / sizeof rows[0],
};

int64_t amp_agent_limit_ms(uint8_t state)
{
    static const int64_t limit[AMP_AGENT_STATE_COUNT] = {
        [AMP_AGENT_INITIALIZING] = 60000,  [AMP_AGENT_WAITING_RESOURCES] = 300000,
        [AMP_AGENT_SUSPENDED] = 3600000,   [AMP_AGENT_RECOVERING] = 120000,
        [AMP_AGENT_SHUTTING_DOWN] = 30000,
    };
    return state < AMP_AGENT_STATE_COUNT ? limit[state] : 0;
}
