/* aof-board: the task files of AOF/1 and their router. */
#include "aof/machine.h"
#include "base/codes.h"
#include "cli/config.h"
#include "cli/config_schema.h"
#include "cli/work/person.h"
#include "flow/config.h"
#include "flow/intake.h"
#include "flow/values.h"

#define VERBS(X) X(aof) X(aof_poll)
AMP_VERBS(VERBS);

static const struct amp_fsm *const machines[] = {&amp_aof_task_fsm, NULL};

AMP_CONFIG_SUSPENDER;
static const struct amp_tool tool = {
    .name = "aof-board",
    .doc = "keep the task files of AOF",
    .verbs = verbs,
    .machines = machines,
    AMP_CONFIG_OF_RECORDER,
    AMP_TOOL_OF_WORK,
};

int main(int argc, char **argv)
{
    return amp_cli_main(&tool, argc, argv);
}
