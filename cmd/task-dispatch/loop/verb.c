/* task-dispatch loop: options, the new tasks, and the result. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <amp/base/file.h>
#include <amp/base/id.h>
#include <amp/protocol/protocol.h>

#include "../verbs.h"
#include "base/codes.h"
#include "base/file/repository.h"
#include "base/grow.h"
#include "base/loop.h"
#include "loop.h"
#include "message/delivery/outbox.h"
#include "message/protocol/amp/amp.h"
#include "people/story/story.h"
#include "shared/work/worker.h"
#include "work/loop/coordinate/coordinate.h"
#include "work/loop/pool/pool.h"
#include "work/task/suspend.h"
#include "work/task/task.h"

#define FILE_MAX ((size_t)8 << 20)
#define KEPT     "run/loop.tasks"

/* The name under which the id of a file's task is kept: the digest of its text and of the
 * repository. "": none, for a pipe or what `new` refuses anyway. */
static int kept_name(const char *path, char out[AMP_SHA256_MAX], struct amp_error *err)
{
    struct amp_repository repo;
    struct stat st;
    char cwd[PATH_MAX];
    AMP_BUF struct amp_buf text = {0};
    *out = '\0';
    amp_buf_init(&text, FILE_MAX + PATH_MAX + 1);
    if (stat(path, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size > (off_t)FILE_MAX ||
        !getcwd(cwd, sizeof cwd))
        return 0;
    if (amp_repository_find(cwd, &repo, NULL) == 0 && repo.found)
        memcpy(cwd, repo.common, sizeof cwd);
    if (amp_buf_str(&text, cwd, err) < 0 || amp_buf_str(&text, "\n", err) < 0)
        return -1;
    if (amp_file_read_any(path, text.len + FILE_MAX, &text, NULL) == 0)
        amp_sha256_hex(amp_buf_span(&text), out);
    return 0;
}

struct search {
    struct amp_store *store;
    struct amp_span text;
    int64_t since_ms;
    char *id;
};

static int task_compare(void *ctx, const struct amp_brief *b, struct amp_error *err)
{
    struct search *f = ctx;
    struct amp_task t;
    if (b->created_ms < f->since_ms)
        return 0;
    if (amp_task_load(f->store, b->id, &t, NULL, err) < 0)
        return -1;
    if (amp_span_is(f->text, t.text))
        amp_span_copy(b->id, f->id, AMP_TASK_ID_MAX);
    amp_task_release(&t);
    return *f->id != '\0';
}

/* The task that a killed loop created from the file after since_ms, before it kept the id. */
static int task_search(struct amp_store *store, const char *path, int64_t since_ms,
                       char id[AMP_TASK_ID_MAX], struct amp_error *err)
{
    const struct amp_brief_filter all = {.ended = true};
    AMP_BUF struct amp_buf text = {0};
    amp_buf_init(&text, FILE_MAX);
    struct search f = {.store = store, .since_ms = since_ms, .id = id};
    if (amp_file_read_any(path, FILE_MAX, &text, err) < 0)
        return -1;
    f.text = amp_buf_span(&text);
    return amp_brief_each(store, &all, task_compare, &f, err);
}

enum kept { KEPT_NONE, KEPT_OPEN, KEPT_ENDED };

/* Tells what became of the task whose id was kept for a file; id gets the task. With a path it also
 * looks for a task whose creation was interrupted. */
static int kept_judge(struct amp_store *store, const char *kept, const char *path,
                      char id[AMP_TASK_ID_MAX], enum kept *what, struct amp_error *err)
{
    AMP_BUF struct amp_buf text = {.max = AMP_TASK_ID_MAX + 1};
    struct amp_task_status status;
    struct amp_error no;
    struct stat st;
    *what = KEPT_NONE;
    *id = '\0';
    if (stat(kept, &st) != 0 || amp_file_read(AT_FDCWD, kept, AMP_TASK_ID_MAX, &text, &no) < 0)
        return 0;
    if (text.len == 0 && path) {
        int64_t since_ms = st.st_mtim.tv_sec * INT64_C(1000) + st.st_mtim.tv_nsec / 1000000;
        if (task_search(store, path, since_ms, id, err) < 0)
            return -1;
    } else if (amp_is_task_id(amp_buf_span(&text))) {
        amp_span_copy(amp_buf_span(&text), id, AMP_TASK_ID_MAX);
    }
    if (!*id)
        return 0;
    if (amp_task_status(store, amp_span_str(id), &status, err) < 0)
        return -1;
    if (status.found)
        *what = status.terminal ? KEPT_ENDED : KEPT_OPEN;
    return 0;
}

/* After a loop that ended: the next one with the same files creates new tasks. */
static int kept_clear(struct amp_command *c, struct amp_error *err)
{
    char dir[PATH_MAX + 32], path[PATH_MAX + 320], id[AMP_TASK_ID_MAX];
    const struct dirent *e;
    enum kept what;
    int rc = amp_state_open(c, err);
    snprintf(dir, sizeof dir, "%s/" KEPT, amp_tool_state);
    DIR *d = rc == 0 ? opendir(dir) : NULL;
    while (d && rc == 0 && (e = readdir(d))) {
        snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
        rc = kept_judge(c->store, path, NULL, id, &what, err);
        if (rc == 0 && what != KEPT_OPEN && *e->d_name != '.')
            unlink(path);
    }
    if (d)
        closedir(d);
    amp_state_close(c);
    return rc;
}

/* Runs task-dispatch new on the file. *status: its status; id: the created task, or "". */
static int new_run(const char *path, int *status, char id[AMP_TASK_ID_MAX], struct amp_error *err)
{
    struct amp_child child;
    struct amp_child_end end;
    char self[PATH_MAX], said[256];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    AMP_CLOSE int out = memfd_create("created", MFD_CLOEXEC);
    if (n < 0 || out < 0)
        return amp_fail_errno(err, AMP_IOERR, "%s", n < 0 ? "/proc/self/exe" : "the new task");
    self[n] = '\0';
    const char *const args[] = {self, "new", "--", path, NULL};
    const struct amp_child_spec spec = {.argv = args,
                                        .fd_in = STDIN_FILENO,
                                        .fd_out = out,
                                        .fd_err = STDERR_FILENO,
                                        .keep_group = true,
                                        .dies_with_us = true};
    if (amp_child_start(&spec, &child, err) < 0 ||
        amp_child_wait(&child, -1, 1000, &amp_stop, &end, err) < 0)
        return -1;
    *status = amp_stop ? AMP_INTERRUPTED : end.exited ? end.exit_code : AMP_INTERNAL;
    n = pread(out, said, sizeof said - 1, 0);
    said[n > 0 ? n : 0] = '\0';
    *id = '\0';
    if (!amp_span_copy((struct amp_span){said, strcspn(said, " \n")}, id, AMP_TASK_ID_MAX) ||
        !amp_is_task_id(amp_span_str(id)))
        *id = '\0';
    return 0;
}

struct made {
    char (*id)[AMP_TASK_ID_MAX];
    size_t n, cap;
    bool again; /* a file whose task has ended becomes a new task */
};

static int kept_write(const char *dir, const char *kept, const char *id, struct amp_error *err)
{
    return amp_mkdirs(dir, 0700, err) < 0
               ? -1
               : amp_file_write_atomic(AT_FDCWD, kept, 0600, amp_span_str(id), err);
}

static int task_make(struct amp_store *store, const char *path, struct made *made, int *status,
                     struct amp_error *err)
{
    char name[AMP_SHA256_MAX], dir[PATH_MAX + 32], kept[PATH_MAX + 128], id[AMP_TASK_ID_MAX] = "";
    enum kept what = KEPT_NONE;
    if (kept_name(path, name, err) < 0)
        return -1;
    snprintf(dir, sizeof dir, "%s/" KEPT, amp_store_dir(store));
    snprintf(kept, sizeof kept, "%s/%s", dir, name);
    if (*name && kept_judge(store, kept, path, id, &what, err) < 0)
        return -1;
    if (what == KEPT_OPEN || (what == KEPT_ENDED && !made->again)) {
        amp_note("%s: this is %s, which %s", path, id,
                 what == KEPT_OPEN ? "is open: it continues"
                                   : "has ended in the loop that did not end: it is not repeated");
        return *name ? kept_write(dir, kept, id, err) : 0;
    }
    if ((*name && kept_write(dir, kept, "", err) < 0) || new_run(path, status, id, err) < 0)
        return -1;
    if (!*id) {
        if (*name && *status != AMP_INTERRUPTED)
            unlink(kept);
        return 0;
    }
    if (amp_grow(&made->id, &made->cap, made->n, sizeof *made->id, err) < 0)
        return -1;
    memcpy(made->id[made->n++], id, sizeof id);
    return *name ? kept_write(dir, kept, id, err) : 0;
}

/* Creates a task from each file; *status: that of task-dispatch new. The id is kept in
 * STATE/run/loop.tasks under the digest of the file, so that a loop that was killed and starts
 * again with the same files continues their tasks, and does not repeat those that have ended. While
 * a task is created, the file that keeps the id is empty. */
static int tasks_make(struct amp_store *store, int argc, char **argv, struct made *made,
                      int *status, struct amp_error *err)
{
    *status = AMP_OK;
    for (int i = 0; i < argc && *status != AMP_INTERRUPTED; i++) {
        int one = AMP_OK;
        if (task_make(store, argv[i], made, &one, err) < 0)
            return -1;
        *status = (int)amp_status_worse((enum amp_status) * status, (enum amp_status)one);
    }
    return 0;
}

#define LOCK_NAME  "task-dispatch.loop"
#define SCRIPT_MAX (1 << 20)

static struct loop_settings settings = {.executors = 1, .reviewers = 1};
static bool print;

static const struct amp_opt task_loop_opts[] = {
    {'x', "exec", AMP_OPT_STRING, &settings.executor, "COMMAND",
     .doc = "the executor's command: words, or a line for the shell"},
    {'y', "reviewer", AMP_OPT_STRING, &settings.reviewer, "COMMAND",
     .doc = "the reviewer's command"},
    {'j', "jobs", AMP_OPT_INT, &settings.executors, "N",
     .doc = "work on N tasks at a time, each in a worktree of its own", .min = 1,
     .max = AMP_POOL_AGENTS},
    AMP_TOOL_TYPE_OPTS(settings.types, settings.commands,
                       "the command of the executors of a type instead of --exec"),
    {'J', "reviewers", AMP_OPT_INT, &settings.reviewers, "N", .doc = "review N results at a time",
     .min = 1, .max = AMP_POOL_AGENTS},
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
    {0, "land", AMP_OPT_FLAG, &settings.land, NULL,
     .doc = "land each task when it is approved, as task-dispatch land --all does",
     .config = "land.auto"},
    {0, "print", AMP_OPT_FLAG, &print, NULL,
     .doc = "print the equivalent shell script and start nothing"},
    AMP_OPT_END,
};

/* The state directory: the given one, or the repository's, which may not exist yet. */
static int state_choose(struct amp_error *err)
{
    static char dir[PATH_MAX], real[PATH_MAX];
    if (!amp_tool_state || !*amp_tool_state) {
        enum amp_repository_state found = amp_cli_repository(dir, sizeof dir);
        if (found != AMP_REPOSITORY_WITHOUT && found != AMP_REPOSITORY_FOUND)
            amp_die_no_state();
        amp_tool_state = dir;
    }
    if (amp_mkdirs(amp_tool_state, 0700, err) < 0)
        return -1;
    if (!realpath(amp_tool_state, real))
        return amp_fail_errno(err, AMP_IOERR, "%s", amp_tool_state);
    amp_tool_state = real;
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
    settings.allowed_signers = amp_tool_identity.allowed_signers;
    if (path_resolve(&settings.executor_policy, err) < 0 ||
        path_resolve(&settings.reviewer_policy, err) < 0 ||
        path_resolve(&settings.walls.policy, err) < 0 || path_resolve(&settings.answer, err) < 0 ||
        path_resolve(&settings.allowed_signers, err) < 0 || path_resolve(&amp_tool_config, err) < 0)
        return -1;
    /* All filters read these. The agents of a loop have other tasks, so a locked one does not
     * suspend them unless amp.json says so. */
    if (setenv("AMP_STATE", amp_tool_state, 1) != 0 || setenv(AMP_SUSPENSION_ENV, "task", 0) != 0 ||
        (amp_tool_config && setenv("AMP_CONFIG", amp_tool_config, 1) != 0) ||
        (strcmp(amp_tool_identity.require, "local") != 0 &&
         setenv("AMP_IDENTITY", amp_tool_identity.require, 1) != 0))
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
        rc = loop_supervise(r, err);
        if (rc >= 0) {
            *status = rc;
            rc = 0;
        }
        loop_screen_close(&r->screen);
    }
    loop_fifos_remove(dir);
    loop_plan_free(&r->plan);
    return rc;
}

