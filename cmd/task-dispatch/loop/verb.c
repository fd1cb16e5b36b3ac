/* task-dispatch loop: options, the new tasks, and the result. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <amp/base/file.h>

#include "../verbs.h"
#include "flow/identity/person.h"
#include "flow/outbox.h"
#include "flow/story/story.h"
#include "loop.h"

#define LOCK_NAME  "task-dispatch.loop"
#define SCRIPT_MAX (1 << 20)

static struct loop_settings settings;
static bool print;

const struct amp_opt task_loop_opts[] = {
    {'x', "exec", AMP_OPT_STRING, &settings.executor, "COMMAND",
     .doc = "the executor's command: words, or a line for the shell"},
    {'y', "reviewer", AMP_OPT_STRING, &settings.reviewer, "COMMAND",
     .doc = "the reviewer's command"},
    {0, "executor-policy", AMP_OPT_PATH, &settings.executor_policy, "FILE",
     .doc = "confinement policy of the executor (default: --policy)"},
    {0, "reviewer-policy", AMP_OPT_PATH, &settings.reviewer_policy, "FILE",
     .doc = "confinement policy of the reviewer (default: --policy)"},
    AMP_OPT_UNCONFINED(settings.walls),
    AMP_OPT_CONFINE(settings.walls),
    {0, "answer", AMP_OPT_PATH, &settings.answer, "FILE",
     .doc = "answer questions from FILE instead of the terminal"},
    {0, "base", AMP_OPT_STRING, &settings.base, "REVISION",
     .doc = "start of a new branch whose task has no base"},
    {0, "verdict-by-exit", AMP_OPT_FLAG, &settings.by_exit, NULL,
     .doc = "without an answer use the reviewer's exit status: 0 approves, others reject"},
    {'t', "timeout", AMP_OPT_STRING, &settings.timeout, "TIME",
     .doc = "time limit of one attempt (default: 1h)"},
    {0, "retries", AMP_OPT_STRING, &settings.retries, "N",
     .doc = "how often an attempt is repeated that crashed or timed out (default: 2)"},
    {0, "print", AMP_OPT_FLAG, &print, NULL,
     .doc = "print the equivalent shell script and start nothing"},
    AMP_OPT_END,
};

/* The state directory: the given one, or the repository's, which may not exist yet. */
static int state_choose(struct amp_error *err)
{
    static char dir[PATH_MAX], real[PATH_MAX];
    if (!task_state || !*task_state) {
        enum amp_repository_state found = amp_cli_repository(dir, sizeof dir);
        if (found != AMP_REPOSITORY_WITHOUT && found != AMP_REPOSITORY_FOUND)
            amp_die_no_state();
        task_state = dir;
    }
    if (amp_mkdirs(task_state, 0700, err) < 0)
        return -1;
    if (!realpath(task_state, real))
        return amp_fail_errno(err, AMP_IOERR, "%s", task_state);
    task_state = real;
    return 0;
}

/* Replaces a path by one that works in every directory. */
static int path_resolve(const char **path, struct amp_error *err)
{
    char *real;
    if (!*path)
        return 0;
    if (!(real = realpath(*path, NULL)))
        return amp_fail_errno(err, AMP_USAGE, "%s", *path);
    *path = real; /* for the process's life */
    return 0;
}

static int settings_complete(struct amp_error *err)
{
    if (!settings.executor || !settings.reviewer)
        amp_die_usage("the agents' commands are needed: -x EXECUTOR -y REVIEWER ('task-dispatch "
                      "init' writes them into loop.sh)");
    settings.allowed_signers = task_identity.allowed_signers;
    if (path_resolve(&settings.executor_policy, err) < 0 ||
        path_resolve(&settings.reviewer_policy, err) < 0 ||
        path_resolve(&settings.walls.policy, err) < 0 || path_resolve(&settings.answer, err) < 0 ||
        path_resolve(&settings.allowed_signers, err) < 0 || path_resolve(&task_config, err) < 0)
        return -1;
    /* All filters read these. */
    if (setenv("AMP_STATE", task_state, 1) != 0 ||
        (task_config && setenv("AMP_CONFIG", task_config, 1) != 0) ||
        (strcmp(task_identity.require, "local") != 0 &&
         setenv("AMP_IDENTITY", task_identity.require, 1) != 0))
        return amp_fail_memory(err);
    return 0;
}

