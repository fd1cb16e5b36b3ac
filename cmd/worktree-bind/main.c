/* worktree-bind: agents' worktrees, and the hooks that guard protected branches. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bind.h"
#include "cli/config_schema.h"
#include "cli/rows.h"
#include "flow/config.h"
#include "flow/intake.h"
#include "flow/values.h"

struct bind_options opt = {.repo = ".",
                           .humans = "allow",
                           .agent = "*",
                           .ttl_ms = 600000,
                           .identity = AMP_IDENTITY_CLI,
                           .switch_ms = AMP_BINDING_SWITCH_TTL_MS,
                           .prepare = {AMP_PREPARE_DEFAULTS, .stop = &amp_stop, .note = amp_note},
                           .most_ms = AMP_BINDING_SWITCH_MAX_MS,
                           .lock_timeout_ms = AMP_LOCK_TIMEOUT_MS};

static const char *const humans_choices[] = {"allow", "refuse", NULL};

static const struct amp_opt tool_opts[] = {
    AMP_OPT_REPO(opt.repo),
    {'s', "state", AMP_OPT_DIR, &opt.state, "DIR",
     .doc = "the state directory instead of amp in the common git directory", .env = "AMP_STATE"},
    AMP_OPT_LOCK_TIMEOUT(opt.lock_timeout_ms),
    {0, "json", AMP_OPT_FLAG, &opt.json, NULL, .doc = "print one JSON object per line"},
    AMP_OPT_END,
};

#define WORKTREES                                                                                  \
    AMP_OPT_ROW(0, "worktrees", AMP_OPT_DIR, &opt.worktrees, "DIR",                                \
                "directory of the worktrees that may be named")
#define ALLOW_SWITCH                                                                               \
    AMP_OPT_ROW(0, "allow-switch", AMP_OPT_LIST, &opt.switches, "AGENT=WORKTREE",                  \
                "switch that needs no approval (* and ? match)", .config = "worktree.switches")
#define SWITCH_TTL                                                                                 \
    AMP_OPT_ROW(0, "switch-ttl", AMP_OPT_DURATION, &opt.switch_ms, "TIME",                         \
                "how long a switch lasts if its request names no time (default: 15m)", .min = 1,   \
                .max = AMP_BINDING_SWITCH_MAX_MS, .config = "worktree.switch_ttl")

static const struct amp_opt filter_opts[] = {
    {0, "repo-id", AMP_OPT_LIST, &opt.repos, "ID=DIR",
     .doc = "repository for the repo_id of a message"},
    WORKTREES,
    ALLOW_SWITCH,
    {0, "approver", AMP_OPT_LIST, &opt.approvers, "NAME",
     .doc = "producer whose SWITCH_APPROVE counts", .config = "worktree.approvers"},
    SWITCH_TTL,
    AMP_OPT_PREPARE(opt.prepare),
    AMP_OPT_IDENTITIES(opt.identity),
    AMP_OPT_CONFIG(opt.config),
    AMP_OPT_END,
};

static const struct amp_opt switch_opts[] = {
    WORKTREES,
    ALLOW_SWITCH,
    SWITCH_TTL,
    AMP_OPT_CONFIG(opt.config),
    {0, "print", AMP_OPT_FLAG, &opt.print, NULL,
     .doc = "write the question to a person to standard output, for a pipe"},
    AMP_OPT_END,
};

static const struct amp_opt approve_opts[] = {
    WORKTREES,
    {0, "at-most", AMP_OPT_DURATION, &opt.most_ms, "TIME",
     .doc = "longest time, if more was requested (default: 24h)", .min = 1,
     .max = AMP_BINDING_SWITCH_MAX_MS},
    AMP_OPT_END,
};

static const struct amp_opt bind_opts[] = {
    {'b', "branch", AMP_OPT_STRING, &opt.branch, "BRANCH",
     .doc = "branch, created if missing (default: a detached worktree)"},
    {0, "base", AMP_OPT_STRING, &opt.base, "REV",
     .doc = "start of a new branch or detached worktree (default: HEAD)"},
    {0, "path", AMP_OPT_DIR, &opt.path, "DIR",
     .doc = "directory of the worktree (default: REPO.worktrees/AGENT)"},
    {0, "role", AMP_OPT_STRING, &opt.role, "ROLE",
     .doc = "the agent's role, for the guard's rules per role"},
    {0, "push", AMP_OPT_FLAG, &opt.push, NULL,
     .doc = "let git push from the worktree (default: the guard refuses)"},
    {0, "no-sparse", AMP_OPT_FLAG, &opt.no_sparse, NULL,
     .doc = "write all files, although the main worktree has a sparse checkout"},
    AMP_OPT_PREPARE(opt.prepare),
    AMP_OPT_CONFIG(opt.config),
    AMP_OPT_END,
};

static const struct amp_opt unbind_opts[] = {
    {0, "remove", AMP_OPT_FLAG, &opt.remove, NULL,
     .doc = "also remove the worktree; its branch stays"},
    {0, "force", AMP_OPT_FLAG, &opt.force, NULL, .doc = "also with uncommitted changes"},
    AMP_OPT_END,
};

static const struct amp_opt exec_opts[] = {
    AMP_OPT_CONFINE(opt.walls),
    {0, "access", AMP_OPT_PATH, &opt.access, "FILE",
     .doc = "allow at most the effective access of the AOP task in FILE (-: standard input)"},
    AMP_OPT_END,
};

static const struct amp_opt repair_opts[] = {
    AMP_OPT_PREPARE(opt.prepare),
    AMP_OPT_CONFIG(opt.config),
    AMP_OPT_END,
};
static const struct amp_opt gc_opts[] = {
    {0, "apply", AMP_OPT_FLAG, &opt.apply, NULL, .doc = "remove; default: only report"},
    {0, "into", AMP_OPT_STRING, &opt.into, "REV",
     .doc = "revision that must have the commits (default: a protected branch)"},
    AMP_OPT_END,
};

#define HOLDER                                                                                     \
    AMP_OPT_ROW(0, "holder", AMP_OPT_STRING, &opt.holder, "AGENT",                                 \
                "holder (default: the agent that calls, or your login)")

static const struct amp_opt reserve_opts[] = {
    HOLDER,
    {0, "task", AMP_OPT_STRING, &opt.task, "TASK", .doc = "task that the paths are reserved for",
     .values = "task"},
    AMP_OPT_END,
};
static const struct amp_opt release_opts[] = {
    HOLDER,
    {0, "all", AMP_OPT_FLAG, &opt.all, NULL, .doc = "all reservations of the holder"},
    AMP_OPT_END,
};

#define HOOKS_DIR                                                                                  \
    AMP_OPT_ROW(0, "hooks-dir", AMP_OPT_DIR, &opt.hooks_dir, "DIR",                                \
                "hooks directory (default: hooks in the common git directory)")
#define SERVER                                                                                     \
    AMP_OPT_ROW(0, "server", AMP_OPT_FLAG, &opt.server, NULL,                                      \
                "also install the update hook, for a server")

static const struct amp_opt install_opts[] = {
    HOOKS_DIR,
    SERVER,
    {0, "protect", AMP_OPT_LIST, &opt.protect, "PATTERN",
     .doc = "protected branch, in addition to main and master (* and ? match)",
     .config = "branches.protected"},
    {0, "humans", AMP_OPT_CHOICE, &opt.humans, "WORD",
     .doc = "whether people may change protected branches here", .choices = humans_choices,
     .config = "guard.humans"},
    {0, "pusher", AMP_OPT_LIST, &opt.pushers, "NAME",
     .doc = "with --server: who may push to protected branches", .config = "guard.pushers"},
    {0, "role", AMP_OPT_LIST, &opt.roles, "ROLE=PATTERN",
     .doc = "agents of the role (*: every role) move only branches that match one of its patterns",
     .config = "guard.roles"},
    {0, "bound", AMP_OPT_FLAG, &opt.bound, NULL,
     .doc = "agents move only the branch that their worktree is bound to", .config = "guard.bound"},
    {0, "trailer", AMP_OPT_LIST, &opt.trailers, "NAME",
     .doc = "trailer that each commit of an agent must have (Task, Agent)",
     .config = "guard.trailers"},
    {0, "forbid", AMP_OPT_LIST, &opt.paths, "PATTERN",
     .doc = "files that agents may not change (as in gitignore)", .config = "guard.forbidden"},
    {0, "max-file", AMP_OPT_SIZE, &opt.max_file, "SIZE",
     .doc = "largest file that an agent may commit (default: no limit)",
     .config = "guard.max_file"},
    {0, "max-commit", AMP_OPT_SIZE, &opt.max_commit, "SIZE",
     .doc = "most bytes in the files that one commit changes (default: no limit)",
     .config = "guard.max_commit"},
    AMP_OPT_CONFIG(opt.config),
    AMP_OPT_END,
};
static const struct amp_opt uninstall_opts[] = {HOOKS_DIR, AMP_OPT_END};
static const struct amp_opt check_opts[] = {
    HOOKS_DIR,
    SERVER,
    {0, "prove", AMP_OPT_FLAG, &opt.prove, NULL,
     .doc = "also try each rule on a scratch clone, which is removed afterwards"},
    AMP_OPT_END,
};
static const struct amp_opt override_opts[] = {
    {0, "agent", AMP_OPT_STRING, &opt.agent, "AGENT",
     .doc = "only this agent may use it (default: any agent)", .values = "agent"},
    {0, "for", AMP_OPT_DURATION, &opt.ttl_ms, "TIME",
     .doc = "how long the override can be used (default: 10m)", .min = 1000, .max = 86400000},
    {0, "reason", AMP_OPT_STRING, &opt.reason, "TEXT", .doc = "reason, for the log; required"},
    AMP_OPT_END,
};

static const struct amp_verb verbs[] = {
    {NULL, "", "WORKTREE_CONTROL messages on stdin, binding states on stdout", filter_opts, NULL,
     .old = verb_filter, .who = AMP_WHO_SELF},
    {"bind", "AGENT", "bind an agent to a worktree", bind_opts, NULL, .old = verb_bind,
     .group = "Bindings", .who = AMP_WHO_SELF},
    {"unbind", "AGENT", "end an agent's binding", unbind_opts, NULL, .old = verb_unbind,
     .values = "binding", .who = AMP_WHO_SELF},
    {"list", "", "print all bindings, with their changes, commits and tasks", NULL, NULL,
     .old = verb_list},
    {"status", "AGENT", "print an agent's binding", NULL, NULL, .old = verb_status,
     .values = "binding"},
    {"path", "AGENT", "print the directory of an agent's worktree", NULL, NULL, .old = verb_path,
     .values = "binding"},
    {"switch", "AGENT WORKTREE", "request that an agent works in another worktree for a time",
     switch_opts, NULL, .old = verb_switch, .values = "binding", .group = "Switching",
     .who = AMP_WHO_SELF},
    {"approve", "AGENT", "approve a requested switch", approve_opts, NULL, .old = verb_approve,
     .values = "binding", .who = AMP_WHO_PERSON},
    {"reject", "AGENT", "reject a requested switch", NULL, NULL, .old = verb_reject,
     .values = "binding", .who = AMP_WHO_SELF},
    {"revoke", "AGENT", "end a switch", NULL, NULL, .old = verb_revoke, .values = "binding",
     .who = AMP_WHO_SELF},
    {"exec", "COMMAND [ARG…]", "run a command confined to the worktree", exec_opts, NULL,
     .old = verb_exec, .group = "Agents"},
    {"agent-hook", "", "decide about a tool call of a coding agent (JSON on stdin)", NULL, NULL,
     .old = verb_agent_hook},
    {"gc", "", "report or remove worktrees that are not needed any more", gc_opts, NULL,
     .old = verb_gc, .group = "Worktrees", .who = AMP_WHO_WITH("--apply")},
    {"repair", "", "remove half-made worktrees, and make missing ones again", repair_opts, NULL,
     .old = verb_repair, .who = AMP_WHO_PERSON},
    {"reserve", "GLOB...", "reserve paths for an agent or yourself", reserve_opts, NULL,
     .old = verb_reserve, .group = "Reservations", .who = AMP_WHO_SELF},
    {"release", "[GLOB...]", "release reserved paths", release_opts, NULL, .old = verb_release,
     .who = AMP_WHO_SELF},
    {"reservations", "", "print the reservations", NULL, NULL, .old = verb_reservations},
    {"hooks install", "", "install the hooks that guard protected branches", install_opts, NULL,
     .old = verb_hooks_install, .group = "Guard", .who = AMP_WHO_PERSON},
    {"hooks uninstall", "", "restore the previous hooks", uninstall_opts, NULL,
     .old = verb_hooks_uninstall, .who = AMP_WHO_PERSON},
    {"hooks check", "", "check that the guard is installed and works", check_opts, NULL,
     .old = verb_hooks_check},
    {"hooks override", "BRANCH", "allow one change of a protected branch, once", override_opts,
     NULL, .old = verb_hooks_override, .who = AMP_WHO_PERSON},
    {"hooks run", "HOOK [ARG…]", "run the guard as one hook, for hook managers", NULL, NULL,
     .old = verb_hooks_run},
    {0},
};
static const struct amp_verb *const tables[] = {verbs, NULL};
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
        .verbs = tables,
        .statuses = statuses,
        .machines = machines,
        AMP_CONFIG_OF_TAKER,
        .values = amp_flow_values,
        .summary = amp_intake_summary,
    };
    agent_hook_prepare(argc, argv);
    return amp_cli_main(&tool, argc, argv);
}
