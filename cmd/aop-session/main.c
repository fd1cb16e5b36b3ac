/* aop-session: the sessions of AOP and their TASKs. */
#include "base/codes.h"
#include "cli/config.h"
#include "message/delivery/intake.h"
#include "shared/config.h"
#include "shared/config_schema.h"
#include "shared/values.h"
#include "shared/work/person.h"
#include "work/aop/machine.h"

#define VERBS(X) X(session_run) X(session_list) X(session_report) X(session_rollback)
AMP_VERBS(VERBS);

static const struct amp_fsm *const machines[] = {&amp_session_fsm, &amp_session_task_fsm, NULL};

AMP_CONFIG_SUSPENDER;
static const struct amp_tool tool = {
    .name = "aop-session",
    .doc = "carry out the sessions of AOP, and report them",
    .verbs = verbs,
    .machines = machines,
    AMP_CONFIG_OF_RECORDER,
    AMP_TOOL_OF_WORK,
};

int main(int argc, char **argv)
{
    return amp_cli_main(&tool, argc, argv);
}