/* Lands what is approved and has not landed, after the coordinator's end. Work that is sent back is
 * TEMPFAIL, and found by loop_again. */
static int rest_land(int *status, struct amp_error *err)
{
    AMP_CLEANUP(loop_plan_free) struct loop_plan plan = {0};
    struct amp_child child;
    struct amp_child_end end;
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n < 0)
        return amp_fail_errno(err, AMP_IOERR, "/proc/self/exe");
    self[n] = '\0';
    if (loop_plan_make(&settings, LOOP_FIFOS, &plan, err) < 0)
        return -1;
    const struct loop_filter *f = &plan.filters[plan.n - 1];
    AMP_FREE const char **argv = calloc(f->n + 1, sizeof *argv);
    if (!argv)
        return amp_fail_memory(err);
    memcpy(argv, f->argv, (f->n - 1) * sizeof *argv); /* all but --follow */
    argv[0] = self;
    const struct amp_child_spec spec = {.argv = argv,
                                        .fd_in = -1,
                                        .fd_out = STDOUT_FILENO,
                                        .fd_err = STDERR_FILENO,
                                        .keep_group = true,
                                        .dies_with_us = true};
    if (amp_child_start(&spec, &child, err) < 0 ||
        amp_child_wait(&child, -1, 15000, &amp_stop, &end, err) < 0)
        return -1;
    int landed = amp_stop ? AMP_INTERRUPTED : end.exited ? end.exit_code : AMP_INTERNAL;
    *status = (int)amp_status_worse((enum amp_status) * status, (enum amp_status)landed);
    return 0;
}

