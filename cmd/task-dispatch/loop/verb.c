/* task-dispatch loop: options, the new tasks, and the result. */
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
#include "base/file/repository.h"
#include "base/grow.h"
#include "base/loop.h"
#include "flow/identity/person.h"
#include "flow/outbox.h"
#include "flow/story/story.h"
#include "loop.h"
#include "task/task.h"

#define FILE_MAX       ((size_t)8 << 20)
#define LINE_MAX_BYTES (4 * FILE_MAX)
#define KEPT           "run/loop.tasks"

/* The name under which the line of a file's task is kept: the digest of its text and of the
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

enum kept { KEPT_NONE, KEPT_OPEN, KEPT_UNKNOWN };

/* What became of the task with this line: nothing or it has ended, open, or the coordinator never
 * got it. */
static int kept_judge(struct amp_store *store, struct amp_span line, enum kept *out,
                      char id[AMP_TASK_ID_MAX], struct amp_error *err)
{
    static const struct amp_check_options any = {0};
    struct amp_task_status status;
    struct amp_view v;
    struct amp_reader *reader = amp_reader_new(NULL, err);
    *out = KEPT_NONE;
    int rc = reader ? amp_reader_line(reader, line, &any, &v, NULL, NULL, err) : -1;
    if (rc > 0 && amp_span_copy(v.task, id, AMP_TASK_ID_MAX) && *id &&
        (rc = amp_task_status(store, amp_span_str(id), &status, err)) == 0)
        *out = !status.found ? KEPT_UNKNOWN : status.terminal ? KEPT_NONE : KEPT_OPEN;
    amp_reader_free(reader);
    return rc < 0 ? -1 : 0;
}

static int new_run(const char *path, int fd, int *status, struct amp_error *err)
{
    struct amp_child child;
    struct amp_child_end end;
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n < 0)
        return amp_fail_errno(err, AMP_IOERR, "/proc/self/exe");
    self[n] = '\0';
    const char *const args[] = {self, "new", "--", path, NULL};
    const struct amp_child_spec spec = {.argv = args,
                                        .fd_in = STDIN_FILENO,
                                        .fd_out = fd,
                                        .fd_err = STDERR_FILENO,
                                        .keep_group = true,
                                        .dies_with_us = true};
    if (amp_child_start(&spec, &child, err) < 0 ||
        amp_child_wait(&child, -1, 1000, &amp_stop, &end, err) < 0)
        return -1;
    *status = amp_stop ? AMP_INTERRUPTED : end.exited ? end.exit_code : AMP_INTERNAL;
    return 0;
}

/* Keeps what fd has from the offset on. */
static int line_keep(struct amp_store *store, const char *kept, int fd, off_t from,
                     struct amp_error *err)
{
    char dir[PATH_MAX + 32];
    AMP_BUF struct amp_buf line = {0};
    off_t end = lseek(fd, 0, SEEK_CUR);
    amp_buf_init(&line, LINE_MAX_BYTES);
    if (end < from || (size_t)(end - from) > LINE_MAX_BYTES)
        return 0;
    size_t n = (size_t)(end - from);
    if (amp_buf_reserve(&line, n, err) < 0)
        return -1;
    if (pread(fd, line.data, n, from) != (ssize_t)n)
        return amp_fail_errno(err, AMP_IOERR, "the new tasks");
    snprintf(dir, sizeof dir, "%s/" KEPT, amp_store_dir(store));
    return amp_mkdirs(dir, 0700, err) < 0
               ? -1
               : amp_file_write_atomic(AT_FDCWD, kept, 0600, (struct amp_span){line.data, n}, err);
}

static int task_make(struct amp_store *store, const char *path, int fd, int *status,
                     struct amp_error *err)
{
    char name[AMP_SHA256_MAX], kept[PATH_MAX + 128], id[AMP_TASK_ID_MAX] = "";
    AMP_BUF struct amp_buf line = {0};
    enum kept found = KEPT_NONE;
    amp_buf_init(&line, LINE_MAX_BYTES);
    if (kept_name(path, name, err) < 0)
        return -1;
    snprintf(kept, sizeof kept, "%s/" KEPT "/%s", amp_store_dir(store), name);
    if (*name && access(kept, F_OK) == 0 &&
        (amp_file_read(AT_FDCWD, kept, LINE_MAX_BYTES - 1, &line, err) < 0 ||
         (line.len &&
          kept_judge(store, (struct amp_span){line.data, line.len - 1}, &found, id, err) < 0)))
        return -1;
    if (found != KEPT_NONE)
        amp_note("%s: this is %s, which is open: it continues", path, id);
    if (found == KEPT_UNKNOWN)
        return amp_write_all(fd, amp_buf_span(&line), err);
    off_t from = lseek(fd, 0, SEEK_CUR);
    if (found == KEPT_OPEN)
        return 0;
    if (from < 0)
        return amp_fail_errno(err, AMP_IOERR, "the new tasks");
    if (new_run(path, fd, status, err) < 0)
        return -1;
    return *status == AMP_OK && *name ? line_keep(store, kept, fd, from, err) : 0;
}

