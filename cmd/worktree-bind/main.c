/* worktree-bind: agents' worktrees, and the hooks that guard protected branches. */
#include "bind.h"
#include "cli/rows.h"
#include "flow/config.h"

struct bind_options opt = {.repo = ".",
                           .humans = "allow",
                           .agent = "*",
                           .ttl_ms = 600000,
                           .lock_timeout_ms = AMP_LOCK_TIMEOUT_MS};

static const char *const humans_choices[] = {"allow", "refuse", NULL};

static const struct amp_opt tool_opts[] = {
    AMP_OPT_REPO(opt.repo),
    {.letter = 's',
     .name = "state",
     .kind = AMP_OPT_DIR,
     .dest = &opt.state,
     .arg = "DIR",
     .doc = "the state directory instead of amp in the common git directory",
     .env = "AMP_STATE"},
    AMP_OPT_LOCK_TIMEOUT(opt.lock_timeout_ms),
    {.name = "json",
     .kind = AMP_OPT_FLAG,
     .dest = &opt.json,
     .doc = "print one JSON object per line"},
    AMP_OPT_END,
};

static const struct amp_opt filter_opts[] = {
    {.name = "repo-id",
     .kind = AMP_OPT_LIST,
     .dest = &opt.repos,
     .arg = "ID=DIR",
     .doc = "repository for the repo_id of a message"},
    {.name = "worktrees",
     .kind = AMP_OPT_DIR,
     .dest = &opt.worktrees,
     .arg = "DIR",
     .doc = "directory of the worktrees that messages may name"},
    AMP_OPT_END,
};

static const struct amp_opt bind_opts[] = {
    {.letter = 'b',
     .name = "branch",
     .kind = AMP_OPT_STRING,
     .dest = &opt.branch,
     .arg = "BRANCH",
     .doc = "branch, created if missing (default: a detached worktree)"},
    {.name = "base",
     .kind = AMP_OPT_STRING,
     .dest = &opt.base,
     .arg = "REV",
     .doc = "start of a new branch or detached worktree (default: HEAD)"},
    {.name = "path",
     .kind = AMP_OPT_DIR,
     .dest = &opt.path,
     .arg = "DIR",
     .doc = "directory of the worktree (default: REPO.worktrees/AGENT)"},
    AMP_OPT_END,
};

static const struct amp_opt unbind_opts[] = {
    {.name = "remove",
     .kind = AMP_OPT_FLAG,
     .dest = &opt.remove,
     .doc = "also remove the worktree; its branch stays"},
    {.name = "force",
     .kind = AMP_OPT_FLAG,
     .dest = &opt.force,
     .doc = "also with uncommitted changes"},
    AMP_OPT_END,
};

#define HOOKS_DIR                                                                                  \
    {                                                                                              \
        .name = "hooks-dir", .kind = AMP_OPT_DIR, .dest = &opt.hooks_dir, .arg = "DIR",            \
        .doc = "hooks directory (default: hooks in the common git directory)"                      \
    }
#define SERVER                                                                                     \
    {                                                                                              \
        .name = "server", .kind = AMP_OPT_FLAG, .dest = &opt.server,                               \
        .doc = "also install the update hook, for a server"                                        \
    }

static const struct amp_opt install_opts[] = {
    HOOKS_DIR,
    SERVER,
    {.name = "protect",
     .kind = AMP_OPT_LIST,
     .dest = &opt.protect,
     .arg = "PATTERN",
     .doc = "protected branch, in addition to main and master (* and ? match)",
     .config = "branches.protected"},
    {.name = "humans",
     .kind = AMP_OPT_CHOICE,
     .dest = &opt.humans,
     .arg = "WORD",
     .doc = "whether people may change protected branches here",
     .choices = humans_choices,
     .config = "guard.humans"},
    {.name = "pusher",
     .kind = AMP_OPT_LIST,
     .dest = &opt.pushers,
     .arg = "NAME",
     .doc = "with --server: who may push to protected branches",
     .config = "guard.pushers"},
    AMP_OPT_CONFIG(opt.config),
    AMP_OPT_END,
};
static const struct amp_opt uninstall_opts[] = {HOOKS_DIR, AMP_OPT_END};
static const struct amp_opt check_opts[] = {HOOKS_DIR, SERVER, AMP_OPT_END};
static const struct amp_opt override_opts[] = {
    {.name = "agent",
     .kind = AMP_OPT_STRING,
     .dest = &opt.agent,
     .arg = "AGENT",
     .doc = "only this agent may use it (default: any agent)"},
    {.name = "for",
     .kind = AMP_OPT_DURATION,
     .dest = &opt.ttl_ms,
     .arg = "TIME",
     .doc = "how long the override can be used (default: 10m)",
     .min = 1000,
     .max = 86400000},
    {.name = "reason",
     .kind = AMP_OPT_STRING,
     .dest = &opt.reason,
     .arg = "TEXT",
     .doc = "reason, for the log; required"},
    AMP_OPT_END,
};

static const struct amp_verb verbs[] = {
    {.name = NULL,
     .args = "",
     .doc = "WORKTREE_CONTROL messages on stdin, binding states on stdout",
     .opts = filter_opts,
     .run = verb_filter},
    {.name = "bind",
     .args = "AGENT",
     .doc = "bind an agent to a worktree",
     .opts = bind_opts,
     .run = verb_bind},
    {.name = "unbind",
     .args = "AGENT",
     .doc = "end an agent's binding",
     .opts = unbind_opts,
     .run = verb_unbind},
    {.name = "status", .args = "AGENT", .doc = "print an agent's binding", .run = verb_status},
    {.name = "list", .args = "", .doc = "print all bindings", .run = verb_list},
    {.name = "hooks install",
     .args = "",
     .doc = "install the hooks that guard protected branches",
     .opts = install_opts,
     .run = verb_hooks_install},
    {.name = "hooks uninstall",
     .args = "",
     .doc = "restore the previous hooks",
     .opts = uninstall_opts,
     .run = verb_hooks_uninstall},
    {.name = "hooks check",
     .args = "",
     .doc = "check that the guard is installed and works",
     .opts = check_opts,
     .run = verb_hooks_check},
    {.name = "hooks override",
     .args = "BRANCH",
     .doc = "allow one change of a protected branch, once",
     .opts = override_opts,
     .run = verb_hooks_override},
    {0},
};
static const int statuses[] = {0, 1, 64, 65, 69, 70, 73, 74, 75, 77, 78, 124, 130, 0};
static const struct amp_fsm *const machines[] = {&amp_binding_fsm, NULL};

int main(int argc, char **argv)
{
    static const struct amp_tool tool = {
        .name = "worktree-bind",
        .doc = "bind agents to git worktrees and guard protected branches",
        .opts = tool_opts,
        .verbs = verbs,
        .statuses = statuses,
        .machines = machines,
        AMP_CONFIG_OF_TOOL,
    };
    return amp_cli_main(&tool, argc, argv);
}
