/* task-dispatch init: options, the plan as text, and where to go next. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include <amp/base/child.h>
#include <amp/base/file.h>
#include <amp/json/writer.h>

#include "../verbs.h"
#include "base/codes.h"
#include "base/words.h"
#include "init.h"
#include "work/confine/confine.h"

static const char *executor, *reviewer;
static bool yes, dry_run, undo, json, no_hooks, no_agents, no_loop, unconfined;

static const struct amp_opt task_init_opts[] = {
    {'x', "exec", AMP_OPT_STRING, &executor, "COMMAND", .doc = "the executor's command"},
    {'y', "reviewer", AMP_OPT_STRING, &reviewer, "COMMAND", .doc = "the reviewer's command"},
    {0, "unconfined", AMP_OPT_FLAG, &unconfined, NULL,
     .doc = "set up a loop whose agents are not confined: they count as people"},
    {0, "no-loop", AMP_OPT_FLAG, &no_loop, NULL, .doc = "do not write loop.sh"},
    {0, "no-hooks", AMP_OPT_FLAG, &no_hooks, NULL, .doc = "do not install the hooks"},
    {0, "no-agents", AMP_OPT_FLAG, &no_agents, NULL,
     .doc = "do not write AGENTS.md and its includes"},
    {0, "yes", AMP_OPT_FLAG, &yes, NULL, .doc = "do not ask whether to proceed"},
    {0, "dry-run", AMP_OPT_FLAG, &dry_run, NULL, .doc = "print the plan and change nothing"},
    {0, "undo", AMP_OPT_FLAG, &undo, NULL,
     .doc = "remove what init made, unless it was changed since"},
    {0, "json", AMP_OPT_FLAG, &json, NULL, .doc = "print one JSON object per line"},
    AMP_OPT_END,
};

AMP_WORDS(words, INIT_ACTIONS);
static const char *const kinds[] = {[INIT_STATE] = "state",
                                    [INIT_FILE] = "file",
                                    [INIT_SECTION] = "section",
                                    [INIT_HOOKS] = "hooks"};

/* The path as people know it: below the top directory. */
static const char *path_shown(const struct init *in, const char *path)
{
    size_t n = strlen(in->info.workdir);
    return n && strncmp(path, in->info.workdir, n) == 0 && path[n] == '/' ? path + n + 1 : path;
}

static int step_print(const struct init *in, const struct init_step *s, struct amp_error *err)
{
    AMP_BUF struct amp_buf out = {0};
    struct amp_jw w;
    amp_buf_init(&out, 64 << 10);
    if (json) {
        amp_jw_init(&w, &out);
        amp_jw_open(&w, '{');
        amp_jw_member_text(&w, "action", words[s->action]);
        amp_jw_member_text(&w, "kind", kinds[s->kind]);
        amp_jw_member_text(&w, "path", s->path);
        amp_jw_member_text(&w, "message", s->note);
        amp_jw_close(&w, '}');
        return amp_jw_end_line(&w, err) < 0 ? -1 : amp_out(amp_buf_span(&out), err);
    }
    if (amp_buf_fmt(&out, err, "%-8s ", words[s->action]) < 0 ||
        amp_text_safe(amp_span_str(path_shown(in, s->path)), 0, &out, err) < 0 ||
        (s->note[0] && amp_buf_fmt(&out, err, "   (%s)", s->note) < 0) ||
        amp_buf_str(&out, "\n", err) < 0)
        return -1;
    return amp_out(amp_buf_span(&out), err);
}

static int plan_print(const struct init *in, struct amp_error *err)
{
    for (size_t i = 0; i < in->n; i++)
        if (step_print(in, &in->steps[i], err) < 0)
            return -1;
    return amp_out_flush(err);
}

static bool plan_changes(const struct init *in)
{
    for (size_t i = 0; i < in->n; i++)
        if (in->steps[i].action != INIT_KEEP)
            return true;
    return false;
}

