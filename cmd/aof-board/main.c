/* aof-board: the task files of AOF/1 and their router. */
#include "base/codes.h"
#include "cli/config.h"
#include "message/delivery/intake.h"
#include "shared/config.h"
#include "shared/config_schema.h"
#include "shared/values.h"
#include "shared/work/person.h"
#include "work/aof/machine.h"

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