static int open_found(void *ctx, const struct amp_brief *b, struct amp_error *err)
{
    bool *found = ctx;
    (void)b, (void)err;
    *found = true;
    return 1;
}

/* Looks for an open task. Without one, files whose tasks have ended, or tasks that are to land, are
 * work, too. NO no_task. */
static int open_check(struct amp_store *store, bool has_files, bool *open, struct amp_error *err)
{
    struct amp_brief_filter filter = {.ended = false};
    bool found = false;
    if (amp_brief_each(store, &filter, open_found, open, err) < 0)
        return -1;
    filter.unlanded = settings.land;
    if (!*open && filter.unlanded && amp_brief_each(store, &filter, open_found, &found, err) < 0)
        return -1;
    return *open || found || has_files ? 0
                                       : amp_fail(err, AMP_NO, no_task,
                                                  "no task is open: give a file with one, TASK.md "
                                                  "(task-dispatch-new(1))");
}

/* ---- beside another loop ---- */

/* 1: this process has the lock; 0: another loop has it. */
static int lock_try(struct amp_store *store, int *lock, struct amp_error *err)
{
    if (amp_outbox_lock(store, LOCK_NAME, 0, lock, err) == 0)
        return 1;
    return amp_code_is(err->code, lock_timeout) ? 0 : -1;
}