/* Prints the next steps. */
static void next_print(const struct init *in)
{
    bool usual = strcmp(in->info.branch, "main") == 0 || strcmp(in->info.branch, "master") == 0;
    if (!in->info.head[0])
        amp_note("the repository has no commit yet: a task needs one to start from");
    if (!usual && !in->info.linked && in->info.branch[0] && !no_hooks)
        amp_note("%s is protected here, too: agents do not change it", in->info.branch);
    amp_note("next: write a task into TASK.md (task-dispatch-new(1)), then %s TASK.md",
             in->executor && in->reviewer ? "./loop.sh" : "task-dispatch loop -x … -y …");
    if (unconfined)
        amp_note("the agents are not confined: they count as people (docs/guard.md)");
    if (!no_agents)
        amp_note("share/amp/SKILL.md explains these tools to agents: copy it to "
                 ".claude/skills/amp-tools/ (Claude Code) and to .agents/skills/amp-tools/ (Codex, "
                 "Gemini CLI, OpenCode, Qwen Code)");
    amp_note("task-dispatch init --undo removes all this again");
}

/* ---- questions, on the terminal, never on standard input ---- */

#define LINE_LONG 4096

static int terminal_open(void)
{
    int fd = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (fd >= 0 && tcgetpgrp(fd) != getpgrp()) {
        close(fd); /* a background job would be stopped */
        fd = -1;
    }
    return fd;
}

static bool has_terminal(void)
{
    AMP_CLOSE int fd = terminal_open();
    return fd >= 0;
}

/* Reads a line, without what was typed before the question. */
static int line_ask(int fd, const char *question, char *out, size_t size, struct amp_error *err)
{
    char c;
    size_t n = 0;
    tcflush(fd, TCIFLUSH);
    if (amp_write_all(fd, amp_span_str(question), err) < 0)
        return -1;
    for (;;) {
        ssize_t got = read(fd, &c, 1);
        if (got < 0 && errno == EINTR && !amp_stop)
            continue;
        if (amp_stop)
            return amp_fail(err, AMP_INTERRUPTED, interrupted, "interrupted; nothing was made");
        if (got <= 0)
            return amp_fail(err, AMP_USAGE, no_answer, "no answer; nothing was made");
        if (c == '\n')
            break;
        if (n + 1 < size)
            out[n++] = c;
    }
    out[n] = '\0';
    return 0;
}

static bool program_exists(const char *name)
{
    char path[PATH_MAX];
    struct amp_error ignored;
    return amp_child_find(name, environ, path, sizeof path, &ignored) == 0;
}

/* The adapter of a coding agent that is installed; later: prefer the second one. */
static const char *agent_guess(bool later)
{
    bool claude = program_exists("claude"), codex = program_exists("codex");
    if (later ? codex : !claude && codex)
        return "agent-codex";
    return claude ? "agent-claude" : "";
}

/* Whether the first word is a program; a line for the shell is not checked. */
static bool command_exists(const char *text)
{
    char word[PATH_MAX], path[PATH_MAX];
    struct amp_error ignored;
    size_t n = strcspn(text, " \t");
    if (strpbrk(text, "|&;<>()$`\\\"'*?[]#~={}!"))
        return true;
    if (!amp_span_copy((struct amp_span){text, n}, word, sizeof word))
        return false;
    return program_exists(word) ||
           (strncmp(word, "agent-", 6) == 0 &&
            amp_helper_path(word, path, sizeof path, &ignored) == 0 && access(path, X_OK) == 0);
}

static int command_ask(int fd, const char *role, const char *guess, const char **out,
                       struct amp_error *err)
{
    char question[256], line[LINE_LONG];
    snprintf(question, sizeof question, "Command of the %s%s%s%s: ", role, *guess ? " [" : "",
             guess, *guess ? "]" : " (a program, a script or a shell line)");
    for (;;) {
        if (line_ask(fd, question, line, sizeof line, err) < 0)
            return -1;
        const char *text = line + strspn(line, " \t");
        if (!*text)
            text = guess;
        if (*text && command_exists(text)) {
            *out = strdup(text); /* for the process's life */
            return *out ? 0 : amp_fail_memory(err);
        }
        if (*text && amp_write_all(fd, AMP_SPAN("  there is no such program\n"), err) < 0)
            return -1;
    }
}

/* 1: asked, 0: there is no terminal. INTERRUPTED, USAGE (end of input). */
static int commands_ask(struct init *in, struct amp_error *err)
{
    AMP_CLOSE int fd = terminal_open();
    if (fd < 0)
        return 0;
    if (!in->executor && command_ask(fd, "executor", agent_guess(false), &in->executor, err) < 0)
        return -1;
    if (!in->reviewer && command_ask(fd, "reviewer", agent_guess(true), &in->reviewer, err) < 0)
        return -1;
    return 1;
}

