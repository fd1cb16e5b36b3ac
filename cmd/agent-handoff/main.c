/* agent-handoff: work that changes hands, and who works on what. */
#include "base/codes.h"
#include "cli/config.h"
#include "cli/config_schema.h"
#include "cli/work/person.h"
#include "flow/config.h"
#include "flow/intake.h"
#include "flow/values.h"
#include "handoff/handoff.h"

static const struct amp_opt opts[] = {
    AMP_TOOL_OPTS,
    AMP_OPT_END,
};

#define VERBS(X) X(handoff_filter) X(handoff) X(handoff_pending) X(activity)
AMP_VERBS(VERBS);

static const int statuses[] = {0, 1, 64, 65, 69, 70, 73, 74, 75, 77, 78, 130, 0};
static const struct amp_fsm *const machines[] = {&amp_handoff_fsm, NULL};

AMP_CONFIG_SUSPENDER;
static const struct amp_tool tool = {
    .name = "agent-handoff",
    .doc = "hand work over to other agents, and list who works on what",
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