static int entry_found(void *ctx, const struct amp_store_entry *e, struct amp_error *err)
{
    bool *found = ctx;
    (void)e, (void)err;
    *found = true;
    return 1;
}

/* After the coordinator has ended: whether there is a dispatch of a new task that it did not send.
 * The lock is free, so that another process that has just created a task either has it, or finds
 * it taken by this one. 1: this process has the lock again. */
static int loop_again(struct amp_command *c, int *lock, struct amp_error *err)
{
    bool found = false;
    close(*lock);
    *lock = -1;
    int rc = amp_state_open(c, err);
    if (rc == 0)
        rc = amp_store_outbox(c->store, AMP_CREATE_CONSUMER, entry_found, &found, err);
    if (rc == 0 && found)
        rc = lock_try(c->store, lock, err);
    amp_state_close(c);
    return rc < 0 ? -1 : rc > 0 && *lock >= 0;
}

/* For a loop that runs on the state: creates the tasks, which its coordinator takes. If it has
 * ended by then, *lock is its lock, and the caller leads the tasks. Returns the status. */
static int loop_join(struct amp_command *c, int *lock, struct amp_error *err)
{
    struct made made = {.again = true};
    int status = AMP_OK;
    if (c->argc == 0)
        return amp_fail(err, AMP_TEMPFAIL, loop_runs,
                        "another loop runs on %s and leads its open tasks; with TASK.md it gets "
                        "another one",
                        amp_tool_state);
    int rc = tasks_make(c->store, c->argc, c->argv, &made, &status, err);
    if (rc == 0 && status != AMP_INTERRUPTED)
        rc = lock_try(c->store, lock, err);
    if (rc > 0 && made.n > 0 && (!settings.executor || !settings.reviewer))
        rc = amp_fail(err, AMP_TEMPFAIL, loop_ended,
                      "%s is created, but the loop on %s has ended: start one (./loop.sh, or -x "
                      "EXECUTOR -y REVIEWER)",
                      made.id[0], amp_tool_state);
    for (size_t i = 0; rc == 0 && i < made.n; i++)
        amp_note("%s was handed over to the loop that runs on %s, with its commands", made.id[i],
                 amp_tool_state);
    free(made.id);
    return rc < 0 ? -1 : status;
}

