/* task-dispatch: leads tasks through dispatch, review and rework. */
#include <stdlib.h>
#include <string.h>

#include "base/codes.h"
#include "cli/config.h"
#include "cli/rows.h"
#include "message/delivery/intake.h"
#include "shared/config.h"
#include "shared/config_schema.h"
#include "shared/values.h"
#include "shared/work/person.h"
#include "verbs.h"
#include "work/agent/agent.h"
#include "work/item/machine.h"
#include "work/task/landing/landing.h"
#include "work/task/machines.h"
#include "work/task/policy.h"

/* clang-format off */
#define VERBS(X) \
    X(default) X(init) X(loop) X(new) X(list) X(show) X(diff) X(log) X(open) X(again) X(cancel) \
    X(land) X(coordinate) X(worker) X(verify) X(export)
/* clang-format on */
AMP_VERBS(VERBS);

static const struct amp_fsm *const machines[] = {&amp_task_fsm,  &amp_qa_fsm,      &amp_agent_fsm,
                                                 &amp_queue_fsm, &amp_landing_fsm, NULL};

AMP_CONFIG_SUSPENDER;
static const struct amp_tool tool = {
    .name = "task-dispatch",
    .doc = "lead agents' tasks through dispatch, review and rework",
    .first = "The loop's filters",
    .verbs = verbs,
    .machines = machines,
    AMP_CONFIG_OF_RECORDER,
    AMP_TOOL_OF_WORK,
};

int task_policy(struct amp_task_policy *out, struct amp_error *err)
{
    struct json_t *config = NULL;
    amp_task_policy_default(out);
    return amp_config_load(amp_tool_config, amp_tool_state, &config, err) < 0
               ? -1
               : amp_task_policy_load(out, config, err);
}

int main(int argc, char **argv)
{
    return amp_cli_main(&tool, argc, argv);
}