/* 1: yes, 0: no or no terminal. */
static int proceed_ask(struct amp_error *err)
{
    char line[64];
    AMP_CLOSE int fd = terminal_open();
    if (fd < 0)
        return 0;
    if (line_ask(fd, "Proceed? [Y/n] ", line, sizeof line, err) < 0)
        return -1;
    return line[0] == '\0' || line[0] == 'y' || line[0] == 'Y';
}

/* ---- the verb ---- */

static int commands_get(struct init *in, struct amp_error *err)
{
    in->executor = executor;
    in->reviewer = reviewer;
    if (undo || no_loop || (executor && reviewer))
        return 0;
    int asked = dry_run || yes ? 0 : commands_ask(in, err);
    if (asked == 0)
        return amp_fail(err, AMP_USAGE, missing_argument,
                        "the agents' commands are needed: -x EXECUTOR -y REVIEWER, or --no-loop");
    return asked < 0 ? -1 : 0;
}

/* Agents without walls can do what people can: a set-up of them has to be asked for. */
static int walls_check(struct init *in, struct amp_error *err)
{
    AMP_CONFINE_POLICY policy = {0};
    struct amp_confine_report report;
    const char *demand = getenv("AMP_CONFINE");
    enum amp_confine_demand asked = AMP_CONFINE_REQUIRE;
    in->unconfined = unconfined;
    if (undo || no_loop || unconfined)
        return 0;
    amp_confine_policy_init(&policy);
    bool off =
        demand && amp_confine_demand_find(amp_span_str(demand), &asked) && asked == AMP_CONFINE_OFF;
    if (!off && amp_confine_choose(AMP_CONFINE_BEST_EFFORT, &policy, &report, err) < 0)
        return -1;
    if (!off && report.level != AMP_LEVEL_NONE)
        return 0;
    return amp_fail(
        err, AMP_CONFIG, not_confined,
        "%s, and agents that are not confined count as people: they can move protected "
        "branches, approve their own work and grant overrides; --unconfined sets that up",
        off ? "AMP_CONFINE is off" : "this machine cannot confine agents");
}

/* 1: go on. */
static int proceed(const struct init *in, struct amp_error *err)
{
    if (dry_run || !plan_changes(in))
        return 0;
    if (yes || !has_terminal())
        return 1;
    int answer = proceed_ask(err);
    if (answer == 0)
        return amp_fail(err, AMP_NO, declined, "nothing was changed");
    return answer;
}

static int init_run(struct init *in, struct amp_error *err)
{
    if (init_open(in, err) < 0 || commands_get(in, err) < 0 || walls_check(in, err) < 0 ||
        (undo ? init_undo_plan(in, err) : init_plan(in, !no_hooks, !no_agents, err)) < 0 ||
        plan_print(in, err) < 0)
        return -1;
    int go = proceed(in, err);
    if (go < 0)
        return -1;
    if (go && (undo ? init_undo(in, err) : init_make(in, err)) < 0) {
        if (!undo)
            if (!no_agents)
                amp_note("share/amp/SKILL.md explains these tools to agents: copy it to "
                         ".claude/skills/amp-tools/ (Claude Code) and to .agents/skills/amp-tools/ "
                         "(Codex, "
                         "Gemini CLI, OpenCode, Qwen Code)");
        amp_note("task-dispatch init --undo removes what was made before the error");
        return -1;
    }
    if (!undo && !dry_run && !json)
        next_print(in);
    return 0;
}

static int init_check(struct amp_command *c, struct amp_error *err)
{
    (void)c, (void)err;
    if (no_loop && (executor || reviewer || unconfined))
        amp_die_usage("--no-loop excludes --exec, --reviewer and --unconfined");
    return 0;
}

static int task_init(struct amp_command *c, struct amp_error *err)
{
    struct init *in = calloc(1, sizeof *in);
    (void)c;
    if (!in)
        return amp_fail_memory(err);
    int rc = init_run(in, err);
    init_steps_release(in);
    amp_git_close(in->git);
    free(in);
    return rc < 0 ? -1 : AMP_OK;
}

const struct amp_verb init_verbs[] = {
    {"init", "", "set up the repository: state, hooks, loop.sh, AGENTS.md", task_init_opts,
     task_init, .check = init_check, .act = "set up a repository", .signals = true,
     .group = "Starting", .who = AMP_WHO_PERSON},
    {0},
};
