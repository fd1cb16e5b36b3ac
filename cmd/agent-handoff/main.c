/* agent-handoff: work that changes hands, and who works on what. */
#include "base/codes.h"
#include "cli/config.h"
#include "message/delivery/intake.h"
#include "shared/config.h"
#include "shared/config_schema.h"
#include "shared/values.h"
#include "shared/work/person.h"
#include "work/handoff/handoff.h"

#define VERBS(X) X(handoff_filter) X(handoff) X(handoff_pending) X(activity)
AMP_VERBS(VERBS);

static const struct amp_fsm *const machines[] = {&amp_handoff_fsm, NULL};

AMP_CONFIG_SUSPENDER;
static const struct amp_tool tool = {
    .name = "agent-handoff",
    .doc = "hand work over to other agents, and list who works on what",
    .verbs = verbs,
    .machines = machines,
    AMP_CONFIG_OF_RECORDER,
    AMP_TOOL_OF_WORK,
};

int main(int argc, char **argv)
{
    return amp_cli_main(&tool, argc, argv);
}
