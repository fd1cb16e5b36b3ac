/* task-dispatch init: options, the plan as text, and where to go next. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <amp/json/writer.h>

#include "../verbs.h"
#include "flow/identity/person.h"
#include "init.h"

static const char *executor, *reviewer;
static bool yes, dry_run, undo, json, no_hooks, no_agents, no_loop;

const struct amp_opt task_init_opts[] = {
    {'x', "exec", AMP_OPT_STRING, &executor, "COMMAND", .doc = "the executor's command"},
    {'y', "reviewer", AMP_OPT_STRING, &reviewer, "COMMAND", .doc = "the reviewer's command"},
    {0, "no-loop", AMP_OPT_FLAG, &no_loop, NULL, .doc = "do not write loop.sh"},
    {0, "no-hooks", AMP_OPT_FLAG, &no_hooks, NULL, .doc = "do not install the hooks"},
    {0, "no-agents", AMP_OPT_FLAG, &no_agents, NULL, .doc = "do not change AGENTS.md"},
    {0, "yes", AMP_OPT_FLAG, &yes, NULL, .doc = "do not ask whether to proceed"},
    {0, "dry-run", AMP_OPT_FLAG, &dry_run, NULL, .doc = "print the plan and change nothing"},
    {0, "undo", AMP_OPT_FLAG, &undo, NULL,
     .doc = "remove what init made, unless it was changed since"},
    {0, "json", AMP_OPT_FLAG, &json, NULL, .doc = "print one JSON object per line"},
    AMP_OPT_END,
};

static const char *const words[] = {
#define X(id, word) [INIT_##id] = word,
    INIT_ACTIONS(X)
#undef X
};
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

/* Where to go from here. */
static void next_print(const struct init *in)
{
    bool usual = strcmp(in->info.branch, "main") == 0 || strcmp(in->info.branch, "master") == 0;
    if (!in->info.head[0])
        amp_note("the repository has no commit yet: a task needs one to start from");
    if (!usual && !in->info.linked && in->info.branch[0] && !no_hooks)
        amp_note("%s is protected by the hooks; for the loop, add it to branches.protected of "
                 "~/.config/amp/amp.json",
                 in->info.branch);
    amp_note("next: write a task into TASK.md (task-dispatch-new(1)), then %s TASK.md",
             in->executor && in->reviewer ? "./loop.sh" : "task-dispatch loop -x … -y …");
    amp_note("task-dispatch init --undo removes all this again");
}

static int commands_get(struct init *in, struct amp_error *err)
{
    in->executor = executor;
    in->reviewer = reviewer;
    if (undo || no_loop || (executor && reviewer))
        return 0;
    int asked = dry_run || yes ? 0 : init_ask_commands(in, err);
    if (asked == 0)
        return amp_fail(err, AMP_USAGE, "missing_argument",
                        "the agents' commands are needed: -x EXECUTOR -y REVIEWER, or --no-loop");
    return asked < 0 ? -1 : 0;
}

/* 1: go on. */
static int proceed(const struct init *in, struct amp_error *err)
{
    if (dry_run || !plan_changes(in))
        return 0;
    if (yes || !init_has_terminal())
        return 1;
    int answer = init_ask_proceed(err);
    if (answer == 0)
        return amp_fail(err, AMP_NO, "declined", "nothing was changed");
    return answer;
}

static int init_run(struct init *in, struct amp_error *err)
{
    if (init_open(in, err) < 0 || commands_get(in, err) < 0 ||
        (undo ? init_undo_plan(in, err) : init_plan(in, !no_hooks, !no_agents, err)) < 0 ||
        plan_print(in, err) < 0)
        return -1;
    int go = proceed(in, err);
    if (go < 0)
        return -1;
    if (go && (undo ? init_undo(in, err) : init_make(in, err)) < 0) {
        if (!undo)
            amp_note("task-dispatch init --undo removes what was made before the error");
        return -1;
    }
    if (!undo && !dry_run && !json)
        next_print(in);
    return 0;
}

int task_init(int argc, char **argv)
{
    struct amp_error err = {0};
    struct init *in = calloc(1, sizeof *in);
    (void)argc;
    (void)argv;
    if (!in) {
        amp_fail_memory(&err);
        return amp_complain(&err);
    }
    if (no_loop && (executor || reviewer))
        amp_die_usage("--no-loop excludes --exec and --reviewer");
    amp_signals_install();
    int rc = amp_flow_person_only(NULL, amp_cli_name(), environ, "set up a repository", &err) < 0
                 ? -1
                 : init_run(in, &err);
    init_steps_release(in);
    amp_git_close(in->git);
    free(in);
    return rc < 0 ? amp_complain(&err) : 0;
}
