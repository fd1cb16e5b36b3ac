/* worktree-bind: agents' worktrees, and the hooks that guard protected branches. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bind.h"
#include "message/delivery/intake.h"
#include "shared/config.h"
#include "shared/config_schema.h"
#include "shared/values.h"

struct bind_options opt = {.repo = ".",
                           .humans = "allow",
                           .agent = "*",
                           .ttl_ms = 600000,
                           .identity = AMP_IDENTITY_CLI,
                           .switch_ms = AMP_BINDING_SWITCH_TTL_MS,
                           .prepare = {AMP_PREPARE_DEFAULTS, .stop = &amp_stop, .note = amp_note},
                           .most_ms = AMP_BINDING_SWITCH_MAX_MS,
                           .lock_timeout_ms = AMP_LOCK_TIMEOUT_MS};

static const struct amp_opt tool_opts[] = {
    AMP_OPT_REPO(opt.repo),
    {'s', "state", AMP_OPT_DIR, &opt.state, "DIR",
     .doc = "the state directory instead of amp in the common git directory", .env = "AMP_STATE"},
    AMP_OPT_LOCK_TIMEOUT(opt.lock_timeout_ms),
    AMP_OPT_JSON("print one JSON object per line"),
    AMP_OPT_END,
};

/* clang-format off */
#define VERBS(X) \
    X(control) X(bind) X(list) X(switch) X(exec) X(agent_hook) X(life) X(reserve) X(hooks)
/* clang-format on */
AMP_VERBS(VERBS);
static const int statuses[] = {0, 1, 64, 65, 69, 70, 73, 74, 75, 77, 78, 124, 130, 0};
AMP_CONFIG_TAKER;
static const struct amp_fsm *const machines[] = {&amp_binding_fsm, NULL};

/* The coding agents take only status 2 for a refusal, and go on after another one. */
static void status_map(int status, void *unused)
{
    (void)unused;
    if (status == 0)
        return;
    fflush(NULL);
    _exit(2);
}

static void agent_hook_prepare(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "agent-hook") == 0) {
            on_exit(status_map, NULL);
            return;
        }
}

int main(int argc, char **argv)
{
    static const struct amp_tool tool = {
        .name = "worktree-bind",
        .doc = "bind agents to git worktrees and guard protected branches",
        .opts = tool_opts,
        .verbs = verbs,
        .statuses = statuses,
        .machines = machines,
        AMP_CONFIG_OF_TAKER,
        .values = amp_values,
        .summary = amp_intake_summary,
        .refuse = amp_state_refuse,
        .open = bind_open,
        .close = bind_close,
    };
    agent_hook_prepare(argc, argv);
    return amp_cli_main(&tool, argc, argv);
}