/* Creates a task from each file and appends its line to fd; *status: that of task-dispatch new. The
 * line is kept in STATE/run/loop.tasks under the digest of the file, so that a loop that was killed
 * and starts again with the same file continues its task while it is open. */
static int tasks_make(struct amp_store *store, int argc, char **argv, int fd, int *status,
                      struct amp_error *err)
{
    *status = AMP_OK;
    for (int i = 0; i < argc && *status != AMP_INTERRUPTED; i++) {
        int one = AMP_OK;
        if (task_make(store, argv[i], fd, &one, err) < 0)
            return -1;
        *status = (int)amp_status_worse((enum amp_status) * status, (enum amp_status)one);
    }
    return 0;
}

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
        /* A task that is handed over while the coordinator ends is led by another one. */
        do {
            rc = loop_supervise(r, err);
        } while (rc >= 0 && r->complete && loop_spool_again(&r->spool));
        if (rc >= 0) {
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

/* ---- handing over to a running loop ---- */

#define LOOK_MS 1000 /* how often the loop's lock is tried */

struct handover {
    struct amp_store *store;
    struct loop_spool spool;
    struct given {
        char id[AMP_TASK_ID_MAX];
        bool gone;
    } * v;
    size_t n, cap;
};

/* Puts each line of the file into the spool. */
static int lines_put(struct handover *h, int tasks, struct amp_error *err)
{
    static const struct amp_check_options any = {0};
    AMP_BUF struct amp_buf text = {.max = LINE_MAX_BYTES};
    struct amp_view v;
    off_t size = lseek(tasks, 0, SEEK_END);
    if (size < 0 || amp_buf_reserve(&text, (size_t)size + 1, err) < 0)
        return size < 0 ? amp_fail_errno(err, AMP_IOERR, "the new tasks") : -1;
    if (pread(tasks, text.data, (size_t)size, 0) != size)
        return amp_fail_errno(err, AMP_IOERR, "the new tasks");
    struct amp_reader *reader = amp_reader_new(NULL, err);
    int rc = reader ? 0 : -1;
    for (const char *p = text.data, *end; rc == 0 && p < text.data + size; p = end + 1) {
        end = memchr(p, '\n', (size_t)(text.data + size - p));
        if (!end)
            break;
        rc = amp_reader_line(reader, (struct amp_span){p, (size_t)(end - p)}, &any, &v, NULL, NULL,
                             err);
        if (rc > 0)
            rc = amp_grow(&h->v, &h->cap, h->n, sizeof *h->v, err);
        if (rc < 0)
            break;
        struct given *g = &h->v[h->n];
        *g = (struct given){.gone = false};
        if (!amp_span_copy(v.task, g->id, sizeof g->id) || !amp_id_is_safe(v.task))
            rc = amp_fail(err, AMP_INTERNAL, "bad_id", "a new task has no id");
        else
            rc = loop_spool_put(&h->spool, g->id, (struct amp_span){p, (size_t)(end - p) + 1}, err);
        h->n += rc == 0;
    }
    amp_reader_free(reader);
    return rc;
}

static size_t waiting_count(struct handover *h)
{
    size_t n = 0;
    for (size_t i = 0; i < h->n; i++)
        n += !(h->v[i].gone = !loop_spool_has(&h->spool, h->v[i].id));
    return n;
}

/* What became of the tasks that the loop took: the status. */
static int given_report(struct handover *h, struct amp_error *err)
{
    int status = AMP_OK;
    for (size_t i = 0; i < h->n; i++) {
        struct amp_task_status now;
        if (amp_task_status(h->store, amp_span_str(h->v[i].id), &now, err) < 0)
            return -1;
        if (now.found) {
            amp_note("%s was handed over to the loop that runs on %s, with its commands",
                     h->v[i].id, task_state);
        } else {
            amp_warn("%s was refused by the loop that runs on %s; its terminal says why",
                     h->v[i].id, task_state);
            status = AMP_NO;
        }
    }
    return status;
}

/* Waits until the loop has taken the tasks: the status; -1: failure. If the loop ends before that,
 * *lock is its lock, and the caller may lead the tasks itself. */
static int tasks_give(struct handover *h, int tasks, int *lock, struct amp_error *err)
{
    if (loop_spool_open(&h->spool, task_state, err) < 0 || lines_put(h, tasks, err) < 0)
        return -1;
    while (waiting_count(h) > 0) {
        struct pollfd fds[1];
        struct amp_loop turn = amp_loop_turn(fds, 1, &amp_stop, &amp_hangup);
        amp_loop_add(&turn, h->spool.watch, POLLIN);
        amp_loop_within(&turn, LOOK_MS);
        int ended = amp_loop_wait(&turn, err);
        if (ended < 0)
            return -1;
        loop_spool_drain(&h->spool);
        if (amp_stop || amp_hangup) {
            amp_note("interrupted; the loop takes what is in %s/run/loop.spool", task_state);
            return AMP_INTERRUPTED;
        }
        if (ended != AMP_LOOP_LATE)
            continue;
        if (amp_outbox_lock(h->store, LOCK_NAME, 0, lock, err) == 0)
            return 0;
        if (strcmp(err->code, "lock_timeout") != 0)
            return -1;
    }
    return given_report(h, err);
}

/* For a loop that runs on the state: makes the tasks and hands them over. *lock: see tasks_give. */
static int loop_join(struct amp_store *store, int argc, char **argv, int *lock,
                     struct amp_error *err)
{
    struct handover h = {.store = store};
    int status = AMP_OK;
    AMP_CLOSE int tasks = memfd_create("tasks", MFD_CLOEXEC);
    if (argc == 0)
        return amp_fail(err, AMP_TEMPFAIL, "loop_runs",
                        "another loop runs on %s and leads its open tasks; with TASK.md it gets "
                        "another one",
                        task_state);
    int rc = tasks < 0 ? amp_fail_errno(err, AMP_IOERR, "the new tasks")
                       : tasks_make(store, argc, argv, tasks, &status, err);
    if (rc == 0 && (status == AMP_OK || lseek(tasks, 0, SEEK_CUR) > 0)) {
        rc = tasks_give(&h, tasks, lock, err);
        /* Without commands this cannot become the loop. */
        if (rc == 0 && *lock >= 0 && (!settings.executor || !settings.reviewer)) {
            for (size_t i = 0; i < h.n; i++)
                loop_spool_withdraw(&h.spool, h.v[i].id);
            rc = amp_fail(err, AMP_TEMPFAIL, "loop_ended",
                          "the loop on %s ended before it took the task: start one (./loop.sh, or "
                          "-x EXECUTOR -y REVIEWER)",
                          task_state);
        }
    }
    loop_spool_close(&h.spool);
    free(h.v);
    return rc < 0 ? -1 : (int)amp_status_worse((enum amp_status)rc, (enum amp_status)status);
}

__attribute__((noreturn)) static void die_without_commands(void)
{
    amp_die_usage("the agents' commands are needed: -x EXECUTOR -y REVIEWER ('task-dispatch init' "
                  "writes them into loop.sh)");
}

int task_loop(int argc, char **argv)
{
    struct amp_error err = {0};
    struct amp_store *store = NULL;
    struct loop_run r = {.tasks = -1, .spool = {.dir = -1, .watch = -1}};
    int status = AMP_OK;
    char log[PATH_MAX + 8];
    bool can_lead = settings.executor && settings.reviewer;
    if (amp_flow_person_only(task_state, amp_cli_name(), environ, "start a loop", &err) < 0 ||
        state_choose(&err) < 0)
        return amp_complain(&err);
    /* Without a log no loop runs. */
    snprintf(log, sizeof log, "%s/log", task_state);
    if (!can_lead && (print || argc == 0 || access(log, F_OK) != 0))
        die_without_commands();
    if (settings_complete(&err) < 0)
        return amp_complain(&err);
    if (print)
        return script_print(argv, &err) < 0 ? amp_complain(&err) : 0;
    /* A wrong command is reported before anything else. */
    if (can_lead && loop_plan_make(&settings, LOOP_FIFOS, &r.plan, &err) < 0)
        return amp_complain(&err);
    loop_plan_free(&r.plan);
    r.state = task_state;
    amp_signals_install();
    amp_signals_reload();
    AMP_CLOSE int lock = -1;
    if (task_open(&store, &err) < 0)
        return amp_complain(&err);
    bool joined = false;
    if (amp_outbox_lock(store, LOCK_NAME, 0, &lock, &err) < 0) {
        joined = strcmp(err.code, "lock_timeout") == 0;
        int rc = joined ? loop_join(store, argc, argv, &lock, &err) : -1;
        if (rc != 0 || lock < 0) {
            amp_store_close(store);
            return rc < 0 ? amp_complain(&err) : rc;
        }
        amp_note("the loop that ran has ended; this one leads its tasks now");
    }
    if (!can_lead)
        die_without_commands();
    AMP_CLOSE int tasks = memfd_create("tasks", MFD_CLOEXEC);
    int rc = tasks < 0 ? amp_fail_errno(&err, AMP_IOERR, "the new tasks")
                       : loop_spool_open(&r.spool, task_state, &err);
    /* What was to be handed over is in the spool. */
    if (rc == 0 && !joined && argc > 0)
        rc = tasks_make(store, argc, argv, tasks, &status, &err);
    else if (rc == 0 && !loop_spool_any(&r.spool))
        rc = open_check(store, &err);
    /* The filters open the state themselves; the lock lives on. */
    amp_store_close(store);
    if (rc == 0 && status == AMP_OK) {
        r.tasks = tasks;
        rc = run_supervised(&r, &status, &err);
    }
    loop_spool_close(&r.spool);
    return rc < 0 ? amp_complain(&err) : status;
}
