/* The agent lifecycle of SW4RM §8 and appendix C. Rows that practice needs beside it are extra. */
#include "agent/agent.h"

static const struct amp_fsm_name states[] = {AMP_AGENT_STATES(AMP_FSM_NAMES)};
static const struct amp_fsm_name events[] = {AMP_AGENT_EVENTS(AMP_FSM_NAMES)};
static const struct amp_fsm_name effects[] = {
    {"arm", "arm the state's time limit"},     {"run", "start or continue the process"},
    {"stop", "TERM, the grace period, KILL"},  {"report", "send the result"},
    {"clean", "give back what the task held"},
};

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

static const struct amp_fsm_row rows[] = {
    ROW(INITIALIZING, READY, RUNNABLE, 0, NULL),
    ROW(INITIALIZING, TIMEOUT, FAILED, D(CLEAN), "init_timeout"),
    ROW(RUNNABLE, ASSIGN, SCHEDULED, 0, NULL),
    EXTRA(RUNNABLE, SHUTDOWN, SHUTTING_DOWN, D(ARM), NULL),
    ROW(SCHEDULED, START, RUNNING, D(RUN), NULL),
    EXTRA(SCHEDULED, SHUTDOWN, SHUTTING_DOWN, D(ARM), NULL),
    EXTRA(SCHEDULED, FAIL, FAILED, D(CLEAN), NULL),
    ROW(RUNNING, WAIT, WAITING, 0, NULL),
    ROW(RUNNING, LACK, WAITING_RESOURCES, D(ARM), NULL),
    ROW(RUNNING, SUSPEND, SUSPENDED, D(STOP) | D(ARM), NULL),
    ROW(RUNNING, COMPLETE, COMPLETED, D(REPORT) | D(CLEAN), NULL),
    ROW(RUNNING, FAIL, FAILED, D(CLEAN), NULL),
    ROW(RUNNING, SHUTDOWN, SHUTTING_DOWN, D(STOP) | D(ARM), NULL),
    ROW(WAITING, START, RUNNING, D(RUN), NULL),
    ROW(WAITING_RESOURCES, START, RUNNING, D(RUN), NULL),
    ROW(WAITING_RESOURCES, TIMEOUT, FAILED, D(CLEAN), "resource_timeout"),
    ROW(SUSPENDED, RESUME, RESUMED, 0, NULL),
    ROW(SUSPENDED, TIMEOUT, FAILED, D(CLEAN), "suspend_timeout"),
    ROW(RESUMED, START, RUNNING, D(RUN), NULL),
    ROW(COMPLETED, READY, RUNNABLE, 0, NULL),
    ROW(SHUTTING_DOWN, TIMEOUT, FAILED, D(STOP) | D(CLEAN), "agent_shutdown_timeout"),
    ROW(FAILED, RECOVER, RECOVERING, D(ARM), NULL),
    ROW(RECOVERING, READY, RUNNABLE, 0, NULL),
    ROW(RECOVERING, TIMEOUT, FAILED, D(CLEAN), "recovery_timeout"),
    ROW(RECOVERING, SHUTDOWN, SHUTTING_DOWN, D(ARM), "recovery_abort"),
};

const struct amp_fsm amp_agent_fsm = {
    .name = "agent",
    .source = "SW4RM §8",
    .doc = "the lifecycle of an agent",
    .states = states,
    .events = events,
    .effects = effects,
    .n_states = AMP_AGENT_STATE_COUNT,
    .n_events = AMP_AGENT_EVENT_COUNT,
    .n_effects = sizeof effects / sizeof effects[0],
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