__attribute__((noreturn)) static void die_without_commands(void)
{
    amp_die_usage("the agents' commands are needed: -x EXECUTOR -y REVIEWER ('task-dispatch init' "
                  "writes them into loop.sh)");
}

static int loop_check(struct amp_command *c, struct amp_error *err)
{
    bool can_lead = settings.executor && settings.reviewer;
    char log[PATH_MAX + 8];
    struct amp_pool_type types[AMP_POOL_TYPES];
    int type;
    struct loop_plan plan = {0};
    if (state_choose(err) < 0)
        return -1;
    c->state = amp_tool_state;
    /* Without a log no loop runs. */
    snprintf(log, sizeof log, "%s/log", amp_tool_state);
    task_types_read(&settings.types, settings.executors, types);
    for (int i = 0; i < settings.commands.n; i++)
        amp_tool_type_command(settings.commands.v[i], types, settings.types.n, &type);
    if (!can_lead && (print || c->argc == 0 || access(log, F_OK) != 0))
        die_without_commands();
    if (settings_complete(err) < 0)
        return -1;
    if (print) {
        c->opens = AMP_OPENS_NOTHING;
        return 0;
    }
    /* A wrong command is reported before anything else. */
    int rc = can_lead ? loop_plan_make(&settings, LOOP_FIFOS, &plan, err) : 0;
    loop_plan_free(&plan);
    return rc;
}

static int task_loop(struct amp_command *c, struct amp_error *err)
{
    struct loop_run r = {.state = amp_tool_state};
    struct made made = {0};
    int status = AMP_OK;
    bool can_lead = settings.executor && settings.reviewer;
    if (print)
        return script_print(c->argv, err);
    amp_signals_reload();
    AMP_CLOSE int lock = -1;
    bool joined = false, open = false;
    int rc = lock_try(c->store, &lock, err);
    if (rc == 0) {
        joined = true;
        status = loop_join(c, &lock, err);
        if (status != 0 || lock < 0)
            return status;
        amp_note("the loop that ran has ended; this one leads its tasks now");
    }
    if (!can_lead)
        die_without_commands();
    rc = rc < 0 ? -1 : 0;
    if (rc == 0 && !joined && c->argc > 0)
        rc = tasks_make(c->store, c->argc, c->argv, &made, &status, err);
    if (rc == 0 && status == AMP_OK)
        rc = open_check(c->store, c->argc > 0, &open, err);
    free(made.id);
    /* The filters open the state themselves; the lock lives on. */
    amp_state_close(c);
    while (rc == 0 && status == AMP_OK && lock >= 0) {
        r.complete = true;
        if ((!open || (rc = run_supervised(&r, &status, err)) == 0) && r.complete &&
            (!settings.land || (rc = rest_land(&status, err)) == 0) &&
            (status != AMP_OK || (rc = kept_clear(c, err)) == 0) &&
            (rc = loop_again(c, &lock, err)) > 0) {
            status = AMP_OK;
            open = true;
            rc = 0;
            continue;
        }
        break;
    }
    return rc < 0 ? -1 : status;
}

const struct amp_verb loop_verbs[] = {
    {"loop", "[TASK.md…]", "run the complete loop with two commands, supervised", task_loop_opts,
     task_loop, .check = loop_check, .opens = AMP_OPENS_MADE, .act = "start a loop",
     .signals = true, .finds_state = true, .who = AMP_WHO_PERSON},
    {0},
};