static int script_print(char *const *tasks, struct amp_error *err)
{
    AMP_CLEANUP(loop_plan_free) struct loop_plan plan = {0};
    AMP_BUF struct amp_buf script = {0};
    amp_buf_init(&script, SCRIPT_MAX);
    return loop_plan_make(&settings, LOOP_FIFOS, &plan, err) < 0 ||
                   loop_print(&plan, tasks, &script, err) < 0
               ? -1
               : amp_out(amp_buf_span(&script), err);
}

static int run_supervised(struct loop_run *r, int *status, struct amp_error *err)
{
    char dir[PATH_MAX];
    settings.supervised = true;
    settings.color = amp_color(stderr);
    if (loop_fifos_make(r->state, dir, err) < 0)
        return -1;
    int rc = loop_plan_make(&settings, dir, &r->plan, err);
    if (rc == 0 && (rc = loop_screen_open(&r->screen, err)) == 0) {
        if ((rc = loop_supervise(r, err)) >= 0) {
            *status = rc;
            rc = 0;
        }
        loop_screen_close(&r->screen);
    }
    loop_fifos_remove(r->state, dir);
    loop_plan_free(&r->plan);
    return rc;
}

static int open_found(void *ctx, const struct amp_brief *b, struct amp_error *err)
{
    bool *found = ctx;
    (void)b, (void)err;
    *found = true;
    return 1;
}

/* Without new tasks there must be an open one. NO no_task. */
static int open_check(struct amp_store *store, struct amp_error *err)
{
    const struct amp_brief_filter filter = {.ended = false};
    bool found = false;
    if (amp_brief_each(store, &filter, open_found, &found, err) < 0)
        return -1;
    return found ? 0
                 : amp_fail(err, AMP_NO, "no_task",
                            "no task is open: give a file with one, TASK.md "
                            "(task-dispatch-new(1))");
}

int task_loop(int argc, char **argv)
{
    struct amp_error err = {0};
    struct amp_store *store = NULL;
    struct loop_run r = {.tasks = -1};
    int status = AMP_OK;
    if (amp_flow_person_only(task_state, amp_cli_name(), environ, "start a loop", &err) < 0 ||
        state_choose(&err) < 0 || settings_complete(&err) < 0)
        return amp_complain(&err);
    if (print)
        return script_print(argv, &err) < 0 ? amp_complain(&err) : 0;
    /* A wrong command is reported before anything else. */
    if (loop_plan_make(&settings, LOOP_FIFOS, &r.plan, &err) < 0)
        return amp_complain(&err);
    loop_plan_free(&r.plan);
    r.state = task_state;
    amp_signals_install();
    amp_signals_reload();
    AMP_CLOSE int lock = -1;
    if (task_open(&store, &err) < 0)
        return amp_complain(&err);
    if (amp_outbox_lock(store, LOCK_NAME, 0, &lock, &err) < 0) {
        if (strcmp(err.code, "lock_timeout") == 0)
            amp_fail(&err, AMP_TEMPFAIL, "loop_runs", "another loop runs on %s", task_state);
        amp_store_close(store);
        return amp_complain(&err);
    }
    AMP_CLOSE int tasks = memfd_create("tasks", MFD_CLOEXEC);
    int rc = tasks < 0   ? amp_fail_errno(&err, AMP_IOERR, "the new tasks")
             : argc == 0 ? open_check(store, &err)
                         : loop_tasks_make(store, argc, argv, tasks, &status, &err);
    /* The filters open the state themselves; the lock lives on. */
    amp_store_close(store);
    if (rc < 0)
        return amp_complain(&err);
    if (status != AMP_OK)
        return status;
    r.tasks = tasks;
    return run_supervised(&r, &status, &err) < 0 ? amp_complain(&err) : status;
}
