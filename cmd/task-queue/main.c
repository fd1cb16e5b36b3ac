/* task-queue: work that waits for agents, and the pools of agents that do it. */
#include "base/codes.h"
#include "cli/config.h"
#include "message/delivery/intake.h"
#include "shared/config.h"
#include "shared/config_schema.h"
#include "shared/values.h"
#include "shared/work/person.h"
#include "work/agent/agent.h"
#include "work/item/conflict/machine.h"
#include "work/item/machine.h"

/* clang-format off */
#define VERBS(X) \
    X(queue_submit) X(queue_list) X(queue_status) X(queue_rank) X(queue_preempt) X(queue_override) \
    X(queue_cancel) X(queue_accounts) X(pool_work) X(pool_shutdown)
/* clang-format on */
AMP_VERBS(VERBS);

static const struct amp_fsm *const machines[] = {&amp_queue_fsm, &amp_conflict_fsm,
                                                 &amp_breaker_fsm, &amp_agent_fsm, NULL};

AMP_CONFIG_SUSPENDER;
static const struct amp_tool tool = {
    .name = "task-queue",
    .doc = "keep work of all protocols in a queue, and run agents on it",
    .verbs = verbs,
    .machines = machines,
    AMP_CONFIG_OF_RECORDER,
    AMP_TOOL_OF_WORK,
};

int main(int argc, char **argv)
{
    return amp_cli_main(&tool, argc, argv);
}
