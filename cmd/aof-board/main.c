/* aof-board: the task files of AOF/1 and their router. */
#include "aof/machine.h"
#include "base/codes.h"
#include "cli/config.h"
#include "cli/config_schema.h"
#include "cli/work/person.h"
#include "flow/config.h"
#include "flow/intake.h"
#include "flow/values.h"

static const struct amp_opt opts[] = {
    AMP_TOOL_OPTS,
    AMP_OPT_END,
};

#define VERBS(X) X(aof) X(aof_poll)
AMP_VERBS(VERBS);

static const int statuses[] = {0, 1, 64, 65, 69, 70, 73, 74, 75, 77, 78, 130, 0};
static const struct amp_fsm *const machines[] = {&amp_aof_task_fsm, NULL};

AMP_CONFIG_SUSPENDER;
static const struct amp_tool tool = {
    .name = "aof-board",
    .doc = "keep the task files of AOF",
    .opts = opts,
    .verbs = verbs,
    .statuses = statuses,
    .machines = machines,
    AMP_CONFIG_OF_RECORDER,
    .values = amp_flow_values,
    .refuse = amp_state_refuse,
    .open = amp_tool_verb_open,
    .close = amp_tool_verb_close,
    .summary = amp_intake_summary,
};

int main(int argc, char **argv)
{
    return amp_cli_main(&tool, argc, argv);
}
